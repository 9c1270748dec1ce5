"""A run in a notebook: `tsuishi.load_run` gives its frames, and says what each column is."""

import csv
from pathlib import Path

import pytest

import tsuishi
from tests.reports import make_report
from tests.synthetic_run import write_example
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.specs.claims import VERDICTS


@pytest.mark.long
def test_a_run_is_frames_with_the_columns_and_rows_of_its_files_and_of_its_report(tmp_path: Path) -> None:
    run, out, checkout = write_example(tmp_path / "run"), tmp_path / "out", Checkout()
    make_report([run], checkout.published, checkout.templates, out)
    loaded = tsuishi.load_run(tmp_path / "run")
    for name in loaded._fields[:-1]:
        frame, measured = getattr(loaded, name), name in ("samples", "metrics", "telemetry")
        folder = run.path if measured else out / "tables"
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(frame) == len(rows) > 0
        described = loaded.meanings[loaded.meanings["table"] == name]
        assert set(frame) == set(rows[0]) == set(described["column"])
        assert described["description"].all()
    assert set(loaded.samples["trial_id"]) <= set(loaded.trials["trial_id"])
    with_axes = loaded.samples.merge(loaded.trials, on="trial_id")
    assert with_axes[with_axes["phase"] == "first_run"].groupby("devices")["seconds"].max()[1] > 0
    assert set(loaded.verdicts["verdict"]) <= {*VERDICTS}


def test_a_folder_that_is_no_run_is_refused_with_the_runs_beside_it(tmp_path: Path) -> None:
    write_example(tmp_path / "kept")
    with pytest.raises(UserError, match=r"unknown run '.*/kep'; did you mean 'kept'\? known: kept$|known: kept$"):
        tsuishi.load_run(tmp_path / "kep")
