"""The settings that only the cluster reads; base/settings.py has those that a plan for a cluster reads, too."""

from typing import Annotated, cast

from pydantic import Field

from tsuishi.base import toml


class ClusterSettings(toml.Spec):
    """The times of jobs."""

    # The limit of a job; without it, its own time and five minutes.
    slurm_time: Annotated[str, Field(pattern=r"^(([0-9]+-)?[0-9]+(:[0-9]+){0,2})?$")] = ""
    # Seconds between questions to Slurm, and those that a shared file system may take to show what a node wrote.
    slurm_poll_s: toml.Above0Seconds = 10.0
    slurm_lag_s: toml.Seconds = 60.0


SETTINGS = ClusterSettings


def of_cluster(settings: toml.Spec) -> ClusterSettings:
    """The settings of a session, with the type that has those of this extra."""
    return cast(ClusterSettings, settings)
