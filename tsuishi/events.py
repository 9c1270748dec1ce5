"""Contract 1: the event stream. RFC 7464 JSON text sequences among whatever else a workload prints.

Only the host's side is here; suites/workloads/events.py writes what this reads, and neither imports the other.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

RECORD_SEPARATOR = b"\x1e"
MAX_EVENT_BYTES = 4096
_MAX_WHOLE_NUMBER = 2**63 - 1  # what a column of integers holds
KINDS = ("environment", "phase_begin", "phase_end", "sample", "metric", "possible", "finished", "failed")

# The fields an event of a kind must have, with their types; anything else about it is carried along.
_NUMBER = (int, float)
# What the facts of an environment event must be, where it has them.
_FACTS: dict[str, type] = {
    "versions": dict,
    "packages": dict,
    "base_packages": dict,
    "system_packages": dict,
    "os": dict,
    "flags": dict,
    "devices": list,
}
_REQUIRED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "environment": {},
    "phase_begin": {"phase": str},
    "phase_end": {"phase": str},
    "sample": {"phase": str, "index": int, "steps": int, "images": int, "seconds": _NUMBER},
    "metric": {"name": str, "value": _NUMBER, "unit": str},
    "possible": {"index": int, "reason": str},
    "finished": {},
    "failed": {"kind": str, "type": str, "text": str},
}


@dataclass(frozen=True)
class Event:
    """One event. `t` is monotonic seconds since the workload started, on the workload's own clock."""

    kind: str
    seq: int
    t: float
    rank: int
    values: dict[str, Any]


@dataclass
class EventParser:
    """Cuts a byte stream into events and log, chunk by chunk, in memory bounded by one event's size.

    A record that is no event (garbled, half, too long, of an unknown kind) is counted in `garbled` and goes to
    the log as it came. Gaps in `seq` are counted in `missing`.
    """

    garbled: int = 0
    missing: int = 0
    received: int = 0
    _record: bytearray | None = None
    _next_seq: int = field(default=0)

    def feed(self, chunk: bytes) -> Iterator[Event | bytes]:
        """Events and pieces of log, in the order they came."""
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
        """What is left when the stream ends: half an event is garbled."""
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
            if event is None:
                self.garbled += 1
                yield raw + b"\n"
            else:
                self._count(event)
                yield event
            if data[end + 1 :]:
                yield data[end + 1 :]

    def _give_up(self) -> Iterator[bytes]:
        """The record at hand will never be an event."""
        if self._record is not None:
            self.garbled += 1
            raw, self._record = bytes(self._record), None
            if raw:
                yield raw

    def _count(self, event: Event) -> None:
        self.received += 1
        self.missing += max(0, event.seq - self._next_seq)
        self._next_seq = max(self._next_seq, event.seq + 1)


def parse_event(raw: bytes) -> Event | None:
    """One JSON text as an event, or None where it is not exactly one: an event is never guessed at."""
    try:
        values = _writable(json.loads(raw.decode(), parse_constant=_refuse, parse_float=_finite, parse_int=_whole))
        kind, seq, t, rank = (values.pop(key) for key in ("event", "seq", "t", "rank"))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None
    if kind not in KINDS or not _is(seq, int) or not _is(t, _NUMBER) or not _is(rank, int) or seq < 0:
        return None
    if not all(_is(values.get(key), kinds) for key, kinds in _REQUIRED[kind].items()):
        return None
    if not all(isinstance(values.get(key, fact()), fact) for key, fact in _FACTS.items()):
        return None
    return Event(kind, seq, float(t), rank, values) if abs(t) < 1e9 else None


def _is(value: object, kinds: type | tuple[type, ...]) -> bool:
    """isinstance, but true and false are not numbers."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number for an event")


def _finite(text: str) -> float:
    """1e999 is JSON, but no number a table or trial.json can hold."""
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _whole(text: str) -> int:
    number = int(text)
    return number if abs(number) <= _MAX_WHOLE_NUMBER else _refuse(text)


def _writable(values: Any) -> Any:
    """The same with '?' for halves of surrogate pairs (from an undecodable file name, say), which no file takes."""
    return json.loads(json.dumps(values, ensure_ascii=False).encode(errors="replace"))
