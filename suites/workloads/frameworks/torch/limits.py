"""device_limits in PyTorch, 1.1 to 2.x.

As a script, one process of an all-reduce.
"""

import collections
import re

import torch
import torch.distributed as distributed

from common.events import Unsupported, failure_kind
from frameworks import parts
from frameworks.torch import replicas

# torch 1.1 on a CPU: "_th_mm not supported on CPUType for Half"; later ones: "not implemented for 'Half'".
REFUSED = re.compile(r"[^\n]*(not supported on CPUType for Half|not implemented for '(Half|BFloat16)')[^\n]*")


class Limits(parts.Limits):
    def matmul(self, problem, measure):
        if problem.precision == "bf16" and not hasattr(torch, "bfloat16"):
            raise Unsupported("precision 'bf16': PyTorch {} has none; 'fp32' would run".format(torch.__version__))
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

    def memory_copy(self, problem, measure):
        _copy(problem, measure, problem.places[0], problem.places[0])

    def host_to_device(self, problem, measure):
        _copy(problem, measure, None, problem.places[0])

    def device_to_host(self, problem, measure):
        _copy(problem, measure, problem.places[0], None)

    def device_to_device(self, problem, measure):
        _copy(problem, measure, problem.places[0], problem.places[1])

    def all_reduce(self, problem, measure):
        """A process for each device; this has the first of them."""
        reduction = Reduction(problem.places, problem.values)
        own, others = Rank(reduction, 0), replicas.Replicas("frameworks.torch.limits", reduction)
        try:
            others.tell("ones")
            checked = own.ones()

            def step():
                with others.failing_as_they_do():
                    own.reduce(1)

            measure(step, _synchronise(problem), lambda steps: others.tell("reduce", steps))
        finally:
            others.close()
        return checked

    def kernel_launch(self, problem, measure):
        number = torch.zeros(1, device=_device(problem.places[0]))

        def step():
            for _ in range(problem.launches):
                number.add_(1)

        measure(step, _synchronise(problem))


def _copy(problem, measure, source_place, target_place):
    """Between buffers that are there, so that no step allocates; host memory is pinned where there is a GPU."""
    pinned = set(problem.places) != {None}
    source, target = [_buffer(problem, place, pinned) for place in (source_place, target_place)]
    measure(lambda: target.copy_(source, non_blocking=True), _synchronise(problem))


def _buffer(problem, place, pinned=False):
    """Ones: memory that was never written may not be there at all."""
    buffer = torch.ones(problem.values, device=_device(place))
    return buffer.pin_memory() if pinned and place is None else buffer


def _synchronise(problem):
    def synchronise():
        for place in set(problem.places) - {None}:
            torch.cuda.synchronize(place)

    return synchronise


def _device(place):
    return "cpu" if place is None else "cuda:%d" % place


# What every process of an all-reduce needs to know; values: float32 numbers in the buffer.
Reduction = collections.namedtuple("Reduction", "places values")


class Rank:
    """One process of an all-reduce."""

    def __init__(self, reduction, rank):
        self.buffer = torch.ones(reduction.values, device=_device(reduction.places[rank]))

    def begin(self):
        """Nothing to do once the ranks have met."""

    def ones(self):
        """Of the sum of ones, a value: the number of ranks. What is added up again and again then does not overflow."""
        self.reduce(1)
        total = self.buffer[0].item()
        self.buffer.zero_()
        return total

    def reduce(self, steps):
        for _ in range(steps):
            distributed.all_reduce(self.buffer)


if __name__ == "__main__":
    replicas.follow(Rank, failure_kind)
