"""The experiment `training`, whose last rank has no memory for its first step; with a folder and a rank, such a rank.

Takes the place of run.py; the folders of that and of this have to be on PYTHONPATH.
"""

import run  # noqa: I001  first, as its import starts the clock of `t`
import sys

from common import events
from frameworks.torch import replicas
from frameworks.torch.strategies import distributed_data_parallel


def failing_rank(job, rank):
    trainer = distributed_data_parallel.other_rank(job, rank)
    if rank == len(job.places) - 1:
        trainer.gradients = no_memory
    return trainer


def no_memory(images, labels):
    raise MemoryError(f"nothing left for {len(images)} images")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        replicas.follow(failing_rank, events.failure_kind)
    else:
        distributed_data_parallel.SCRIPT = "training_with_a_failing_rank"  # what it starts for every other rank
        run.main(sys.argv[1:])
