"""The search for all changes of a value: it visits every release, and compares each with the release before it.

A pair that is alike at a look, or differs by a known size, needs no more rounds. The chance of a wrong statement on any
pair is 5 % at most (Holm).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tsuishi.estimates.intervals import Contrast
from tsuishi.extras.releases.release_changes import (
    ReleaseChange,
    Round,
    SearchResult,
    SearchVerdict,
    difference,
    weighted,
)
from tsuishi.specs.questions import LAST_LOOK, LOOKS
from tsuishi.verdicts.family import Decision, decide

_NEIGHBOURS = 0.05


class _Pair(NamedTuple):
    """Two neighbours among the releases that can run the case, how much they differ, and the decision."""

    older: str
    newer: str
    size: Contrast
    decision: Decision

    @property
    def is_open(self) -> bool:
        return not (self.decision.against or self.decision.holds)


@dataclass
class Survey:
    """The search among `releases`, at least two, in the order of their dates."""

    releases: Sequence[str]

    def __post_init__(self) -> None:
        self._rounds: list[Round] = []
        self._unable: set[str] = set()
        self._wanted = tuple(self.releases)

    def wanted(self) -> tuple[str, ...]:
        """The releases of the next round, each of which gets a trial; none at the end of the search."""
        return self._wanted

    def add(self, values: Round) -> None:
        """Take the values of the round that was wanted."""
        self._unable |= {release for release, value in values.items() if value is None}
        self._rounds.append(values)
        self._wanted = tuple(release for release in self._wanted if release not in self._unable)
        if len(self._rounds) in LOOKS:
            going_on = [pair for pair in self._pairs() if pair.is_open or not self._is_known(pair)]
            left = {release for pair in going_on for release in (pair.older, pair.newer)}
            self._wanted = tuple(release for release in self._wanted if release in left)
        if len(self._able) < 2 or len(self._rounds) >= LAST_LOOK:
            self._wanted = ()

    @property
    def fewest_trials(self) -> int:
        """The trials of a whole search, where the first look shows everything."""
        return LOOKS[0] * len(self.releases)

    @property
    def result(self) -> SearchResult:
        """The result so far."""
        pairs = self._pairs() if len(self._rounds) >= LOOKS[0] else []
        changes = tuple(self._change(pair) for pair in pairs if pair.decision.against)
        undecided = tuple(f"{pair.older}, {pair.newer}" for pair in pairs if pair.is_open)
        verdict: SearchVerdict = "changed" if changes else "undecided" if undecided or not pairs else "alike"
        unable = tuple(release for release in self.releases if release in self._unable)
        return SearchResult("open" if self._wanted else verdict, changes, unable, undecided)

    @property
    def _able(self) -> list[str]:
        return [release for release in self.releases if release not in self._unable]

    def _pairs(self) -> list[_Pair]:
        """The neighbours. A pair is judged by its own rounds at their last look."""
        hypotheses, sizes, neighbours = [], [], list(zip(self._able, self._able[1:], strict=False))
        for older, newer in neighbours:
            rounds = [values for values in self._rounds if {older, newer} <= values.keys()]
            counted = max((look for look in LOOKS if look <= len(rounds)), default=0)
            sizes.append(weighted(rounds[: counted or None], {newer: 1.0, older: -1.0}))
            hypotheses.append(difference(sizes[-1], counted))
        decisions = decide(hypotheses, _NEIGHBOURS)
        judged = zip(neighbours, sizes, decisions, strict=True)
        return [_Pair(older, newer, size, decision) for (older, newer), size, decision in judged]

    def _is_known(self, pair: _Pair) -> bool:
        """Whether a decided pair needs no further rounds."""
        return pair.decision.holds or self._change(pair).is_sharp

    def _change(self, pair: _Pair) -> ReleaseChange:
        places = {release: place for place, release in enumerate(self.releases)}
        between = tuple(self.releases[places[pair.older] + 1 : places[pair.newer]])
        return ReleaseChange(pair.older, pair.newer, pair.size, pair.decision.level, between)
