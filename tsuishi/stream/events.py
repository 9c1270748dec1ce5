"""Contract 1: the event stream, JSON text sequences (RFC 7464) among all other output of a workload.

This is the host's side: it reads what suites/workloads/common/events.py writes. No side imports the other.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.redaction import redacted_values
from tsuishi.results.facts import Facts, Label, Metric, Sample, Scalar

RECORD_SEPARATOR = b"\x1e"
MAX_EVENT_BYTES = 4096
_MAX_WHOLE_NUMBER = 2**63 - 1  # the largest number in a column of integers
# The most events of a kind that a trial may have. All but samples stay in memory, each at most 4 KiB long. The longest
# trials of the suites have some hundred phases and samples; environments have some hundred packages, forty per event.
MOST_EVENTS = {
    "environment": 1_000,
    "phase_begin": 10_000,
    "sample": 100_000,
    "metric": 10_000,
    "possible": 10_000,
}

# Without deeper nesting: deeply nested values can be read, but not be written again.
Fact = Scalar | list[Scalar] | dict[str, Scalar]


class Event(BaseModel):
    """The fields of every event. `t`: seconds since the workload started, on the workload's own monotonic clock."""

    model_config = ConfigDict(strict=True, frozen=True)

    event: str
    seq: int = Field(ge=0)
    t: float = Field(ge=0, lt=1e9)
    rank: Literal[0]


class EnvironmentReport(Event, Facts):
    """Facts that the framework reports about itself; a workload may report further facts."""

    __pydantic_extra__: dict[str, Fact] = Field(init=False)

    event: Literal["environment"]

    def facts(self) -> dict[str, Any]:
        """The facts that were reported, as JSON."""
        return self.model_dump(exclude_unset=True, exclude={*Event.model_fields})


class PhaseBegin(Event):
    event: Literal["phase_begin"]
    phase: Label


class PhaseEnd(Event):
    event: Literal["phase_end"]
    phase: Label


class SampleEvent(Event, Sample):
    event: Literal["sample"]


class MetricEvent(Event, Metric):
    event: Literal["metric"]


class CaseAnswer(Event):
    """Why the environment cannot run the case at this place of a question; empty where it can."""

    event: Literal["possible"]
    index: int = Field(ge=0)
    reason: str


class Finished(Event):
    event: Literal["finished"]


class Failed(Event):
    event: Literal["failed"]
    kind: Literal["out_of_memory", "unsupported", "skipped", "error"]
    type: str
    text: str


_KINDS = EnvironmentReport | PhaseBegin | PhaseEnd | SampleEvent | MetricEvent | CaseAnswer | Finished | Failed
_EVENT: TypeAdapter[_KINDS] = TypeAdapter(Annotated[_KINDS, Field(discriminator="event")])


@dataclass
class Order:
    """The rules of contract 1 for the sequence of events."""

    # The number of events that never arrived: gaps in the numbers of later events.
    missing: int = 0
    _next_seq: int = 0
    _t: float = 0.0
    _has_ended: bool = False
    _open_phases: set[str] = field(default_factory=set)
    # The number of samples of each phase that has begun.
    _samples: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)

    def admits(self, event: Event) -> bool:
        """Whether an event keeps to the rules, after those before it. Raises UserError for too many events of a kind.

        Numbers rise and times do not fall; a phase begins, then ends; samples of a phase that has begun are numbered
        0, 1, …; nothing follows `finished` or `failed`.
        """
        if self._has_ended or event.seq < self._next_seq or event.t < self._t or not self._follows(event):
            return False
        self.missing += event.seq - self._next_seq
        self._next_seq, self._t = event.seq + 1, event.t
        self._counts[event.event] += 1
        most = MOST_EVENTS.get(event.event, math.inf)
        if self._counts[event.event] > most:
            raise UserError(f"more than {most} {event.event} events, the most that are taken from a trial")
        return True

    def _follows(self, event: Event) -> bool:
        match event:
            case PhaseBegin(phase=phase):
                if phase in self._open_phases:
                    return False
                self._open_phases.add(phase)
                self._samples.setdefault(phase, 0)
            case PhaseEnd(phase=phase):
                if phase not in self._open_phases:
                    return False
                self._open_phases.remove(phase)
            case SampleEvent(phase=phase, index=index):
                if phase not in self._samples or index != self._samples[phase]:
                    return False
                self._samples[phase] += 1
            case Finished() | Failed():
                self._has_ended = True
        return True


@dataclass
class EventParser:
    """Divides a stream of bytes into events and log, chunk by chunk; its memory is bounded by the size of an event.

    A record that is not an event (garbled, cut off, too long, of an unknown kind or a wrong type, out of order) counts
    in `garbled`, and its bytes go to the log unchanged.
    """

    garbled: int = 0
    received: int = 0
    _order: Order = field(default_factory=Order)
    _record: bytearray | None = None

    @property
    def missing(self) -> int:
        """The number of events that never arrived: gaps in the numbers of later events."""
        return self._order.missing

    def feed(self, chunk: bytes) -> Iterator[Event | bytes]:
        """Events and pieces of log, in their order. Raises UserError where there are too many events."""
        log, *records = chunk.split(RECORD_SEPARATOR)
        if self._record is None:
            if log:
                yield log
        else:
            yield from self._extend(log)
        for record in records:
            yield from self._give_up()
            self._record = bytearray()
            yield from self._extend(record)

    def close(self) -> Iterator[Event | bytes]:
        """The rest, after the end of the stream. An unfinished event counts as garbled."""
        yield from self._give_up()

    def _extend(self, data: bytes) -> Iterator[Event | bytes]:
        assert self._record is not None
        end = data.find(b"\n")
        self._record += data if end < 0 else data[:end]
        if len(self._record) > MAX_EVENT_BYTES:
            yield from self._give_up()
            yield data[end:] if end >= 0 else b""
        elif end >= 0:
            raw, self._record = bytes(self._record), None
            event = parse_event(raw)
            if event is None or not self._order.admits(event):
                self.garbled += 1
                yield raw + b"\n"
            else:
                self.received += 1
                yield event
            if data[end + 1 :]:
                yield data[end + 1 :]

    def _give_up(self) -> Iterator[bytes]:
        """Pass the unfinished record to the log: it can no longer become an event."""
        if self._record is not None:
            self.garbled += 1
            raw, self._record = bytes(self._record), None
            if raw:
                yield raw


def parse_event(raw: bytes) -> Event | None:
    """The event in a JSON text, with secrets removed; None where the text is not exactly an event."""
    try:
        values = json.loads(raw.decode(), parse_constant=_refuse, parse_float=files.finite, parse_int=_whole)
        return _EVENT.validate_python(redacted_values(_writable(values)))
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number for an event")


def _whole(text: str) -> int:
    number = int(text)
    return number if abs(number) <= _MAX_WHOLE_NUMBER else _refuse(text)


def _writable(values: Any) -> Any:
    """The values with '?' in place of half surrogate pairs (from strange file names), which no file can hold."""
    return json.loads(json.dumps(values, ensure_ascii=False).encode(errors="replace"))
