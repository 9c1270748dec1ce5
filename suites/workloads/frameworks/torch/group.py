"""Processes that train together, a rank each: rank 0 gives the commands, and all others follow them.

The other ranks are started here, where all are on one machine (replicas.py); or torchrun has started all of them, on
several nodes, before any knew of the others (launched.py).
"""

import contextlib
import datetime
import time

import torch
import torch.distributed as distributed

# gloo notices at once that a rank died, NCCL after this time; a start takes seconds.
PATIENCE = datetime.timedelta(minutes=5)


class Group:
    """The processes of a job, as one of them sees them; made once this process can begin, it has met the others.

    rank: of this process.
    """

    rank = 0

    def serve(self, trainer):
        """Returns at once on rank 0. Any other rank follows the commands of rank 0, and this process ends with them.

        trainer: its methods are the commands.
        """

    def tell(self, *command):
        """Sends a command and its numbers to every other rank."""
        raise NotImplementedError

    @contextlib.contextmanager
    def failing_as_they_do(self):
        """Where the block fails because another rank failed, raises the error of that rank."""
        try:
            yield
        except Exception as error:
            self.raise_theirs(error)
            raise

    def failed(self):
        """Whether another rank is known to have failed."""
        raise NotImplementedError

    def raise_theirs(self, error):
        """Raises the error of the rank that failed first. Returns where no other rank failed."""
        raise NotImplementedError

    def wait_for_device(self, place):
        """Waits until this rank's device has finished all its work; returns at once for a CPU.

        It looks after the other ranks meanwhile: NCCL itself would wait minutes, or for ever, for a rank that is dead.
        """
        if place is None:
            return
        queued = torch.cuda.Event()
        queued.record(torch.cuda.current_stream(place))
        while not queued.query():
            if self.failed():
                self.raise_theirs(None)
            time.sleep(0)

    def machines(self):
        """The number of machines that the ranks are on."""
        return 1

    def close(self):
        """Ends all other ranks, and leaves the group."""
        raise NotImplementedError


def start(module, job):
    """The Group of a job: it has `places`, for each rank a GPU index or None for the CPU, and the number of `nodes`.

    module: starts the process of another rank on this machine, see replicas.py.
    """
    from frameworks.torch import launched, replicas

    return launched.Launched(job) if job.nodes > 1 else replicas.Replicas(module, job)


def choose_device(place):
    """Makes a GPU the current one, before anything is on it: else a process may take memory of the first GPU too."""
    if place is not None:
        torch.cuda.set_device(place)


def backend(places):
    """NCCL where every rank has a GPU of its own, else gloo. places: of the ranks of a machine."""
    return "nccl" if None not in places and len(set(places)) == len(places) else "gloo"


def follow(trainer, lines):
    """Does what rank 0 says, until there is no line any more."""
    trainer.begin()
    for line in lines:
        name, *numbers = line.split()
        getattr(trainer, name)(*map(int, numbers))


def failure_of(kind, text):
    """(exception class, text) of another rank's failure of this kind (events.py)."""
    return (MemoryError if kind == "out_of_memory" else RuntimeError), text


def leave():
    """Leaves the group. NCCL would wait until the other ranks do the same, and they may be gone."""
    if distributed.get_backend() == "gloo":
        distributed.destroy_process_group()
