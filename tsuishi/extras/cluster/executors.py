"""The executors of clusters."""

from tsuishi.base.units import counted
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import Executor


def _on_slurm() -> Executor:
    from tsuishi.extras.cluster.on_slurm import OnSlurm

    return OnSlurm()


EXECUTORS = {"slurm": _on_slurm}


def elsewhere(run: RunDirectory) -> str:
    """Which trials of a run a cluster has, and how they get here; empty where it has none."""
    if not run.jobs.exists():
        return ""
    from tsuishi.extras.cluster.submission import detached

    return f"with Slurm: {counted(detached(run), 'trial')}; --resume {run.id} gathers them"
