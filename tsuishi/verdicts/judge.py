"""The evidence on every claim of every source: by the findings of runs, and by the numbers that the source prints.

Verdicts on runs are those of a family: see conclusions.py.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from tsuishi.estimates.intervals import FEWEST_TRIALS
from tsuishi.specs.case import DEVICES, PROTOCOL, SUITE
from tsuishi.specs.claims import Claim, Verdict
from tsuishi.specs.questions import look_at
from tsuishi.specs.selections import ENVIRONMENT, FRAMEWORK
from tsuishi.specs.source import Epochs, Source
from tsuishi.verdicts.checks import CheckResult, evaluate, fewest_trials, on_values
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.findings import Finding, measured_findings, published_findings
from tsuishi.verdicts.hypotheses import Missing

# Why a claim is not tested, or is inconclusive.
Hindrance = Literal[
    "", "untestable", "no environment", "no cases", "no gpu", "synthetic", "shortened", "other hardware", "too few"
]


class Subject(NamedTuple):
    """The subject of a verdict: a protocol, and an environment; a pair of them for a claim on two frameworks."""

    environments: tuple[str, ...]
    protocol: str

    def __str__(self) -> str:
        return f"{' / '.join(self.environments)}, {self.protocol}"


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim for a subject, with the results of its checks in their order.

    For `not tested`, `hindrance` says why, and `outcomes` are the results on findings that cannot support the claim (of
    simulated devices, say): the report shows them without a verdict. `trials`: their number, where it is too small for
    a verdict. `epochs`: the whole training of the cases, where a source trained. `level`: the verdict follows from the
    intervals of confidence 1 - level, which are the family's at its last look (see family.py); 0 before the first look.
    """

    source: str
    claim: Claim
    subject: Subject | None
    verdict: Verdict
    outcomes: tuple[CheckResult | Missing, ...] = ()
    hindrance: Hindrance = ""
    trials: int | None = None
    epochs: Epochs | None = None
    level: float = 0.0


@dataclass(frozen=True)
class PrintedVerdict:
    """The verdict on a claim by the numbers that a source prints; None where it prints none for the claim.

    `printed_by`: the claim's own source, or another that the claim names. `partial`: the numbers are those of only some
    of the claim's checks.
    """

    source: str
    claim: Claim
    printed_by: str
    hardware: str
    verdict: Verdict | None
    outcomes: tuple[CheckResult, ...]
    partial: bool = False

    @property
    def is_own(self) -> bool:
        """Whether the numbers are those of the claim's source."""
        return self.printed_by == self.source


def undecided_judgements(evidence: Evidence) -> list[Judgement]:
    """A judgement for each claim of the sources and each subject; without subjects, a single judgement for the claim.

    It is `not tested`, or `inconclusive` until its family is decided: see conclusions.py.
    """
    looks = _Looks(evidence)
    judgements: list[Judgement] = []
    for source in evidence.sources:
        for claim in source.claims:
            if claim.untestable:
                judgements.append(Judgement(source.name, claim, None, "not tested", hindrance="untestable"))
                continue
            of_claim = list(_undecided(source.name, claim, looks))
            judgements += of_claim or [Judgement(source.name, claim, None, "not tested", hindrance="no environment")]
    order = {(source.name, claim.id): index for source in evidence.sources for index, claim in enumerate(source.claims)}
    return sorted(
        judgements, key=lambda each: (each.source, order[each.source, each.claim.id], str(each.subject or ""))
    )


class _Looks:
    """The findings of each look, by environment and protocol: by the first so many trials; by all trials for 0."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._looks: dict[int, dict[tuple[str, str], list[Finding]]] = {}

    def at(self, trials: int) -> Mapping[tuple[str, str], list[Finding]]:
        """The findings by environment and protocol."""
        if trials not in self._looks:
            found = self._looks[trials] = {}
            for finding in measured_findings(self._evidence, trials):
                found.setdefault((finding.series, finding.axes[PROTOCOL]), []).append(finding)
        return self._looks[trials]

    def on(self, subject: Subject, suites: Collection[Any], trials: int = 0) -> list[Finding]:
        """The findings on a subject, of these suites, or of all suites where none is named."""
        of_subject = (self.at(trials).get((name, subject.protocol), []) for name in subject.environments)
        found = itertools.chain.from_iterable(of_subject)
        return [finding for finding in found if not suites or finding.axes[SUITE] in suites]


def _undecided(source: str, claim: Claim, looks: _Looks) -> Iterator[Judgement]:
    """The judgements on a claim for every subject."""
    suites = claim.named(SUITE)
    every = itertools.chain.from_iterable(looks.at(0).values())
    of_suites = [finding for finding in every if not suites or finding.axes[SUITE] in suites]
    allowed = claim.named(PROTOCOL) or {"literal", "steady"}
    for protocol in sorted({finding.axes[PROTOCOL] for finding in of_suites} & allowed):
        of_protocol = [finding for finding in of_suites if finding.axes[PROTOCOL] == protocol]
        for environments in _environments(claim, of_protocol):
            yield _at_last_look(source, claim, Subject(environments, protocol), suites, looks)


def _at_last_look(source: str, claim: Claim, subject: Subject, suites: Collection[Any], looks: _Looks) -> Judgement:
    """The judgement by the trials of the last look; by all trials before the first look, and where statuses decide."""
    judgement = _tested(source, claim, subject, looks.on(subject, suites))
    if judgement.verdict == "not tested":
        return judgement
    trials = fewest_trials(results(judgement))
    if trials is not None and trials < FEWEST_TRIALS:
        return replace(judgement, hindrance="too few", trials=trials)
    look = look_at(trials, claim.last_look) if trials else 0
    if not look:
        return judgement
    return _tested(source, claim, subject, looks.on(subject, suites, look))


def _environments(claim: Claim, findings: Iterable[Finding]) -> Iterator[tuple[str, ...]]:
    """The environments of a claim's framework, or of all frameworks; for several, one of each on the same machine.

    Those that the claim names, where it names environments.
    """
    names = claim.named(ENVIRONMENT)
    groups: dict[str | None, dict[str, str]] = {}
    for finding in findings:
        name = finding.environment if names else finding.framework
        groups.setdefault(name, {})[finding.series] = finding.machine
    named = sorted(map(str, names or claim.named(FRAMEWORK)))
    if len(named) < 2:
        choice: list[str | None] = [*named] or list(groups)
        yield from sorted((series,) for name in choice for series in groups.get(name, {}))
        return
    machines = {series: machine for group in groups.values() for series, machine in group.items()}
    together = itertools.product(*(groups.get(name, {}) for name in named))
    yield from sorted(several for several in together if len({machines[series] for series in several}) == 1)


def _tested(source: str, claim: Claim, subject: Subject, findings: Sequence[Finding]) -> Judgement:
    """The judgement with the results of a claim's checks on the findings that can support the claim.

    Where these findings are too few, it is `not tested`, with the results on all findings.
    """
    supporting = [finding for finding in findings if _hindrance(claim, finding) == ""]
    outcomes = tuple(evaluate(check, supporting, complete=True) for check in claim.checks)
    if not any(isinstance(outcome, Missing) for outcome in outcomes):
        return Judgement(source, claim, subject, "inconclusive", outcomes)
    on_all = tuple(evaluate(check, findings) for check in claim.checks) if len(supporting) < len(findings) else outcomes
    selectors = claim.selectors()
    selected = [finding for finding in findings if any(selects(finding.selectable) for selects in selectors)]
    # A claim about GPUs whose cases did not run gets "no gpu", not "no cases", if nothing ran on a GPU.
    hindrances = [_hindrance(claim, finding) for finding in selected or findings]
    hindrance: Hindrance = "no cases"
    if selected or all(hindrances):
        hindrance = next((known for known in hindrances if known), "no cases")
    epochs = next((finding.epochs for finding in selected if finding.epochs), None)
    return Judgement(source, claim, subject, "not tested", on_all, hindrance, epochs=epochs)


def _hindrance(claim: Claim, finding: Finding) -> Hindrance:
    """Why a finding cannot support a claim; empty where it can."""
    if "gpu" in claim.about and not finding.on_cpu and (finding.simulated or not finding.on_gpu):
        return "no gpu"
    if "cpu" in claim.about and finding.on_gpu and finding.machine:
        return "other hardware"
    if "accuracy" in claim.about and (finding.synthetic or finding.shortened):
        return "synthetic" if finding.synthetic else "shortened"
    if claim.scope:
        # A case on a single GPU has no transfers between GPUs: it is in either scope.
        alone = finding.axes.get(DEVICES, 1) == 1
        reach = claim.scope.peer_to_peer if alone else finding.peer_to_peer
        if not claim.scope.includes(finding.gpu_memory_gib, reach):
            return "other hardware"
    return ""


def results(judgement: Judgement) -> tuple[CheckResult, ...]:
    """The results of a judgement's checks, without those that are missing."""
    return _results(judgement.outcomes)


def _results(outcomes: Iterable[CheckResult | Missing]) -> tuple[CheckResult, ...]:
    return tuple(outcome for outcome in outcomes if isinstance(outcome, CheckResult))


def by_printed_numbers(sources: Sequence[Source]) -> Iterator[PrintedVerdict]:
    """A verdict on each claim by its own source's numbers, then by those of the sources that it names (`also_by`).

    There is a verdict for each hardware of these numbers.
    """
    named = {name for source in sources for claim in source.claims for name in (source.name, *claim.also_by)}
    printed = {source.name: published_findings(source) for source in sources if source.name in named}
    for source in sources:
        for claim in source.claims:
            own = list(_by_numbers_of(source.name, claim, source.name, printed[source.name]))
            yield from own or [PrintedVerdict(source.name, claim, source.name, "", None, ())]
            for other in claim.also_by:
                yield from _by_numbers_of(source.name, claim, other, _moved(printed.get(other, {}), claim))


def _by_numbers_of(
    source: str, claim: Claim, printed_by: str, printed: Mapping[str, Sequence[Finding]]
) -> Iterator[PrintedVerdict]:
    for hardware, findings in printed.items():
        outcomes = [evaluate(check, findings) for check in claim.checks]
        if results := _results(outcomes):
            verdict, partial = on_values(results), len(results) < len(outcomes)
            yield PrintedVerdict(source, claim, printed_by, hardware, verdict, results, partial)


def _moved(printed: Mapping[str, Sequence[Finding]], claim: Claim) -> dict[str, list[Finding]]:
    """The numbers of another source, as numbers of each suite that the claim names."""
    return {
        hardware: [
            replace(finding, axes={**finding.axes, SUITE: suite})
            for suite in sorted(map(str, claim.named(SUITE)))
            for finding in findings
        ]
        for hardware, findings in printed.items()
    }
