"""Processes that train together: this process is rank 0, and starts a process for every other rank.

Rank 0 sends its commands to the standard input of the others, a command a line, so that commands need no collective
operation. When that input closes, because rank 0 is done or dead, the others end.
"""

import contextlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import torch.distributed as distributed

import frameworks
from frameworks.torch import group

JOB, READY = "job.pickle", "ready-%d"
WORKLOADS = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
)  # the folder that modules are imported from


class Replicas(group.Group):
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
        group.choose_device(job.places[0])
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
            if self.failed():
                self.raise_theirs(None)
            time.sleep(0.01)

    def failed(self):
        return any(other.poll() for other in self._others)

    def tell(self, *command):
        line = " ".join(map(str, command)) + "\n"
        with self.failing_as_they_do():
            for other in self._others:
                other.stdin.write(line.encode("ascii"))
                other.stdin.flush()

    def raise_theirs(self, error):
        """See Group. Ranks that failed later only lost touch with the first."""
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
            text = "rank {}: {}: {}".format(rank, failure["type"], failure["text"])
            return (failure["time"], *group.failure_of(failure["kind"], text))
        if other.returncode == -9:
            return 0, MemoryError, "rank {} was killed, most likely for want of memory".format(rank)
        return 0, RuntimeError, "rank {} ended with code {}".format(rank, other.returncode)

    def close(self):
        for other in self._others:
            with contextlib.suppress(OSError):
                other.stdin.close()
        for other in self._others:
            try:
                other.wait(timeout=30)
            except subprocess.TimeoutExpired:
                other.kill()
                other.wait()
        group.leave()
        shutil.rmtree(self._folder, ignore_errors=True)


def join(folder, rank, places):
    """Joins the group of all ranks, which meet in a file of `folder`.

    All ranks are on this machine, whose only network may be the loopback.
    """
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(library + "_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        group.backend(places),
        init_method="file://" + os.path.join(folder, "meeting"),
        rank=rank,
        world_size=len(places),
        timeout=group.PATIENCE,
    )


def follow(make):
    """Runs the process of another rank: make(job, rank) returns its trainer, whose methods are the commands.

    A failure is written to a file for rank 0.
    """
    folder, rank = sys.argv[1], int(sys.argv[2])
    try:
        with open(os.path.join(folder, JOB), "rb") as file:
            job = pickle.load(file)  # noqa: S301  rank 0 wrote it a moment ago
        group.choose_device(job.places[rank])
        trainer = make(job, rank)
        open(os.path.join(folder, READY % rank), "w").close()
        join(folder, rank, job.places)
        group.follow(trainer, sys.stdin)
    except Exception as error:
        kind, text = frameworks.failure(error)
        failure = {"time": time.time(), "kind": kind, "type": type(error).__name__, "text": text[:2000]}
        with open(os.path.join(folder, "failed-%d" % rank), "w") as file:
            json.dump(failure, file)
        traceback.print_exc()
        os._exit(1)
    # At once, after success too: with collectives unfinished, or other ranks gone, a process does not end by itself.
    os._exit(0)
