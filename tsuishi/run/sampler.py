"""The sampler on the host: it writes telemetry, a row for each device and tick, while a trial runs."""

import csv
import math
import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tsuishi.machine.gpus import Nvml
from tsuishi.results import schema

_MIB = 1 << 20


# In the first seconds of a phase readings are this close, so that a short phase has some too.
CLOSE_INTERVAL_S, CLOSE_S = 0.1, 5.0
# The longest wait, and the longest time that it and a tick may take: after more this process, and maybe its trial, did
# not run. A busy driver may let a tick wait for seconds.
_PULSE_S, _LONGEST_WAIT_S, _LONGEST_TICK_S = 0.5, 1.5, 10.0
# A shorter time says nothing of other programs, as processes are counted in hundredths of a second.
_SAYS_SOMETHING_S = 0.5


class Hole(NamedTuple):
    """A time in which this process, or a process of the trial, did not run. Seconds since the trial's start.

    `still_s`: its length, which counts the time for which the machine was suspended, as the trial's clock does not.
    """

    begin_s: float
    end_s: float
    still_s: float


class Sampler:
    """Samples in a thread from `__enter__` to `__exit__`, every `interval_s` seconds, into `path`.

    The listener sets `phase` when a phase begins, and to "" when it ends. That moment is sampled, and in the
    first CLOSE_S seconds of a phase every CLOSE_INTERVAL_S. A phase with the name of an earlier phase is sampled every
    `interval_s`, so that a thousand epochs are not a thousand beginnings. A row has the phase of the time since the
    row before, for which its values stand.

    `holes`: the times that were stopped (Ctrl-Z, a frozen control group) or suspended, of a second and more.

    pids: gives the roots of the trial's process trees, which are none before its start. A tick that cannot be written
    (a full disk), or read, ends the sampling; `__exit__` raises OSError, when the trial is over.
    """

    def __init__(
        self,
        path: Path,
        interval_s: float,
        pids: Callable[[], Sequence[int]],
        nvml: Nvml,
        gpus: Sequence[int] | None = None,
    ) -> None:
        # None where no process of the trial was seen.
        self.peak_process_memory_mib: float | None = None
        self.holes: list[Hole] = []
        self.start = time.monotonic()
        self._path = path
        self._interval_s = interval_s
        self._pids = pids
        self._processes: list[psutil.Process] = []
        self._processes_until = 0.0
        self._looked_s = 0.0
        self._others = OtherPrograms()
        self._nvml = nvml
        self._gpus = gpus
        self._phase = ""
        self._done = False
        self._wake = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._done = True
        self._wake.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    @property
    def phase(self) -> str:
        """The phase that the workload is in; empty between phases."""
        return self._phase

    @phase.setter
    def phase(self, phase: str) -> None:
        self._phase = phase
        self._wake.set()

    def elapsed_s(self) -> float:
        """Seconds since the trial started."""
        return time.monotonic() - self.start

    def _run(self) -> None:
        psutil.cpu_percent()  # this first answer is void; each later answer covers the time since the answer before
        try:
            with self._path.open("w", encoding="utf-8", newline="") as file:
                writer = schema.csv_writer("telemetry", file)
                for phase in self._moments():
                    self._tick(writer, phase)
                    file.flush()
        except OSError as error:  # raised at __exit__: telemetry never goes missing silently
            self._error = error
        except Exception as error:
            self._error = OSError(f"telemetry ended with {type(error).__name__}: {error}")

    def _moments(self) -> Iterator[str]:
        """Waits for the moment of each tick, and gives the phase until then."""
        phase, seen = "", {""}
        due = time.monotonic()
        last, close_until, done = -math.inf, -math.inf, False
        woken = _clocks()
        while not done:
            waits = _clocks()
            self._wake.wait(min(_PULSE_S, max(0.0, due - time.monotonic())))
            self._wake.clear()
            done, coming, now = self._done, self._phase, time.monotonic()
            self._expect(woken, waits, _LONGEST_TICK_S)
            woken = _clocks()
            self._expect(waits, woken, _LONGEST_WAIT_S)
            # A workload that changes its phase all the time gets no more ticks than twice the close ones.
            if done or now >= due or (coming != phase and now - last >= CLOSE_INTERVAL_S / 2):
                yield phase
                last = now
            if coming != phase:
                close_until = -math.inf if coming in seen else now + CLOSE_S
                seen.add(coming)
                phase, due = coming, now
                self._processes_until = now
            if now >= due:
                step_s = min(self._interval_s, CLOSE_INTERVAL_S) if now < close_until else self._interval_s
                # A late tick does not move the later ticks.
                due += step_s * max(1, -(-(time.monotonic() - due) // step_s))

    def _expect(self, begin: tuple[float, float], end: tuple[float, float], most_s: float) -> None:
        """Note a hole where more time has gone by between two answers of `_clocks`."""
        if end[1] - begin[1] > most_s:
            self.holes.append(Hole(begin[0] - self.start, end[0] - self.start, end[1] - begin[1]))

    def _tick(self, writer: "csv.DictWriter[str]", phase: str) -> None:
        moment = {"elapsed_s": round(self.elapsed_s(), 3), "phase": phase}
        gpus = self._nvml.sample(self._gpus)  # first: energy belongs to this moment, and reading /proc takes time
        memory = self._memory_mib()
        self._look_for_stopped()
        if memory is not None:
            self.peak_process_memory_mib = max(self.peak_process_memory_mib or 0.0, memory)
        host = {
            "device": "host",
            "utilisation_percent": psutil.cpu_percent(),
            "process_memory_mib": None if memory is None else round(memory, 1),
            "load_1min": round(os.getloadavg()[0], 2),
            "others_cpu_percent": self._others.percent(self._processes),
        }
        for row in (host, *gpus):
            writer.writerow({key: schema.csv_value(value) for key, value in {**moment, **row}.items()})

    def _look_for_stopped(self) -> None:
        """Add the time since the tick before where a process of the trial is stopped, as by `kill -STOP`."""
        now = self.elapsed_s()
        if any(map(_is_stopped, self._processes)):
            self.holes.append(Hole(self._looked_s, now, now - self._looked_s))
        self._looked_s = now

    def _memory_mib(self) -> float | None:
        """The resident memory of the trial; None where no process of it can be seen.

        Its processes are looked up every `interval_s`, and as a phase begins, as all of /proc is read.
        """
        now = time.monotonic()
        if now >= self._processes_until or not self._processes:
            self._processes = families(self._pids())
            self._processes_until = now + self._interval_s - CLOSE_INTERVAL_S / 2
        return resident_mib(self._processes) if self._processes else None


class OtherPrograms:
    """The share that other programs (not the trial, not this process) take of the cores that this process may use.

    What a hypervisor gives to another machine (steal) counts too.
    """

    def __init__(self) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._own = psutil.Process()
        self._before: tuple[float, float] | None = None
        self._trial_s = 0.0

    def percent(self, trial: Sequence[psutil.Process]) -> float | None:
        """Since the call before, in percent of the cores; None in the first call, and for a trial that cannot be seen.

        Both sides are counted in hundredths of a second, and a process counts once it is seen: the percentage of a
        short time may be too high, or below 0, and that of the next time makes up for it.
        """
        if not trial:
            self._before = None
            return None
        # The time of a trial's first process is gone with it.
        self._trial_s = max(self._trial_s, sum(map(_computed_s, trial)))
        now, taken = time.monotonic(), self._busy_s() - self._trial_s - sum(self._own.cpu_times()[:2])
        before, self._before = self._before, (now, taken)
        if before is None or now <= before[0]:
            return None
        return round(100 * (taken - before[1]) / (now - before[0]) / len(self._cores), 1)

    def _busy_s(self) -> float:
        """The seconds for which these cores computed, since the machine started."""
        cores = psutil.cpu_times(percpu=True)
        every = (cores[number] for number in self._cores if number < len(cores))
        # user, nice, system, irq, softirq and steal; the time of guests is in user and nice.
        return sum(sum(core[:3]) + sum(core[5:8]) for core in every)


def _computed_s(process: psutil.Process) -> float:
    """The seconds for which a process, and the processes that it has waited for, computed; 0 once it is gone."""
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.Error:
        return 0.0


def _is_stopped(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # it has just ended
        return bool(process.status() == psutil.STATUS_STOPPED)
    return False


def _clocks() -> tuple[float, float]:
    """The seconds of the clock of trials, and of a clock that also goes while the machine is suspended."""
    return time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)


def others_percent(rows: Iterable[Mapping[str, Any]], phases: Collection[str]) -> float | None:
    """The share of the cores that other programs took in these phases, in percent; None where it is not known.

    Where the phases are too short, it is that of the whole trial. rows: of telemetry; a row stands for the time since
    the row before.
    """
    host = [row for row in rows if row["device"] == "host"]
    spans = [
        (row["phase"], float(row["elapsed_s"]) - float(before["elapsed_s"]), float(row["others_cpu_percent"]))
        for before, row in pairwise(host)
        if row["others_cpu_percent"]
    ]
    for chosen in ([span for span in spans if span[0] in phases], spans):
        seconds = sum(length for _, length, _ in chosen)
        if seconds >= _SAYS_SOMETHING_S:
            return max(0.0, round(sum(length * percent for _, length, percent in chosen) / seconds, 1))
    return None


def families(roots: Iterable[int]) -> list[psutil.Process]:
    """These processes and their descendants, without those that have ended."""
    found = []
    for root in roots:
        with suppress(psutil.Error):
            process = psutil.Process(root)
            found += [process, *process.children(recursive=True)]
    return found


def resident_mib(processes: Iterable[psutil.Process]) -> float:
    """The resident memory of processes in MiB; a shared page counts for each process."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):  # it has just ended
            total += process.memory_info().rss
    return total / _MIB


def energy_j(rows: Sequence[dict[str, Any]], phases: Sequence[tuple[float, float]]) -> tuple[float | None, str]:
    """The energy of all GPUs over some phases, in joules, and its source; (None, "") without samples.

    phases: begin and end of each, in seconds. The energy is the difference of the counter at both ends, interpolated
    between ticks; without a counter, the integral of the sampled power by the trapezoidal rule.
    """
    by_device: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["device"] != "host":
            by_device.setdefault(row["device"], []).append(row)
    sources: set[str] = set()
    total = 0.0
    for series in by_device.values():
        times = [float(row["elapsed_s"]) for row in series]
        counter = _column(series, "energy_j")
        power = _column(series, "power_w")
        values = counter or power
        if len(times) < 2 or not values:
            return None, ""
        sources.add("counter" if counter else "power_integral")
        over = _risen if counter else _integral
        total += sum(over(times, values, begin, end) for begin, end in phases)
    if not sources or not phases:
        return None, ""
    return total, "power_integral" if "power_integral" in sources else "counter"


def _column(series: list[dict[str, Any]], name: str) -> list[float] | None:
    """The values of a column; None where a row has no value."""
    values = [row.get(name, "") for row in series]
    return None if None in values or "" in values else [float(value) for value in values]


def _risen(times: list[float], values: list[float], begin: float, end: float) -> float:
    return _at(times, values, end) - _at(times, values, begin)


def _integral(times: list[float], values: list[float], begin: float, end: float) -> float:
    """The integral of values over time from `begin` to `end`, by the trapezoidal rule."""
    inside = slice(bisect_right(times, begin), bisect_left(times, end))
    points = [
        (begin, _at(times, values, begin)),
        *zip(times[inside], values[inside], strict=True),
        (end, _at(times, values, end)),
    ]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))


def _at(times: Sequence[float], values: Sequence[float], moment: float) -> float:
    """The value at a moment, by linear interpolation; constant before the first and after the last time."""
    if moment <= times[0]:
        return values[0]
    i = bisect_left(times, moment)
    if i == len(times):
        return values[-1]
    share = (moment - times[i - 1]) / (times[i] - times[i - 1])
    return values[i - 1] + share * (values[i] - values[i - 1])
