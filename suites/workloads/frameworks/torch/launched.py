"""Processes that train together on several nodes: torchrun has started all of them (common/launch.py).

They meet at the store of torchrun on the first node, and talk through it: rank 0 writes its commands there, so that
commands need no collective operation, and a rank that fails writes why.
"""

import atexit
import contextlib
import datetime
import json
import os
import time
import traceback

import torch.distributed as distributed

import frameworks
from common import launch
from frameworks.torch import group

# A command may be that late: rank 0 checks results in between, and a dead rank 0 takes its store with it.
LONGEST = datetime.timedelta(days=1)
# Seconds for the news of a failure to arrive, and between two looks for it beside a busy device.
NEWS_S, LOOK_S = 10.0, 1.0
COMMAND, FAILED, END = "command-%d", "failed", "end"


class Launched(group.Group):
    """Meets the processes that torchrun has started. job: of all ranks; see group.start."""

    def __init__(self, job):
        self.rank, ranks = launch.rank(), len(job.places)
        own = job.places[: ranks // job.nodes]
        group.choose_device(job.places[self.rank])
        store = next(distributed.rendezvous("env://", timeout=group.PATIENCE))[0]
        distributed.init_process_group(
            group.backend(own), store=store, rank=self.rank, world_size=ranks, timeout=group.PATIENCE
        )
        self._store = distributed.PrefixStore("tsuishi", store)
        self._store.set("machine-%d" % self.rank, launch.machine())
        self._commands = 0
        self._looked = time.monotonic()
        self._ranks = ranks
        if not self.rank:
            atexit.register(self._end)  # however this process ends, as the others wait for its next command

    def serve(self, trainer):
        if not self.rank:
            return
        try:
            group.follow(trainer, self._lines())
        except Exception as error:
            traceback.print_exc()
            self._report(error)
        # At once: with collectives unfinished, or other ranks gone, a process does not end by itself. Without an exit
        # code, for which torchrun would end this node, and perhaps rank 0 before it has said what happened.
        os._exit(0)

    def _lines(self):
        self._store.set_timeout(LONGEST)
        while True:
            self._commands += 1
            line = self._store.get(COMMAND % self._commands).decode("ascii")
            if line == END:
                return
            yield line

    def _report(self, error):
        """Writes a failure for rank 0."""
        kind, text = frameworks.failure(error)
        text = "rank {}: {}: {}".format(self.rank, type(error).__name__, text[:2000])
        with contextlib.suppress(Exception):  # rank 0 is gone, and the store with it
            self._store.set(FAILED, json.dumps({"kind": kind, "text": text}))

    def tell(self, *command):
        self._commands += 1
        with self.failing_as_they_do():
            self._store.set(COMMAND % self._commands, " ".join(map(str, command)))

    def failed(self):
        if time.monotonic() - self._looked < LOOK_S or not hasattr(self._store, "check"):
            return False
        self._looked = time.monotonic()
        return self._store.check([FAILED])

    def raise_theirs(self, error):
        self._store.set_timeout(datetime.timedelta(seconds=NEWS_S))
        try:
            failure = json.loads(self._store.get(FAILED).decode())
        except Exception:  # none of them has written why: the error that the caller has is all there is
            return
        kind, text = group.failure_of(failure["kind"], failure["text"])
        raise kind(text) from error

    def machines(self):
        return len({self._store.get("machine-%d" % rank) for rank in range(self._ranks)})

    def close(self):
        self._end()
        group.leave()

    def _end(self):
        with contextlib.suppress(Exception):  # the store is gone, and the others with it
            self._store.set(COMMAND % (self._commands + 1), END)
