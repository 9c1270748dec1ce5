"""A Slurm cluster for the tests of executors, and runs on it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import missing
from tests.extras.cluster import slurm_accounting, slurm_cluster
from tests.extras.cluster.slurm_cluster import SlurmCluster, cluster
from tests.locking.test_resolve import NO_ENGINE


@pytest.fixture(autouse=True)
def no_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks end what killed tasks have left in an engine, and tests of engines, beside these, leave some on purpose."""
    if "test_torchrun" not in request.node.nodeid:
        monkeypatch.setenv("DOCKER_HOST", NO_ENGINE)


@pytest.fixture
def slurm(started_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """A cluster that Slurm's commands in this process talk to, idle. The tests that ask for it are one group."""
    yield started_cluster
    started_cluster.restore()


@pytest.fixture(scope="session")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """The cluster of a test session."""
    if lacking := slurm_cluster.why_not():
        missing(lacking)
    with cluster(tmp_path_factory.mktemp("slurm")) as made, _found(made):
        yield made


@pytest.fixture
def accounting_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A cluster that keeps accounts."""
    if lacking := slurm_cluster.why_not() or slurm_accounting.why_not():
        missing(lacking)
    with cluster(tmp_path_factory.mktemp("accounts"), keeps_accounts=True) as made, _found(made):
        yield made


@pytest.fixture
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A cluster for one test."""
    if lacking := slurm_cluster.why_not():
        missing(lacking)
    with cluster(tmp_path_factory.mktemp("own")) as made, _found(made):
        yield made


@contextmanager
def _found(made: SlurmCluster) -> Iterator[None]:
    """While the block runs, Slurm's commands of this process talk to that cluster."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environ.items():
            patch.setitem(os.environ, name, value)
        yield
