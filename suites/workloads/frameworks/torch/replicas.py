"""Processes that train together: this process is rank 0, and starts a process for every other rank.

Rank 0 sends its commands to the standard input of the others, a command a line, so that commands need no collective
operation. When that input closes, because rank 0 is done or dead, the others end.
"""

import contextlib
import datetime
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as distributed

# gloo notices at once that a rank died, NCCL after this time; a start takes seconds.
PATIENCE = datetime.timedelta(minutes=5)
JOB, READY = "job.pickle", "ready-%d"
WORKLOADS = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)  # the folder that modules are imported from


class Replicas:
    """Starts `module`, which calls `follow`, as the process of each rank from 1 on, and joins them as rank 0.

    job: of all ranks; it has `places`, for each rank a GPU index, or None for the CPU.
    """

    def __init__(self, module, job):
        self._folder = tempfile.mkdtemp()
        with open(os.path.join(self._folder, JOB), "wb") as file:
            pickle.dump(job, file)
        self._others = []
        for rank in range(1, len(job.places)):
            command = [sys.executable, "-u", "-m", module, self._folder, str(rank)]
            # Their standard output goes to the log, as only rank 0 emits events.
            self._others.append(subprocess.Popen(command, cwd=WORKLOADS, stdin=subprocess.PIPE, stdout=sys.stderr))
        choose_device(job.places[0])
        try:
            self._wait_for_others()
            with self.failing_as_they_do():
                join(self._folder, 0, job.places)
        except Exception:
            for other in self._others:
                other.kill()
            raise
        os.remove(os.path.join(self._folder, JOB))  # every rank has read it

    def _wait_for_others(self):
        """Waits until every other rank is ready to join. Joining itself would wait PATIENCE for a rank that is dead."""
        ready = [os.path.join(self._folder, READY % rank) for rank in range(1, len(self._others) + 1)]
        while not all(map(os.path.exists, ready)):
            if any(other.poll() for other in self._others):
                self._raise_theirs(None)
            time.sleep(0.01)

    def tell(self, *command):
        """Sends a command and its numbers to every other rank."""
        line = " ".join(map(str, command)) + "\n"
        with self.failing_as_they_do():
            for other in self._others:
                other.stdin.write(line.encode("ascii"))
                other.stdin.flush()

    @contextlib.contextmanager
    def failing_as_they_do(self):
        """Where the block fails because another rank failed, raises the error of that rank."""
        try:
            yield
        except Exception as error:
            self._raise_theirs(error)
            raise

    def wait_for_device(self, place):
        """Waits until this rank's device has finished all its work; returns at once for a CPU.

        It looks after the other ranks meanwhile: NCCL itself would wait minutes, or for ever, for a rank that is dead.
        """
        if place is None:
            return
        queued = torch.cuda.Event()
        queued.record(torch.cuda.current_stream(place))
        while not queued.query():
            if any(other.poll() for other in self._others):
                self._raise_theirs(None)
            time.sleep(0)

    def _raise_theirs(self, error):
        """Raises the error of the rank that failed first, as later ranks only lost touch with it.

        Returns where no other rank failed.
        """
        for other in self._others:
            with contextlib.suppress(subprocess.TimeoutExpired):
                other.wait(timeout=5)
        failures = [self._failure(rank, other) for rank, other in enumerate(self._others, start=1) if other.returncode]
        if failures:
            _, kind, text = min(failures, key=lambda failure: failure[0])
            raise kind(text) from error

    def _failure(self, rank, other):
        """(time, exception class, text). A rank that left no file died before those that did: its time is 0."""
        path = os.path.join(self._folder, "failed-%d" % rank)
        if os.path.exists(path):
            with open(path) as file:
                failure = json.load(file)
            kind = MemoryError if failure["kind"] == "out_of_memory" else RuntimeError
            return failure["time"], kind, "rank {}: {}: {}".format(rank, failure["type"], failure["text"])
        if other.returncode == -9:
            return 0, MemoryError, "rank {} was killed, most likely for want of memory".format(rank)
        return 0, RuntimeError, "rank {} ended with code {}".format(rank, other.returncode)

    def close(self):
        """Ends all other ranks, and leaves the group."""
        for other in self._others:
            with contextlib.suppress(OSError):
                other.stdin.close()
        for other in self._others:
            try:
                other.wait(timeout=30)
            except subprocess.TimeoutExpired:
                other.kill()
                other.wait()
        # NCCL would wait until the other ranks do the same, and they are gone.
        if distributed.get_backend() == "gloo":
            distributed.destroy_process_group()
        shutil.rmtree(self._folder, ignore_errors=True)


def choose_device(place):
    """Makes a GPU the current one, before anything is on it: else a process may take memory of the first GPU too."""
    if place is not None:
        torch.cuda.set_device(place)


def join(folder, rank, places):
    """Joins the group of all ranks, which meet in a file of `folder`: by NCCL where every rank has its own GPU.

    All ranks are on this machine, whose only network may be the loopback.
    """
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(library + "_SOCKET_IFNAME", "lo")
    own_gpus = None not in places and len(set(places)) == len(places)
    distributed.init_process_group(
        "nccl" if own_gpus else "gloo",
        init_method="file://" + os.path.join(folder, "meeting"),
        rank=rank,
        world_size=len(places),
        timeout=PATIENCE,
    )


def follow(make, failure_kind):
    """Runs the process of another rank: make(job, rank) returns its trainer, whose methods are the commands.

    failure_kind: see events.py. A failure is written to a file for rank 0.
    """
    folder, rank = sys.argv[1], int(sys.argv[2])
    try:
        with open(os.path.join(folder, JOB), "rb") as file:
            job = pickle.load(file)  # noqa: S301  rank 0 wrote it a moment ago
        choose_device(job.places[rank])
        trainer = make(job, rank)
        open(os.path.join(folder, READY % rank), "w").close()
        join(folder, rank, job.places)
        trainer.begin()
        for line in sys.stdin:
            name, *numbers = line.split()
            getattr(trainer, name)(*map(int, numbers))
    except Exception as error:
        failure = {"time": time.time(), "kind": failure_kind(error)}
        failure.update(type=type(error).__name__, text=str(error)[:2000])
        with open(os.path.join(folder, "failed-%d" % rank), "w") as file:
            json.dump(failure, file)
        traceback.print_exc()
        os._exit(1)
    # At once, after success too: with collectives unfinished, or other ranks gone, a process does not end by itself.
    os._exit(0)
