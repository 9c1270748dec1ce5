"""Runs with a budget on a real Slurm: time counts from the first start of a job, and GPU-hours are what jobs take."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench import make_checkout
from tests.extras.cluster.programs import wait_for
from tests.extras.cluster.slurm_cluster import NODES, SlurmCluster
from tests.extras.cluster.test_node_gpus import A100, with_answer
from tests.extras.cluster.test_slurm_run import assert_whole, meanwhile, on_slurm, started
from tests.run.test_measuring import SUITE, trials
from tests.run.test_rounds import Bench
from tsuishi.base.budget import Clock
from tsuishi.base.errors import UserError
from tsuishi.plan.session import Session
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def limited(root: Path, within_s: float | None, **settings: Any) -> Session:
    """A session on Slurm with a time limit, in whose history a trial takes a second."""
    work = replace(on_slurm(root, **settings), clock=Clock(within_s), with_report=False)
    work.history.slowness = 0.2
    return work


def make_cores(root: Path) -> None:
    """A checkout whose suite asks one question, of two cases."""
    made = make_checkout(root, "ok")
    (made.suites / "bench.toml").unlink()
    (made.suites / "cores.toml").write_text(SUITE, encoding="utf-8")


def test_time_on_a_cluster_counts_from_the_first_job_and_more_of_it_deepens_the_run(
    slurm: SlurmCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_cores(tmp_path)
    run = run_suite(limited(tmp_path, 90.0))
    first = trials(run)
    assert min(first.values()) >= 3
    (recorded,) = run.run().sessions
    assert recorded.within_s == 90.0
    queued_s = recorded.queued_s
    assert isinstance(queued_s, float)
    assert 0 < queued_s < 60
    said = capsys.readouterr().out
    assert "1 min 27 s for trials, from the first start of a job, up to 2 at once" in said
    assert "the first job began after" in said
    assert_whole(run)
    open_before = run.run().more
    deeper = resume(limited(tmp_path, 60.0), run.id)
    after = trials(deeper)
    assert len(deeper.run().sessions) == 1 + (after != first), "a session that measured nothing is none"
    if open_before:
        assert min(after.values()) > min(first.values())
    else:
        assert after == first, "all questions were answered"
    assert_whole(deeper)


def test_what_waits_when_time_is_over_is_no_trial(
    slurm: SlurmCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_cores(tmp_path)
    slurm.command("scontrol", "update", f"NodeName={NODES[1]}", "State=DRAIN", "Reason=a test")

    def drain() -> None:
        wait_for(lambda: started(tmp_path), 60)
        slurm.command("scontrol", "update", f"NodeName={NODES[0]}", "State=DRAIN", "Reason=a test")

    begun = time.monotonic()
    try:
        with meanwhile(drain):
            run = run_suite(limited(tmp_path, 15.0))
        took_s = time.monotonic() - begun
    finally:
        for node in NODES:
            slurm.command("scontrol", "update", f"NodeName={node}", "State=RESUME")
    assert sum(trials(run).values()) == 1
    assert took_s < 60
    said = capsys.readouterr().out
    assert "time is over: no further trial begins, and those that run go on to their ends" in said
    assert "up to 1 at once" in said
    assert_whole(run)
    assert not slurm.command("squeue", "--noheader")


def test_gpu_hours_are_those_of_the_gpus_that_a_job_has(tmp_path: Path) -> None:
    work = limited(tmp_path, None, slurm_gres="gpu:2")
    with_answer(work, A100, {**A100, "index": 1, "uuid": "GPU-2"})
    work = replace(work, choice=replace(work.choice, gpu_hours=8.0))
    assert work.is_limited
    assert work.left_for_trials_s() == 4 * 3600
    assert work.left_for_trials_s(spent_s=3600.0) == 3 * 3600


def test_gpu_hours_without_a_gpu_are_refused(tmp_path: Path) -> None:
    work = limited(tmp_path, None)
    work = replace(work, choice=replace(work.choice, gpu_hours=8.0))
    with pytest.raises(UserError, match=r"^--gpu-hours: no trial has a GPU \(no GPU is asked of Slurm: give --gres"):
        work.left_for_trials_s()


def test_a_batch_has_what_fits_together_and_each_trial_fits_the_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=75.0)
    asked = bench.compare("clear", of=1.0, to=2.0, expected_s=10.0)
    batches = [*_run(bench, bench.rounds([asked]).batches(lambda: 20.0))]
    assert [len(batch) for batch in batches] == [2, 4], "each takes 10.3 s, and a tenth is kept"
    none = Bench(tmp_path / "none", left_s=75.0)
    asked = none.compare("clear", of=1.0, to=2.0, expected_s=10.0)
    assert [*_run(none, none.rounds([asked]).batches(lambda: 10.0))] == []


def _run(bench: Bench, batches: Any) -> Any:
    for batch in batches:
        for trial in batch:
            bench.measure(trial)
        yield batch
