"""The experiment `training`, whose last rank has no memory for its first step; with a folder and a rank, such a rank.

The variable FAILING says otherwise. `early`: it has no memory for its network. `waiting`: rank 0 behaves as with NCCL,
whose steps return at once, and whose device never finishes them, as they wait for the rank that is gone. Takes the
place of run.py; the folders of that and of this have to be on PYTHONPATH.
"""

import run  # noqa: I001  first, as its import starts the clock of `t`
import os
import sys

import torch

from frameworks.torch import replicas
from frameworks.torch.strategies import distributed_data_parallel


def failing_rank(job, rank):
    last = rank == len(job.places) - 1
    if last and os.environ.get("FAILING") == "early":
        no_memory(job.train[0])
    trainer = distributed_data_parallel.other_rank(job, rank)
    if last:
        trainer.gradients = no_memory
    return trainer


class Unfinished:
    """An event of CUDA that is still to come."""

    def record(self, stream):
        pass

    def query(self):
        return False


def no_memory(images, labels=None):
    raise MemoryError(f"nothing left for {len(images)} images")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        replicas.follow(failing_rank)
    else:
        if os.environ.get("FAILING") == "waiting":
            torch.cuda.Event, torch.cuda.current_stream = Unfinished, lambda place: None
            rank0 = distributed_data_parallel.Steady
            rank0.step = lambda self: torch.zeros(())
            rank0.synchronise = lambda self: self.others.wait_for_device(0)
        distributed_data_parallel.SCRIPT = "training_with_a_failing_rank"  # what it starts for every other rank
        run.main(sys.argv[1:])
