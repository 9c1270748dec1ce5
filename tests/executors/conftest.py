"""A Slurm cluster for the tests of executors, and runs on it."""

import os
from collections.abc import Iterator

import pytest

from tests.conftest import missing
from tests.executors.slurm_cluster import SlurmCluster, cluster, why_not


@pytest.fixture
def slurm(started_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """A cluster that Slurm's commands in this process talk to, idle. The tests that ask for it are one group."""
    yield started_cluster
    started_cluster.restore()


@pytest.fixture(scope="session")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """The cluster of a test session."""
    if lacking := why_not():
        missing(lacking)
    with cluster(tmp_path_factory.mktemp("slurm")) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environ.items():
            patch.setitem(os.environ, name, value)
        yield made
