"""Orders, submitted as arrays of Slurm: each a task of its own, in arrays as large as the site allows."""

import math
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.extras.cluster import submission
from tsuishi.extras.cluster.settings import of_cluster
from tsuishi.extras.cluster.slurm import AT_THE_LIBRARY, NoAnswer, Slurm, wanted
from tsuishi.extras.cluster.submission import Submission
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import Work
from tsuishi.run.trial import TrialOrder

# A job may take so many seconds longer than its trial: to enter the environment, and to commit.
_AROUND_S = 300.0
# Tries to submit an array while the controller does not answer, and the seconds between them.
_TRIES, _BETWEEN_S = 12, 5.0
_Answer = TypeVar("_Answer")


def submitted(work: Work, slurm: Slurm, orders: Sequence[TrialOrder]) -> Iterator[Submission]:
    """Submit orders as arrays, each to start after the array before it. Gives every submission that Slurm took.

    Raises UserError where Slurm refuses an array, NoAnswer after a minute without an answer: then Slurm may have it.
    """
    if not orders:
        return
    before, session = "", work.session
    parts = [*_parts(orders, _answer(slurm.most_tasks))]
    for part in parts:
        made = submission.write(work.run, session.checkout, session.settings, work.data, part)
        after = [f"--dependency=afterany:{before}"] if before else []
        try:
            before = _submit(work.run, slurm, made, [*_options(work.run, session.settings, made), *after])
        except (UserError, OSError):
            submission.close(work.run, made.name)
            raise  # after other errors Slurm may have it: it stays for a later --resume
        yield made
    arrays = f"{len(parts)} arrays" if len(parts) > 1 else "an array"
    at_once = of_cluster(session.settings).slurm_at_once
    work.audience.waits(f"Slurm: trials submitted: {len(orders)}, as {arrays}, at most {at_once} at once")


def _parts(orders: Sequence[TrialOrder], most: int) -> Iterator[list[TrialOrder]]:
    """The orders of each array: trials on as many nodes, with GPUs or without, at most `most`. Most nodes are last."""
    for kind in sorted({_kind(order) for order in orders}):
        alike = [order for order in orders if _kind(order) == kind]
        yield from (alike[begin : begin + most] for begin in range(0, len(alike), most))


def _kind(order: TrialOrder) -> tuple[int, bool]:
    """What all orders of an array share: the nodes of each, and whether it gets GPUs."""
    return order.nodes, bool(order.gpus)


def _submit(run: RunDirectory, slurm: Slurm, made: Submission, options: Sequence[str]) -> str:
    """Submit an array. Returns its job id; empty where Slurm has it and only the answer was lost."""
    node = [sys.executable, "-m", "tsuishi.extras.cluster.node", str(submission.folder(run, made.name))]
    for left in reversed(range(_TRIES)):
        try:
            return slurm.submit(made.name, options, f"#!/bin/sh\nexec {shlex.join(node)}\n")
        except NoAnswer:
            if not left:
                raise
            time.sleep(_BETWEEN_S)
            if _answer(lambda: slurm.states([made.name])):
                break
    return ""


def _answer(ask: Callable[[], _Answer]) -> _Answer:
    """Slurm's answer. Raises NoAnswer after a minute without an answer."""
    for _ in range(_TRIES - 1):
        with suppress(NoAnswer):
            return ask()
        time.sleep(_BETWEEN_S)
    return ask()


def _options(run: RunDirectory, given: Settings, made: Submission) -> list[str]:
    """The options of sbatch for an array."""
    own = of_cluster(given)
    longest_s = max(order.timeout_s for order in made.orders) + _AROUND_S
    # Without GPUs a trial measures the cores of its node, which other jobs would use too.
    alone = [] if own.slurm_gres and made.orders[0].gpus else ["--exclusive", "--mem=0"]
    return [
        f"--array=0-{len(made.orders) - 1}%{own.slurm_at_once}",
        f"--time={own.slurm_time or math.ceil(longest_s / 60)}",
        f"--nodes={made.orders[0].nodes}",
        "--no-requeue",  # each attempt has a row: tsuishi itself submits the next
        *alone,
        *wanted(given),
        AT_THE_LIBRARY,
        f"--output={submission.output(run, made.name)}",
        "--open-mode=append",
    ]
