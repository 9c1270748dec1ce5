"""device_limits in PyTorch, 1.1 to 2.x.

Every operation takes (problem, measure); measure(step, synchronise) times. As a script, one process of an all-reduce.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import torch
import torch.distributed as distributed

import device_limits
from events import Unsupported

# torch 1.1 on a CPU: "_th_mm not supported on CPUType for Half"; later ones: "not implemented for 'Half'".
REFUSED = re.compile(r"[^\n]*(not supported on CPUType for Half|not implemented for '(Half|BFloat16)')[^\n]*")
TF32_CAPABILITY = (8, 0)


def prepare(precision, places):
    """Sets TF32, on or off; raises Unsupported for a precision that is not there."""
    if precision == "tf32" and (None in places or not hasattr(torch.backends.cudnn, "allow_tf32")):
        raise Unsupported(
            "precision 'tf32': a mode of GPUs since 2020 in PyTorch 1.7 and newer; 'fp32' would run in PyTorch {} "
            "on a {}".format(torch.__version__, "CPU" if None in places else "GPU")
        )
    if precision == "tf32" and torch.cuda.get_device_capability(places[0]) < TF32_CAPABILITY:
        raise Unsupported(
            "precision 'tf32': {} has none (compute capability 8.0 and newer have); 'fp32' would run".format(
                torch.cuda.get_device_name(places[0])
            )
        )
    if precision == "bf16" and not hasattr(torch, "bfloat16"):
        raise Unsupported("precision 'bf16': PyTorch {} has none; 'fp32' would run".format(torch.__version__))
    if hasattr(torch.backends.cudnn, "allow_tf32"):
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def matmul(problem, measure):
    """Returns rows of the left factor, the right factor and those rows of the product, float32 arrays."""
    kind = {"fp16": "float16", "bf16": "bfloat16"}.get(problem.precision, "float32")
    left, right = [
        torch.from_numpy(matrix).to(_device(problem.places[0]), getattr(torch, kind)) for matrix in problem.matrices
    ]
    product = torch.empty_like(left)
    try:
        measure(lambda: torch.mm(left, right, out=product), _synchronise(problem))
    except RuntimeError as error:
        refusal = REFUSED.search(str(error))
        if not refusal:
            raise
        raise Unsupported(
            "precision {!r}: PyTorch {} says: {}; 'fp32' would run".format(
                problem.precision, torch.__version__, refusal.group().strip()
            )
        ) from error
    rows = torch.from_numpy(problem.rows).to(left.device)
    return [matrix.float().cpu().numpy() for matrix in (left[rows], right, product[rows])]


def memory_copy(problem, measure):
    _copy(problem, measure, problem.places[0], problem.places[0])


def host_to_device(problem, measure):
    _copy(problem, measure, None, problem.places[0])


def device_to_host(problem, measure):
    _copy(problem, measure, problem.places[0], None)


def device_to_device(problem, measure):
    _copy(problem, measure, problem.places[0], problem.places[1])


def _copy(problem, measure, source_place, target_place):
    """Between buffers that are there, so that no step allocates; host memory is pinned where there is a GPU."""
    pinned = set(problem.places) != {None}
    source, target = [_buffer(problem, place, pinned) for place in (source_place, target_place)]
    measure(lambda: target.copy_(source, non_blocking=True), _synchronise(problem))


def _buffer(problem, place, pinned=False):
    """Ones: memory that was never written may not be there at all."""
    buffer = torch.ones(problem.values, device=_device(place))
    return buffer.pin_memory() if pinned and place is None else buffer


def all_reduce(problem, measure):
    """Returns a value of the sum: of ones, the number of devices. This process has the first of them."""
    with _others(problem) as meeting, _joined(meeting, 0, problem.places):
        buffer = _buffer(problem, problem.places[0])
        _announce(1, problem.places[0])
        distributed.all_reduce(buffer)
        checked = buffer[0].item()

        def announce(steps):
            buffer.zero_()  # what is added up again and again does not fit a float for long
            _announce(steps, problem.places[0])

        measure(lambda: distributed.all_reduce(buffer), _synchronise(problem), announce)
        _announce(0, problem.places[0])
    return checked


@contextlib.contextmanager
def _others(problem):
    """Starts a process for every device but the first; gives the file in which they meet. They end when told to."""
    folder = tempfile.mkdtemp()
    meeting = os.path.join(folder, "meeting")
    others = []
    try:
        for rank in range(1, len(problem.places)):
            argument = {"meeting": meeting, "rank": rank, "places": problem.places, "values": problem.values}
            others.append(subprocess.Popen([sys.executable, __file__, json.dumps(argument)]))
        yield meeting
        for other in others:
            if other.wait():
                raise RuntimeError("a process of the all-reduce ended with code {}".format(other.returncode))
    finally:
        for other in others:
            other.kill()
            other.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _follow(meeting, rank, places, values):
    """What a process does that has another device than the first: as many steps as are announced, until there are 0."""
    with _joined(meeting, rank, places):
        buffer = torch.ones(values, device=_device(places[rank]))
        steps = _announce(0, places[rank])
        while steps:
            for _ in range(steps):
                distributed.all_reduce(buffer)
            buffer.zero_()
            steps = _announce(0, places[rank])


@contextlib.contextmanager
def _joined(meeting, rank, places):
    """All are on this machine, which may have no other network than its own loopback.

    Left while the file they met in is there: PyTorch 1.1 looks for it when its process ends, and waits.
    """
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(library + "_SOCKET_IFNAME", "lo")
    if places[rank] is not None:
        torch.cuda.set_device(places[rank])
    backend = "gloo" if None in places else "nccl"
    distributed.init_process_group(backend, init_method="file://" + meeting, rank=rank, world_size=len(places))
    try:
        yield
    finally:
        distributed.destroy_process_group()


def _announce(steps, place):
    """The first process's number of steps, told to all; what the others give is not looked at."""
    told = torch.tensor([steps], device=_device(place))
    distributed.broadcast(told, 0)
    return told.item()


def kernel_launch(problem, measure):
    number = torch.zeros(1, device=_device(problem.places[0]))

    def step():
        for _ in range(device_limits.LAUNCHES):
            number.add_(1)

    measure(step, _synchronise(problem))


def _synchronise(problem):
    def synchronise():
        for place in set(problem.places) - {None}:
            torch.cuda.synchronize(place)

    return synchronise


def _device(place):
    return "cpu" if place is None else "cuda:%d" % place


if __name__ == "__main__":
    _follow(**json.loads(sys.argv[1]))
