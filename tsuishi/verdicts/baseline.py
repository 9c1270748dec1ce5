"""Runs held against a baseline: runs of last month on this machine, or those of another machine.

The two sides are measured apart, so every day counts as a trial (estimates/contrasts.py), and a case with fewer than
three days on a side has no interval. All compared cases are one family (family.py).
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from tsuishi.estimates.contrasts import days_of, first_days, ratio
from tsuishi.estimates.intervals import Contrast, Region, Term
from tsuishi.results.records import EnvironmentRecord, MachineRecord
from tsuishi.results.same_machine import is_same
from tsuishi.specs.questions import look_at
from tsuishi.specs.statuses import EXCLUDED, INTERRUPTED, OK
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.family import BASELINE, Decision, Hypothesis, decide, p_values

# A case is slower where its whole interval lies above the threshold, and not slower where it lies below.
Standing = Literal["slower", "not slower", "open"]


class CaseQuantity(NamedTuple):
    """What is compared: a case in an environment (by its label in the report), by a quantity."""

    case_id: str
    column: str
    quantity: str


@dataclass(frozen=True)
class Pace:
    """How long a case takes, against the baseline.

    `then`, `now`: the means, by the days of the last look; by all of them before the first look. `days`: the number of
    all of them, then and now. `ratio`: the logarithm of the time now over the time then, or of the rate then
    over the rate now. The interval that decides has the confidence 1 - decision.level.
    """

    place: CaseQuantity
    then: Term
    now: Term
    days: tuple[int, int]
    ratio: Contrast
    decision: Decision

    @property
    def standing(self) -> Standing:
        if self.decision.against:
            return "slower"
        return "not slower" if self.decision.holds else "open"


class Baseline:
    """Runs and the runs that they are held against, with the environments that both have.

    `columns`: the label of each environment of the runs, and its label in the baseline. `unmatched`: the labels without
    a match, with the realised ids of environments of the same name in the baseline. `threshold`: the ratio of times
    from which on a case counts as slower.
    """

    def __init__(self, evidence: Evidence, earlier: Evidence, threshold: float = 1.0) -> None:
        self.evidence, self.earlier, self.threshold = evidence, earlier, threshold
        ours, theirs = _environments(evidence), _environments(earlier)
        self.columns: dict[str, str] = {}
        self.unmatched: dict[str, tuple[str, ...]] = {}
        for column, environment in ours.items():
            alike = [name for name, other in theirs.items() if environment.is_built_as(other)]
            if alike:
                self.columns[column] = max(alike, key=lambda name, of=environment: of.likeness(theirs[name]))  # type: ignore[misc]
            else:
                named = (other for other in theirs.values() if other.name == environment.name)
                self.unmatched[column] = tuple(sorted({str(other.record.realised_id) for other in named}))
        here = {environment.name for environment in ours.values()}
        self.only_then = [name for name, other in theirs.items() if other.name not in here]

    def lost(self) -> dict[tuple[str, str], tuple[list[str], list[str]]]:
        """Cases that were ok on the last day of the baseline that tried them, and are not on the last day here.

        By case id and label: their statuses on these days, then and now.
        """
        then, now = _last_statuses(self.earlier), _last_statuses(self.evidence)
        both = {
            (case_id, column): (then.get((case_id, self.columns.get(column, "")), []), here)
            for (case_id, column), here in now.items()
        }
        return {place: days for place, days in both.items() if OK in days[0] and OK not in days[1]}

    def paces(self, places: Iterable[CaseQuantity], is_rate: Callable[[str], bool]) -> list[Pace]:
        """The pace of each place that has a number on both sides. is_rate: whether more of a quantity is better."""
        measured = [
            (place, _apart(then), now, is_rate(place.quantity))
            for place in places
            for then in [self.earlier.terms.get((place.case_id, self.columns.get(place.column, ""), place.quantity))]
            for now in [self.evidence.terms.get((place.case_id, place.column, place.quantity))]
            if then and now
        ]
        return decided(measured, self.threshold)


def decided(measured: Iterable[tuple[CaseQuantity, Term, Term, bool]], threshold: float) -> list[Pace]:
    """The paces of a family. measured: of each place its terms then and now, and whether it is a rate.

    The chance that any place is called slower that is not, or not slower that is, is at most BASELINE.
    """
    undecided = [_undecided(*each) for each in measured]
    decisions = decide([_hypothesis(pace, threshold) for pace in undecided], BASELINE)
    return [replace(pace, decision=decision) for pace, decision in zip(undecided, decisions, strict=True)]


def _undecided(place: CaseQuantity, then: Term, now: Term, is_rate: bool) -> Pace:
    days = len(days_of(then)), len(days_of(now))
    if look := look_at(min(days)):
        then, now = first_days(then, look), first_days(now, look)
    logarithm = ratio(then, now) if is_rate else ratio(now, then)
    return Pace(place, then, now, days, logarithm, Decision(False, False, False, 0.0))


def _hypothesis(pace: Pace, threshold: float) -> Hypothesis:
    """That the ratio is below the threshold; refuted, the case is slower. Without an interval neither is shown."""
    bound = Region(-math.inf, math.log(threshold))
    return Hypothesis(p_values(pace.ratio, bound, bound), min(pace.days))


class _Environment(NamedTuple):
    """An environment on a machine, by its record."""

    name: str
    record: EnvironmentRecord
    machine: MachineRecord | None

    def is_built_as(self, other: "_Environment") -> bool:
        """Whether it is the same environment: the same content, or built from the same spec, lock and template."""
        same = (getattr(self.record, name) for name in ("realised_id", "spec_id"))
        others = (getattr(other.record, name) for name in ("realised_id", "spec_id"))
        return self.name == other.name and any(mine and mine == its for mine, its in zip(same, others, strict=True))

    def likeness(self, other: "_Environment") -> tuple[bool, bool]:
        """How alike two environments of the same spec are: the same content first, then the same machine."""
        here = self.machine and other.machine and is_same(self.machine, other.machine)
        return self.record.realised_id == other.record.realised_id, bool(here)


def _environments(evidence: Evidence) -> dict[str, _Environment]:
    """The environments of trials by their labels; those whose record is lost are left out."""
    trials, records = evidence.results.trials, evidence.results.environments
    machines = evidence.results.machines
    names = ("column", "environment", "environment_record", "machine")
    rows = zip(*(trials[name].tolist() for name in names), strict=True)
    return {
        column: _Environment(name, records[record], machines.get(machine))
        for column, name, record, machine in sorted(set(rows))
        if record in records
    }


def shared_trials(evidence: Evidence, earlier: Evidence) -> set[Any]:
    """The trials that both sides have, by the facts that distinguish trials of different runs: id, begin and length."""
    names = ["trial_id", "started_at", "duration_s"]
    several = (every.results.trials[names].astype("object") for every in (evidence, earlier))
    ours, theirs = ({*zip(*(trials[name].tolist() for name in names), strict=True)} for trials in several)
    return ours & theirs


def _apart(term: Term) -> Term:
    """The term with names of sessions that no run has: runs in different folders may have the same id."""
    apart = {
        f"baseline: {name}": part._replace(day=part.day and f"baseline: {part.day}")
        for name, part in term.sessions.items()
    }
    return term._replace(sessions=apart)


def _last_statuses(evidence: Evidence) -> dict[tuple[str, str], list[str]]:
    """The statuses of each case on the last day on which a trial of it ended, by case id and label."""
    found: dict[tuple[str, str], tuple[str, list[str]]] = {}
    counting, names = evidence.results.counting, ("started_at", "case_id", "column", "status", "run_id")
    trials = zip(*(counting[name].tolist() for name in names), strict=True)
    for started_at, case_id, column, status, run_id in sorted(trials, key=lambda trial: str(trial[0])):
        if status not in (INTERRUPTED, EXCLUDED):
            day = evidence.days[evidence.session(run_id, str(started_at))]
            last, of_day = found.get((case_id, column), ("", []))
            found[case_id, column] = day, [*of_day, status] if day == last else [status]
    return {place: [*dict.fromkeys(of_day)] for place, (_, of_day) in found.items()}


def statuses(evidence: Evidence) -> Mapping[tuple[str, str], Collection[str]]:
    """The statuses of every planned or tried case in every environment, by case id and label."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    columns: Sequence[list[str]] = [evidence.outcomes[name].tolist() for name in ("case_id", "column", "status")]
    for case_id, column, status in zip(*columns, strict=True):
        found.setdefault((case_id, column), {})[status] = None
    return {key: [*of_case] for key, of_case in found.items()}
