"""The workload `training`, whose last rank has no memory for its first step; with a folder and a rank, such a rank.

Takes the place of training.py and training_distributed.py, which have to be on PYTHONPATH.
"""

import sys

import training

import events
import replicas
import training_distributed


def failing_rank(job, rank):
    trainer = training_distributed.other_rank(job, rank)
    if rank == len(job.places) - 1:
        trainer.gradients = no_memory
    return trainer


def no_memory(images, labels):
    raise MemoryError(f"nothing left for {len(images)} images")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        replicas.follow(failing_rank, events.failure_kind)
    else:
        training_distributed.__file__ = __file__  # what it starts for every other rank
        events.main(training.training)
