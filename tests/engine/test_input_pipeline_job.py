"""Suite input_pipeline in an environment of each framework, smoke profile."""

from pathlib import Path

import pytest

from tests import job
from tests.job import Trial

pytestmark = pytest.mark.engine

CASES = 6
WITHOUT_TOWERS = {"loader", "resident"}


def trials(folder: Path, **axes: str) -> list[Trial]:
    return job.trials(folder, suite="input_pipeline", **axes)


def test_what_has_no_graph_says_what_would_run_instead(done: tuple[Path, str]) -> None:
    found = trials(done[0])
    assert len(found) == 2 * CASES
    for trial in found:
        runs = trial["environment"].startswith("tf") or trial["pipeline"] in WITHOUT_TOWERS
        assert trial["status"] == ("ok" if runs else "unsupported"), trial["reason"]
        assert runs or "would run" in trial["reason"]


def test_a_shared_batch_is_one_batch_however_many_towers_get_it(done: tuple[Path, str]) -> None:
    for trial in trials(done[0], status="ok"):
        counted = trial["metrics"]
        towers = int(trial["devices"]) if trial["strategy"] == "towers" else 1
        copies = towers if trial["pipeline"].startswith("shared") else 1
        assert counted["examples_per_step"] == int(trial["batch_size"])
        assert counted["distinct_images_per_step"] * copies == counted["examples_per_step"]
        assert counted["devices_used"] == towers
        assert counted["trainable_parameters"] == 3838282


def test_unmodified_code_leaves_three_of_four_devices_idle(done: tuple[Path, str]) -> None:
    unmodified = trials(done[0], devices="4", status="ok")
    assert {trial["environment"] for trial in unmodified} == {"tf1.13-cpu"}
    for trial in unmodified:
        assert trial["metrics"]["devices_used"] == 1
        samples = {phase: len(seconds) for phase, seconds in trial["seconds"].items()}
        # Steps that took less than load_s are followed by more.
        assert {"load": 1, **samples} == {"first_step": 1, "step": 10, "load": 1}
