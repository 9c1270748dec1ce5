"""device_limits in PyTorch, 1.1 to 2.x.

As a script, a process of an all-reduce that this machine's rank 0 has started.
"""

import collections
import functools

import torch
import torch.distributed as distributed

from common import launch
from common.events import Unsupported
from frameworks import parts
from frameworks.torch import devices, group, replicas
from frameworks.torch.facts import Framework
from frameworks.torch.trainer import type_of


class Limits(parts.Limits):
    spans_nodes = True

    def matmul(self, problem, measure):
        kind, device = type_of(problem.precision), devices.name(problem.places[0])
        left, right = [torch.from_numpy(matrix).to(device, kind) for matrix in problem.matrices]
        product = torch.empty_like(left)
        try:
            measure(lambda: torch.mm(left, right, out=product), _synchronise(problem))
        except RuntimeError as error:
            refusal = Framework().precision_refusal(error)
            if not refusal:
                raise
            raise Unsupported(
                "precision {!r}: PyTorch {} says: {}; 'fp32' would run".format(
                    problem.precision, torch.__version__, refusal
                )
            ) from error
        rows = torch.from_numpy(problem.rows).to(left.device)
        return [matrix.float().cpu().numpy() for matrix in (left[rows], right, product[rows])]

    def copy(self, problem, measure, source, target):
        """Both buffers are made before, so that no step allocates; host memory is pinned where there is a GPU."""
        pinned = set(problem.places) != {None}
        places = [None if index is None else problem.places[index] for index in (source, target)]
        source, target = [_buffer(problem, place, pinned) for place in places]
        measure(lambda: target.copy_(source, non_blocking=True), _synchronise(problem))

    def all_reduce(self, problem, measure):
        """Each device has a process; rank 0 has the first device."""
        reduction = Reduction(problem.places, problem.values, problem.nodes)
        own, others = Rank(reduction, launch.rank()), group.start("frameworks.torch.limits", reduction)
        others.serve(own)
        try:
            others.tell("ones")
            checked = own.ones()

            def step():
                with others.failing_as_they_do():
                    own.reduce(1)

            def synchronise():
                others.wait_for_device(problem.places[0])

            measure(step, synchronise, lambda steps: others.tell("reduce", steps))
            self.machines = others.machines()
        finally:
            others.close()
        return checked

    def kernel_launch(self, problem, measure):
        number = torch.zeros(1, device=devices.name(problem.places[0]))

        def step():
            for _ in range(problem.launches):
                number.add_(1)

        measure(step, _synchronise(problem))


def _buffer(problem, place, pinned):
    """A tensor filled with 1, as the system may not have allocated memory that was never written."""
    buffer = torch.ones(problem.values, device=devices.name(place))
    return buffer.pin_memory() if pinned and place is None else buffer


def _synchronise(problem):
    return functools.partial(devices.synchronise, problem.places)


# The job of every process of an all-reduce. values: how many float32 numbers the buffer has.
Reduction = collections.namedtuple("Reduction", "places values nodes")


class Rank:
    """A process of an all-reduce."""

    def __init__(self, reduction, rank):
        group.choose_device(reduction.places[rank])
        self.buffer = torch.ones(reduction.values, device=devices.name(reduction.places[rank]))

    def begin(self):
        """Called once the ranks have met; there is nothing to do."""

    def ones(self):
        """Sums a buffer filled with 1; returns a number of the sum, which is the number of ranks.

        Then fills the buffer with 0, so that repeated sums do not overflow.
        """
        self.reduce(1)
        total = self.buffer[0].item()
        self.buffer.zero_()
        return total

    def reduce(self, steps):
        for _ in range(steps):
            distributed.all_reduce(self.buffer)


if __name__ == "__main__":
    replicas.follow(Rank)
