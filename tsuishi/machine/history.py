"""Durations of earlier work on this machine, the scatter between its trials, and estimates of later work from them.

Specs hold guesses: the seconds on another machine. An estimate is, in this order: the duration of the same trial, build
or report here; the guess times the ratio of duration to guess for work of the same kind here; the guess times the ratio
of a fixed calculation's durations on both machines.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tsuishi.base import files
from tsuishi.base.errors import UserError

# `calibration_s` on the machine where the guesses of images/*.toml and suites/*.toml were measured.
_REFERENCE_S = 0.075
# The duration of a report there, for a run of some minutes.
_REPORT_S = 12.0
# The name of downloads; their duration is in seconds per DOWNLOAD_BYTES.
DOWNLOAD, DOWNLOAD_BYTES = "download", 1e6
# The latest durations that are kept for each name, and the latest ratios for each kind.
_KEPT, _RATIOS = 7, 40
# A scatter of fewer degrees of freedom says too little.
_FEWEST_FREEDOM = 4
# No variance of logarithms, and no degrees of freedom, are as large.
_MOST = 1e9
# A guess without any measurement here is raised by this factor.
_CAUTION = 1.15
# Ratios of a kind that are needed to scale a guess.
_FEWEST_RATIOS = 3


class History:
    """Durations in seconds by the name of the work, and scatters by the name of the measurement: a file of the cache.

    Durations of other machines do not count. `machine` is the id of the machine's record, and `record` its content: a
    file whose record `is_same` counts under whatever id it was begun. Nodes of a cluster have an id, and no record.
    """

    def __init__(
        self,
        cache: Path,
        machine: str,
        record: Mapping[str, Any] | None = None,
        is_same: Callable[[Any], bool] = lambda other: False,
    ) -> None:
        self._record = record
        self._path = cache / "history" / f"{machine}.json"
        if record and not self._path.exists():
            known = sorted(self._path.parent.glob("*.json"))
            self._path = next((path for path in known if is_same(_machine_of(path))), self._path)
        self._durations: dict[str, list[float]] = {}
        self._ratios: dict[str, list[float]] = {}
        # By name and run: the variance of the logarithms of a case's trials, and its degrees of freedom.
        self._scatters: dict[str, dict[str, tuple[float, float]]] = {}
        try:
            kept = files.read_json(self._path) if self._path.exists() else {}
            self._durations = {str(name): _numbers(values) for name, values in kept.get("durations", {}).items()}
            self._ratios = {str(kind): _numbers(values) for kind, values in kept.get("ratios", {}).items()}
            self._scatters = {str(name): _scatters(of_run) for name, of_run in kept.get("scatters", {}).items()}
        except (UserError, TypeError, ValueError, AttributeError):
            # A damaged file is no reason not to plan.
            self._durations, self._ratios, self._scatters = {}, {}, {}

    def expected_s(self, name: str, guess_s: float, kinds: Iterable[str] = (), *, scales: bool = True) -> float:
        """The estimated duration in seconds. `kinds` are the kinds that the work belongs to, the narrowest first.

        scales: whether a guess is longer on a machine with a slower CPU.
        """
        if measured := self._durations.get(name):
            return statistics.median(measured)
        for kind in kinds:
            if len(ratios := self._ratios.get(kind, ())) >= _FEWEST_RATIOS:
                return guess_s * statistics.median(ratios)
        return guess_s * (self.slowness if scales else 1.0) * _CAUTION

    def measured(self, name: str) -> bool:
        """Whether this work was measured here."""
        return name in self._durations

    def learn(self, name: str, took_s: float, guess_s: float = 0.0, kinds: Iterable[str] = ()) -> None:
        """Remember a duration in seconds, and its ratio to the guess for each kind of the work."""
        self._durations[name] = [*self._durations.get(name, ()), round(took_s, 3)][-_KEPT:]
        if guess_s > 0:
            for kind in kinds:
                self._ratios[kind] = [*self._ratios.get(kind, ()), round(took_s / guess_s, 4)][-_RATIOS:]

    def learn_scatter(self, name: str, run_id: str, variance: float, freedom: float) -> None:
        """Remember the variance between the trials of a run, pooled over its cases: that of the logarithms of values.

        It replaces the earlier variance of the same run, which may have been resumed.
        """
        known = {run: found for run, found in self._scatters.get(name, {}).items() if run != run_id}
        latest = [*known.items(), (run_id, (variance, freedom))][-_KEPT:]
        self._scatters[name] = dict(latest)

    def has_scatter(self, name: str) -> bool:
        """Whether trials were seen to scatter under this name."""
        return name in self._scatters

    def scatter(self, names: Iterable[str]) -> float | None:
        """The relative standard deviation between trials under these names, pooled; None where too few were seen."""
        known = [found for name in names for found in self._scatters.get(name, {}).values()]
        freedom = sum(each for _, each in known)
        if freedom < _FEWEST_FREEDOM:
            return None
        return math.sqrt(math.fsum(variance * each for variance, each in known) / freedom)

    def keep(self) -> None:
        """Write the file, for the next command."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        learnt = {"durations": self._durations, "ratios": self._ratios, "scatters": self._scatters}
        files.write_json(self._path, learnt | ({"machine": self._record} if self._record else {}))

    @cached_property
    def slowness(self) -> float:
        """The duration of a fixed calculation here, divided by its duration on the machine of the guesses."""
        return calibration_s() / _REFERENCE_S

    @property
    def report_s(self) -> float:
        """The estimated duration of a report, in seconds."""
        return self.expected_s("report", _REPORT_S)


@cache
def calibration_s() -> float:
    """The duration of a fixed calculation in seconds, the shorter of two tries. A process measures it once.

    It is a loop in Python, because the start of a framework and the installation of packages mostly interpret Python.
    """

    def try_s() -> float:
        begun, total = time.perf_counter(), 0
        for number in range(1_000_000):
            total += number & 7
        return time.perf_counter() - begun

    return min(try_s(), try_s())


def _machine_of(path: Path) -> Any:
    """The record of the machine of a file in the cache; None where an earlier tsuishi did not say it."""
    try:
        return files.read_json(path).get("machine")
    except UserError:
        return None


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in values]


def _scatters(of_run: Any) -> dict[str, tuple[float, float]]:
    found = {str(run_id): (float(variance), float(freedom)) for run_id, (variance, freedom) in of_run.items()}
    if not all(0 <= variance < _MOST and 1 <= freedom < _MOST for variance, freedom in found.values()):
        raise ValueError("no trials scatter so")
    return found
