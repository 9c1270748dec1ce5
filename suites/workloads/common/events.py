"""The event stream from an experiment to its host.

Events are JSON text sequences (RFC 7464): 0x1E, compact ASCII JSON, newline. Whatever else reaches stdout is log.
"""

import contextlib
import json
import os
import time

START = time.monotonic()  # run.py imports this module first, so that `t` counts from its start
LIMIT = 4096  # bytes of one event; PIPE_BUF on Linux, up to which a write to a pipe arrives in one piece
ENVELOPE = 96  # bytes of an event's kind, seq, t and rank at most
TRUNCATED = " [... truncated]"

# What RuntimeError says when torch (1.1 has no class for it) or its CPU allocator has no memory left.
OUT_OF_MEMORY_TEXTS = ("out of memory", "can't allocate memory", "not enough memory", "status_alloc_failed")
OUT_OF_MEMORY_CLASSES = {"MemoryError", "OutOfMemoryError", "ResourceExhaustedError"}


class Unsupported(Exception):
    """The case cannot exist in this environment: a finding, not a failure. The text says why and what would work."""


class Skipped(Exception):
    """The case would not fit into its time budget, by what its first steps took: a finding. See timing.Budget."""


class Events:
    """Writes events to one file descriptor, one os.write each.

    descriptor: where to write. clock: seconds, monotonic; start: its value when the workload started.
    """

    def __init__(self, descriptor, clock=time.monotonic, start=START):
        self._descriptor = descriptor
        self._clock = clock
        self._start = start
        self._seq = 0

    def environment(self, **facts):
        """What the framework reports about itself. May be emitted several times: the host merges the facts."""
        self._emit("environment", facts)

    def phase_begin(self, phase):
        self._emit("phase_begin", {"phase": phase})

    def phase_end(self, phase):
        self._emit("phase_end", {"phase": phase})

    @contextlib.contextmanager
    def phase(self, phase):
        """Brackets a block with phase_begin and phase_end, the latter also when the block raises."""
        self.phase_begin(phase)
        try:
            yield
        finally:
            self.phase_end(phase)

    def sample(self, phase, index, steps, images, seconds):
        """One timing: `steps` steps over `images` images took `seconds` s; index counts from 0 within the phase."""
        self._emit(
            "sample",
            {
                "phase": phase,
                "index": int(index),
                "steps": int(steps),
                "images": int(images),
                "seconds": float(seconds),
            },
        )

    def metric(self, name, value, unit):
        """One number with its unit ("1" for a pure number). Raises ValueError for NaN and infinities."""
        self._emit("metric", {"name": name, "value": value, "unit": unit})

    def finished(self):
        self._emit("finished", {})

    def failed(self, kind, type_name, text):
        """The last event of a trial that did not finish; a text too long for one event is cut and marked so."""
        self._emit("failed", _cut({"kind": kind, "type": type_name, "text": text}, "text"))

    def possible(self, index, reason):
        """Whether a case can be run. index: its place in the question; reason: why it cannot, cut as above, or ""."""
        self._emit("possible", _cut({"index": index, "reason": reason}, "reason"))

    def _emit(self, event, fields):
        self._write(self._body(event, fields))

    def _body(self, event, fields):
        body = {"event": event, "seq": self._seq, "t": round(self._clock() - self._start, 6), "rank": 0}
        body.update(fields)
        return body

    def _write(self, body):
        data = _encode(body)
        if len(data) > LIMIT:
            raise ValueError("event '{}' takes {} bytes; the limit is {}".format(body["event"], len(data), LIMIT))
        written = os.write(self._descriptor, data)
        if written != len(data):
            raise OSError("event '{}' was cut: {} of {} bytes written".format(body["event"], written, len(data)))
        self._seq += 1


def _cut(fields, key):
    """The same fields with a text that fits into one event."""
    text, kept = fields[key], len(fields[key])
    while len(_encode(fields)) > LIMIT - ENVELOPE:
        kept = kept * 9 // 10
        fields[key] = text[:kept] + TRUNCATED
    return fields


def _encode(body):
    return b"\x1e" + json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def failure_kind(error):
    """`unsupported`, `skipped`, `out_of_memory` or `error`, for the exception `error`.

    Frameworks' exceptions are known by class name, so that none has to be imported here.
    """
    if isinstance(error, Unsupported):
        return "unsupported"
    if isinstance(error, Skipped):
        return "skipped"
    if OUT_OF_MEMORY_CLASSES & {base.__name__ for base in type(error).__mro__}:
        return "out_of_memory"
    if isinstance(error, RuntimeError) and any(text in str(error).lower() for text in OUT_OF_MEMORY_TEXTS):
        return "out_of_memory"
    return "error"
