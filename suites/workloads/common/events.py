"""The event stream from an experiment to its host.

Events are JSON text sequences (RFC 7464): 0x1E, compact ASCII JSON, newline. All other text on stdout is log.
"""

import contextlib
import json
import os
import time

START = time.monotonic()  # run.py imports this module first, so that `t` counts from the start of run.py
LIMIT = 4096  # bytes of an event; PIPE_BUF on Linux: a pipe passes a write of up to that size as a whole
ENVELOPE = 96  # bytes of an event's kind, seq, t and rank at most
TRUNCATED = " [... truncated]"

# Classes of errors that mean that no memory is left.
OUT_OF_MEMORY_CLASSES = {"MemoryError", "OutOfMemoryError", "ResourceExhaustedError"}
# Classes of errors with many meanings, and the texts by which they mean that no memory is left: PyTorch's and JAX's are
# a RuntimeError, TensorFlow's an OpError, MXNet has a single class.
MANY_MEANINGS = {"RuntimeError", "OpError", "MXNetError"}
OUT_OF_MEMORY_TEXTS = (
    "out of memory",
    "out_of_memory",  # the driver's own name of it
    "can't allocate memory",
    "not enough memory",
    "status_alloc_failed",  # cuBLAS, and cuDNN up to 8
    "allocation_failed",  # cuDNN 9: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
    "cublas runtime error : resource allocation failed",  # cuBLAS in torch 1.1
    "resource_exhausted:",  # JAX
    "failed to allocate cpu memory",  # MXNet 1.5
)
# Texts of a search that found no algorithm for a convolution. With little memory left, none had room to work; with much
# left, none can do that convolution (pytorch#103665). So these mean out of memory only where an allocator was FULL.
NO_ALGORITHM_TEXTS = (
    "unable to find an engine to execute this computation",  # PyTorch: aten/src/ATen/native/cudnn/Conv_v8.cpp
    "unable to find a valid cudnn algorithm",  # PyTorch before 2.0: aten/src/ATen/native/cudnn/Conv_v7.cpp
    "no algorithm worked!",  # TensorFlow: core/kernels/gpu_utils.cc, errors::NotFound
    "failed to determine best cudnn convolution algorithm",  # XLA: service/gpu/.../conv_algorithm_picker.cc
)
FULL = 0.9  # of the memory that an allocator may take


class Unsupported(Exception):
    """The case cannot run in this environment: a finding, not a failure. The text says why, and what would run."""


class Skipped(Exception):
    """At the pace of its first steps the case would exceed its time budget: a finding. See timing.Budget."""


class Events:
    """Writes events to a file descriptor, each by a single os.write.

    clock: a function that returns monotonic seconds; start: its value when the workload started.
    """

    def __init__(self, descriptor, clock=time.monotonic, start=START):
        self._descriptor = descriptor
        self._clock = clock
        self._start = start
        self._seq = 0

    def environment(self, **facts):
        """Facts about the environment. An experiment may emit several such events: the host merges their facts."""
        self._emit("environment", facts)

    def phase_begin(self, phase):
        self._emit("phase_begin", {"phase": phase})

    def phase_end(self, phase):
        self._emit("phase_end", {"phase": phase})

    @contextlib.contextmanager
    def phase(self, phase):
        """Emits phase_begin before a block, and phase_end after it, also when the block raises."""
        self.phase_begin(phase)
        try:
            yield
        finally:
            self.phase_end(phase)

    def sample(self, phase, index, steps, images, seconds):
        """A timing: `steps` steps over `images` images took `seconds` s. `index` counts samples of the phase from 0."""
        counts = {"index": int(index), "steps": int(steps), "images": int(images)}
        self._emit("sample", dict(phase=phase, **counts, seconds=float(seconds)))

    def metric(self, name, value, unit):
        """A number with its unit ("1" for a pure number). Raises ValueError for NaN and infinities."""
        self._emit("metric", {"name": name, "value": value, "unit": unit})

    def finished(self):
        self._emit("finished", {})

    def failed(self, kind, type_name, text):
        """The last event of a trial that did not finish. A text too long for an event is cut, and ends with a mark."""
        self._emit("failed", _cut({"kind": kind, "type": type_name, "text": text}, "text"))

    def possible(self, index, reason):
        """Whether a case can be run. index: of the case in the question. reason: "", or why the case cannot be run."""
        self._emit("possible", _cut({"index": index, "reason": reason}, "reason"))

    def _emit(self, event, fields):
        elapsed_s = round(self._clock() - self._start, 6)
        self._write(dict({"event": event, "seq": self._seq, "t": elapsed_s, "rank": 0}, **fields))

    def _write(self, body):
        data = _encode(body)
        if len(data) > LIMIT:
            raise ValueError("event '{}' takes {} bytes; the limit is {}".format(body["event"], len(data), LIMIT))
        written = os.write(self._descriptor, data)
        if written != len(data):
            raise OSError("event '{}' was cut: {} of {} bytes written".format(body["event"], written, len(data)))
        self._seq += 1


def _cut(fields, key):
    """`fields` with the text of `key` shortened until they fit into an event."""
    text, kept = fields[key], len(fields[key])
    while len(_encode(fields)) > LIMIT - ENVELOPE:
        kept = kept * 9 // 10
        fields[key] = text[:kept] + TRUNCATED
    return fields


def _encode(body):
    return b"\x1e" + json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def failure_kind(error):
    """`unsupported`, `skipped`, `out_of_memory` or `error`, for the exception `error`.

    Frameworks' exceptions are recognised by the name of their class, so that this module imports no framework.
    """
    if isinstance(error, Unsupported):
        return "unsupported"
    if isinstance(error, Skipped):
        return "skipped"
    classes = [base.__name__ for base in type(error).__mro__]
    return "out_of_memory" if any(means_out_of_memory(name, str(error)) for name in classes) else "error"


def failure(error, allocators):
    """(failure_kind, text) of the exception `error`, where a search for an algorithm that found none may mean either.

    allocators: a function that returns [(MiB that an allocator had taken at most, MiB that it may take)], by device.
    """
    kind, text = failure_kind(error), str(error)
    classes = {base.__name__ for base in type(error).__mro__}
    if kind != "error" or not classes & MANY_MEANINGS or not any(known in text.lower() for known in NO_ALGORITHM_TEXTS):
        return kind, text
    taken = [(most, limit) for most, limit in allocators() if limit]
    if not taken:
        return kind, "out of memory or not, as its allocator does not say what it had taken: " + text
    most, limit = max(taken, key=lambda each: each[0] / each[1])
    rule = "its allocator had taken {:.0f} of {:.0f} MiB (above {:.0%} is out of memory): ".format(most, limit, FULL)
    return "out_of_memory" if most > FULL * limit else kind, rule + text


def means_out_of_memory(class_name, text):
    """Whether an error of a class with this name and text says that no memory is left.

    Of a traceback only the name of the class is known: XlaRuntimeError, say, is a RuntimeError by its name.
    """
    if class_name in OUT_OF_MEMORY_CLASSES:
        return True
    return class_name.endswith(tuple(MANY_MEANINGS)) and any(known in text.lower() for known in OUT_OF_MEMORY_TEXTS)
