"""Processes that train together: this one is rank 0, and starts a process for every other rank.

Rank 0 tells the others over their standard input what to do, a command a line, so that no collective is spent on it;
when that closes, because rank 0 is done or dead, they end.
"""

import atexit
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

# A rank that died is noticed at once by gloo, and by NCCL after this; starting up takes seconds.
PATIENCE = datetime.timedelta(minutes=5)
JOB = "job.pickle"
WORKLOADS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # where modules are found


class Replicas:
    """The processes of the ranks from 1 on, each running `module`, which calls `follow`; joins them as rank 0.

    job: what they do; it has `places`, for each rank a GPU index, or None for the CPU.
    """

    def __init__(self, module, job):
        self._folder = tempfile.mkdtemp()
        with open(os.path.join(self._folder, JOB), "wb") as file:
            pickle.dump(job, file)
        self._others = []
        for rank in range(1, len(job.places)):
            command = [sys.executable, "-u", "-m", module, self._folder, str(rank)]
            # Their standard output is log: only rank 0 emits events.
            self._others.append(subprocess.Popen(command, cwd=WORKLOADS, stdin=subprocess.PIPE, stdout=sys.stderr))
        with self.failing_as_they_do():
            join(self._folder, 0, job.places)
        os.remove(os.path.join(self._folder, JOB))  # read by all who joined; a trial that fails leaves the rest

    def tell(self, *command):
        """Sends a command and its numbers to every other rank."""
        line = " ".join(map(str, command)) + "\n"
        with self.failing_as_they_do():
            for other in self._others:
                other.stdin.write(line.encode("ascii"))
                other.stdin.flush()

    @contextlib.contextmanager
    def failing_as_they_do(self):
        """Whatever fails here because another rank failed, fails as that one did."""
        try:
            yield
        except Exception as error:
            self._raise_theirs(error)
            raise

    def wait_for(self, event):
        """Until a CUDA event has happened: NCCL itself would wait minutes for a rank that is dead, or for ever."""
        while not event.query():
            if any(other.poll() for other in self._others):
                # With its collectives unfinished this process could not end by itself.
                atexit.register(os._exit, 1)
                self._raise_theirs(None)
            time.sleep(0)

    def _raise_theirs(self, error):
        """As the rank that failed first; those after it only lost touch with it. Nothing where all others are well."""
        for other in self._others:
            with contextlib.suppress(subprocess.TimeoutExpired):
                other.wait(timeout=5)
        failures = [self._failure(rank, other) for rank, other in enumerate(self._others, start=1) if other.returncode]
        if failures:
            _, kind, text = min(failures, key=lambda failure: failure[0])
            raise kind(text) from error

    def _failure(self, rank, other):
        """(when, exception class, text); a rank that could not even tell died before those that could."""
        told = os.path.join(self._folder, "failed-%d" % rank)
        if os.path.exists(told):
            with open(told) as file:
                failure = json.load(file)
            kind = MemoryError if failure["kind"] == "out_of_memory" else RuntimeError
            return failure["time"], kind, "rank {}: {}: {}".format(rank, failure["type"], failure["text"])
        if other.returncode == -9:
            return 0, MemoryError, "rank {} was killed, most likely for want of memory".format(rank)
        return 0, RuntimeError, "rank {} ended with code {}".format(rank, other.returncode)

    def close(self):
        """Ends all ranks, this one's part of the group included."""
        for other in self._others:
            with contextlib.suppress(OSError):
                other.stdin.close()
        for other in self._others:
            try:
                other.wait(timeout=30)
            except subprocess.TimeoutExpired:
                other.kill()
                other.wait()
        # NCCL's would wait for the other ranks to do the same, and they are gone.
        if distributed.get_backend() == "gloo":
            distributed.destroy_process_group()
        shutil.rmtree(self._folder, ignore_errors=True)


def join(folder, rank, places):
    """Joins the group of all ranks, which meet in a file of `folder`: NCCL where every rank has a GPU of its own.

    All are on this machine, which may have no other network than its own loopback.
    """
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(library + "_SOCKET_IFNAME", "lo")
    own_gpus = None not in places and len(set(places)) == len(places)
    if places[rank] is not None:
        torch.cuda.set_device(places[rank])
    distributed.init_process_group(
        "nccl" if own_gpus else "gloo",
        init_method="file://" + os.path.join(folder, "meeting"),
        rank=rank,
        world_size=len(places),
        timeout=PATIENCE,
    )


def follow(make, failure_kind):
    """What a process of another rank does: make(job, rank) gives its trainer, a method of which every command is.

    failure_kind: see events.py. How it failed is left for rank 0 to read.
    """
    folder, rank = sys.argv[1], int(sys.argv[2])
    try:
        with open(os.path.join(folder, JOB), "rb") as file:
            job = pickle.load(file)  # noqa: S301  written by rank 0, a moment ago
        trainer = make(job, rank)
        join(folder, rank, job.places)
        trainer.begin()
        for line in sys.stdin:
            name, *numbers = line.split()
            getattr(trainer, name)(*map(int, numbers))
    except Exception as error:
        failure = {
            "time": time.time(),
            "kind": failure_kind(error),
            "type": type(error).__name__,
            "text": str(error)[:2000],
        }
        with open(os.path.join(folder, "failed-%d" % rank), "w") as file:
            json.dump(failure, file)
        traceback.print_exc()
        os._exit(1)
    # At once, both ways: with collectives unfinished, or other ranks gone, a process does not end by itself.
    os._exit(0)
