"""What fits in memory: the map of batch sizes."""

from pathlib import Path

import pytest

from tests.report.compared import compared, tables, texts
from tests.synthetic_run import TF, TORCH, SyntheticRun, steady_samples, training_case
from tsuishi.report.parts.blocks import Chart, View
from tsuishi.report.sections.memory import memory

TITLE = "What fits in memory"


def wide(run: SyntheticRun, environment: str, fitting: tuple[int, ...], without: tuple[int, ...]) -> None:
    for batch_size in fitting:
        run.add(training_case(batch_size, model="wrn28_10"), environment, steady_samples(batch_size, [0.1] * 4))
    for batch_size in without:
        case = training_case(batch_size, model="wrn28_10")
        run.add(case, environment, status="out_of_memory", reason="CUDA out of memory")


def map_of(run: SyntheticRun, published: bool = False) -> View:
    return memory(compared(run, published=published))


def test_the_largest_that_fitted_stands_beside_the_smallest_that_did_not(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    wide(run, TF, (128, 256), (512, 1024))
    wide(run, TORCH, (128, 256, 512), (1024,))
    view = map_of(run)
    assert texts(tables(view)[TITLE]) == [["wrn28_10, 1 device", "256", "512", "512", "1,024"]]
    assert tables(view)[TITLE].groups == [("", 1), (TF, 2), (TORCH, 2)]
    found = [(row["series"], row["largest_fitted"], row["smallest_out_of_memory"]) for row in view.rows["memory"]]
    assert found == [(TF, 256, 512), (TORCH, 512, 1024)]
    assert [cell.exact for cell in tables(view)[TITLE].rows[0][1:]] == [256, 512, 512, 1024]


def test_a_published_blank_is_said_to_be_one_and_no_more(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    wide(run, TF, (128, 256), ())
    (row,) = texts(tables(map_of(run, published=True))[TITLE])
    # The source has wrn28_10 on one GPU at 128 and 256, and other cases up to 2048.
    assert row == ["wrn28_10, 1 device", "256", "—", "256", "not in its table: 512, 1024, 2048"]


def test_where_everything_fits_and_nothing_is_blank_there_is_no_map(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    wide(run, TF, (128, 256), ())
    assert map_of(run) == View()


@pytest.mark.long
def test_the_map_is_drawn_where_something_ran_out_of_memory(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    wide(run, TF, (128,), (256,))
    run.add(training_case(512, model="wrn28_10"), TF, status="skipped", reason="a smaller one did not fit")
    (chart,) = [block for block in map_of(run).blocks if isinstance(block, Chart)]
    (drawn,) = chart.specification["datasets"].values()
    assert {row["batch_size"]: row["fate"] for row in drawn} == {
        128: "fitted",
        256: "out of memory",
        512: "neither: see its status",
    }
    quiet = SyntheticRun(tmp_path / "quiet")
    wide(quiet, TF, (128, 256), ())
    assert not [block for block in map_of(quiet, published=True).blocks if isinstance(block, Chart)]
