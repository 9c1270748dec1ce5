"""Listens to a workload from its first byte to its end, with a deadline and in bounded memory."""

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tsuishi.base.errors import EngineLost
from tsuishi.base.printable import line
from tsuishi.base.processes import Ended, Process
from tsuishi.results.facts import Facts, Metric, Phase
from tsuishi.stream.events import (
    CaseAnswer,
    EnvironmentReport,
    Event,
    EventParser,
    Failed,
    Finished,
    MetricEvent,
    PhaseBegin,
    PhaseEnd,
)

# Chunks of at most 64 KiB that wait between the reading thread and the runner; a full queue slows the workload down.
_QUEUE_CHUNKS = 64
_TICK_S = 0.2
# The last bytes of a log are remembered, and a reason has this much of its last line.
_TAIL_BYTES, _TAIL_CHARACTERS = 4096, 300


@dataclass
class _Span:
    """A phase on the workload's clock, in seconds."""

    name: str
    begin_t: float
    end_t: float | None = None


@dataclass
class Transcript:
    """The events of a workload. Seconds are on the host's clock, counted from the start of the trial."""

    metrics: list[Metric] = field(default_factory=list)
    # For a workload that was asked which cases it can run: the reasons why it cannot run a case, by the case's place in
    # the question; empty where it can.
    answers: dict[int, str] = field(default_factory=dict)
    failure: Failed | None = None
    finished: bool = False
    startup_s: float | None = None
    garbled: int = 0
    missing: int = 0
    _log_tail: bytes = b""
    # Facts by name, as events give them.
    _facts: dict[str, Any] = field(default_factory=dict)
    _spans: list[_Span] = field(default_factory=list)
    # Phases that have not ended, by name.
    _open: dict[str, _Span] = field(default_factory=dict)
    # The smallest difference between an event's own time and its arrival: it aligns the two clocks.
    _offset_s: float = float("inf")

    def hear(self, event: Event, arrived_s: float) -> None:
        """Add an event that arrived so many seconds after the trial's start."""
        if self.startup_s is None:
            self.startup_s = arrived_s
        self._offset_s = min(self._offset_s, arrived_s - event.t)
        match event:
            case EnvironmentReport():
                _merge(self._facts, event.facts())
            case PhaseBegin(phase=name, t=t):
                self._open[name] = _Span(name, t)
                self._spans.append(self._open[name])
            case PhaseEnd(phase=name, t=t):
                self._open.pop(name).end_t = t
            case MetricEvent():
                self.metrics.append(event)
            case CaseAnswer(index=index, reason=reason):
                self.answers[index] = reason
            case Failed():
                self.failure = event
            case Finished():
                self.finished = True

    def keep_log(self, piece: bytes) -> None:
        """Remember the end of the log, which goes on with these bytes."""
        self._log_tail = (self._log_tail + piece)[-_TAIL_BYTES:]

    @property
    def last_words(self) -> str:
        """The last line of the log that says anything; empty where there is none."""
        lines = self._log_tail.decode("utf-8", "replace").splitlines()
        return next((text for text in (line(each.strip()) for each in reversed(lines)) if text), "")[:_TAIL_CHARACTERS]

    def facts(self) -> Facts:
        """All facts that the workload reported about its environment."""
        return Facts.reported(self._facts)

    def phases(self) -> list[Phase]:
        """Every phase. A phase has no end if the workload ended in it."""
        return [
            Phase(
                name=span.name,
                begin_s=self._moment(span.begin_t),
                end_s=None if span.end_t is None else self._moment(span.end_t),
            )
            for span in self._spans
        ]

    def _moment(self, t: float) -> float:
        """Seconds from the trial's start to a time of the workload's clock; never below 0."""
        return max(0.0, round(t + self._offset_s, 6))


class Timeout(Exception):
    """The workload ran past its deadline and was stopped."""


def listen(
    process: Process,
    transcript: Transcript,
    started: float,
    timeout_s: float,
    on_event: Callable[[Event], None],
    on_log: Callable[[bytes], None],
) -> Ended:
    """Listen to a process until it ends. started: time.monotonic() at the trial's start.

    Raises Timeout after the process was stopped, UserError where it sent too many events, EngineLost where the engine
    went away. Any other exception meanwhile (KeyboardInterrupt, a full disk) stops the process first.
    """
    parser = EventParser()
    arrivals: queue.Queue[Any] = queue.Queue(_QUEUE_CHUNKS)
    abandoned = threading.Event()
    threading.Thread(target=_read, args=(process, arrivals, abandoned), daemon=True).start()
    take = partial(_take, transcript, on_event, on_log)
    try:
        while True:
            if time.monotonic() - started > timeout_s:
                raise Timeout
            try:
                arrival, when = arrivals.get(timeout=_TICK_S)
            except queue.Empty:
                continue
            if isinstance(arrival, Ended):
                return arrival
            if isinstance(arrival, Exception):
                raise arrival
            stream, chunk = arrival
            take(parser.feed(chunk) if stream == "stdout" else [chunk], when - started)
    except BaseException as error:
        abandoned.set()
        _stop(process, arrivals, reading=not isinstance(error, EngineLost))
        raise
    finally:
        take(parser.close(), time.monotonic() - started)
        transcript.garbled, transcript.missing = parser.garbled, parser.missing


def _take(
    transcript: Transcript,
    on_event: Callable[[Event], None],
    on_log: Callable[[bytes], None],
    pieces: Iterable[Event | bytes],
    arrived_s: float,
) -> None:
    """Pass on events and pieces of log that arrived so many seconds after the trial's start."""
    for piece in pieces:
        if isinstance(piece, Event):
            transcript.hear(piece, arrived_s)
            on_event(piece)
        else:
            transcript.keep_log(piece)
            on_log(piece)


def why_it_ended(ended: Ended) -> str:
    """An exit code in words.

    >>> why_it_ended(Ended(-11))
    'ended by SIGSEGV (a crash in native code)'
    """
    # In containers the exit code is 128 plus the signal's number, as in shells.
    number = -ended.code if ended.code < 0 else ended.code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"exit code {ended.code}"
    hints = {
        "SIGKILL": "most likely by the kernel, for want of memory: see `dmesg`",
        "SIGSEGV": "a crash in native code",
        "SIGILL": "an instruction this CPU does not have",
        "SIGABRT": "a failed check in native code: see the log",
    }
    return f"ended by {name}" + (f" ({hints[name]})" if name in hints else "")


def _read(process: Process, arrivals: "queue.Queue[Any]", abandoned: threading.Event) -> None:
    try:
        for arrival in process.output():
            arrivals.put((arrival, time.monotonic()))
            if abandoned.is_set():
                break
        arrivals.put((process.wait(), time.monotonic()))
    except Exception as error:
        arrivals.put((error if isinstance(error, EngineLost) else EngineLost(str(error)), time.monotonic()))


def _stop(process: Process, arrivals: "queue.Queue[Any]", reading: bool) -> None:
    """Stop a process. While the thread is `reading`, wait until it has seen the end, so that nothing still runs."""
    try:
        process.stop()
        while reading:
            arrival, _ = arrivals.get(timeout=30)
            if isinstance(arrival, Ended | Exception):
                return
    except (EngineLost, queue.Empty):
        return


def _merge(into: dict[str, Any], values: dict[str, Any]) -> None:
    """Add the facts of a later event. Versions, packages and flags are merged by name."""
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            into[key].update(value)
        else:
            into[key] = value
