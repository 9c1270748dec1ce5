"""Scripts of ten styles, unmodified, as suites' experiments: run for real with the engine `host`, then reported."""

import csv
import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands.test_tasks import checkout, invoke
from tests.reports import markdown_of, table_of

SCRIPTS = Path(__file__).parents[2] / "scripts"


class Style(NamedTuple):
    """A suite for a script: its patterns and quantities in TOML, arguments and the time limit."""

    script: str
    patterns: str
    quantities: str = ""
    arguments: str = ""
    timeout_s: float = 60.0


def quantity(name: str, unit: str, take: str = "mean") -> str:
    return f'[new_quantities.{name}]\nlabel = "{name}"\nunit = "{unit}"\nfrom = "metric:{name}"\ntake = "{take}"\n'


STEP = "[patterns.step]\nline = 'step \\d+: (?P<crash_s>[\\d.]+) s'\n"
STYLES = {
    "bars": Style(
        "bars.py",
        "[patterns.bar]\nline = 'Epoch (?P<index>\\d+): +\\d+%.*<00:00, (?P<bar_rate>[\\d.]+)it/s'\n",
        quantity("bar_rate", "it/s"),
    ),
    "keras": Style(
        "keras_progress.py",
        "[patterns.epoch]\nline = '- (?P<keras_s>\\d+)s (?P<keras_step_s>\\d+)ms/step'\n"
        "scale = { keras_step_s = 0.001 }\n"
        "[patterns.keras_epoch]\nbegin = '^Epoch \\d+/'\nend = 'ms/step'\n",
        quantity("keras_s", "s") + quantity("keras_step_s", "s"),
    ),
    "logs": Style(
        "logs.py",
        "[patterns.step]\nline = 'step (?P<index>\\d+): (?P<log_rate>[\\d.]+) images/s, loss=(?P<log_loss>[\\d.]+)'\n",
        quantity("log_rate", "images/s", "largest") + quantity("log_loss", "1", "last"),
    ),
    "rows": Style(
        "csv_rows.py",
        "[patterns.row]\nline = '^\\d+,(?P<row_s>[\\d.]+)$'\nscale = { row_s = 0.001 }\n",
        quantity("row_s", "s", "largest"),
    ),
    "json_lines": Style(
        "json_lines.py",
        "[patterns.object]\nline = '\"tokens_per_s\": (?P<tokens_per_s>\\d+)'\n",
        quantity("tokens_per_s", "tokens/s"),
    ),
    "processes": Style(
        "processes.py",
        "[patterns.worker]\nline = 'worker \\d: (?P<worker_rate>[\\d.]+)'\n"
        "[patterns.total]\nline = 'total: (?P<total_rate>[\\d.]+)'\n",
        quantity("worker_rate", "items/s") + quantity("total_rate", "items/s"),
    ),
    "no_flush": Style("no_flush.py", "[patterns.part]\nbegin = '^begin'\nend = '^end'\n"),
    "unicode": Style(
        "unicode.py",
        "[patterns.time]\nline = '^処理時間：(?P<unicode_s>[\\d.]+) 秒'\n",
        quantity("unicode_s", "s"),
    ),
    "diverged": Style(
        "diverged.py",
        "[patterns.loss]\nline = 'loss: (?P<diverged_loss>{number})'\n"
        "[patterns.pace]\nline = '(?P<pace>{number})(?P<unit>{unit})'\n",
        quantity("diverged_loss", "1", "last") + quantity("pace", "it/s"),
    ),
    "crash": Style("crash.py", STEP, quantity("crash_s", "s")),
    "memory": Style("crash.py", STEP, quantity("crash_s", "s"), arguments=', "memory"'),
    "segv": Style("crash.py", STEP, quantity("crash_s", "s"), arguments=', "segv"'),
    "endless": Style("endless.py", "[patterns.n]\nline = 'never (?P<n>\\d+)'\n", quantity("n", "1"), timeout_s=4.0),
    "unmatched": Style(
        "logs.py",
        "[patterns.step]\nline = 'step \\d+: (?P<log_rate>[\\d.]+) pictures'\n",
        quantity("log_rate", "images/s", "largest"),
    ),
    "slow": Style("endless.py", "[patterns.slow]\nline = '(?P<n>(x+x+)+)y'\n", quantity("n", "1")),
    "no_number": Style("json_lines.py", '[patterns.note]\nline = \'"note": "(?P<n>.*)\'\n', quantity("n", "1")),
}


def suite_of(style: Style) -> str:
    digest = hashlib.sha256((SCRIPTS / style.script).read_bytes()).hexdigest()
    return f"""
title = "{style.script}"
workload = "script"
[experiment]
script = "{style.script}"
sha256 = "{digest}"
command = ["python", "{{script}}"{style.arguments}]
{style.patterns}
{style.quantities}
[profiles.quick]
timeout_s = {style.timeout_s}
[[groups]]
axes = {{ protocol = "literal" }}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose suites are these scripts, after a run and its report."""
    root = checkout(tmp_path_factory.mktemp("scripts"), "ok")
    (root / "suites" / "bench.toml").unlink()
    for name, style in STYLES.items():
        shutil.copy(SCRIPTS / style.script, root / "suites")
        (root / "suites" / f"{name}.toml").write_text(suite_of(style), encoding="utf-8")
    asked = ("--env", "host", "--within", "none", "--name", "styles", "--out", "styles")
    done = invoke(root, "run-suite", "report", *asked)
    assert done.returncode == 3, done.stdout + done.stderr
    return root


def table(root: Path, name: str) -> list[dict[str, str]]:
    return table_of(root / "reports" / "out" / "styles", name)


def trial(root: Path, suite: str) -> dict[str, str]:
    (row,) = [row for row in table(root, "trials") if row["suite"] == suite]
    return row


def estimates(root: Path, suite: str) -> dict[str, tuple[float, str]]:
    rows = [row for row in table(root, "estimates") if row["suite"] == suite]
    return {row["quantity"]: (float(row["value"]), row["unit"]) for row in rows}


def events(root: Path, suite: str, name: str) -> list[float]:
    """The values of a metric of a trial, in their order."""
    (run,) = (root / "results").glob("*-styles")
    (path,) = (run / "trials").glob(f"{suite}-*/metrics.csv")
    with path.open(encoding="utf-8") as file:
        return [float(row["value"]) for row in csv.DictReader(file) if row["name"] == name]


def log(root: Path, suite: str) -> bytes:
    (run,) = (root / "results").glob("*-styles")
    (path,) = (run / "trials").glob(f"{suite}-*/log.txt.gz")
    return gzip.decompress(path.read_bytes())


@pytest.mark.long
def test_a_bar_counts_by_the_last_state_of_each_epoch(ran: Path) -> None:
    assert trial(ran, "bars")["status"] == "ok", trial(ran, "bars")["reason"]
    assert events(ran, "bars", "bar_rate") == [110.0, 110.0]
    assert estimates(ran, "bars")["bar_rate"] == (110.0, "it/s")


def test_progress_that_erases_itself_is_read_and_scaled_and_the_time_between_lines_is_measured(ran: Path) -> None:
    assert trial(ran, "keras")["status"] == "ok", trial(ran, "keras")["reason"]
    found = estimates(ran, "keras")
    assert found["keras_s"] == (2.0, "s")
    assert found["keras_step_s"] == (pytest.approx(0.011), "s")
    # The script sleeps 0.04 s; a reader that the system wakes late sees the first of the two lines late.
    assert 0.02 <= found["keras_epoch_s"][0] < 1.0


def test_log_lines_on_stderr_are_read(ran: Path) -> None:
    assert trial(ran, "logs")["status"] == "ok", trial(ran, "logs")["reason"]
    assert estimates(ran, "logs")["log_rate"] == (1004.0, "images/s")
    assert estimates(ran, "logs")["log_loss"] == (0.2, "1")


def test_the_wall_time_between_lines_and_of_the_whole_script_stands_beside_what_it_printed(ran: Path) -> None:
    found = estimates(ran, "logs")
    # The script sleeps 0.02 s between lines; a reader that the system wakes late sees the first line late.
    assert 0.01 <= found["between_step_s"][0] < 0.5
    assert 0.1 <= found["script_s"][0] < 20
    assert found["script_s"][0] > 4 * found["between_step_s"][0]


def test_rows_and_json_lines_are_read(ran: Path) -> None:
    assert events(ran, "rows", "row_s") == pytest.approx([0.01, 0.02, 0.04])
    assert estimates(ran, "json_lines")["tokens_per_s"] == (2001.0, "tokens/s")


def test_lines_of_several_processes_are_read_and_a_process_left_behind_does_not_hold_the_trial(ran: Path) -> None:
    assert trial(ran, "processes")["status"] == "ok", trial(ran, "processes")["reason"]
    assert sorted(events(ran, "processes", "worker_rate")) == [10.0, 20.0, 30.0]
    assert estimates(ran, "processes")["total_rate"] == (60.0, "items/s")
    assert float(trial(ran, "processes")["duration_s"]) < 30
    # Without the second in which the pipes are still read.
    assert estimates(ran, "processes")["script_s"][0] < 0.9


def test_lines_that_are_not_flushed_arrive_when_they_are_printed(ran: Path) -> None:
    assert 0.1 <= estimates(ran, "no_flush")["part_s"][0] < 0.4


def test_text_of_any_script_is_read_without_its_colours_and_can_forge_no_event(ran: Path) -> None:
    assert trial(ran, "unicode")["status"] == "ok", trial(ran, "unicode")["reason"]
    assert events(ran, "unicode", "unicode_s") == [1.25, 1.75]
    assert b'"event":"finished"' in log(ran, "unicode")
    assert trial(ran, "unicode")["events_garbled"] == "0"


def test_a_metric_that_became_nan_has_no_value_and_is_said_beside_the_status_and_above_the_numbers(ran: Path) -> None:
    said = "diverged_loss is nan in 3 of 4 lines, first in its line 2: it has no value here"
    assert (trial(ran, "diverged")["status"], trial(ran, "diverged")["reason"]) == ("ok", said)
    assert "diverged_loss" not in estimates(ran, "diverged")
    page = markdown_of(ran / "reports" / "out" / "styles")
    assert f"1 of 1 trials: {said}." in page.replace("\\_", "_")


def test_a_bar_that_changes_its_unit_is_read_in_all_its_states(ran: Path) -> None:
    assert events(ran, "diverged", "pace") == [0.8] * 4


def test_a_crash_in_the_middle_fails_with_its_exception_and_keeps_what_was_printed(ran: Path) -> None:
    row = trial(ran, "crash")
    assert row["status"] == "failed"
    assert row["reason"] == (
        "ScriptFailed: the script ended with exit code 1: ValueError: shapes (3,) and (4,) do not fit"
    )
    assert events(ran, "crash", "crash_s") == [0.5, 0.6]
    assert "crash_s" not in estimates(ran, "crash")


def test_a_traceback_without_memory_and_a_signal_are_told_apart(ran: Path) -> None:
    assert trial(ran, "memory")["status"] == "out_of_memory"
    assert "CUDA out of memory. Tried to allocate 2.00 GiB" in trial(ran, "memory")["reason"]
    assert trial(ran, "segv")["status"] == "failed"
    assert "the script was ended by SIGSEGV: " in trial(ran, "segv")["reason"]


def test_endless_output_ends_at_the_time_limit_with_a_bounded_log(ran: Path) -> None:
    assert trial(ran, "endless")["status"] == "timeout"
    assert len(log(ran, "endless")) < 64 << 20


def test_a_pattern_that_never_matched_shows_the_nearest_line_and_the_first_lines(ran: Path) -> None:
    row = trial(ran, "unmatched")
    assert row["status"] == "failed"
    assert row["reason"].startswith("NeverMatched: pattern 'step' (step ")
    assert "matched none of 5 lines; nearest: " in row["reason"]
    assert "INFO train: step 0: 1000.0 images/s, loss=1.000 | " in row["reason"]


def test_a_pattern_that_takes_too_long_ends_the_trial_instead_of_hanging(ran: Path) -> None:
    row = trial(ran, "slow")
    assert row["status"] == "failed"
    assert row["reason"].startswith("TooSlow: pattern 'slow' took more than 0.5 s for a line of 2000 characters: ")
    assert float(row["duration_s"]) < 30


def test_a_text_that_is_no_number_is_an_error(ran: Path) -> None:
    assert trial(ran, "no_number")["reason"].startswith("NotANumber: pattern 'note': group 'n' found ")


def test_the_report_says_wherever_numbers_stand_that_the_script_printed_them(ran: Path) -> None:
    page = markdown_of(ran / "reports" / "out" / "styles")
    assert r"log\_rate, as printed by the script" in page
    assert "whole script, wall time" in page
    assert page.count("is unknown") >= len([row for row in table(ran, "trials") if row["status"] == "ok"])


def test_a_run_records_the_script_and_the_command_that_ran(ran: Path) -> None:
    (run,) = (ran / "results").glob("*-styles")
    (folder,) = (run / "trials").glob("logs-*")
    record = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256((SCRIPTS / "logs.py").read_bytes()).hexdigest()
    code = json.loads((run / "records" / f"{record['workload_record']}.json").read_text(encoding="utf-8"))
    assert code["files"]["../logs.py"] == digest
    asked = json.loads(record["command"][2])["script"]
    assert asked["files"] == [{"path": "logs.py", "sha256": digest, "file": "logs.py"}]
    assert asked["command"] == ["python", "logs.py"]
