"""Runs of misbehaving workloads, as real child processes: every trial a row with a reason, nothing measured lost."""

import csv
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.bench import BEHAVIOURS, REAL, make_checkout
from tests.reports import make_report
from tests.synthetic_run import SyntheticRun, run_record
from tests.words import WORDS
from tsuishi.artifacts.datasets import DataSet
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.plan.choice import Choice
from tsuishi.plan.planning import measurable, plan_builds_only
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial, plan_trials
from tsuishi.results import directory, trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.run.executor import RunStopped
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.run.runner import Runner, seed_of
from tsuishi.run.trial_files import LOG_BEGIN_BYTES, LOG_END_BYTES
from tsuishi.specs.statuses import is_finding

SMALL = b"not really images"
DATA_SET = DataSet("a small set", "small.tar.gz", (), len(SMALL), hashlib.sha256(SMALL).hexdigest())


def session(root: Path, **settings: Any) -> Session:
    given = {"cache": root / "cache", "results": root / "results", "host_python": sys.executable, **settings}
    return Session(Settings(**given), Choice(environments=("host",)), Screen(), Checkout(root), DATA_SET)


def trials(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """The trial.json of the latest attempt of each behaviour."""
    found = {}
    for _, trial in run.finished():
        found[BEHAVIOURS[run.case(trial.case_record)["devices"] - 1]] = trial.content()
    return found


def log_of(run: RunDirectory, trial: dict[str, Any]) -> bytes:
    return gzip.decompress((run.trials / trial["trial_id"] / "log.txt.gz").read_bytes())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """One run of everything that ends by itself."""
    root = tmp_path_factory.mktemp("run")
    ends = ("ok", "unsupported", "skipped", "out_of_memory", "raises", "dies", "leaves", "leaves_a_word", "garbage")
    make_checkout(root, *ends, "half_an_event", "binary")
    return run_suite(session(root))


def test_a_workload_that_finishes_is_ok_with_all_it_said(run: RunDirectory) -> None:
    trial = trials(run)["ok"]
    assert (trial["status"], trial["reason"], trial["exit_code"]) == ("ok", "", 0)
    assert trial["framework"] == "none 1"
    assert trial["device"] == "cpu"
    rows = list(csv.DictReader((run.trials / trial["trial_id"] / "samples.csv").open()))
    assert [row["seconds"] for row in rows] == ["0.5"] * 3
    assert [phase["name"] for phase in trial["phases"]] == ["measure"]
    assert trial["phases"][0]["begin_s"] < trial["phases"][0]["end_s"] <= trial["duration_s"]
    metrics = (run.trials / trial["trial_id"] / "metrics.csv").read_text()
    assert metrics == "name,value,unit\nanswer,42,1\n"


@pytest.mark.parametrize(
    ("behaviour", "status", "reason"),
    [
        ("unsupported", "unsupported", "Unsupported: this case cannot exist here"),
        ("skipped", "skipped", "100 epochs would take 3e+04 s"),
        ("out_of_memory", "out_of_memory", "MemoryError: batch 2048 did not fit"),
        ("raises", "failed", "KeyError: 'a bug'"),
        (
            "dies",
            "failed",
            "it ended without saying it had finished: ended by SIGSEGV (a crash in native code); its log ends: "
            'File "suites/workloads/run.py", line N in <module>',
        ),
        ("leaves", "failed", "it ended without saying it had finished: exit code 0; its log ends: doing leaves"),
        (
            "leaves_a_word",
            "failed",
            "it ended without saying it had finished: exit code 3; its log ends: "
            "ModuleNotFoundError: No module named 'nowhere'",
        ),
        (
            "half_an_event",
            "failed",
            'it ended without saying it had finished: exit code 0; its log ends: {"event":"finished","seq":',
        ),
    ],
)
def test_what_goes_wrong_is_a_row_with_a_reason(run: RunDirectory, behaviour: str, status: str, reason: str) -> None:
    trial = trials(run)[behaviour]
    said = re.sub(r"line \d+", "line N", trial["reason"].replace(f"{run.path.parents[1]}/", ""))
    assert (trial["status"], said) == (status, reason)


def test_what_was_forced_says_so_in_its_row(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok")
    work = session(tmp_path)
    why = "RTX 4090 is compute capability 8.9 (Ada); it holds code for 3.5 to 7.0"
    ready = work.build(plan_builds_only(work).environments)
    planned = [
        trial.model_copy(update={"forced": why})
        for trial in plan_trials(measurable(work, [one.environment for one in ready.values()], {}), 0)
    ]
    run = RunDirectory.create(tmp_path / "results" / "1", run_record("1"))
    Runner(work, run, ready, Nobody()).run(planned, [planned])
    (row,) = csv.DictReader((run.path / "trials.csv").open())
    assert (row["status"], row["forced"]) == ("ok", why)


@pytest.mark.long
def test_each_repetition_has_a_recorded_seed_that_its_cases_share_and_the_plan_has_not(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "garbage")
    work = session(tmp_path)
    ready = work.build(plan_builds_only(work).environments)
    first = plan_trials(measurable(work, [one.environment for one in ready.values()], {}), 0)
    planned = [trial.renamed(trial.id.repeated(repetition)) for trial in first for repetition in (1, 2, 3)]
    run = RunDirectory.create(tmp_path / "results" / "1", run_record("1", drawn="0123456789abcdef"))
    Runner(work, run, ready, Nobody()).run(planned, [planned])
    records = [record for _, record in run.finished()]
    assert [int(json.loads((record.command or [])[-1])["settings"]["seed"]) for record in records] == [
        (record.settings or {})["seed"] for record in records
    ]
    seeds = {(record.repetition, (record.settings or {})["seed"]) for record in records}
    assert (len(records), sorted(repetition for repetition, _ in seeds)) == (6, [1, 2, 3])
    assert len({seed for _, seed in seeds}) == 3
    assert {trial.settings["seed"] for trial in planned} == {0}


@pytest.mark.long
def test_runs_with_the_same_seed_share_no_seed_of_a_trial_and_a_resumed_run_keeps_its_own(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "raises")
    work = replace(session(tmp_path), choice=Choice(environments=("host",), seed=7, repetitions=2))
    before = [run_suite(work, name) for name in ("a", "b")]
    found = [{trial["settings"]["seed"] for trial in trials(run).values()} for run in before]
    assert not {*found[0]} & {*found[1]}
    after = resume(session(tmp_path), before[0].id)
    seeds = {(trial.repetition, (trial.settings or {})["seed"]) for _, trial in after.finished()}
    assert {trial.attempt for _, trial in after.finished()} == {1, 2}
    assert (len(seeds), {seed for _, seed in seeds} >= found[0]) == (2, True)


def test_a_seed_is_a_stable_number_of_31_bits_of_what_its_run_drew_its_suite_says_and_its_repetition(
    tmp_path: Path,
) -> None:
    make_checkout(tmp_path, "ok")
    work = session(tmp_path)
    ready = work.build(plan_builds_only(work).environments)
    (first,) = plan_trials(measurable(work, [one.environment for one in ready.values()], {}), 0)
    drawn = "0123456789abcdef"
    digest = hashlib.sha256(b'["0123456789abcdef",0,1]').hexdigest()
    assert seed_of(first, drawn) == int(digest[:8], 16) >> 1
    of_suite = first.model_copy(update={"settings": {**first.settings, "seed": 1}})
    others = (
        seed_of(of_suite, drawn),
        seed_of(first.renamed(first.id.repeated(2)), drawn),
        seed_of(first, drawn[::-1]),
    )
    assert len({seed_of(first, drawn), *others}) == 4
    many = [seed_of(first.renamed(first.id.repeated(repetition)), drawn) for repetition in range(1, 200)]
    assert 0 <= min(many) < max(many) < 1 << 31


def test_a_run_that_an_earlier_tsuishi_made_takes_its_id_for_the_number_it_did_not_draw() -> None:
    assert run_record("20260101-000000-quick").seeds_from == "20260101-000000-quick"
    assert run_record("r", drawn="0123456789abcdef").seeds_from == "0123456789abcdef"


class Nobody:
    """Watches a run and says nothing."""

    def waits(self, why: str) -> None: ...
    def trial_begins(self, trial: PlannedTrial, attempt: int) -> None: ...
    def phase(self, name: str) -> None: ...
    def trial_ends(self, trial: PlannedTrial, status: str, reason: str, duration_s: float) -> None: ...


class Listening(Nobody):
    """Keeps the lines for the user."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def waits(self, why: str) -> None:
        self.lines.append(why)


@pytest.mark.long
def test_programs_beside_a_run_are_said_once_and_in_its_report_at_the_top_and_in_each_case(tmp_path: Path) -> None:
    """Each core has a busy program; the trials themselves compute too, which is not said of them."""
    make_checkout(tmp_path, "computes")
    work, heard = session(tmp_path), Listening()
    ready = work.build(plan_builds_only(work).environments)
    (first,) = plan_trials(measurable(work, [one.environment for one in ready.values()], {}), 0)
    run = RunDirectory.create(tmp_path / "results" / "1", run_record("1"))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        planned = [first.renamed(first.id.repeated(repetition)) for repetition in (1, 2)]
        Runner(work, run, ready, heard).run(planned, [planned])
    finally:
        for program in busy:
            program.kill()
            program.wait()
    shares = [record.others_cpu_percent or 0 for _, record in run.finished()]
    assert len(shares) == 2
    assert all(30 < share <= 101 for share in shares)
    (line,) = heard.lines
    assert re.fullmatch(
        r"other programs took \d+ % of the cores beside \S+\.r1\.a1: times may be longer: end them; .*", line
    )
    make_report([run], tmp_path / "reports" / "published", REAL.templates, tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "In 2 of 2 trials other programs took more than 5 % of the cores" in text
    assert f"n = 2; others took {max(shares):.0f} %" in text


def test_garbage_among_the_events_is_counted_and_logged_and_spoils_nothing(run: RunDirectory) -> None:
    trial = trials(run)["garbage"]
    assert trial["status"] == "ok"
    assert trial["events_garbled"] == 3
    assert b'{"event":"nonsense"' in log_of(run, trial)
    assert b"\xff\xfenot text" in log_of(run, trial)


def test_half_an_event_keeps_the_samples_before_it(run: RunDirectory) -> None:
    trial = trials(run)["half_an_event"]
    assert trial["events_garbled"] == 1
    assert len((run.trials / trial["trial_id"] / "samples.csv").read_text().splitlines()) == 4


def test_four_mebibytes_of_noise_do_not_hide_the_events(run: RunDirectory) -> None:
    trial = trials(run)["binary"]
    assert trial["status"] == "ok"
    assert len(log_of(run, trial)) > 4_100_000 - 64 * 2000


def test_the_tables_hold_every_trial_and_can_be_made_again(run: RunDirectory) -> None:
    rows = list(csv.DictReader((run.path / "trials.csv").open()))
    assert Counter(row["status"] for row in rows) == {
        "ok": 3,
        "failed": 5,
        "unsupported": 1,
        "skipped": 1,
        "out_of_memory": 1,
    }
    before = {path.name: path.read_bytes() for path in run.path.glob("*.csv")}
    run.gather(WORDS)
    assert {path.name: path.read_bytes() for path in run.path.glob("*.csv")} == before


def test_a_result_names_neither_this_machine_nor_its_user(run: RunDirectory) -> None:
    secrets = {os.uname().nodename, str(Path.home()), str(run.path.parent)}
    for path in run.path.rglob("*.json"):
        text = path.read_text()
        assert not [secret for secret in secrets if secret in text], path


def test_a_workload_over_its_time_is_stopped_with_its_samples_kept(tmp_path: Path) -> None:
    make_checkout(tmp_path, "sleeps", "ok", profile="timeout_s = 2.0")
    run = run_suite(session(tmp_path))
    trial = trials(run)["sleeps"]
    assert (trial["status"], trial["reason"]) == ("timeout", "stopped after 2 s; allow more with --timeout")
    assert trial["phases"][0]["end_s"] is None
    assert (run.trials / trial["trial_id"] / "samples.csv").read_text().count("\n") == 2
    assert trials(run)["ok"]["status"] == "ok"


@pytest.mark.long
@pytest.mark.parametrize("behaviour", ["flood", "pours"], ids=["1 GiB", "5 GiB"])
def test_gigabytes_of_output_grow_neither_the_runner_nor_the_disk(tmp_path: Path, behaviour: str) -> None:
    make_checkout(tmp_path, behaviour)
    child = runner_process(tmp_path)
    peak = 0
    process = psutil.Process(child.pid)
    while child.poll() is None:
        try:
            peak = max(peak, process.memory_info().rss)
        except psutil.Error:
            break
        time.sleep(0.05)
    assert child.wait() == 0, child.stdout and child.stdout.read()
    assert peak < 200 << 20
    run = directory.open_run(tmp_path / "results")
    trial = trials(run)[behaviour]
    assert trial["status"] == "ok"
    size = 0
    with gzip.open(run.trials / trial["trial_id"] / "log.txt.gz") as log:
        while chunk := log.read(1 << 24):
            size += len(chunk)
    kept = LOG_BEGIN_BYTES + LOG_END_BYTES
    assert kept < size < kept + 100


def runner_process(root: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A runner of its own, to be killed: `python -m tests.run_bench ROOT`."""
    command = [sys.executable, "-m", "tests.run_bench", str(root), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(condition: Any, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def samples_written(root: Path, behaviour: str = "") -> list[Path]:
    """The samples of trials that run now; behaviour: of this workload."""
    of = f"-d{BEHAVIOURS.index(behaviour) + 1}-*" if behaviour else ""
    written = root.glob(f"results/*/trials/.partial-*{of}/samples.csv")
    return [path for path in written if path.read_text().count("\n") > 1]


@pytest.mark.long
@pytest.mark.parametrize("stops_workload", [True, False])
def test_a_trial_that_stood_still_does_not_count_and_is_measured_again(tmp_path: Path, *, stops_workload: bool) -> None:
    """As a frozen control group or a suspended machine does with all processes, and `kill -STOP` with the runner."""
    make_checkout(tmp_path, "takes_its_time")
    runner = runner_process(tmp_path)
    wait_for(lambda: samples_written(tmp_path))
    process = psutil.Process(runner.pid)
    family = [process, *(process.children(recursive=True) if stops_workload else [])]
    for one in family:
        one.suspend()
    time.sleep(3.0)
    for one in family:
        one.resume()
    said, _ = runner.communicate()
    assert runner.returncode == 0, said
    run = directory.open_run(tmp_path / "results")
    first, second = (trial for _, trial in run.finished())
    reason = "this process or its trial stood still for [34] s in measure "
    assert re.fullmatch(reason + r"\(stopped, frozen or suspended\): its times do not count", first.reason or "")
    assert (first.attempt, first.status, second.attempt, second.status) == (1, "interrupted", 2, "ok")
    assert re.search(reason, said)
    (folder,) = (path for path, trial in run.finished() if trial.status == "ok")
    rows = csv.DictReader((folder / "samples.csv").open())
    assert max(float(row["seconds"]) for row in rows) < 1.0


def test_a_killed_run_resumes_where_it_stopped_and_repeats_nothing(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "short_sleep", "sleeps", "unsupported", profile="timeout_s = 4.0")
    child = runner_process(tmp_path)
    wait_for(lambda: samples_written(tmp_path, "sleeps"))
    children = psutil.Process(child.pid).children(recursive=True)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive, "an orphan would disturb every later trial"
    run = directory.open_run(tmp_path / "results")
    finished_before = {trial.trial_id: (path / "trial.json").stat().st_mtime_ns for path, trial in run.finished()}
    resumed = resume(session(tmp_path))
    assert resumed.id == run.id
    after = {trial.trial_id: trial.content() for _, trial in resumed.finished()}
    for trial_id, changed in finished_before.items():
        assert (run.trials / trial_id / "trial.json").stat().st_mtime_ns == changed
    killed = [trial for trial in after.values() if trial["status"] == "interrupted"]
    assert [trial["reason"] for trial in killed] == ["the runner was killed during this trial"]
    assert (run.trials / killed[0]["trial_id"] / "samples.csv").read_text().count("\n") == 2
    latest = trials(resumed)
    assert {name: trial["status"] for name, trial in latest.items()} == {
        "ok": "ok",
        "short_sleep": "ok",
        "sleeps": "timeout",
        "unsupported": "unsupported",
    }
    assert latest["sleeps"]["attempt"] == 2
    assert Counter(trial["attempt"] for trial in after.values()) == {1: 4, 2: 1}
    assert not list(trial_folders.left_behind(resumed.trials))


SECRET = "hunter2"


def test_a_workload_gets_none_of_the_users_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_checkout(tmp_path, "tells_its_variables")
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HF_TOKEN", "SSH_AUTH_SOCK", "HTTPS_PROXY"):
        monkeypatch.setenv(name, SECRET)
    run = run_suite(session(tmp_path))
    (trial,) = trials(run).values()
    log = log_of(run, trial).decode()
    assert "variable HOME /tmp" in log
    assert SECRET not in log


@pytest.mark.long
def test_a_secret_in_a_reason_or_a_fact_is_told_nowhere(tmp_path: Path) -> None:
    make_checkout(tmp_path, "leaks")
    run = run_suite(session(tmp_path))
    (trial,) = trials(run).values()
    assert trial["reason"] == (
        "ValueError: https://proxy.example:3128 refused AWS_SECRET_ACCESS_KEY=[redacted], "
        "Authorization: Bearer [redacted]"
    )
    flags = trial["reported"]["flags"]
    assert {name: flags[name] for name in ("proxy", "HF_TOKEN=[redacted]")} == {
        "proxy": "https://proxy.example:3128",
        "HF_TOKEN=[redacted]": 1,
    }
    index = make_report([run], REAL.published, REAL.templates, tmp_path / "out")
    told = [
        path for path in (*run.path.rglob("*"), *index.parent.rglob("*")) if path.suffix != ".gz" and path.is_file()
    ]
    assert len(told) > 10
    assert not [path for path in told if SECRET in path.read_text(errors="replace")]


def daemons(root: Path) -> list[psutil.Process]:
    """What start_daemon of the workloads of this checkout has started."""
    named = f"daemon of {root / 'suites' / 'workloads' / 'experiments'}"
    return [process for process in psutil.process_iter(["cmdline"]) if named in (process.info["cmdline"] or ())]


KILLED_BEFORE_A_TRIAL_HAS_ITS_NAME = """
import os, signal, sys
from pathlib import Path
from tests.run.test_runner import session
from tsuishi.run.new_run import run_suite
rename = Path.rename
def killed(self, target):
    if self.name.startswith(".partial-"):
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
Path.rename = killed
run_suite(session(Path(sys.argv[1])))
"""


@pytest.mark.long
def test_a_trial_that_stood_whole_when_its_runner_was_killed_is_not_measured_again(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "skipped")
    command = [sys.executable, "-c", KILLED_BEFORE_A_TRIAL_HAS_ITS_NAME, str(tmp_path)]
    assert subprocess.run(command, check=False, cwd=Path(__file__).parents[2]).returncode == -signal.SIGKILL
    (whole,) = tmp_path.glob("results/*/trials/.partial-*/trial.json")
    before = {path.name: path.read_bytes() for path in whole.parent.iterdir()}
    run = resume(session(tmp_path))
    final = whole.parent.with_name(whole.parent.name.removeprefix(".partial-"))
    assert {path.name: path.read_bytes() for path in final.iterdir()} == before
    assert [trial.attempt for _, trial in run.finished()] == [1, 1]


@pytest.mark.long
def test_resuming_a_finished_run_does_nothing(run: RunDirectory) -> None:
    root = run.path.parent.parent
    failed = {trial.trial_id for _, trial in run.finished() if not is_finding(trial.status)}
    count = len(list(run.finished()))
    resume(session(root), run.id)
    assert len(list(run.finished())) == count + len(failed)


@pytest.mark.long
def test_a_resumed_run_counts_on_from_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_checkout(tmp_path, "ok", "raises", "unsupported", "leaves")
    run_suite(session(tmp_path))
    capsys.readouterr()
    resume(session(tmp_path))
    printed = capsys.readouterr().out
    assert [line.partition("]")[0] for line in printed.splitlines() if line.startswith("[")] == ["[3/4", "[4/4"]
    assert ": 2 trials, about " in printed


@pytest.mark.long
def test_a_trial_that_a_report_excludes_is_measured_again_and_then_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_checkout(tmp_path, "ok", "skipped")
    workload = tmp_path / "suites" / "workloads" / "experiments" / "behave.py"
    right = workload.read_text()
    measures = 'emitter.metric("answer", 42, "1")\n'
    workload.write_text(right.replace(measures, f'{measures}    emitter.metric("compile_s", 1958, "ms")\n'))
    run = run_suite(session(tmp_path))
    (excluded,) = read_runs([run], WORDS).excluded
    assert trials(run)["ok"]["status"] == "ok"
    workload.write_text(right)
    capsys.readouterr()
    resume(session(tmp_path))
    assert (
        f"measured again: {excluded.trial_id}, as trials/{excluded.trial_id}/metrics.csv cannot be right: row 2: "
        "metric compile_s is in ms, and its quantity in s\n"
    ) in capsys.readouterr().out
    attempts = sorted((trial.status, trial.attempt) for _, trial in run.finished())
    assert attempts == [("ok", 1), ("ok", 2), ("skipped", 1)]
    results = read_runs([run], WORDS)
    assert results.excluded == []
    assert sorted(results.counting["status"]) == ["ok", "skipped"]
    superseded = results.trials.set_index("trial_id").loc[excluded.trial_id]
    assert (superseded["status"], superseded["reason"]) == (
        "excluded",
        "excluded, and measured again by a later attempt",
    )
    resume(session(tmp_path))
    assert len(list(run.finished())) == len(attempts)


@pytest.mark.long
def test_a_run_with_an_altered_table_is_resumed_once_its_trial_is_removed(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "raises")
    run = run_suite(session(tmp_path))
    table = run.trials / trials(run)["ok"]["trial_id"] / "metrics.csv"
    table.write_text("altered")
    with pytest.raises(UserError, match=f"{table.parent.name}/metrics.csv: restore what was altered, or remove"):
        resume(session(tmp_path))
    assert len(run.finished_folders()) == 2
    shutil.rmtree(table.parent)
    resume(session(tmp_path))
    assert {name: trial["attempt"] for name, trial in trials(run).items()} == {"ok": 1, "raises": 2}


def metrics(run: RunDirectory, trial: dict[str, Any]) -> dict[str, float]:
    rows = csv.DictReader((run.trials / trial["trial_id"] / "metrics.csv").open())
    return {row["name"]: float(row["value"]) for row in rows}


def test_a_workload_is_told_its_budget_and_that_there_are_no_data(tmp_path: Path) -> None:
    make_checkout(tmp_path, "tells_what_was_asked", profile="timeout_s = 77.0")
    run = run_suite(session(tmp_path))
    trial = trials(run)["tells_what_was_asked"]
    assert metrics(run, trial) == {"budget_s": 77, "data_bytes": -1}
    assert "data" not in trial


@pytest.mark.long
def test_data_given_reach_the_workload_and_are_recorded_without_their_path(tmp_path: Path) -> None:
    make_checkout(tmp_path, "tells_what_was_asked", "raises")
    data = tmp_path / "of-ada" / "mine.tgz"
    data.parent.mkdir()
    data.write_bytes(SMALL)
    run = run_suite(session(tmp_path, data=data))
    trial = trials(run)["tells_what_was_asked"]
    assert metrics(run, trial)["data_bytes"] == len(SMALL)
    recorded = {"file": "small.tar.gz", "sha256": DATA_SET.sha256}
    assert trial["data"] == recorded
    assert json.loads(trial["command"][2])["data"] == recorded
    assert (run.run().content()["data"], run.run().content()["arguments"]["data"]) == (recorded, "small.tar.gz")
    for path in run.path.rglob("*.json"):
        assert "of-ada" not in path.read_text(), path
    told = rf"^run {run.id} began with small.tar.gz \(sha256 {DATA_SET.sha256[:12]}…\), which is not at hand: get it"
    with pytest.raises(UserError, match=told):
        resume(session(tmp_path))
    again = resume(session(tmp_path, data=data))
    assert trials(again)["raises"]["attempt"] == 2


def test_a_case_of_made_up_images_gets_no_data_set(tmp_path: Path) -> None:
    suite = make_checkout(tmp_path, "tells_what_was_asked").suites / "bench.toml"
    suite.write_text(suite.read_text().replace('"steady", ', '"steady", data_set = ["at_hand", "made_up"], '))
    (data := tmp_path / "mine.tgz").write_bytes(SMALL)
    run = run_suite(session(tmp_path, data=data))
    given = {
        run.case(trial.case_record).get("data_set", "at_hand"): metrics(run, trial.content())["data_bytes"]
        for _, trial in run.finished()
    }
    assert given == {"at_hand": len(SMALL), "made_up": -1}


@pytest.mark.long
def test_fetched_data_are_taken_and_a_run_without_any_stays_so(tmp_path: Path) -> None:
    make_checkout(tmp_path, "tells_what_was_asked", "raises")
    without = run_suite(session(tmp_path))
    (tmp_path / "cache" / "data").mkdir()
    (tmp_path / "cache" / "data" / DATA_SET.file).write_bytes(SMALL)
    resume(session(tmp_path), without.id)
    assert "data" not in trials(without)["raises"]
    run = run_suite(session(tmp_path), "with")
    assert metrics(run, trials(run)["tells_what_was_asked"])["data_bytes"] == len(SMALL)
    assert run.run().content()["arguments"]["data"] == ""


def test_altered_data_are_refused_before_anything_is_run(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok")
    (tmp_path / DATA_SET.file).write_bytes(b"altered")
    with pytest.raises(UserError, match=r"is not a small set: its sha256 is .*; give another --data$"):
        run_suite(session(tmp_path, data=tmp_path))
    assert not (tmp_path / "results").exists()


@pytest.mark.long
def test_resuming_with_more_time_gives_the_trials_more_time(tmp_path: Path) -> None:
    make_checkout(tmp_path, "short_sleep", profile="timeout_s = 1.0")
    first = run_suite(session(tmp_path))
    assert trials(first)["short_sleep"]["status"] == "timeout"
    longer = replace(session(tmp_path), choice=Choice(timeout_s=30))
    again = resume(longer)
    assert (trials(again)["short_sleep"]["status"], trials(again)["short_sleep"]["attempt"]) == ("ok", 2)


@pytest.mark.long
def test_resuming_in_another_environment_is_refused(tmp_path: Path) -> None:
    make_checkout(tmp_path, "raises")
    run = run_suite(session(tmp_path))
    probe = tmp_path / "suites" / "workloads" / "experiments" / "probe.py"
    probe.write_text(
        probe.read_text().replace("emitter.environment(", 'emitter.environment(packages={"new": "1"}, ', 1)
    )
    told = rf"host is not what run {run.id} began with \(host:\w+, then host:\w+\): give the same"
    with pytest.raises(UserError, match=told):
        resume(session(tmp_path))


def test_ctrl_c_records_the_trial_at_hand_and_keeps_the_others(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "sleeps")
    child = runner_process(tmp_path)
    sleeps = f"-d{BEHAVIOURS.index('sleeps') + 1}-"
    wait_for(lambda: any(sleeps in path.parent.name for path in samples_written(tmp_path)))
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=30)
    assert child.returncode == 130, output
    run = directory.open_run(tmp_path / "results")
    trial = trials(run)["sleeps"]
    assert (trial["status"], trial["reason"]) == ("interrupted", "Ctrl-C")
    assert (run.path / "trials.csv").exists()


def test_a_run_that_had_to_stop_names_the_command_that_goes_on(tmp_path: Path) -> None:
    made: dict[str, dict[str, Any]] = {
        "run": {},
        "check": {"task": "check"},
        "search": {"task": "find"},
    }
    runs = [SyntheticRun(tmp_path / name, **record).finish() for name, record in made.items()]
    assert [str(RunStopped(run, "free some room")) for run in runs] == [
        "free some room, then go on with `invoke run-suite --resume run`; what was measured is kept",
        "free some room, then give the same command again; what was measured is kept",
        "free some room, then give the same command with `--resume search`; what was measured is kept",
    ]


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "binary", "flood")
    results = tmp_path / "results"
    results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(results)], check=True)
    try:
        with pytest.raises(
            RunStopped, match="No space left on device: free some room, then go on with `invoke run-suite --resume "
        ):
            run_suite(session(tmp_path))
        run = directory.open_run(results)
        kept = [trial.status for _, trial in run.finished()]
        assert kept.count("ok") == len(kept)
        subprocess.run(["mount", "-o", "remount,size=64m", str(results)], check=True)
        resume(session(tmp_path))
        assert {name: trial["status"] for name, trial in trials(run).items()} == {
            "ok": "ok",
            "binary": "ok",
            "flood": "ok",
        }
    finally:
        subprocess.run(["umount", str(results)], check=True)


def test_run_json_holds_the_plan(run: RunDirectory) -> None:
    recorded = json.loads((run.path / "run.json").read_text())
    assert (recorded["schema_version"], recorded["task"]) == (3, "run-suite")
    assert len(recorded["plan"]) == 11
    assert recorded["data"] is None
    assert recorded["arguments"]["env"] == "host"
