"""Searches for the release that changed a value, in made-up releases whose truth is known:
`python -m benchmarks.find_simulated`, with .venv active; some minutes.

Trials scatter log-normally; all trials of a round share a shock, and the machine drifts over the rounds. Each row
has SEARCHES searches. A false culprit is a pair of releases that do not lie on both sides of the middle of the ends
(geometric mean), or, of a survey, a pair of equal releases; a missed change is one that was there and was not named.
Plain bisection measures both ends three times, before, then each candidate three times, and takes the nearer end.
"""

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tsuishi.base.screen import Screen
from tsuishi.extras.releases.bisection import Bisection
from tsuishi.extras.releases.release_changes import SearchResult
from tsuishi.extras.releases.survey import Survey

SEARCHES, RELEASES = 2000, 10
# Standard deviations of logarithms: of what the trials of a round have in common, and of the drift from round to round.
SHOCK, DRIFT = 0.03, 0.01
PLAIN = 3


@dataclass
class Machine:
    """Measures made-up releases. `truth`: the logarithm of the value of each release."""

    truth: Sequence[float]
    scatter: float
    drawn: random.Random
    trials: int = 0
    drift: float = 0.0

    def round(self, wanted: Sequence[str]) -> dict[str, float | None]:
        """A round: a trial of each wanted release."""
        self.drift += self.drawn.gauss(0, DRIFT)
        shock = self.drift + self.drawn.gauss(0, SHOCK)
        self.trials += len(wanted)
        return {name: self.truth[int(name)] + shock + self.drawn.gauss(0, self.scatter) for name in wanted}


@dataclass
class Count:
    """Of many searches: those with a false culprit, changes that were there and those that were missed, and trials."""

    false: int = 0
    there: int = 0
    missed: int = 0
    trials: int = 0

    def add(self, found: Sequence[tuple[int, int]], truth: Sequence[float], machine: Machine, *, every: bool) -> None:
        """Add a search. every: all changes were looked for, not one."""
        changes = {(place, place + 1) for place in range(len(truth) - 1) if truth[place] != truth[place + 1]}
        self.trials += machine.trials
        if every:
            self.false += any(truth[older] == truth[newer] for older, newer in found)
            self.there += len(changes)
            self.missed += len(changes - {*found})
            return
        middle = (truth[0] + truth[-1]) / 2
        differ = truth[0] != truth[-1]
        self.false += any(not differ or (truth[a] - middle) * (truth[b] - middle) >= 0 for a, b in found)
        self.there += differ
        self.missed += differ and not found


def searched(search: Bisection | Survey, machine: Machine) -> list[tuple[int, int]]:
    """The pairs of releases that a search names."""
    while wanted := search.wanted():
        search.add(machine.round(wanted))
    result: SearchResult = search.result
    return [(int(change.older), int(change.newer)) for change in result.changes if result.verdict == "changed"]


def plain(machine: Machine) -> list[tuple[int, int]]:
    """Plain bisection: it always names a pair."""

    def mean(place: int) -> float:
        return math.fsum(machine.round([str(place)])[str(place)] or 0.0 for _ in range(PLAIN)) / PLAIN

    low, high = 0, len(machine.truth) - 1
    old, new = mean(low), mean(high)
    while high - low > 1:
        place = (low + high) // 2
        value = mean(place)
        low, high = (place, high) if abs(value - old) < abs(value - new) else (low, place)
    return [(low, high)]


def truths(ratio: float, changes: int, drawn: random.Random) -> list[float]:
    """Logarithms of ten releases, of which as many change the value by this ratio, each at random up or down."""
    at = {*drawn.sample(range(1, RELEASES), changes)}
    values, level = [], 0.0
    for place in range(RELEASES):
        level += drawn.choice((-1, 1)) * math.log(ratio) if place in at else 0.0
        values.append(level)
    return values


def row(name: str, ratio: float, changes: int, scatter: float, searches: int) -> tuple[object, ...]:
    """A row of the table: of a bisection, a survey and plain bisection, in this order."""
    drawn = random.Random(f"{name} {ratio} {changes} {scatter}")  # noqa: S311
    names = [str(place) for place in range(RELEASES)]
    counts = Count(), Count(), Count()
    ways: tuple[Callable[[Machine], list[tuple[int, int]]], ...] = (
        lambda machine: searched(Bisection(names), machine),
        lambda machine: searched(Survey(names), machine),
        plain,
    )
    for _ in range(searches):
        truth = truths(ratio, changes, drawn)
        for number, (count, way) in enumerate(zip(counts, ways, strict=True)):
            machine = Machine(truth, scatter, drawn)
            count.add(way(machine), truth, machine, every=number == 1)
    cells: list[object] = [name, f"{scatter:.0%}"]
    for count in counts:
        missed = f"{count.missed / count.there:.1%}" if count.there else "-"
        cells.append(f"{count.false / searches:.1%} / {missed} / {count.trials / searches:.0f}")
    return tuple(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=SEARCHES, help="searches of each row")
    searches = parser.parse_args().searches
    cases = [("nothing changed", 1.0, 0)]
    cases += [(f"one change, {ratio:g} times", ratio, 1) for ratio in (1.1, 1.3, 2.0)]
    cases += [(f"three changes, {ratio:g} times each", ratio, 3) for ratio in (1.3, 2.0)]
    rows = [row(*case, scatter, searches) for scatter in (0.01, 0.03, 0.10) for case in cases]
    head = ("truth", "scatter", "find", "find --all", "plain bisection")
    Screen().table("False culprits / missed changes / trials", head, rows)


if __name__ == "__main__":
    main()
