"""The executors of clusters, and their nodes."""

from tsuishi.base.settings import Settings
from tsuishi.base.units import counted
from tsuishi.plan.session import Nodes
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import Executor


def _on_slurm() -> Executor:
    from tsuishi.extras.cluster.on_slurm import OnSlurm

    return OnSlurm()


def _slurm_nodes(settings: Settings) -> Nodes:
    from tsuishi.extras.cluster.node_gpus import SlurmNodes

    return SlurmNodes(settings)


EXECUTORS = {"slurm": _on_slurm}
NODES = {"slurm": _slurm_nodes}


def elsewhere(run: RunDirectory) -> str:
    """Which trials of a run a cluster has, and how they get here; empty where it has none."""
    if not run.jobs.exists():
        return ""
    from tsuishi.extras.cluster.submission import detached

    return f"with Slurm: {counted(detached(run), 'trial')}; --resume {run.id} gathers them"
