"""Training over two nodes of a real Slurm: torchrun starts a process on each, and the result is that of one node."""

import csv
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.bench import HERE, REAL
from tests.extras.cluster.programs import wait_for
from tests.extras.cluster.slurm_cluster import NODES, SlurmCluster
from tests.extras.cluster.test_slurm_run import assert_whole, meanwhile, on_slurm
from tests.suites.environments import built, inside
from tests.words import describe
from tsuishi.base import owner
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import read_settings
from tsuishi.plan.planning import measurable
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.run.new_run import run_suite
from tsuishi.specs.environment import read_environment

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

ENVIRONMENT = "torch2-cpu"
SUITE = """
title = "{workload} on one node and on two"
workload = "{workload}"
[profiles.quick]
timeout_s = 200.0
settings = {{ warm_up_steps = 3, warm_up_s = 0.2, block_s = 0.1, min_blocks = 3, measure_s = 0.3, max_s = 5.0, \
    train_images = 64 }}
[[groups]]
axes = {{ {axes} }}
"""
TRAINING = """protocol = "steady", mode = "training", model = "cnn10", layout = "native", \
    strategy = "distributed_data_parallel", devices = 2, nodes = [1, 2], batch_size = 16, precision = "fp32", \
    execution = "native" """


def of_suite(root: Path, workload: str, axes: str, nodes: int = 2) -> Session:
    """A session on Slurm in a checkout with a suite of that workload, for the environment as it is built here."""
    workloads = root / "suites" / "workloads"
    shutil.copytree(REAL.workloads, workloads, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "workloads" / "epoch.py", workloads / "experiments")
    describe(root / "suites")
    (root / "suites" / f"{workload}.toml").write_text(SUITE.format(workload=workload, axes=axes))
    for name in ("images", "templates"):
        (root / name).symlink_to(REAL.root / name)
    (root / "reports" / "published").mkdir(parents=True)
    _, there = built(read_environment(REAL.images / f"{ENVIRONMENT}.toml"))
    here = read_settings({}, os.environ, {})
    given = on_slurm(root, engine=there.engine, cache=here.cache, mirrors=here.mirrors)
    choice = replace(given.choice, environments=(ENVIRONMENT,), nodes=nodes)
    return replace(given, choice=choice, data_set=None, checkout=Checkout(root))


def numbers(run: RunDirectory) -> dict[int, dict[str, float]]:
    """The metrics of every trial, by its number of nodes."""
    found = {}
    for folder, trial in run.finished():
        assert trial.status == "ok", (trial.reason, folder)
        rows = csv.DictReader((folder / "metrics.csv").open())
        found[run.case(trial.case_record)["nodes"]] = {row["name"]: float(row["value"]) for row in rows}
    return found


def started(word: str) -> list[psutil.Process]:
    """The processes with that word in their command, which may be in a container."""
    return [process for process in psutil.process_iter(["cmdline"]) if word in (process.info["cmdline"] or ())]


def started_by(process: psutil.Process) -> str:
    """The name of a process' parent."""
    parent = process.parent()
    return parent.name() if parent else ""


def simulated(run: RunDirectory) -> dict[Any, bool | None]:
    return {run.case(trial.case_record)["nodes"]: trial.simulated for _, trial in run.finished()}


@inside
def test_an_epoch_over_two_nodes_ends_with_the_weights_of_one_node(slurm: SlurmCluster, tmp_path: Path) -> None:
    run = run_suite(of_suite(tmp_path, "epoch", TRAINING + ', batches = "host"'))
    found = numbers(run)
    one, two = found[1], found[2]
    assert two["replicas"] == 2
    assert one.keys() == two.keys()
    assert two["final_loss"] != two["initial_loss"]
    for name, value in one.items():
        assert two[name] == pytest.approx(value, rel=1e-4), name
    assert simulated(run) == {1: True, 2: True}, "both nodes are this machine"
    assert_whole(run)
    nodes = slurm.command("squeue", "--noheader", "--states=all", "--format=%j %D").splitlines()
    assert sorted(line.split()[1] for line in nodes if run.id in line) == ["1", "2"]


@inside
def test_a_sum_over_two_nodes_is_measured_as_their_limit(slurm: SlurmCluster, tmp_path: Path) -> None:
    axes = 'protocol = "steady", operation = "all_reduce", devices = 2, nodes = 2, buffer_mib = 1'
    run = run_suite(of_suite(tmp_path, "device_limits", axes))
    assert numbers(run)[2]["bytes"] == 1 << 20
    ((folder, _),) = run.finished()
    assert len((folder / "samples.csv").read_text().splitlines()) > 3
    assert_whole(run)


@inside
def test_the_error_of_another_node_is_the_reason_of_the_trial(slurm: SlurmCluster, tmp_path: Path) -> None:
    axes = TRAINING.replace("batch_size = 16", "batch_size = 48").replace("nodes = [1, 2]", "nodes = 2")
    run = run_suite(of_suite(tmp_path, "epoch", axes))
    ((_, trial),) = run.finished()
    assert (trial.status, trial.reason) == (
        "out_of_memory",
        "MemoryError: rank 1: MemoryError: nothing left for 24 images",
    )
    assert trial.duration_s
    assert trial.duration_s < 60, "it did not wait for a rank that is gone"
    assert_whole(run)


@inside
def test_nothing_goes_on_on_any_node_once_srun_was_killed(slurm: SlurmCluster, tmp_path: Path) -> None:
    def kill_srun() -> None:
        wait_for(lambda: len(started("--nnodes=2")) >= len(NODES), 60)
        members = [
            process for process in started("tsuishi.extras.cluster.member") if started_by(process) == "slurmstepd"
        ]
        assert len(members) == len(NODES)
        for member in members:
            assert owner.MARK not in member.environ(), "on another machine it would be taken for a dead trial's"
        sruns = [process for process in started("tsuishi.extras.cluster.member") if process.name() == "srun"]
        for send in (psutil.Process.suspend, psutil.Process.kill):  # both: where one is left, it kills the members
            for process in sruns:
                send(process)

    session = of_suite(tmp_path, "epoch", TRAINING.replace("nodes = [1, 2]", "nodes = 2"))
    with meanwhile(kill_srun):
        run = run_suite(session)
    ((_, trial),) = run.finished()
    assert trial.status == "failed"
    assert "ended by SIGKILL" in (trial.reason or "")
    slurm.await_idle()
    assert not started("--nnodes=2")
    assert not started("tsuishi.extras.cluster.member")
    assert_whole(run)


@inside
def test_without_nodes_in_the_choice_no_case_of_several_is_planned(tmp_path: Path) -> None:
    environment = read_environment(REAL.images / f"{ENVIRONMENT}.toml")
    given = of_suite(tmp_path, "epoch", TRAINING, nodes=1)
    planned = measurable(given, [environment], {}).first.values()
    assert [trial.case.nodes for trial in planned] == [1]
    more = replace(given, choice=replace(given.choice, nodes=2))
    assert [trial.case.nodes for trial in measurable(more, [environment], {}).first.values()] == [1, 2]
    names = [str(trial.id) for trial in measurable(more, [environment], {}).first.values()]
    assert ["-d2-n2-b16-" in name for name in names] == [False, True]
