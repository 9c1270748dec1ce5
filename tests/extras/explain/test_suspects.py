"""Two runs beside each other: how much slower the second is, and what differs in their records."""

import hashlib
import os
import platform
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.bench import least_environment, make_checkout
from tests.commands.test_tasks import checkout, invoke
from tests.synthetic_run import TORCH, SyntheticRun, add_record, environment, machine, steady_samples, training_case
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.extras.explain import two_runs
from tsuishi.extras.explain.suspects import _differ, beside_trials, suspects
from tsuishi.extras.tables import check
from tsuishi.extras.tables.check import Found
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.suite import read_suite
from tsuishi.verdicts.evidence import Evidence

pytestmark = pytest.mark.runs


def test_of_long_records_each_key_that_differs_is_a_suspect() -> None:
    limits = {f"limit_{number:02}": 1024 for number in range(20)}
    (found,) = _differ("limits", limits, {**limits, "limit_19": 65536}, "set it alike")
    assert found == ("limits: limit_19", "1024", "65536", "set it alike")


def run_of(folder: Path, clock_mhz: int, others: float) -> Evidence:
    """A trial on a GPU with this clock, beside other programs that took so many percent of the cores."""
    made = SyntheticRun(folder)
    phases = [{"name": "measure", "begin_s": 1.0, "end_s": 9.0}]
    at = [{"elapsed_s": tick / 2, "phase": "measure" if 2 <= tick < 18 else ""} for tick in range(20)]
    gpu = {"device": "gpu0", "utilisation_percent": 90, "memory_used_mib": 2048, "power_w": 150}
    ticks = [{**tick, **gpu, "sm_clock_mhz": clock_mhz} for tick in at]
    fields: dict[str, Any] = {"telemetry": ticks, "phases": phases, "others_cpu_percent": others, "duration_s": 10.0}
    made.add(training_case(64), TORCH, steady_samples(64, [0.1] * 8), device="a GPU", **fields)
    return Evidence([made.finish()], (), WORDS)


@pytest.mark.parametrize(
    ("clock_mhz", "others", "named"),
    [
        (1_700, 1.0, []),
        (1_290, 1.0, [("clock of the GPU in measured phases, MHz", "1700", "1290")]),
        (1_700, 42.0, [("cores that other programs took, %", "1", "42")]),
    ],
)
def test_what_telemetry_saw_in_one_run_alone_is_a_suspect(
    tmp_path: Path, clock_mhz: int, others: float, named: list[tuple[str, str, str]]
) -> None:
    one, other = run_of(tmp_path / "one", 1_700, 1.0), run_of(tmp_path / "other", clock_mhz, others)
    found = [*beside_trials(one, other, training_case(64).id, (TORCH, TORCH))]
    assert [suspect[:3] for suspect in found] == named


def test_what_can_be_set_here_stands_with_its_value_in_each_run(tmp_path: Path) -> None:
    found = []
    for name, engine, synthetic in (("one", "docker", False), ("other", "venv", True)):
        made = SyntheticRun(tmp_path / name)
        record = {**environment(TORCH), "engine": engine}
        made.environments[TORCH] = add_record(made.directory, "environment", record)
        made.add(training_case(64), TORCH, steady_samples(64, [0.1] * 8), synthetic=synthetic)
        found.append(Evidence([made.finish()], (), WORDS))
    one, other = found
    case = training_case(64).id
    assert two_runs._data_sets(one, other, case) == ({"data_set": "at_hand"}, {"data_set": "made_up"})
    assert two_runs._data_sets(one, one, case) == ({}, {})

    def how(measured: tuple[str, ...], chosen: tuple[str, str]) -> str:
        found = suspects(one, other, [(TORCH, TORCH)], measured, chosen)
        return next(suspect.how for suspect in found if suspect.what == f"{TORCH}: engine")

    both = f"run-suite --env {TORCH}.docker,{TORCH}.venv"
    assert how((), (TORCH, TORCH)) == f"make both runs with one engine, or run both: {both}"
    assert how(("environment",), (TORCH, TORCH)) == "measured here, with its environment"
    assert how(("environment",), ("tf", "tf")) == how((), (TORCH, TORCH))
    named = {suspect.what: suspect[1:] for suspect in beside_trials(one, other, case, (TORCH, TORCH), ("data_set",))}
    assert named["data set"] == ("at hand", "none: images are made up", "measured here")


def one_trial(folder: Path, machine_facts: dict[str, Any] | None = None, **fields: Any) -> Evidence:
    """The evidence of a run with one trial."""
    made = SyntheticRun(folder)
    made.machine = add_record(made.directory, "machine", {**machine(), **(machine_facts or {})})
    made.add(training_case(64), TORCH, steady_samples(64, [0.1] * 8), **fields)
    return Evidence([made.finish()], (), WORDS)


def rows(one: Evidence, other: Evidence) -> list[tuple[str, str, str]]:
    return [suspect[:3] for suspect in suspects(one, other, [(TORCH, TORCH)], (), (TORCH, TORCH))]


def test_how_trials_were_timed_and_what_they_reported_are_suspects(tmp_path: Path) -> None:
    reported = {"python": "3.6.15", "flags": {"threads": 1, "tf32": False}}
    one = one_trial(tmp_path / "one", settings={"seed": 1, "warm_up_s": 5.0, "block_s": 1.0})
    other = one_trial(tmp_path / "other", settings={"seed": 2, "warm_up_s": 0.0, "block_s": 1.0}, reported=reported)
    assert rows(one, other) == [
        ("timing: multi_gpu_scaling: warm_up_s", "5.0", "0.0"),
        (f"{TORCH}: threads", "2", "1"),
    ]


def test_settings_of_the_machine_and_folders_of_libraries_are_suspects(tmp_path: Path) -> None:
    usual = {"preloaded": {}, "power": "AC", "platform_profile": "performance", "huge_pages_defrag": "madvise"}
    changed = {
        **{"preloaded": {"libjemalloc.so.2": "0123456789ab"}, "power": "battery"},
        **{"platform_profile": "low-power", "huge_pages_defrag": "always"},
    }
    cores = [{"cpu": {**machine()["cpu"], "governor": each}} for each in ("performance", ["performance", "powersave"])]
    found = []
    for name, settings, folders in (("one", {**usual, **cores[0]}, "a"), ("other", {**changed, **cores[1]}, "b")):
        of = one_trial(tmp_path / name, settings)
        for id_, record in of.environment_records.items():
            of.environment_records[id_] = record.model_copy(update={"folders": {"LD_LIBRARY_PATH": folders}})
        found.append(of)
    assert rows(*found) == [
        ("CPU frequency governor", "performance", "performance, powersave"),
        ("transparent huge pages, defragmentation", "madvise", "always"),
        ("libraries of /etc/ld.so.preload: libjemalloc.so.2", "not there", "0123456789ab"),
        ("power supply", "AC", "battery"),
        ("platform profile", "performance", "low-power"),
        (f"{TORCH}: LD_LIBRARY_PATH", "digest a", "digest b"),
    ]


def test_only_variables_that_trials_get_are_suspects(tmp_path: Path) -> None:
    shells = [{"limits": {"variables": {"OMP_NUM_THREADS": threads}}} for threads in ("1", "2")]
    one, other = (one_trial(tmp_path / name, shell) for name, shell in zip("ab", shells, strict=True))
    assert rows(one, other) == []
    for evidence in (one, other):
        (id_,) = (name for name, record in evidence.environment_records.items() if record.name == TORCH)
        record = evidence.environment_records[id_]
        evidence.environment_records[id_] = record.model_copy(update={"variables": ["OMP_NUM_THREADS"]})
    assert rows(one, other) == [("variables of threads and batch systems: OMP_NUM_THREADS", "1", "2")]


@pytest.mark.parametrize("sessions", [1, 3])
def test_the_ratio_of_single_sessions_says_why_it_has_no_interval(tmp_path: Path, sessions: int) -> None:
    began = [{"began_at": f"2026-11-2{day}T08:00:00Z"} for day in range(1, 1 + sessions)]
    found = []
    for name, seconds in (("one", 0.1), ("other", 0.05)):
        made = SyntheticRun(tmp_path / name, sessions=began)
        for day in range(1, 1 + sessions):
            for repetition, factor in enumerate((0.99, 1.0, 1.01), start=1):
                samples = steady_samples(64, [seconds * factor] * 8)
                given: dict[str, Any] = {"attempt": 1, "started_at": f"2026-11-2{day}T08:0{repetition}:00Z"}
                made.add(training_case(64), TORCH, samples, 3 * (day - 1) + repetition, **given)
        found.append(Evidence([made.finish()], (), WORDS))
    one, other = found
    said = two_runs._ratio([*two_runs._shared(one, other, (TORCH, TORCH))], (TORCH, TORCH))
    apart = "no interval: a program differs from day to day, and each run needs 3 days to show by how much"
    begin, end = "the second takes 0.500", f"times as long as the first: one case, {TORCH}"
    assert said == f"{begin} {end}; {apart}" if sessions == 1 else re.fullmatch(rf"{begin} \[.*\] {end}", said)


@pytest.mark.parametrize(
    ("names", "engines"),
    [
        (("tiny", "tiny.venv"), ("docker", "venv")),
        (("tiny", "tiny"), ("venv", "venv")),
        (("tiny", "tiny"), ("apptainer", "venv")),
        (("tiny", "tiny"), (None, "venv")),
        (("tiny", "other"), ("docker", "venv")),
    ],
)
def test_engines_are_measured_where_only_they_differ_and_both_answer_here(
    tmp_path: Path, names: tuple[str, str], engines: tuple[str | None, str]
) -> None:
    checkout = make_checkout(tmp_path, "ok")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    spec = least_environment(python, f"docker.io/library/python:{python}", f'promises = {{ python = "{python}" }}')
    (checkout.images / "tiny.toml").write_text(spec)
    (checkout.images / "tiny.lock").write_text(f"tiny==1.0 --hash=sha256:{'a' * 64}\n")
    settings = Settings(cache=tmp_path / "cache", pythons=(str(Path(sys.base_prefix) / "bin"),))
    session = Session(settings, Choice(), Screen(), checkout)
    chain: Any = SimpleNamespace(session=session)
    one, other = (
        SimpleNamespace(environment_records={name: EnvironmentRecord(name=name, engine=engine)})
        for name, engine in zip(names, engines, strict=True)
    )
    found = two_runs._names_here(chain, cast(Any, one), cast(Any, other), names)
    if names[1] == "other":
        assert found == names
    elif engines[0] == "docker" and session.builder.engines.docker.availability().usable:
        assert found == ("tiny.docker", "tiny.venv")
    else:
        assert found == ("tiny", "tiny")


def run(root: Path, name: str) -> None:
    done = invoke(root, "run-suite", "--env", "host", "--repetitions", "3", "--name", name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_workload_is_named_and_nothing_else_is_blamed(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    run(root, "first")
    run(root, "again")
    behave = root / "suites" / "workloads" / "experiments" / "behave.py"
    behave.write_text(behave.read_text() + "\n# changed\n")
    run(root, "changed")
    runs = {path.name.rpartition("-")[2]: path.name for path in (root / "results").iterdir()}

    alike = invoke(root, "explain", runs["first"], "--beside", runs["again"])
    assert alike.returncode == 0, alike.stdout + alike.stderr
    assert re.match(r"the second takes \S+ times as long as the first: one case, host; no interval: ", alike.stdout), (
        alike.stdout
    )
    why = "another time, other load, or a cause that no record sees"
    reach = (
        "records hold the code, how it was timed, the machine and its settings, and the packages, flags and libraries "
        "of a trial's process; they hold no clock of a CPU, no temperature of it, and no other setting that a program "
        "reads"
    )
    assert alike.stdout.endswith(f"\ntheir records do not differ: {why}; {reach}\n")

    differs = invoke(root, "explain", runs["first"], "--beside", runs["changed"])
    rows = differs.stdout.partition("to separate it")[2].strip().splitlines()
    assert rows[1:] == ["nothing is measured: nothing that differs can be set on one machine"]
    assert rows[0].startswith("code of the workload behave ")
    assert rows[0].endswith("measure with one version of the code")


def test_runs_of_a_script_are_compared_by_the_numbers_that_it_prints(tmp_path: Path) -> None:
    pytest.importorskip("tsuishi.extras.scripts")
    root = checkout(tmp_path / "checkout", "ok")
    script = tmp_path / "pace.py"
    script.write_text('print("rate: 5 images/s")\n')
    tried = invoke(root, "try-script", str(script), "--env", "host")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    for name, rate in (("first", "5"), ("second", "10")):
        at = root / "suites" / "pace" / "pace.py"
        at.write_text(f'print("rate: {rate} images/s")\n')
        suite = at.parent.with_suffix(".toml")
        digest = hashlib.sha256(at.read_bytes()).hexdigest()
        suite.write_text(re.sub('sha256 = "[0-9a-f]*"', f'sha256 = "{digest}"', suite.read_text()))
        done = invoke(root, "run-suite", "--suite", "pace", "--profile", "quick", "--env", "host", "--name", name)
        assert done.returncode == 0, done.stdout + done.stderr
    first, second = sorted(path.name for path in (root / "results").iterdir())
    found = invoke(root, "explain", first, "--beside", second)
    assert found.returncode == 0, found.stdout + found.stderr
    said, *_, last = found.stdout.splitlines()
    assert said.startswith("the second takes 0.500 times as long as the first: one case, host, by rate_images_s")
    why_not = "rate_images_s is no time of a step; set alike what differs, and run the suite again"
    assert last == f"nothing is measured: {why_not}"


def test_a_run_may_be_in_an_archive_that_has_no_other(tmp_path: Path) -> None:
    pytest.importorskip("tsuishi.extras.handover")
    root = checkout(tmp_path, "ok")
    run(root, "first")
    run(root, "again")
    names = sorted(path.name for path in (root / "results").iterdir())
    for archived in (names[-1], ",".join(names)):
        done = invoke(root, "archive", "--run", archived, "--to", str(tmp_path / f"{archived.count(',')}.zip"))
        assert done.returncode == 0, done.stdout + done.stderr
    found = invoke(root, "explain", names[0], "--beside", str(tmp_path / "0.zip"))
    assert found.returncode == 0, found.stdout + found.stderr
    assert re.search(
        r"^the second takes \S+ times as long as the first: one case, host; no interval: ", found.stdout, re.M
    )
    assert "their records do not differ" in found.stdout
    several = invoke(root, "explain", names[0], "--beside", str(tmp_path / "1.zip"))
    assert several.stderr.endswith("1.zip has 2 runs: unpack it, and name the folder of one\n")


def test_a_run_is_set_beside_the_folder_of_a_report(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    run(root, "first")
    done = invoke(root, "report", "--out", "theirs")
    assert done.returncode == 0, done.stderr
    theirs = root / "reports" / "out" / "theirs"
    alike = invoke(root, "explain", "latest", "--beside", str(theirs))
    assert re.match(r"the report's run takes 1\.00 times as long as this run: one case \(host; a report ", alike.stdout)
    assert "their facts do not differ: another time, other load, or a cause that no report shows" in alike.stdout

    page = theirs / "report.json"
    python = f'"{platform.python_version()}"'
    assert python in page.read_text()
    page.write_text(page.read_text().replace(python, '"3.5.2"'))
    (row,) = (
        invoke(root, "explain", "latest", "--beside", str(theirs))
        .stdout.partition("to separate it")[2]
        .split("\n")[1:-1]
    )
    assert re.match(r"host: Python +\S+ +3\.5\.2 +a report has no trials: measure both", row), row

    page.write_text(page.read_text().replace('"Machine"', '"機械"'))
    refused = invoke(root, "explain", "latest", "--beside", str(theirs))
    assert "theirs: no report in English of this version of tsuishi (KeyError('Machine'))" in refused.stderr


def test_another_number_of_cpus_is_measured_and_the_report_says_it(tmp_path: Path) -> None:
    root, every = checkout(tmp_path, "ok"), os.sched_getaffinity(0)
    assert len(every) > 1, "the test needs two CPUs"
    os.sched_setaffinity(0, {min(every)})
    try:
        run(root, "one")
    finally:
        os.sched_setaffinity(0, every)
    run(root, "all")
    runs = {path.name.rpartition("-")[2]: path.name for path in (root / "results").iterdir()}

    given = ("--beside", runs["all"], "--engine", "host", "--in", str(tmp_path / "check"))
    done = invoke(root, "explain", runs["one"], *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^usable cores +1 +{len(every)} +measured here", done.stdout, re.M), done.stdout
    assert f"differs: cpus: {len(every)} in place of 1" in done.stdout
    # What the workload does takes as long on one CPU.
    bars = dict(re.findall(r"^\| (\w+) \| ([\d.]+)", done.stdout, re.M))
    assert {*bars} == {"cpus", "remainder"}
    assert 0.5 < float(bars["cpus"]) < 2
    (whole,) = re.findall(r"^The second run takes ([\d.]+) times as long", done.stdout, re.M)
    assert float(whole) == pytest.approx(float(bars["cpus"]) * float(bars["remainder"]), rel=0.02)
    (measured,) = (tmp_path / "check" / "results").iterdir()
    asked = {"1": 0, str(len(every)): 0}
    for trial in measured.glob("trials/*/trial.json"):
        (cpus,) = re.findall(r'\\"process\\":{\\"cpus\\":(\d+)}', trial.read_text())
        asked[cpus] += 1
    assert [*asked.values()] == [3, 3]
    (page,) = (tmp_path / "check" / "reports" / "out").glob("*explain*")
    report = (page / "report.md").read_text()
    assert f"Why {runs['all']} takes another time than {runs['one']}" in report
    assert re.search(rf"^\| usable cores \| 1 \| {len(every)} \| measured here \|", report, re.M), report

    unknown = invoke(root, "explain", runs["one"], *given, "--row", "batch_size=7")
    assert "--row batch_size=7: both runs have no such case; they have protocol=steady" in unknown.stderr


def test_a_case_of_a_run_is_found_in_its_suite_whatever_its_other_cases_state(tmp_path: Path) -> None:
    """Cases of a run have usual values of axes that only other cases of the suite state."""
    suites = Checkout().suites
    suite = read_suite(suites / "conv2d.toml", WORDS)
    cases = {case.id: case for case, _ in suite.cases("full", "cpu")}
    session = SimpleNamespace(
        checkout=Checkout(), words=WORDS, choice=Choice(profile="full", accelerator="cpu"), nvml=()
    )
    completed = WORDS.completed({case.id: case.axes for case in cases.values()})
    some = [*cases][:: len(cases) // 6]
    assert any(completed[case_id].keys() - cases[case_id].values.keys() for case_id in some)
    for case_id in some:
        number = CheckableNumber((), (), "", "", "", completed[case_id], "", 1.0, "", "", "", {})
        found = Found(number, "", session, "", (), case_id=case_id)  # type: ignore[arg-type]
        check._narrow(tmp_path / "conv2d.toml", found)
        (case,) = [case for case, _ in read_suite(tmp_path / "conv2d.toml", WORDS).cases("full", "cpu")]
        assert case.id == case_id
