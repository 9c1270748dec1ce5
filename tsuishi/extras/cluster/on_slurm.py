"""The executor of a cluster: trials are handed to Slurm and gathered; what ends without a record becomes a row.

A trial is done when its folder has its name, whatever Slurm says. Slurm's states only decide about trials that have
none: because they wait, run, or are lost.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping

from tsuishi.base.errors import UserError
from tsuishi.extras.cluster.gathering import Gathering
from tsuishi.extras.cluster.slurm import NoAnswer, Slurm
from tsuishi.extras.cluster.submission import submissions
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import RunStopped, Work
from tsuishi.run.trial import TrialEnd, TrialOrder
from tsuishi.specs.trial_id import TrialId


class OnSlurm:
    """Gives trials to Slurm, each a task of an array."""

    is_local = False

    def given(self, run: RunDirectory) -> Mapping[TrialId, TrialOrder]:
        return {order.id: order for submission in submissions(run) for order in submission.orders}

    def ends(self, work: Work, orders: Iterable[TrialOrder]) -> Iterator[TrialEnd]:
        gathering = Gathering(work, Slurm())
        gathering.adopt()
        new = []
        for order in orders:
            if order.unsupported:  # nothing is started for it
                yield work.run_here(order)
            else:
                new.append(order)
        try:
            gathering.submit(new)
            yield from gathering.ends()
        except KeyboardInterrupt:
            if not gathering.waiting:
                raise
            if not _wants_to_cancel(work, gathering.waiting):
                work.audience.waits(
                    f"detached: {gathering.waiting} trials stay with Slurm; `invoke run-suite --resume {work.run.id}` "
                    "gathers them"
                )
                raise
            gathering.cancel()
            yield from gathering.ends()
            raise
        except UserError as refused:
            raise RunStopped(work.run, str(refused)) from refused
        except NoAnswer as silent:
            raise RunStopped(work.run, f"Slurm does not answer: {silent}: wait until it does") from silent


def _wants_to_cancel(work: Work, count: int) -> bool:
    """Ask a user at a terminal; without a terminal nobody can answer, and the trials go on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    work.audience.waits(
        f"{count} trials are with Slurm: type `cancel` to cancel them, or press Enter to let them go on"
    )
    return sys.stdin.readline().strip().lower() in ("cancel", "c")
