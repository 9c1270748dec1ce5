"""Trials in containers on the nodes of a cluster, on Docker and on Podman."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import docker
import psutil
import pytest

from tests.conftest import missing
from tests.engine.conftest import tiny_checkout
from tests.engine.test_docker import containers, metrics, session
from tests.extras.cluster import slurm_cluster
from tests.extras.cluster.programs import wait_for
from tests.extras.cluster.slurm_cluster import SlurmCluster
from tests.extras.cluster.test_slurm_run import meanwhile
from tests.run.test_runner import trials
from tests.words import WORDS
from tsuishi.base.settings import Settings
from tsuishi.results.verification import verify
from tsuishi.run.new_run import run_suite

pytestmark = pytest.mark.engine

ON_SLURM = {"executor": "slurm", "slurm_poll_s": 0.5, "slurm_lag_s": 1.0}


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """A cluster on whose nodes the engine answers."""
    if lacking := slurm_cluster.why_not():
        missing(lacking)
    with slurm_cluster.cluster(tmp_path_factory.mktemp("slurm")) as made:
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        yield made


def test_trials_run_in_containers_on_the_nodes_of_a_cluster(
    tmp_path: Path, settings: Settings, slurm: SlurmCluster
) -> None:
    work = session(tiny_checkout(tmp_path, "escapes", "raises"), settings, **ON_SLURM)
    run = run_suite(work)
    found = trials(run)
    assert {behaviour: trial["status"] for behaviour, trial in found.items()} == {"escapes": "ok", "raises": "failed"}
    assert metrics(run, found["escapes"])["refused_network"] == 1
    jobs = slurm.command("squeue", "--noheader", "--states=all", "--array", "--format=%j").splitlines()
    assert len([name for name in jobs if run.id in name]) == 2
    assert verify(run, WORDS).faults == ()


def test_no_container_outlives_a_task_of_a_cluster_for_long(
    tmp_path: Path, settings: Settings, slurm: SlurmCluster, client: "docker.DockerClient"
) -> None:
    work = session(tiny_checkout(tmp_path, "silent_for_long"), settings, **ON_SLURM, slurm_at_once=1)
    work = replace(work, choice=replace(work.choice, repetitions=3))
    names: list[str] = []

    def running() -> list[str]:
        """The names of running containers of the run; none where Podman looks while it removes one."""
        of_run = {"label": f"io.tsuishi.run={next(iter(tmp_path.glob('results/*')), tmp_path).name}"}
        with suppress(docker.errors.APIError):
            return [found["Names"][0] for found in client.api.containers(filters=of_run)]
        return []

    def next_container() -> bool:
        """Whether another container runs than those that did."""
        new = [name for name in running() if name not in names]
        names.extend(new)
        return bool(new)

    def kill_and_cancel() -> None:
        wait_for(next_container, 60)
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or ()
            if "tsuishi.extras.cluster.node" in command and any(word.startswith(str(tmp_path)) for word in command):
                process.kill()
        wait_for(next_container, 60)
        assert running() == names[-1:], "the next task has removed it"
        wait_for(next_container, 60)
        tasks = slurm.command("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i").split()
        slurm.command("scancel", *tasks)

    with meanwhile(kill_and_cancel):
        run = run_suite(work)
    assert sorted(trial.status for _, trial in run.finished()) == ["failed", "interrupted", "ok"]
    assert containers(client, tmp_path) == [], "SIGTERM has ended it"
