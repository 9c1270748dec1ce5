"""What a comparison came to: a row for each number, the failures of sides, and the exit code."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tsuishi.base.errors import EXIT_NOTHING_CHECKED, EXIT_VERDICT
from tsuishi.base.units import duration
from tsuishi.extras.ab.comparison import MOST_TRIALS, SOURCE, claim_id
from tsuishi.extras.scripts.proposals import Proposal
from tsuishi.results.attempts import last_attempts
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import TrialRecord
from tsuishi.specs.quantities import is_unit_of_rate
from tsuishi.specs.questions import LOOKS, share_of_look
from tsuishi.specs.source import Source
from tsuishi.specs.statuses import INTERRUPTED, OK
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.conclusions import conclude
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Judgement, results

Standing = Literal["slower", "not slower", "undecided"]
# Where the whole interval lies below, the second side is faster, also as two decimals show it.
_FASTER = 0.995
_LARGEST = 700.0  # logarithm of a ratio
_STANDINGS: Mapping[str, Standing] = {"contradicted": "slower", "reproduced": "not slower"}


@dataclass(frozen=True)
class Row:
    """A number of both sides. means: geometric, of the first side and of the second, in `unit`.

    times: how many times as long the second takes, with the interval that decides; of a rate, how many times lower it
    is. `scatters`: the relative standard deviation between the trials of each side. `trials`: of the side with fewer.
    `rounding`: the logarithm by which printed digits may make the ratio wrong, whatever the number of trials. `level`:
    the interval has the confidence 1 - level.
    """

    name: str
    unit: str
    standing: Standing
    means: tuple[float, float]
    times: float
    interval: tuple[float, float]
    scatters: tuple[float, float]
    trials: int
    rounding: float = 0.0
    level: float = 0.0

    def sentence(self, limit: float, pair_s: float) -> str:
        """The row in words. pair_s: the seconds of a trial of both sides."""
        low, high = self.interval
        if self.standing == "slower":
            return f"slower: at least {low:.2f} times as long"
        if self.standing == "not slower" and high < _FASTER:
            return f"faster: at least {1 / high:.2f} times as fast"
        if self.standing == "not slower":
            return f"not slower than {limit:g}: at most {high:.2f} times as long"
        if not 0 < low < high < math.inf:
            return f"undecided: {self.trials} trials of each side show nothing yet"
        return f"undecided: {low:.2f} to {high:.2f} times as long; {self._more(limit, pair_s)}"

    def _more(self, limit: float, pair_s: float) -> str:
        """About how much more time decides it, if its value stays as it is.

        Half an interval shrinks by the root of the trials, and late looks have more of the error.
        """
        distance = abs(math.log(limit) - math.log(self.times)) - self.rounding
        reach = math.log(self.interval[1] / self.interval[0]) / 2 - self.rounding
        if distance <= 0 < self.rounding:
            return "printed with too few digits, or too near the limit"
        error = self.level / share_of_look(self.trials, MOST_TRIALS)
        deviations = {look: _deviations(error * share_of_look(look, MOST_TRIALS)) for look in LOOKS}
        shrunk = reach * math.sqrt(self.trials) / _deviations(self.level)
        needed = (look for look in LOOKS if look > self.trials and shrunk * deviations[look] < distance * look**0.5)
        if look := next(needed, 0):
            return f"about {duration((look - self.trials) * pair_s)} more"
        return f"more than {MOST_TRIALS} trials of each side would decide it, or a quieter machine"


@dataclass(frozen=True)
class ComparisonOutcome:
    """What a call found. failures: a line for each side or number that failed or is missing, which is red.

    unclear: a line for each number, or for the call, that could not be judged: undecided. notes: what a reader of the
    numbers has to know.
    pair_s: the seconds of a trial of both sides.
    """

    rows: Sequence[Row]
    failures: Sequence[str]
    limit: float
    pair_s: float = 0.0
    unclear: Sequence[str] = ()
    notes: Sequence[str] = ()

    def exit_code(self, *, undecided_passes: bool) -> int:
        """0, 4 for a slower or missing number, 5 where one is undecided."""
        standings = {row.standing for row in self.rows}
        if self.failures or "slower" in standings:
            return EXIT_VERDICT
        if not self.rows and not self.unclear:
            return EXIT_NOTHING_CHECKED
        is_open = "undecided" in standings or self.unclear
        return EXIT_NOTHING_CHECKED if is_open and not undecided_passes else 0

    @property
    def summary(self) -> str:
        """The counts, in a line."""
        counts = [
            (name, sum(row.standing == name for row in self.rows)) for name in ("slower", "not slower", "undecided")
        ]
        said = [f"{count} {name}" for name, count in counts if count]
        said += [f"{len(self.unclear)} not judged"] if self.unclear else []
        said += [f"{len(self.failures)} failed or missing"] if self.failures else []
        return f"{len(self.rows) or 'nothing'} compared: {', '.join(said) or 'no number'}"

    @property
    def noise(self) -> str:
        """That a side differs from itself by more than the limit, if one does; else empty."""
        worst = max(self.rows, key=lambda row: max(row.scatters), default=None)
        if worst is None or max(worst.scatters) <= self.limit - 1:
            return ""
        side = ("BASE", "HEAD")[worst.scatters[1] > worst.scatters[0]]
        return (
            f"this machine is noisy: from trial to trial, {worst.name} of {side} scatters by "
            f"{100 * max(worst.scatters):.0f} %, which is more than the limit of {100 * (self.limit - 1):.3g} %"
        )


def outcome_of(
    run: RunDirectory, source: Source, words: Vocabulary, proposed: Sequence[Proposal], limit: float
) -> ComparisonOutcome:
    """The outcome of a run of both sides."""
    trials = [*last_attempts(run).values()]
    failures = dict.fromkeys(_failures(run, trials))
    evidence = Evidence([run], (source,), words)
    judged = {
        judgement.claim.id: judgement for judgement in conclude(evidence).judgements if judgement.source == SOURCE
    }
    rows, unclear = list[Row](), list[str]()
    without_ratio = {quantity for _, _, quantity in evidence.without_ratio}
    for number, proposal in enumerate(proposed):
        if (row := _row(proposal, judged[claim_id(number)], evidence)) is not None:
            rows.append(row)
        elif proposal.metric in without_ratio:
            unclear.append(f"{proposal.label}: undecided: some trial gave 0, which has no ratio: print more digits")
        elif not failures:
            failures[f"{proposal.label}: no trials of both sides"] = None
    took_s = [trial.duration_s for trial in trials if trial.duration_s]
    return ComparisonOutcome(rows, [*failures], limit, 2 * statistics.fmean(took_s or [0.0]), unclear)


def of_command(why: str) -> str:
    """Why a trial failed, in words of the user's command: the script is the launcher, of which users know nothing."""
    return why.replace("the script", "the command", 1)


def _failures(run: RunDirectory, trials: Iterable[TrialRecord]) -> Iterator[str]:
    """The reasons of trials that failed, by side."""
    for trial in trials:
        if trial.status not in (OK, INTERRUPTED):
            side = run.case(trial.case_record).get("side", trial.environment)
            yield f"{str(side).upper()}: {trial.status}: {of_command(trial.reason or 'see its log')}"


def _row(proposal: Proposal, judgement: Judgement, evidence: Evidence) -> Row | None:
    """The row of a number; None where a side has no trial of it."""
    found = [element for result in results(judgement) for element in result.elements]
    if not found:
        return None
    (element,) = found
    contrast, sign = element.contrast, -1.0 if is_unit_of_rate(proposal.unit) else 1.0
    terms = {weight > 0: term for weight, term in element.weights.values()}
    interval = contrast.interval(1 - judgement.level) if judgement.level else None
    ends = sorted(sign * end for end in interval) if interval else [-math.inf, math.inf]
    low, high = (math.exp(end) if end < _LARGEST else math.inf for end in ends)
    scatters = [math.sqrt(term.own.variance) if term.own else 0.0 for term in (terms[False], terms[True])]
    return Row(
        proposal.label,
        proposal.unit,
        _STANDINGS.get(judgement.verdict, "undecided"),
        (math.exp(terms[False].mean), math.exp(terms[True].mean)),
        math.exp(sign * (terms[True].mean - terms[False].mean)),
        (low, high),
        (scatters[0], scatters[1]),
        min(term.trials for term in terms.values()),
        contrast.rounding,
        judgement.level,
    )


def _deviations(level: float) -> float:
    """Half an interval of confidence 1 - level of a normal distribution, in standard deviations."""
    return statistics.NormalDist().inv_cdf(1 - level / 2)
