"""Suite conv2d in containers, smoke profile: what folds, what does not, and what the report makes of it.

`done` is the main job: its folder, and what it printed.
"""

import json
import os
from pathlib import Path

import pytest

from tests import job
from tests.job import PINNED, TENSORFLOW, TORCH, Trial
from tests.reports import table_of

pytestmark = pytest.mark.engine


def trials(folder: Path, environment: str, **axes: str) -> list[Trial]:
    """The trials of conv2d in an environment that have these axes."""
    return job.trials(folder, suite="conv2d", environment=environment, **axes)


def towers(folder: Path, environment: str, devices: str, graph_optimizers: str = "default") -> Trial:
    axes = {"devices": devices, "graph_optimizers": graph_optimizers, "search": ""}
    (trial,) = trials(folder, environment, protocol="literal", implementation="framework", **axes)
    return trial


def test_the_graph_that_ran_is_folded_from_four_towers_on_in_tensorflow_1_13(done: tuple[Path, str]) -> None:
    """840 images of 40 kB on 4 towers are 8.0 MiB each, on 3 towers 10.7 MiB; ones are the same in all towers."""
    three, four = (towers(done[0], "tf1.13-cpu", devices) for devices in ("3", "4"))
    assert four["metrics"]["convolutions_in_graph"] == 4
    assert four["metrics"]["convolutions_left_in_graph"] == 0
    assert three["metrics"]["convolutions_in_graph"] == 3
    assert three["metrics"]["convolutions_left_in_graph"] == 1
    work = 2 * 840 * 100 * 100 * 9
    assert (three["metrics"]["flops"], four["metrics"]["flops"]) == (work / 3, 0)


def test_tensorflow_2_folds_three_towers_as_it_does_four(done: tuple[Path, str]) -> None:
    for devices in ("3", "4"):
        assert towers(done[0], "tf2-cpu", devices)["metrics"]["convolutions_left_in_graph"] == 0


@pytest.mark.parametrize("environment", TENSORFLOW)
def test_with_folding_switched_off_every_run_convolves(done: tuple[Path, str], environment: str) -> None:
    on, off = (towers(done[0], environment, "4", switch) for switch in ("default", "no_folding"))
    assert off["metrics"]["convolutions_left_in_graph"] == 4
    assert off["metrics"]["flops"] == 2 * 840 * 100 * 100 * 9
    assert on["metrics"]["flops"] == 0


def test_the_edge_of_one_tower_is_at_10_mib_in_tensorflow_1_13(done: tuple[Path, str]) -> None:
    (search,) = trials(done[0], "tf1.13-cpu", search="folding_edge")
    assert search["metrics"]["largest_folded_images"] == 262
    assert search["metrics"]["smallest_unfolded_images"] == 263
    assert search["metrics"]["largest_folded_input_mib"] < 10 < search["metrics"]["smallest_unfolded_input_mib"]


def test_tensorflow_2_has_no_edge_up_to_the_bound(done: tuple[Path, str]) -> None:
    (search,) = trials(done[0], "tf2-cpu", search="folding_edge")
    assert search["metrics"]["largest_folded_images"] == float(search["images"])
    assert "smallest_unfolded_images" not in search["metrics"]


@pytest.mark.parametrize("environment", TORCH)
def test_pytorch_has_no_graph_to_fold_and_says_so(done: tuple[Path, str], environment: str) -> None:
    found = trials(done[0], environment)
    without = {trial["trial_id"] for trial in found if trial["status"] == "unsupported"}
    expected = {one["trial_id"] for one in found if one["search"] or one["graph_optimizers"] == "no_folding"}
    assert without == expected
    assert len(without) == 2
    assert all("PyTorch" in trial["reason"] for trial in found if trial["trial_id"] in without)
    assert not [trial for trial in found if "convolutions_in_graph" in trial["metrics"]]


def test_scipy_on_all_cores_takes_a_process_for_each_and_convolves_every_image(done: tuple[Path, str]) -> None:
    for environment in PINNED:
        (trial,) = trials(done[0], environment.name, implementation="scipy_all_cores")
        assert trial["status"] == "ok"
        assert trial["metrics"]["outputs_checked"] == 840
        assert trial["metrics"]["max_relative_error"] < 1e-6


def test_every_trial_that_convolves_says_how_much_work_it_is(done: tuple[Path, str]) -> None:
    for environment in PINNED:
        for trial in trials(done[0], environment.name, status="ok", search=""):
            assert {"flops", "bytes"} <= set(trial["metrics"]), trial["trial_id"]


def test_the_report_names_folding_in_tensorflow_1_13_and_nowhere_else(done: tuple[Path, str]) -> None:
    index = Path(done[1].splitlines()[-1].removeprefix("report: "))
    told = {(row["environment"], row["topic"]): row["text"] for row in table_of(index.parent, "diagnosis")}
    assert "It looks like constant folding" in told["tf1.13-cpu", "In short"]  # of a single trial
    assert "262" in told["tf1.13-cpu", "Where folding stops"]
    assert "the step is there" in told["tf1.13-cpu", "Where folding stops"]
    assert "constant folding" not in told["tf2-cpu", "In short"]
    assert "No convolution remained in the graph that ran with 3 and 4 towers" in told["tf2-cpu", "The graph that ran"]
    for environment in TORCH:
        assert "constant folding: the graph" not in told[environment, "In short"]
        assert told[environment, "The graph that ran"] == "No graph was reported, so none was folded."


def test_the_cores_of_this_machine_are_those_a_container_may_use(done: tuple[Path, str]) -> None:
    """Or SciPy on all cores would be on fewer than the frameworks use."""
    (trial,) = trials(done[0], "torch2-cpu", implementation="scipy_all_cores")
    run = next((done[0] / "results").glob("*/trials/" + trial["trial_id"] + "/trial.json"))
    flags = json.loads(run.read_text(encoding="utf-8"))["reported"]["flags"]
    assert flags["processes"] == len(os.sched_getaffinity(0))
