"""DistributedDataParallel: a process for each device, on one node or several.

As a script, the process of a rank from 1 on that this machine's rank 0 has started.
"""

import importlib.util

import torch
import torch.distributed as distributed

from common import jobs, launch
from common.events import Unsupported
from frameworks.torch import group, replicas
from frameworks.torch.facts import Framework
from frameworks.torch.strategies import none

SCRIPT = "frameworks.torch.strategies.distributed_data_parallel"  # this module, as the process of every other rank


class Rank(none.Steady):
    """A rank: it has its share of every batch, and every step averages its gradients with the others'."""

    def __init__(self, job, rank):
        group.choose_device(job.places[rank])
        share = jobs.shards(job)[rank] if job.batches == jobs.RESIDENT else None
        super().__init__(job, job.places[rank], share, rank)

    def begin(self):
        """Called once the ranks have met."""
        if self.job.mode == "training":
            devices = None if self.place is None else [self.place]
            self.model = torch.nn.parallel.DistributedDataParallel(self.network, device_ids=devices)
            if self.job.execution == "compiled":
                self.model = torch.compile(self.model)
        self.first_loss = self.last_loss = None

    def step(self):
        """Returns the loss before the step, of this rank's share."""
        self.last_loss = super().step()
        if self.first_loss is None:
            self.first_loss = self.last_loss
        return self.last_loss

    def steps(self, count):
        """A block of steps, which rank 0 times."""
        for _ in range(count):
            self.step()
        self.synchronise()

    def synchronise(self):
        """Waits for this rank's device, then for the other ranks, as inference has no gradients to wait for."""
        if self.place is not None:
            torch.cuda.synchronize(self.place)
        self.sum(torch.zeros(1)).item()

    def sum(self, values):
        """The sum over ranks of a tensor."""
        values = values.to(self.device)
        distributed.all_reduce(values)
        return values

    def losses(self):
        """A tensor of the first and the last loss, each the mean over ranks."""
        own = torch.stack([self.first_loss, self.last_loss]).double()
        return self.sum(own) / len(self.job.places)

    def peak(self):
        """The largest MiB of tensors on any device."""
        own = torch.tensor([torch.cuda.max_memory_allocated(self.place) / 2.0**20], device=self.device)
        distributed.all_reduce(own, distributed.ReduceOp.MAX)
        return own.item()

    def count(self):
        """The number of ranks: each adds 1 to a sum."""
        return int(self.sum(torch.ones(1)).item())


class Steady(Rank):
    """Rank 0, in the workload's process, and the processes of the other ranks.

    Where torchrun has started all ranks, they all come here, and only rank 0 returns.
    """

    def __init__(self, job):
        super().__init__(job, launch.rank())
        self.others = group.start(SCRIPT, job)
        self.others.serve(self)
        with self.others.failing_as_they_do():
            self.begin()

    def announce(self, steps):
        self.others.tell("steps", steps)

    def step(self):
        with self.others.failing_as_they_do():
            return super().step()

    def synchronise(self):
        with self.others.failing_as_they_do():
            self.others.wait_for_device(self.place)
            super().synchronise()

    def mean_losses(self, losses):
        """The losses of the whole batch, by the ranks' own records."""
        self.others.tell("losses")
        return self.losses().tolist()

    def parts(self):
        """Empty: without an update there is nothing to average, and the ranks would not wait for each other."""
        return ()

    def peak_device_memory_mib(self):
        if None in self.job.places:
            return None
        self.others.tell("peak")
        return self.peak()

    def replicas(self):
        self.others.tell("count")
        return self.count()

    def machines(self):
        return self.others.machines()

    def close(self):
        # It holds the group, whose end in PyTorch 1.5 waits for the file in which the ranks met, which close removes.
        self.model = None
        super().close()
        self.others.close()


class Strategy(none.Strategy):
    steady = Steady
    literal = single = None  # no source did so
    spans_nodes = True

    def check(self, job, protocol):
        super().check(job, protocol)
        if job.nodes > 1 and importlib.util.find_spec("torch.distributed.run") is None:
            raise Unsupported(
                "{} nodes: PyTorch {} has no torchrun (1.10 and newer do); 1 node would run".format(
                    job.nodes, torch.__version__
                )
            )


def other_rank(job, rank):
    """The trainer of a rank from 1 on, in a process of its own."""
    Framework().set_tf32(job.precision == "tf32")
    Strategy().prepare(job, "steady")
    return Rank(job, rank)


if __name__ == "__main__":
    replicas.follow(other_rank)
