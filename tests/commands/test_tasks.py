"""The tasks as a user calls them, in a checkout of their own: what is printed, and the exit code."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench import BEHAVIOURS, least_environment, make_checkout
from tests.conftest import missing
from tests.reports import keep_drawings
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import EXIT_UNREAD
from tsuishi.base.option_table import MAIN_JOB, OPTIONS

REAL = Checkout()


def checkout(root: Path, *behaviours: str, profile: str = "") -> Path:
    """A copy of this checkout whose only suite is the bench and whose only environment is `host`."""
    make_checkout(root, *behaviours, profile=profile)
    for name in ("tasks.py", "invoke.yaml"):
        shutil.copy(REAL.root / name, root)
    # With its bytecode, but for files that somebody is writing.
    shutil.copytree(REAL.root / "tsuishi", root / "tsuishi", ignore=shutil.ignore_patterns("*.pyc.*"))
    keep_drawings(root / "cache")
    return root


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout for what is refused, which leaves it as it was."""
    return checkout(tmp_path_factory.mktemp("unchanged"), "ok")


def invoke(root: Path, *arguments: str, folder: str = ".", **environ: str) -> "subprocess.CompletedProcess[str]":
    """`invoke` in a folder of the checkout."""
    with invoking(root, *arguments, folder=folder, **environ) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def invoking(root: Path, *arguments: str, folder: str = ".", **environ: str) -> "subprocess.Popen[str]":
    """`invoke` in a folder of the checkout, as a process that was started."""
    command = [sys.executable, "-m", "invoke", *arguments]
    given = {key: value for key, value in os.environ.items() if not key.startswith("INVOKE_")}
    given |= {"INVOKE_TSUISHI_CACHE": str(root / "cache"), "INVOKE_TSUISHI_HOST_PYTHON": sys.executable}
    given["INVOKE_TSUISHI_EXCLUSIVE_ON"] = os.environ["INVOKE_TSUISHI_EXCLUSIVE_ON"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=root / folder, env=given | environ, **pipes)


def test_the_chain_runs_and_ends_with_the_path_of_the_report(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok", "unsupported", "out_of_memory")
    result = invoke(root, "build", "run-suite", "report", "--env", "host", "--name", "first", "--within", "none")
    assert result.returncode == 0, result.stdout + result.stderr
    last = result.stdout.splitlines()[-1]
    assert last.startswith("report: reports/out/")
    assert last.endswith("-first/index.html")
    assert (root / last.removeprefix("report: ")).is_file()
    assert "1 ok, 1 out_of_memory, 1 unsupported" in result.stdout
    assert "unsupported: 1 case in host (this case cannot exist here: 1)\n" in result.stdout


@pytest.mark.long
def test_in_a_subfolder_everything_lies_in_the_checkout_and_is_shown_by_paths_that_can_be_used_there(
    tmp_path: Path,
) -> None:
    root = checkout(tmp_path, "ok")
    here = root / "suites"
    missing_run = invoke(root, "report", folder="suites")
    assert missing_run.stderr == "error: there is no run in ../results/ yet: make one with `invoke run-suite`\n"
    result = invoke(
        root, "build", "run-suite", "report", "--env", "host", "--name", "first", "--within", "none", folder="suites"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    page = result.stdout.splitlines()[-1].removeprefix("report: ")
    assert re.fullmatch(r"\.\./reports/out/.*-first/index\.html", page)
    assert (here / page).is_file()
    (run,) = re.findall(r"^run .*, in (\.\./results/.*)$", result.stdout, re.MULTILINE)
    assert (here / run / "run.json").is_file()
    again = invoke(root, "report", "--run", run, "--out", "again", folder="suites")
    assert again.stdout.splitlines()[-1] == "report: ../reports/out/again/index.html"
    removed = invoke(root, "clean", folder="suites").stdout.splitlines()
    assert "removed ../reports/out/again" in removed
    assert sorted(path.name for path in here.iterdir()) == [
        "axes.toml",
        "bench.toml",
        "explanations",
        "quantities.toml",
        "workloads",
    ]


def test_a_task_has_one_meaning_for_an_option_and_so_has_the_main_job() -> None:
    """One task of the main job reads an option for all."""
    tasks = {task.name: task for task in importlib.import_module("tasks").namespace.tasks.values()}
    assert {name for row in OPTIONS for name in row.of} <= {*tasks}
    for job in (MAIN_JOB, *((name,) for name in tasks)):
        rows = [row.name for row in OPTIONS if {*job} & {*row.of}]
        assert len(rows) == len({*rows}), job
    helps = {argument.name: argument.help for argument in tasks["run-suite"].get_arguments()}
    assert helps["within"] == (
        "how long it may take, from the command to the report: 90s, 10m, 2h, or none (run everything); 10m without it"
    )
    assert helps["busy_gpu"].startswith("where another program uses the GPUs: ")
    assert helps["telemetry_interval"].startswith("seconds between telemetry rows, 0.1 to 60; 1 without it")
    assert helps["all_charts"].startswith("write every chart as SVG")


@pytest.mark.long
def test_options_of_one_task_hold_for_the_chain_and_a_failed_trial_is_told_by_the_exit_code_after_the_report(
    tmp_path: Path,
) -> None:
    root = checkout(tmp_path, "ok", "raises")
    result = invoke(root, "build", "run-suite", "--env", "host", "report", "--out", "here")
    assert result.returncode == 3
    assert result.stdout.splitlines()[-1] == "report: reports/out/here/index.html"
    assert "KeyError: 'a bug'" in result.stdout


@pytest.mark.long
def test_plan_says_what_would_be_done_and_does_nothing(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    spec = root / "images" / "host.toml"
    spec.write_text(spec.read_text() + 'default = ["cpu", "cuda"]\n')
    for asked in ("build", "run-suite", "report"):
        chain = [word for task in ("build", "run-suite", "report") for word in (task, *["--plan"] * (task == asked))]
        limited = invoke(root, *chain)
        assert limited.returncode == 0, limited.stderr
        assert re.search(
            r"^expected: .* of 10 min 0 s, the first answer after about [^,]+ s, ", limited.stdout, re.MULTILINE
        )
        unlimited = invoke(root, *chain, "--within", "none")
        assert unlimited.returncode == 0, unlimited.stderr
        assert "Trials\n" in unlimited.stdout
        assert re.search(r"^expected: (?!.* of 10 min)(?!.*first answer)", unlimited.stdout, re.MULTILINE)
        assert not (root / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (["run-suite", "--repetitions", "many"], {}, "error: --repetitions takes a whole number from 1; given: many"),
        (
            ["build", "--jobs", "0"],
            {},
            "error: settings: key 'jobs': input should be greater than or equal to 1; given: '0'",
        ),
        (["run-suite", "--accelerator", "tpu"], {}, "error: --accelerator takes auto, cpu, cuda; given: tpu"),
        (["report"], {}, "error: there is no run in results/ yet: make one with `invoke run-suite`"),
        (
            ["build", "--env", "host", "--engine", "docker"],
            {"DOCKER_HOST": "unix:///nowhere/docker.sock"},
            "error: engine docker: Docker does not answer: ",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(
    unchanged: Path, arguments: list[str], environ: dict[str, str], message: str
) -> None:
    result = invoke(unchanged, *arguments, **environ)
    assert result.returncode == 1
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stdout + result.stderr
    assert not (unchanged / "results").exists()


def write_impossible(root: Path, name: str) -> None:
    """An environment that this machine could make, if only there were a wheel."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    specification = least_environment(python, f"docker.io/library/python:{python}", 'promises = { pip = "1" }')
    (root / "images" / f"{name}.toml").write_text(specification)
    (root / "images" / f"{name}.lock").write_text(f"pip==1 --hash=sha256:{'a' * 64}  # pip-1-py3-none-any.whl 1000\n")


@pytest.mark.long
def test_an_environment_that_cannot_be_built_keeps_no_other_from_being_built(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    nowhere = {"DOCKER_HOST": "unix:///nowhere/docker.sock", "INVOKE_TSUISHI_FIND_LINKS": str(tmp_path)}
    for name in ("first", "second"):
        write_impossible(root, name)
    result = invoke(root, "build", "--env", "first,host,second", **nowhere)
    assert result.returncode == 1
    assert result.stderr == "error: 2 environments could not be built: first, second; see above\n"
    for name in ("first", "second"):
        assert f"{name}: not built: {name}: no source gives pip==1 as it is locked: " in result.stdout
    assert "host: ready in " in result.stdout
    result = invoke(root, "build", "--env", "first,host", **nowhere)
    assert result.returncode == 1
    assert result.stderr.startswith("error: first: no source gives pip==1 as it is locked: ")
    assert result.stderr.count("\n") == 1
    result = invoke(root, "build", "--env", "first,host,second", "--offline", **nowhere)
    assert result.returncode == 1
    assert result.stderr == (
        "error: offline, and not in the cache are, of first: pip==1; of second: pip==1: fill it with "
        f"`invoke fetch --env first,second` where there is a network, and carry {root}/cache over\n"
    )


def test_what_is_not_known_yet_is_refused_before_anything_is_fetched_or_built(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    write_impossible(root, "later")
    lock = root / "images" / "later.lock"
    lock.write_text(lock.read_text().replace("a" * 64, "open"))
    unknown = "not known yet: pip==1: run `invoke lock --env later` on a machine that reaches their sources"
    for task, said in (
        ("build", f"error: later cannot be used here: {unknown}"),
        ("fetch", f"error: later: {unknown}"),
    ):
        result = invoke(root, task, "--env", "later,host", DOCKER_HOST="unix:///nowhere/docker.sock")
        assert result.returncode == 1
        assert result.stderr.startswith(said)
        assert "host: ready" not in result.stdout
    brief = invoke(root, "list", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert "1 other cannot be made or used here: `invoke list --all` says why\n" in brief.stdout
    listed = invoke(root, "list", "--all", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert "not here: 1 hashes not known yet (invoke lock)" in listed.stdout
    shown = invoke(root, "images", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert "not here: 1 hashes not known yet (invoke lock)" in shown.stdout
    assert "images are not listed: Docker does not answer: " in shown.stdout


@pytest.mark.long
def test_fetch_data_says_where_it_looked_and_leaves_nothing_that_is_not_the_data_set(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "cifar-10-python.tar.gz").write_bytes(b"<html>")
    for arguments, environ in (
        (["--url", f"file://{tmp_path}/mirror/cifar-10-python.tar.gz"], {}),
        ([], {"INVOKE_TSUISHI_DATA_URLS": f"file://{tmp_path}/mirror"}),
    ):
        result = invoke(root, "fetch-data", *arguments, **environ)
        assert result.returncode == 1
        said = f"file://{tmp_path}/mirror/cifar-10-python.tar.gz: it has 6 bytes, and cifar-10-python.tar.gz 170498071"
        assert f"cannot be fetched: {said}" in result.stderr
        assert list((root / "cache" / "data").iterdir()) == []


def test_a_broken_spec_is_one_line(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    (root / "images" / "broken.toml").write_text('title = "x"\nframwork = "torch"\n')
    result = invoke(root, "build", "--env", "broken")
    assert result.returncode == 1
    assert "broken.toml: unknown key 'framwork'; did you mean 'framework'? known here: " in result.stderr


def test_nothing_that_can_be_used_is_said_with_the_reasons(unchanged: Path) -> None:
    result = invoke(unchanged, "build")
    assert result.returncode == 1
    assert result.stderr == "error: no environment can be used here: images/ marks none as default\n"


@pytest.mark.long
def test_resume_goes_on_with_the_run_named(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok", "raises")
    invoke(root, "run-suite", "--env", "host", "--name", "one")
    result = invoke(root, "run-suite", "--resume", "latest")
    assert result.returncode == 3
    raised = BEHAVIOURS.index("raises") + 1
    assert f"-d{raised}-" in result.stdout
    assert "(attempt 2) failed" in result.stdout
    assert "bench-steady-d1-" not in result.stdout


def test_resume_takes_no_other_plan(unchanged: Path) -> None:
    result = invoke(unchanged, "run-suite", "--resume", "latest", "--env", "host")
    assert result.returncode == 1
    assert result.stderr == "error: --resume keeps the plan of a run: leave out --env, or start a new run\n"


def test_list_and_doctor_say_what_there_is(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    bench = root / "suites" / "bench.toml"
    (root / "suites" / "other.toml").write_text(
        "default = false\n" + bench.read_text(encoding="utf-8"), encoding="utf-8"
    )
    listed = invoke(root, "list")
    suites = [line.split()[:2] for line in listed.stdout.splitlines() if line.startswith(("bench ", "other "))]
    assert suites == [["bench", "1/1/1"], ["other", "1/1/1"]]
    assert "only where they are named: other (--suite)\n" in listed.stdout
    assert listed.returncode == 0, listed.stderr
    assert "An interpreter of this machine" in listed.stdout
    assert "none yet: invoke build run-suite report" in listed.stdout
    examined = invoke(root, "doctor", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert examined.returncode == 0, examined.stderr
    assert "missing Docker: Docker does not answer" in examined.stdout
    assert "start it, or use --engine venv" in examined.stdout
    assert examined.stdout.startswith("missing "), "what is missing comes first"
    assert examined.stdout.splitlines()[-2:] == [
        "1 of 1 environments can be made and used here: `invoke list`",
        "the main job would stop: no environment can be used here: images/ marks none as default",
    ]


@pytest.mark.long
def test_list_shows_sources_with_their_claims_or_what_is_wrong_with_one(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    published = root / "reports" / "published"
    published.mkdir(parents=True, exist_ok=True)
    shutil.copy(REAL.published / "conv2d-gce.toml", published)
    shutil.copy(REAL.suites / "conv2d.toml", root / "suites")
    listed = invoke(root, "list", "--sources")
    assert listed.returncode == 0, listed.stderr
    lines = [" ".join(line.split()) for line in listed.stdout.splitlines()]
    assert (
        "conv2d-gce 2018/2019 V100; K80; SciPy, one CPU 17 3 stated, 1 derived tf.nn.conv2d with multiple GPUs" in lines
    )
    assert "Claims of conv2d-gce" in lines
    said = (
        "a One CPU with SciPy is about 3 times as fast as 8 GPUs. [literal only, 8 GPUs] first run: framework, towers,"
    )
    assert any(line.startswith(said) for line in lines)  # a claim, what it takes, and the value that decides it
    path = published / "conv2d-gce.toml"
    right = path.read_text()
    for old, new, why in (
        ('id = "b"', 'id = "a"', "claims: 'a' is given twice; give the second another id"),
        ('suite = "conv2d"', 'suite = "conv3d"', "unknown suite 'conv3d'; did you mean 'conv2d'? known: bench, conv2d"),
    ):
        path.write_text(right.replace(old, new))
        others = invoke(root, "list", "--sources")
        assert (others.returncode, others.stderr) == (0, f"left out: {path}: {why}\n")


@pytest.mark.long
def test_clean_removes_what_was_made_and_nothing_else(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    invoke(root, "build", "run-suite", "--env", "host", "report")
    for folder in ("venvs", "environments/imported"):
        (root / "cache" / folder).mkdir(parents=True, exist_ok=True)
    noted = [root / "cache" / "environments" / name for name in ("a-docker-1.json", "imported/0123")]
    for file in noted:
        file.write_text("{}")
    (root / "reports" / "out" / "mine").mkdir()
    (root / "reports" / "out" / "mine" / "notes.txt").write_text("not tsuishi's")
    result = invoke(root, "clean", "--images", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in (root / "reports" / "out").iterdir()] == ["mine"]
    assert not (root / "cache" / "venvs").exists()
    assert "images are not removed: Docker does not answer: " in result.stdout
    assert all(file.exists() for file in noted)
    assert list((root / "results").glob("*/run.json"))


@pytest.mark.runs
def test_the_tests_get_the_settings_their_call_was_given(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    shutil.copy(REAL.root / "requirements-test.lock", root)
    (root / "tests").mkdir()
    (root / "tests" / "test_settings.py").write_text(
        "import os\n\ndef test_mirrors():\n    assert os.environ['INVOKE_TSUISHI_MIRRORS'] == 'a/b=c/d'\n"
    )
    installed = Path(sys.prefix) / "requirements-test.lock"
    if not installed.exists():
        missing("no tools of the tests installed by `invoke test`")
    result = invoke(root, "test", INVOKE_TSUISHI_MIRRORS="a/b=c/d")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed" in result.stdout


@pytest.mark.parametrize(("words", "code"), [(["run-suite", "--help"], 0), (["list"], EXIT_UNREAD)])
def test_a_command_whose_reader_is_gone_ends_without_a_word(words: list[str], code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "invoke", *words]
        result = subprocess.run(command, cwd=REAL.root, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (code, b"")
