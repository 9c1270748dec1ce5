"""The nodes of Slurm, as a plan has to know them."""

from collections.abc import Callable, Sequence

from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.base.units import counted
from tsuishi.extras.cluster.node_gpus import NodeGpus, of_nodes
from tsuishi.extras.cluster.settings import of_cluster
from tsuishi.extras.cluster.slurm import NoAnswer, Slurm
from tsuishi.machine.gpus import Gpu
from tsuishi.plan.trials import PlannedTrial


class SlurmNodes:
    """The nodes that the settings ask Slurm for."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._own = settings, of_cluster(settings)

    @property
    def id(self) -> str:
        own = self._own
        return f"slurm-{toml.digest([own.slurm_partition, own.slurm_gres, own.slurm_constraint])}"

    def nvml(self, accelerator: str, say: Callable[[str], None]) -> NodeGpus:
        return of_nodes(self._settings, accelerator, say)

    def at_once(self) -> int:
        try:
            return max(1, min(self._own.slurm_at_once, Slurm().nodes(self._own.slurm_partition)))
        except NoAnswer as silent:
            raise UserError(f"Slurm does not answer: {silent}: wait until it does") from silent

    def expected(self, planned: Sequence[PlannedTrial], gpus: Sequence[Gpu]) -> str:
        """gpus: of a job, whether its case uses them or not."""
        started = [trial for trial in planned if not trial.unsupported]
        node_h = sum(trial.expected_s * trial.case.nodes for trial in started) / 3600
        gpu_h = node_h * len(gpus)
        most_h = sum(trial.timeout_s * trial.case.nodes for trial in started) / 3600
        return (
            f"Slurm: {counted(len(started), 'trial')}, at most {self._own.slurm_at_once} at once: {node_h:.2f} "
            f"node-hours and {gpu_h:.2f} GPU-hours expected, at most {most_h:.1f} node-hours"
        )
