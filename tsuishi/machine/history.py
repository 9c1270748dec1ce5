"""What things took on this machine, and so what they will take.

Specs hold guesses, in seconds of some other machine. What was measured here comes first: the same trial, build or
report; else the guess, scaled by how guesses of the same kind turned out here; else the guess, scaled by a calculation
that takes known time on the other machine.
"""

import statistics
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from tsuishi.base import files
from tsuishi.base.errors import UserError

# What `calibration_s` takes where the guesses of images/*.toml and suites/*.toml were measured.
_REFERENCE_S = 0.30
# What a report takes there, for a run as a budget of minutes makes it.
_REPORT_S = 12.0
# Under which name it knows how fast things are fetched: seconds for each of so many bytes.
DOWNLOAD, DOWNLOAD_BYTES = "download", 1e6
# Of each thing the latest measurements, and of a kind of guesses the latest ratios.
_KEPT, _RATIOS = 7, 40
# A guess that nothing measured here supports is taken to be too low by so much.
_CAUTION = 1.15
# A kind of guess is scaled by what was measured once there is this much of it.
_FEWEST_RATIOS = 3


class History:
    """Durations on one machine, in seconds, by the names of things; kept in a file of the cache.

    `machine` is the id of the machine's record: what another machine took says nothing here.
    """

    def __init__(self, cache: Path, machine: str) -> None:
        self._path = cache / "history" / f"{machine}.json"
        self._durations: dict[str, list[float]] = {}
        self._ratios: dict[str, list[float]] = {}
        try:
            kept = files.read_json(self._path) if self._path.exists() else {}
            self._durations = {str(name): _numbers(values) for name, values in kept.get("durations", {}).items()}
            self._ratios = {str(kind): _numbers(values) for kind, values in kept.get("ratios", {}).items()}
        except (UserError, TypeError, ValueError, AttributeError):
            self._durations, self._ratios = {}, {}  # a damaged file is no reason not to plan

    def expected_s(self, name: str, guess_s: float, kinds: Iterable[str] = ()) -> float:
        """Seconds that something will take. `kinds`: what its guess has in common with others', the closest first."""
        if measured := self._durations.get(name):
            return statistics.median(measured)
        for kind in kinds:
            if len(ratios := self._ratios.get(kind, ())) >= _FEWEST_RATIOS:
                return guess_s * statistics.median(ratios)
        return guess_s * self.slowness * _CAUTION

    def measured(self, name: str) -> bool:
        """Whether something was measured here."""
        return name in self._durations

    def learn(self, name: str, took_s: float, guess_s: float = 0.0, kinds: Iterable[str] = ()) -> None:
        """Remember what something took."""
        self._durations[name] = [*self._durations.get(name, ()), round(took_s, 3)][-_KEPT:]
        if guess_s > 0:
            for kind in kinds:
                self._ratios[kind] = [*self._ratios.get(kind, ()), round(took_s / guess_s, 4)][-_RATIOS:]

    def keep(self) -> None:
        """Write it down for the next call."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(self._path, {"durations": self._durations, "ratios": self._ratios})

    @cached_property
    def slowness(self) -> float:
        """How many times longer this machine takes for a calculation than the one where the guesses come from."""
        return calibration_s() / _REFERENCE_S

    @property
    def report_s(self) -> float:
        """Seconds that a report will take."""
        return self.expected_s("report", _REPORT_S)


def calibration_s() -> float:
    """Seconds of a fixed calculation in Python alone, the faster of two goes.

    An interpreter's loop, as start-up of frameworks and installing of packages are such loops for the most part.
    """

    def go() -> float:
        begun, total = time.perf_counter(), 0
        for number in range(4_000_000):
            total += number & 7
        return time.perf_counter() - begun

    return min(go(), go())


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in values]
