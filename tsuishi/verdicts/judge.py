"""Judging: every claim of every source on what runs found, and on what the source itself printed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tsuishi.specs.claims import Check, Claim, Verdict
from tsuishi.specs.source import Source
from tsuishi.verdicts import decision
from tsuishi.verdicts.checks import CheckResult, evaluate
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.findings import Finding, measured, published
from tsuishi.verdicts.hypotheses import Missing

# Why a claim was not tested, or what leaves it inconclusive.
Hindrance = Literal[
    "", "untestable", "no environment", "no cases", "no gpu", "synthetic", "shortened", "other hardware", "too few"
]


class Subject(NamedTuple):
    """What a claim is judged on: an environment, or one of each framework it compares; one protocol."""

    environments: tuple[str, ...]
    protocol: str

    def __str__(self) -> str:
        return f"{' / '.join(self.environments)}, {self.protocol}"


@dataclass(frozen=True)
class Judgement:
    """A claim on one subject: the verdict, and what its checks come to, in their order.

    Where it is `not tested`, `hindrance` says why, and `outcomes` are of what was found all the same (on simulated
    devices, say): they show something, and support nothing.
    """

    source: str
    claim: Claim
    subject: Subject | None
    verdict: Verdict
    outcomes: tuple[CheckResult | Missing, ...] = ()
    hindrance: Hindrance = ""
    trials: int | None = None


@dataclass(frozen=True)
class SelfConsistency:
    """A claim on the numbers its own source prints; `verdict` is None where it prints none.

    `partial`: some of its checks only, as the source prints no numbers for the others.
    """

    source: str
    claim: Claim
    hardware: str
    verdict: Verdict | None
    outcomes: tuple[CheckResult, ...]
    partial: bool = False


def judge(evidence: Evidence) -> list[Judgement]:
    """Every claim of the sources, on every subject that can be asked; one without a subject where there is none.

    The claims of a source on one subject are a family (verdicts.decide).
    """
    findings = measured(evidence)
    found: list[Judgement] = []
    for source in evidence.sources:
        families: dict[Subject, list[Judgement]] = {}
        for claim in source.claims:
            if claim.untestable:
                found.append(Judgement(source.name, claim, None, "not tested", hindrance="untestable"))
                continue
            asked = list(_asked(source.name, claim, findings))
            for one in asked:
                assert one.subject
                families.setdefault(one.subject, []).append(one)
            if not asked:
                found.append(Judgement(source.name, claim, None, "not tested", hindrance="no environment"))
        found += [one for family in families.values() for one in _decided(family)]
    order = {(source.name, claim.id): index for source in evidence.sources for index, claim in enumerate(source.claims)}
    return sorted(found, key=lambda one: (one.source, order[one.source, one.claim.id], str(one.subject or "")))


def _asked(source: str, claim: Claim, findings: Sequence[Finding]) -> Iterator[Judgement]:
    """A claim on every subject, undecided where it can be decided."""
    suites = claim.named("suite")
    there = [one for one in findings if not suites or one.axes["suite"] in suites]
    protocols = sorted({one.axes["protocol"] for one in there} & (claim.named("protocol") or {"literal", "steady"}))
    for protocol in protocols:
        mine = [one for one in there if one.axes["protocol"] == protocol]
        for environments in _environments(claim, mine):
            of_these = [one for one in mine if one.whose in environments]
            yield _undecided(source, claim, Subject(environments, protocol), of_these)


def _environments(claim: Claim, findings: Iterable[Finding]) -> Iterator[tuple[str, ...]]:
    """Environments of the framework a claim names, or of any; pairs of one machine where it compares two."""
    frameworks = sorted(map(str, claim.named("framework")))
    by_framework: dict[str | None, dict[str, str]] = {}
    for one in findings:
        by_framework.setdefault(one.framework, {})[one.whose] = one.machine
    if len(frameworks) < 2:
        wanted: list[str | None] = [*frameworks] or list(by_framework)
        yield from sorted((name,) for framework in wanted for name in by_framework.get(framework, {}))
        return
    first, second = (by_framework.get(framework, {}) for framework in frameworks)
    yield from sorted((a, b) for a in first for b in second if first[a] == second[b])


def _undecided(source: str, claim: Claim, subject: Subject, findings: Sequence[Finding]) -> Judgement:
    """What a claim's checks come to on what supports it; else what hinders, and what they come to all the same."""
    supporting = [one for one in findings if _hindered(claim, one) == ""]
    outcomes = tuple(evaluate(check, supporting) for check in claim.checks)
    if not any(isinstance(one, Missing) for one in outcomes):
        return Judgement(source, claim, subject, "inconclusive", outcomes)
    anyhow = tuple(evaluate(check, findings) for check in claim.checks)
    selected = [one for one in findings if any(_selects(check, one) for check in claim.checks)]
    # Where nothing at all ran on a GPU, a claim about GPUs wants that before it wants its cases.
    hindrances = [_hindered(claim, one) for one in selected or findings]
    hindrance: Hindrance = "no cases"
    if selected or all(hindrances):
        hindrance = next((one for one in hindrances if one), "no cases")
    return Judgement(source, claim, subject, "not tested", anyhow, hindrance)


def _selects(check: Check, finding: Finding) -> bool:
    return any(finding.selected(check.case, side) for side in (check.of, check.to) if side is not None)


def _hindered(claim: Claim, finding: Finding) -> Hindrance:
    """Why a finding supports nothing of what a claim is about; "" where it does."""
    # SciPy has a CPU in the source as well.
    computes_on_cpu = finding.axes.get("implementation", "framework") != "framework"
    if "gpu" in claim.about and not computes_on_cpu and (finding.simulated or not finding.on_gpu):
        return "no gpu"
    if "accuracy" in claim.about and (finding.synthetic or finding.shortened):
        return "synthetic" if finding.synthetic else "shortened"
    memory = claim.scope.gpu_memory_gib if claim.scope else None
    if memory and not (finding.gpu_memory_gib and memory.low < finding.gpu_memory_gib < memory.high):
        return "other hardware"
    return ""


def _decided(family: Sequence[Judgement]) -> Iterator[Judgement]:
    """The verdicts of one family; of what too few trials were made of, none."""
    asked = [(one, _outcomes(one)) for one in family if one.verdict == "inconclusive"]
    yield from (one for one in family if one.verdict == "not tested")
    enough = []
    for one, outcomes in asked:
        trials = decision.too_few(outcomes)
        if trials is None:
            enough.append((one, decision.together(outcomes)))
        else:
            yield replace(one, hindrance="too few", trials=trials)
    decided = decision.decide([evidence for _, evidence in enough])
    yield from (replace(one, verdict=verdict) for (one, _), verdict in zip(enough, decided, strict=True))


def _outcomes(judgement: Judgement) -> list[CheckResult]:
    return [one for one in judgement.outcomes if isinstance(one, CheckResult)]


def self_consistency(sources: Iterable[Source]) -> Iterator[SelfConsistency]:
    """Every claim on its source's own numbers, for every hardware they were printed of."""
    for source in sources:
        printed = published(source)
        for claim in source.claims:
            found = False
            for hardware, findings in printed.items():
                tried = [evaluate(check, findings) for check in claim.checks]
                outcomes = tuple(one for one in tried if isinstance(one, CheckResult))
                if outcomes:
                    found, verdict = True, decision.on_values(outcomes)
                    yield SelfConsistency(source.name, claim, hardware, verdict, outcomes, len(outcomes) < len(tried))
            if not found:
                yield SelfConsistency(source.name, claim, "", None, ())
