"""The table of fits: pure error, lack of fit, and the batch size that decides."""

from pathlib import Path
from typing import Any

import pytest

from tests.synthetic_run import TF, SyntheticRun, steady_samples, training_case
from tests.words import WORDS
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import Cell, Table
from tsuishi.report.sections.fits import fitted_lines
from tsuishi.verdicts.evidence import Evidence

SCATTER = (0.99, 1.0, 1.01)


def fits(path: Path, off: dict[int, float], scatter: tuple[float, ...] = SCATTER) -> View:
    """The view of a line of 1000 images/s and 0.01 s. off: the factor by which each batch size lies off it."""
    run = SyntheticRun(path / "run")
    for batch, factor in off.items():
        for repetition, each in enumerate(scatter, start=1):
            samples = steady_samples(batch, [each * factor * (batch / 1000 + 0.01)] * 4)
            run.add(training_case(batch), TF, samples, repetition=repetition)
    return fitted_lines(SuiteCases(Evidence([run.finish()], (), WORDS), "multi_gpu_scaling", "steady"))


def row_and_cells(view: View) -> tuple[dict[str, Any], list[Cell]]:
    (row,) = view.rows["throughput_model"]
    table = next(block for block in view.blocks if isinstance(block, Table))
    return row, table.rows[0]


def test_a_line_that_holds_has_a_test_of_its_fit(tmp_path: Path) -> None:
    row, cells = row_and_cells(fits(tmp_path, dict.fromkeys((16, 32, 64, 128, 256), 1.0)))
    assert (row["points"], row["trials"], row["decided_by"]) == (5, 15, None)
    assert row["pure_error_percent"] == pytest.approx(1.0, rel=1e-3)
    assert row["lack_of_fit_p"] > 0.99
    assert cells[2].notes == ()
    assert (cells[-1].value, cells[-1].notes[1]) == (row["lack_of_fit_p"], "trials scatter by 1.00 %")
    assert cells[-1].notes[0].startswith("F(3, 10) = ")


def test_a_bad_batch_size_is_named(tmp_path: Path) -> None:
    row, cells = row_and_cells(fits(tmp_path, {16: 1.0, 32: 1.0, 64: 1.0, 128: 1.0, 256: 1.06}))
    assert row["decided_by"] == 256
    assert row["lack_of_fit_p"] < 0.05
    assert cells[2].notes == ("batch 256 decides",)


def test_two_batch_sizes_have_intervals_and_no_test_of_their_fit(tmp_path: Path) -> None:
    row, cells = row_and_cells(fits(tmp_path, {16: 1.0, 256: 1.0}))
    assert row["v0_images_per_s_low"] < 1000 < row["v0_images_per_s_high"]
    assert (row["trials"], row["lack_of_fit_p"], row["decided_by"]) == (6, None, None)
    assert (cells[-1].text, cells[-1].notes) == ("not to be seen", ("trials scatter by 1.00 %",))


def test_three_batch_sizes_are_said_to_test_no_line(tmp_path: Path) -> None:
    _, three = row_and_cells(fits(tmp_path / "3", dict.fromkeys((16, 64, 256), 1.0)))
    _, four = row_and_cells(fits(tmp_path / "4", dict.fromkeys((16, 32, 64, 256), 1.0)))
    assert "near a line, whatever they are" in three[2].notes
    assert "near a line, whatever they are" not in four[2].notes


def test_single_trials_have_no_scatter_of_their_own(tmp_path: Path) -> None:
    row, cells = row_and_cells(fits(tmp_path, {16: 1.0, 64: 1.01, 256: 1.0}, scatter=(1.0,)))
    assert (row["trials"], row["pure_error_percent"], row["lack_of_fit_p"]) == (None, None, None)
    assert row["v0_images_per_s_low"] is not None
    assert cells[-1].text == "—"
