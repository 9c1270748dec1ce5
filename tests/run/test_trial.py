"""One trial as a unit: an order that has been JSON in between is run anywhere, and leaves one whole folder."""

import csv
from pathlib import Path

import pytest

from tests.bench import make_checkout
from tests.run.test_runner import Nobody, session
from tests.synthetic_run import run_record
from tsuishi.plan.planning import measurable, plan_builds_only
from tsuishi.plan.trials import plan_trials
from tsuishi.results import trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.run.runner import Runner
from tsuishi.run.trial import Bench, TrialOrder, bury, run_trial

Ordered = tuple[TrialOrder, Bench]


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Ordered:
    """The order of a trial that ends well, after it was sent as JSON, and a bench for it."""
    root = tmp_path_factory.mktemp("ordered")
    make_checkout(root, "ok")
    work = session(root)
    ready = work.build(plan_builds_only(work).environments)
    (trial,) = plan_trials(measurable(work, [one.environment for one in ready.values()], {}), 0)
    run = RunDirectory.create(root / "results" / "1", run_record("1"))
    runner = Runner(work, run, ready, Nobody())
    order = runner._order(trial, trial.id.next_attempt)
    sent = TrialOrder.model_validate_json(order.model_dump_json())
    assert sent == order
    return sent, Bench(ready["host"], work.checkout.workloads, work.nvml, None)


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_an_order_becomes_a_folder_with_its_record(ordered: Ordered, tmp_path: Path) -> None:
    order, bench = ordered
    phases: list[str] = []
    end = run_trial(order, tmp_path, bench, phases.append)
    (folder,) = trial_folders.finished(tmp_path)
    ((_, record),) = trial_folders.read([folder])
    assert record.content() == end.record.content()
    assert (record.id, record.status, record.case_id) == (order.id, "ok", order.case_id)
    assert end.stop is None
    assert 0 < (record.duration_s or 0) <= end.took_s
    assert phases == [phase.name for phase in record.phases or []] == ["measure"]
    assert len(rows(folder, "samples")) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(order.id)], "nothing else is written"


def test_an_order_that_cannot_be_run_becomes_a_folder_without_a_start(ordered: Ordered, tmp_path: Path) -> None:
    order, bench = ordered
    asked = ("python", "suites/workloads/run.py", "{}")
    end = run_trial(
        order.model_copy(update={"unsupported": "no towers here", "asked": asked}), tmp_path, bench, lambda phase: None
    )
    (folder,) = trial_folders.finished(tmp_path)
    assert (end.record.status, end.record.reason, end.took_s) == ("unsupported", "no towers here", 0.0)
    assert tuple(end.record.asked or ()) == asked
    assert [rows(folder, table) for table in ("samples", "metrics", "telemetry")] == [[], [], []]


def test_a_time_out_is_a_record_and_no_reason_to_stop(ordered: Ordered, tmp_path: Path) -> None:
    order, bench = ordered
    end = run_trial(order.model_copy(update={"timeout_s": 0.001}), tmp_path, bench, lambda phase: None)
    assert (end.record.status, end.stop) == ("timeout", None)
    assert end.record.reason == "stopped after 0.001 s; allow more with --timeout"


def test_what_a_killed_runner_left_is_buried_with_what_it_had_written(ordered: Ordered, tmp_path: Path) -> None:
    order, _ = ordered
    folder = trial_folders.begin(tmp_path, order.id)
    (folder / "samples.csv").write_text("phase,index,steps,images,seconds\nmeasure,0,1,1,0.5\n")
    bury(order, folder)
    (final,) = trial_folders.finished(tmp_path)
    ((_, record),) = trial_folders.read([final])
    assert (record.status, record.duration_s) == ("interrupted", None)
    assert list(record.digests or {}) == ["samples"]
    assert len(rows(final, "samples")) == 1
