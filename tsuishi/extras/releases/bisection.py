"""The search for the release that changed a value, by bisection: it asks for rounds of trials, and judges intervals.

The chance that it names a wrong pair of releases is 5 % at most, which it spends so:

- that the two ends differ: 2.5 %, as the main questions of a report;
- on which side of the middle of both ends (their geometric mean) each tried release lies: 1.25 % together. Half of this
  is shared by as many releases as a bisection needs; each further release gets half of the remainder;
- how much both releases of the pair differ: 1.25 %.

Releases that cannot run the case, or whose side 24 rounds do not show, do not narrow the search. Between ends
that differ there is always a pair of neighbours on both sides of the middle: where a value changed several times, the
search finds one of these changes. survey.py visits all releases instead.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tsuishi.estimates.intervals import NO_DIFFERENCE, Contrast
from tsuishi.extras.releases.release_changes import (
    ReleaseChange,
    Round,
    SearchResult,
    SearchVerdict,
    difference,
    weighted,
)
from tsuishi.specs.questions import LAST_LOOK, LOOKS, MAIN, share_of_look
from tsuishi.verdicts.family import OTHER, decide

# That the ends differ; the sides of all releases between them; the size of the change.
_ENDS, _SIDES, _SIZE = MAIN, OTHER, OTHER


@dataclass
class Bisection:
    """The search between the first and the last of `releases`, at least two, in the order of their dates."""

    releases: Sequence[str]
    unable: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._low, self._high = 0, len(self.releases) - 1
        self._steps = max(1, math.ceil(math.log2(max(2, self._high))))
        self._rounds: list[Round] = []
        self._tried = 0
        self._direction = 0.0
        self._stage: Literal["ends", "between", "size", "end"] = "ends"
        self._change: ReleaseChange | None = None
        self._verdict: SearchVerdict = "open"
        self._candidate = ""

    def wanted(self) -> tuple[str, ...]:
        """The releases of the next round, each of which gets a trial; none at the end of the search."""
        if self._stage == "ends":
            return self._old, self._new
        if self._stage == "between":
            return self._old, self._candidate, self._new
        return (self.releases[self._low], self.releases[self._high]) if self._stage == "size" else ()

    def add(self, values: Round) -> None:
        """Take the values of the round that was wanted. A round with a release that cannot run says only that.

        Raises ValueError where an end of the search cannot run.
        """
        missing = [release for release in self.wanted() if values[release] is None]
        if missing:
            ends = [release for release in missing if self._stage != "between" or release != self._candidate]
            if ends:
                raise ValueError(ends[0])
            self.unable.append(self._candidate)
            self._go_on()
            return
        self._rounds.append(values)
        if len(self._rounds) in LOOKS:
            {"ends": self._judge_ends, "between": self._judge_side, "size": self._judge_size}[self._stage]()

    @property
    def fewest_trials(self) -> int:
        """The trials of a whole search that finds a change, where every first look decides."""
        halvings = math.floor(math.log2(len(self.releases) - 1))
        return LOOKS[0] * (2 + 3 * halvings + 2)

    @property
    def result(self) -> SearchResult:
        """The result so far."""
        changes = (self._change,) if self._change else ()
        narrowed = self.bounds if self._verdict == "open" and self.bounds != (self._old, self._new) else None
        return SearchResult(self._verdict, changes, tuple(self.unable), tuple(self.undecided), narrowed)

    @property
    def bounds(self) -> tuple[str, str]:
        """The releases between which the search goes on."""
        return self.releases[self._low], self.releases[self._high]

    @property
    def _old(self) -> str:
        return self.releases[0]

    @property
    def _new(self) -> str:
        return self.releases[-1]

    def _judge_ends(self) -> None:
        size = weighted(self._rounds, {self._new: 1.0, self._old: -1.0})
        (decision,) = decide([difference(size, len(self._rounds))], _ENDS)
        if decision.against:
            self._direction = math.copysign(1.0, size.value)
            self._change = self._between_bounds(size, decision.level)
            self._go_on()
        elif decision.holds:
            self._end("alike")
        elif len(self._rounds) >= LAST_LOOK:
            self._end("undecided")

    def _judge_side(self) -> None:
        side = weighted(self._rounds, {self._candidate: 1.0, self._old: -0.5, self._new: -0.5})
        if side.p_outside(NO_DIFFERENCE) <= self._side_error() * share_of_look(len(self._rounds)):
            place = list(self.releases).index(self._candidate)
            if side.value * self._direction > 0:
                self._high = place
            else:
                self._low = place
        elif len(self._rounds) >= LAST_LOOK:
            self.undecided.append(self._candidate)
        else:
            return
        self._tried += 1
        self._go_on()

    def _judge_size(self) -> None:
        older, newer = self.bounds
        size = weighted(self._rounds, {newer: 1.0, older: -1.0})
        self._change = self._between_bounds(size, _SIZE * share_of_look(len(self._rounds)))
        if self._change.is_sharp or len(self._rounds) >= LAST_LOOK:
            self._end("changed")

    def _go_on(self) -> None:
        """Go on to the release in the middle of the remaining releases, or to the size of the change."""
        self._rounds = []
        skipped = {*self.unable, *self.undecided}
        left = [place for place in range(self._low + 1, self._high) if self.releases[place] not in skipped]
        if left:
            middle = (self._low + self._high) / 2
            self._stage, self._candidate = "between", self.releases[min(left, key=lambda place: abs(place - middle))]
        else:
            self._stage = "size"

    def _end(self, verdict: SearchVerdict) -> None:
        self._verdict, self._stage = verdict, "end"

    def _side_error(self) -> float:
        """The error of the side of the release that is tried now."""
        if self._tried < self._steps:
            return _SIDES / 2 / self._steps
        return float(_SIDES / 2 * 0.5 ** (self._tried - self._steps + 1))

    def _between_bounds(self, size: Contrast, level: float) -> ReleaseChange:
        older, newer = self.bounds
        return ReleaseChange(older, newer, size, level, tuple(self.releases[self._low + 1 : self._high]))
