"""Tables that trials wrote: odd files are read as plain files are, and trials with impossible values are excluded."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reports import make_report, markdown_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, listed, steady_samples, training_case
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.printable import visible
from tsuishi.estimates.samples import case_estimates, trial_estimates
from tsuishi.results.directory import RunDirectory
from tsuishi.results.facts import Phase
from tsuishi.results.frames import dict_rows, outcomes, read_runs
from tsuishi.results.record_files import parsed, read_visible
from tsuishi.results.records import TrialRecord
from tsuishi.results.schema import csv_value

HEAD = "phase,index,steps,images,seconds\n"


def run_of(tmp_path: Path, *texts: str | bytes) -> RunDirectory:
    """A run whose trials 0, 1, … have tables of samples with these texts."""
    run = SyntheticRun(tmp_path / "run")
    for number, text in enumerate(texts):
        trial = run.add(training_case(16), TF, repetition=number + 1)
        (run.directory.trials / trial / "samples.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return run.finish()


def samples(tmp_path: Path, *texts: str | bytes) -> pd.DataFrame:
    return read_runs([run_of(tmp_path, *texts)], WORDS).samples


def test_rows_have_their_trials_number_in_front(tmp_path: Path) -> None:
    found = samples(tmp_path, f"{HEAD}measure,0,1,2,0.5\nmeasure,1,1,2,0.25\n", HEAD, f"{HEAD}epoch,0,3,4,1e-3\n")
    assert found["trial"].tolist() == [0, 0, 2]
    assert found["phase"].tolist() == ["measure", "measure", "epoch"]
    assert found["seconds"].tolist() == [0.5, 0.25, 0.001]


def test_texts_that_all_look_like_numbers_stay_texts(tmp_path: Path) -> None:
    found = samples(tmp_path, f"{HEAD}01,0,1,2,0.5\n1.0,1,1,2,0.25\n")
    assert found["phase"].tolist() == ["01", "1.0"]


def test_a_trial_without_a_part_has_no_rows(tmp_path: Path) -> None:
    run = run_of(tmp_path, HEAD)
    (run.finished_folders()[0] / "samples.csv").unlink()
    assert read_runs([run], WORDS).samples.empty


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        pytest.param(HEAD + '"a,b",0,1,2,0.5\n', "a,b", id="quoted"),
        pytest.param(HEAD + '"a\nb",0,1,2,0.5\n', "a\nb", id="a line's end in a cell"),
        pytest.param(HEAD + "a\x00b\u202e,0,1,2,0.5\n", "a⟨U+0000⟩b⟨U+202E⟩", id="unprintable"),
        pytest.param((HEAD + "a").encode() + b"\xff,0,1,2,0.5\n", "a\ufffd", id="not UTF-8"),
        pytest.param("images,more,steps,phase,index,seconds\n2,x,1,a,0,0.5\n", "a", id="other columns"),
        pytest.param(HEAD + "NA,0,1,2,0.5\n", "NA", id="a word that pandas takes for nothing"),
        pytest.param(HEAD + "a,0,1,2,0.5", "a", id="no last line's end"),
        pytest.param(HEAD + "\na,0,1,2,0.5\n", "a", id="an empty line"),
    ],
)
def test_odd_parts_are_read_with_care_and_do_not_disturb_their_neighbours(
    tmp_path: Path, text: str | bytes, phase: str
) -> None:
    plain = f"{HEAD}measure,0,1,2,0.5\n"
    found = samples(tmp_path, plain, text, plain)
    assert found["phase"].tolist() == ["measure", phase, "measure"]
    assert found["trial"].tolist() == [0, 1, 2]
    assert found["images"].tolist() == [2, 2, 2]


def test_a_row_that_was_cut_off_lacks_its_last_values(tmp_path: Path) -> None:
    found = samples(tmp_path, f"{HEAD}measure,0,1,2,0.5\nmeasure,1,1\n")
    assert found["steps"].tolist() == [1, 1]
    assert found["images"].isna().tolist() == [False, True]


def test_a_row_with_too_many_values_loses_them(tmp_path: Path) -> None:
    assert samples(tmp_path, f"{HEAD}measure,0,1,2,0.5,more\n")["seconds"].tolist() == [0.5]


@pytest.mark.parametrize(("row", "column"), [("measure,0,1,2,fast", "seconds"), ("measure,0,1.5,2,1.0", "steps")])
def test_a_value_of_the_wrong_type_is_named(tmp_path: Path, row: str, column: str) -> None:
    with pytest.raises(UserError, match=rf"/trials/\S+\.r1\.a1/samples\.csv: column '{column}' should be of type"):
        samples(tmp_path, f"{HEAD}{row}\n")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.text(), st.integers(0, 10**9), st.floats(5e-324, 1e300)), max_size=5))
def test_whatever_is_written_is_read_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, float]]
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD.strip().split(","))
    writer.writerows((phase.replace("\r", ""), 0, steps, 1, seconds) for phase, steps, seconds in rows)
    run = run_of(tmp_path_factory.mktemp("run"), text.getvalue().encode(errors="surrogatepass"))
    for found in (read_runs([run], WORDS), read_runs([listed(run)], WORDS)):
        assert found.samples["steps"].tolist() == [steps for _, steps, _ in rows]
        assert found.samples["seconds"].tolist() == [seconds for *_, seconds in rows]


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1e15), st.floats(0, 1e15), st.text(), st.dictionaries(st.text(), st.integers() | st.text()))
def test_what_a_trial_says_is_read_exactly_from_the_gathered_tables(
    tmp_path_factory: pytest.TempPathFactory, duration_s: float, energy_j: float, reason: str, flags: dict[str, object]
) -> None:
    run = SyntheticRun(tmp_path_factory.mktemp("run") / "run")
    phases, command = [Phase(name="measure", begin_s=duration_s, end_s=None)], ["python", "-c", 'x,\n"y']
    told: dict[str, Any] = {"phases": phases, "command": command}
    run.add(
        training_case(16), TF, duration_s=duration_s, energy_j=energy_j, reason=reason, exit_code=-9, simulated=None,
        reported={"flags": flags}, settings={"epochs": 3, "stop_at": 0.1}, status="failed", **told,
    )  # fmt: skip
    results = read_runs([listed(run.finish())], WORDS)
    assert results.assurances["run"].has_tables
    (trial,) = dict_rows(results.trials)
    assert (trial["duration_s"], trial["energy_j"], trial["exit_code"]) == (duration_s, energy_j, -9)
    assert trial["reason"] == visible(csv_value(reason))
    assert pd.isna(trial["simulated"])
    (found,) = results.details
    assert (found.phases, found.command) == (phases, command)
    assert (found.flags, found.settings) == (visible(flags), {"epochs": 3, "stop_at": 0.1})


@pytest.mark.long
@given(st.recursive(st.text() | st.integers(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_plain_json_is_known_without_a_walk_and_the_rest_is_made_visible(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.mktemp("json") / "value.json"
    for ensure_ascii in (True, False):
        text = json.dumps({"key": value}, ensure_ascii=ensure_ascii)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert json.loads(read_visible(path)) == visible({"key": value})


def test_a_file_that_is_no_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_text("[]")
    with pytest.raises(UserError, match="expected a JSON object"):
        parsed(path, read_visible(path), TrialRecord)


def ok_trial(tmp_path: Path, **tables: str) -> RunDirectory:
    """A run of a trial that ended well, with these tables."""
    run = SyntheticRun(tmp_path / "run")
    trial = run.add(training_case(16), TF, steady_samples(16, [0.1] * 4))
    for table, text in tables.items():
        (run.directory.trials / trial / f"{table}.csv").write_text(text)
    return run.finish()


@pytest.mark.parametrize(
    ("table", "text", "why"),
    [
        ("samples", f"{HEAD}measure,0,1,2,0.5\nmeasure,1,1,2,-0.5\n", "row 2: seconds is not above 0 and finite"),
        ("samples", f"{HEAD}measure,0,1,2,0\n", "row 1: seconds is not above 0 and finite"),
        ("samples", f"{HEAD}measure,0,1,2,inf\n", "row 1: seconds is not above 0 and finite"),
        ("samples", f"{HEAD}measure,0,1,2,\n", "row 1: seconds is not above 0 and finite"),
        ("samples", f"{HEAD}a,0,1,2,1\nb,0,0,2,1\n", "row 2: steps is not 1 or more"),
        ("samples", f"{HEAD}a,0,1,-2,1\n", "row 1: images is not 0 or more"),
        ("samples", f"{HEAD}a,0,1,2,1\na,0,1,2,1\n", "row 2: its index is not its place in its phase"),
        ("samples", f"{HEAD}a,0,1,2,1\nb,0,1,2,1\na,2,1,2,1\n", "row 3: its index is not its place in its phase"),
        ("samples", f"{HEAD}a,,1,2,1\n", "row 1: its index is not its place in its phase"),
        ("metrics", "name,value,unit\nloss,inf,1\n", "row 1: value is not finite"),
        ("telemetry", "elapsed_s,phase,device\n-1,,host\n", "row 1: elapsed_s is not 0 or more"),
    ],
)
def test_a_trial_with_rows_that_no_workload_can_have_sent_is_excluded(
    tmp_path: Path, table: str, text: str, why: str
) -> None:
    run = ok_trial(tmp_path, **{table: text})
    name = run.finished_folders()[0].name
    results = read_runs([run], WORDS)
    reason = f"trials/{name}/{table}.csv: {why}: restore the file, or remove the trial's folder"
    assert results.trials[["status", "reason"]].to_numpy().tolist() == [["excluded", reason]]
    (excluded,) = results.excluded
    assert f"{excluded.file}: row {excluded.row}: {excluded.in_english}: restore" in reason
    assert trial_estimates(results, {}).empty
    assert outcomes(results)["status"].tolist() == ["excluded"]


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    run = ok_trial(tmp_path, samples=f"{HEAD}a,0,1e999,2,1\n")
    why = "column 'steps' should be of type integer: cannot convert float infinity to integer: restore the file"
    with pytest.raises(UserError, match=f"samples.csv: {why}"):
        read_runs([run], WORDS)


@pytest.mark.parametrize("seconds", [0.0, float("inf")])
def test_a_trial_whose_blocks_are_all_wrong_spoils_neither_its_case_nor_the_report(
    tmp_path: Path, seconds: float
) -> None:
    run, checkout = SyntheticRun(tmp_path / "run"), Checkout()
    for environment in (TF, TORCH):
        for repetition in (1, 2, 3):
            samples = steady_samples(16, [0.1 + 0.001 * repetition] * 4)
            wrong = [(*block[:4], seconds) for block in samples]
            is_right = (environment, repetition) != (TF, 2)
            run.add(training_case(16), environment, samples if is_right else wrong, repetition)
    directory = run.finish()
    results = read_runs([directory], WORDS)
    (excluded,) = (exclusion.trial_id for exclusion in results.excluded)
    found = case_estimates(trial_estimates(results, {}))
    steps = found[found["quantity"] == "step_s"]
    assert dict(zip(steps["environment"], steps["n"], strict=True)) == {TF: 2, TORCH: 3}
    assert steps["estimate"].tolist() == pytest.approx([(0.101 * 0.103) ** 0.5, (0.101 * 0.102 * 0.103) ** (1 / 3)])
    make_report([directory], checkout.published, checkout.templates, tmp_path / "out")
    page = markdown_of(tmp_path / "out").replace("\\_", "_")
    assert f"{excluded} of run run is in no estimate, as trials/{excluded}/samples.csv cannot be right: row 1" in page
    assert "measure the trial again with `invoke run-suite --resume run`" in page
    assert "2 ok, 1 excluded" in page


def test_a_run_of_another_task_than_run_suite_is_not_resumed_by_it(tmp_path: Path) -> None:
    run, checkout = SyntheticRun(tmp_path / "run", task="check"), Checkout()
    run.add(training_case(16), TF, [("measure", 0, 1, 16, 0.0)])
    make_report([run.finish()], checkout.published, checkout.templates, tmp_path / "out")
    page = markdown_of(tmp_path / "out").replace("\\_", "_")
    assert "Restore the file, or give the command of this run again." in page
    assert "run-suite --resume" not in page


def test_a_row_that_a_killed_runner_left_half_is_not_held_against_the_run(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, [("measure", 0, 1, 16, "")], status="interrupted")  # type: ignore[list-item]
    assert read_runs([run.finish()], WORDS).samples["seconds"].isna().tolist() == [True]


def units_run(tmp_path: Path, metric: str, units: dict[str, tuple[float, str]]) -> RunDirectory:
    """A trial of an environment with the value and unit of a metric."""
    run = SyntheticRun(tmp_path / "run")
    for environment, (value, unit) in units.items():
        run.add(training_case(16), environment, steady_samples(16, [0.1] * 4), metrics=[(metric, value, unit)])
    return run.finish()


def test_a_metric_in_another_unit_than_its_quantity_makes_no_ratio_but_a_warning(tmp_path: Path) -> None:
    run, checkout = units_run(tmp_path, "compile_s", {TF: (2.0, "s"), TORCH: (1958.0, "ms")}), Checkout()
    results = read_runs([run], WORDS)
    found = case_estimates(trial_estimates(results, {}))
    assert found.loc[found["quantity"] == "compile_s", ["environment", "estimate"]].to_numpy().tolist() == [[TF, 2.0]]
    (excluded,) = results.excluded
    make_report([run], checkout.published, checkout.templates, tmp_path / "out")
    page = markdown_of(tmp_path / "out").replace("\\_", "_")
    assert f"{excluded.trial_id} of run run is in no estimate" in page
    assert "row 1: metric compile_s is in ms, and its quantity in s" in page


def test_of_a_metric_that_nobody_describes_two_units_are_not_compared(tmp_path: Path) -> None:
    run = units_run(tmp_path, "waited", {TF: (2.0, "s"), TORCH: (1958.0, "ms")})
    assert [exclusion.in_english for exclusion in read_runs([run], WORDS).excluded] == [
        "metric waited is in s here and in ms elsewhere, and no quantity describes it",
        "metric waited is in ms here and in s elsewhere, and no quantity describes it",
    ]
    same = units_run(tmp_path / "same", "waited", {TF: (2.0, "s"), TORCH: (3.0, "s")})
    assert read_runs([same], WORDS).excluded == []
