"""The settings of the cluster: `tsuishi.slurm.partition` in invoke.yaml."""

from typing import Annotated, Literal, cast

from pydantic import Field

from tsuishi.base import toml
from tsuishi.base.setting_values import CoreEngine, CoreExecutor

# Settings that stand together under a key of invoke.yaml.
GROUP = "slurm"
SlurmOption = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,:=&|()\[\]*@/+-]*$")]


class ClusterSettings(toml.Spec):
    """Options of sbatch, for trials as arrays of Slurm, and the times of jobs."""

    engine: Literal[CoreEngine, "apptainer", "pyxis"] = "auto"
    executor: Literal[CoreExecutor, "slurm"] = "auto"
    # Without gres a trial has its node alone.
    slurm_partition: SlurmOption = ""
    slurm_account: SlurmOption = ""
    slurm_gres: SlurmOption = ""
    slurm_constraint: SlurmOption = ""
    # The most trials of an array that run at the same time.
    slurm_at_once: toml.Count = 100
    # The limit of a job; without it, its own time and five minutes.
    slurm_time: Annotated[str, Field(pattern=r"^(([0-9]+-)?[0-9]+(:[0-9]+){0,2})?$")] = ""
    # Seconds between questions to Slurm, and those that a shared file system may take to show what a node wrote.
    slurm_poll_s: toml.Above0Seconds = 10.0
    slurm_lag_s: toml.Seconds = 60.0


SETTINGS = ClusterSettings


def of_cluster(settings: toml.Spec) -> ClusterSettings:
    """The settings of a session, with the type that has those of this extra."""
    return cast(ClusterSettings, settings)
