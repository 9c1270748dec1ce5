"""`invoke ab` as a user calls it, in a user's repository: its words, its exit codes, and what it leaves alone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.commands.test_tasks import checkout
from tests.extras.ab.repository import Repository
from tests.tiny_venv import PYTHONS, add_tiny
from tsuishi.base.errors import EXIT_NOTHING_CHECKED, EXIT_USER_ERROR, EXIT_VERDICT
from tsuishi.specs.questions import LOOKS

# A benchmark that takes as long as the file beside it says, and prints so.
BENCH = """
import pathlib, sys, time
begin = time.perf_counter()
time.sleep(float(pathlib.Path("seconds.txt").read_text()))
print("step time: %.3f ms" % ((time.perf_counter() - begin) * 1e3))
print("arguments:", sys.argv[1:])
"""
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "theirs")
    made.commit(bench__py=BENCH, seconds__txt="0.05")
    return made


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("checkout"), "ok")


@pytest.fixture
def call(root: Path, repository: Repository, tmp_path: Path) -> Call:
    def called(
        *words: str, command: tuple[str, ...] = ("python", "bench.py"), **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        given = {key: value for key, value in os.environ.items() if not key.startswith("INVOKE_")}
        given |= {
            "INVOKE_TSUISHI_CACHE": str(root / "cache"),
            "INVOKE_TSUISHI_HOST_PYTHON": sys.executable,
            "INVOKE_TSUISHI_EXCLUSIVE_ON": os.environ["INVOKE_TSUISHI_EXCLUSIVE_ON"],
            "XDG_DATA_HOME": str(tmp_path / "data"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        behind = ("--", *command) if command else ()
        typed = [sys.executable, "-m", "invoke", "--search-root", str(root), "ab", *words, *behind]
        return subprocess.run(
            typed, cwd=repository.path, env=given | variables, capture_output=True, text=True, check=False
        )

    return called


def writing(number: dict[str, object]) -> str:
    """A program that writes the number into out.json, as hyperfine does."""
    return f'import json\njson.dump({{"results": [{number!r}]}}, open("out.json", "w"))\n'


def outcome(tmp_path: Path, name: str) -> str:
    (path,) = (tmp_path / "data").glob(f"tsuishi/ab/*/outcome/{name}")
    return path.read_text()


def test_a_slower_commit_is_red_in_every_form_and_the_repository_stays_as_it_was(
    repository: Repository, call: Call, tmp_path: Path
) -> None:
    repository.commit(seconds__txt="0.08")
    before = repository.state()
    result = call("main~1", "main", "--bencher", str(tmp_path / "bencher.json"))
    assert result.returncode == EXIT_VERDICT, result.stdout + result.stderr
    assert "compared: step time\n" in result.stdout
    assert "step time: slower: at least 1." in result.stdout
    assert repository.state() == before
    told = json.loads(outcome(tmp_path, "comparison.json"))
    assert told["base"] == {"given": "main~1", "version": repository.git("rev-parse", "main~1").strip()}
    (number,) = told["numbers"]
    assert number["standing"] == "slower"
    low, high = number["interval"]
    assert 1.05 < low < 1.6 < high < 2.2
    suites = ElementTree.fromstring(outcome(tmp_path, "junit.xml"))  # noqa: S314  we wrote it
    assert suites.get("failures") == "1"
    summary = outcome(tmp_path, "summary.md")
    assert len(summary.splitlines()) <= 30
    assert "| step time | " in summary
    assert "`invoke ab 'main~1' main --bencher " in summary
    (metric,) = json.loads((tmp_path / "bencher.json").read_text()).values()
    assert 80e6 < metric["latency"]["value"] < 100e6
    again = call("main~1", "main", "--within", "20s")
    assert "another look: these versions were compared in 1 call before, 1 of them red" in again.stdout


def test_the_same_commit_beside_itself_is_not_slower_and_words_behind_the_dashes_stay_whole(
    call: Call, tmp_path: Path
) -> None:
    result = call("main", "main", "--limit", "1.5", command=("python", "bench.py", "two words", "--size=3"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "step time: not slower than 1.5: at most 1." in result.stdout
    (run,) = (tmp_path / "data").rglob("run.json")
    (asked,) = json.loads(run.read_text())["questions"]
    assert asked["last_look"] == LOOKS[-1], "late looks have more of its error"


def test_files_that_are_in_no_commit_are_a_side(repository: Repository, call: Call, tmp_path: Path) -> None:
    repository.commit(**{"__gitignore": "left_out.py\n"})
    for name in ("helper.py", "left_out.py"):
        (repository.path / name).write_text("SECONDS = 0.02\n")
    imports = "import importlib.util\nassert not importlib.util.find_spec('left_out')\nimport helper\n"
    text = BENCH.replace('float(pathlib.Path("seconds.txt").read_text())', "helper.SECONDS")
    (repository.path / "bench.py").write_text(imports + text)
    before = repository.state()
    result = call("HEAD", ".")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "step time: faster: at least " in result.stdout
    assert repository.state() == before
    (clone,) = {path.parent for path in (tmp_path / "data").rglob("helper.py")}
    assert not (clone / "left_out.py").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BENCH.replace("step time", "time of steps"), "HEAD gives no step time, which BASE gives"),
        (BENCH + "print('no room')\nsys.exit(7)\n", "the command ended with exit code 7: no room"),
        (BENCH + "import nothing_of_that_name\n", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ],
)
def test_a_side_that_ends_badly_or_loses_a_number_is_red(
    repository: Repository, call: Call, tmp_path: Path, text: str, why: str
) -> None:
    repository.commit(bench__py=text)
    result = call("main~1", "main")
    assert result.returncode == EXIT_VERDICT, result.stdout + result.stderr
    assert why in result.stdout
    assert why in outcome(tmp_path, "summary.md")


def test_what_is_undecided_says_so_and_may_pass(repository: Repository, call: Call) -> None:
    scattered = "import random\nprint('step time: %.3f ms' % random.lognormvariate(0, 2))\n"
    repository.commit(bench__py=scattered)
    result = call("main", "main", "--within", "15s")
    assert result.returncode == EXIT_NOTHING_CHECKED, result.stdout + result.stderr
    assert "this machine is noisy: from trial to trial, step time of " in result.stdout
    assert "step time: undecided: " in result.stdout
    assert call("main", "main", "--within", "15s", "--undecided", "pass").returncode == 0


def test_setup_runs_once_for_a_side_in_a_virtual_environment_of_its_own(
    repository: Repository, call: Call, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    setup = (
        f"python -c 'import sys, pathlib, time; pathlib.Path(\"{marks}\", str(time.time_ns())).write_text(sys.prefix)'"
    )
    repository.commit(bench__py=f"import sys; assert sys.prefix != sys.base_prefix\n{BENCH}", seconds__txt="0.05")
    repository.commit(seconds__txt="0.051")
    for _ in range(2):
        result = call("main~1", "main", "--setup", setup, "--limit", "1.9")
        assert result.returncode == 0, result.stdout + result.stderr
    prefixes = {mark.read_text() for mark in marks.iterdir()}
    assert len([*marks.iterdir()]) == len(prefixes) == 2
    failed = call("main~1", "main", "--setup", "echo 'no compiler'; exit 9")
    assert failed.returncode == EXIT_USER_ERROR
    assert "--setup failed for main~1 (" in failed.stderr
    assert "it ended with 9: no compiler" in failed.stderr


def test_numbers_are_read_from_the_file_that_the_command_writes_and_never_from_an_older_one(
    repository: Repository, call: Call
) -> None:
    for median in (0.25, 0.5):
        repository.commit(bench__py=writing({"command": "sort", "mean": 0.5, "median": median}))
    result = call("main~1", "main", "--numbers", "out.json")
    assert result.returncode == EXIT_VERDICT, result.stdout + result.stderr
    assert "sort: slower: at least 1." in result.stdout
    repository.commit(bench__py="results = 0.5")
    result = call("main~2", "main", "--numbers", "out.json")
    assert result.returncode == EXIT_VERDICT
    assert "out.json: the command wrote no such file" in result.stdout


def test_names_may_be_any_text_and_the_last_line_may_have_no_end(repository: Repository, call: Call) -> None:
    name = 'a "b" {number} | \n <c> 速い' + "x" * 3000
    for mean in (0.25, 0.5):
        repository.commit(bench__py=writing({"command": name, "mean": mean}) + 'print("done", end="")\n')
    result = call("main~1", "main", "--numbers", "out.json")
    assert result.returncode == EXIT_VERDICT, result.stdout + result.stderr
    assert 'a "b" {number} | ⟨U+000A⟩ <c> 速いxxx' in result.stdout
    assert "slower: at least 1." in result.stdout
    repository.commit(bench__py=BENCH.replace("* 1e3))", '* 1e3), end="")').replace('print("arg', "#"))
    result = call("main", "main", "--limit", "1.9")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "step time: not slower than 1.9" in result.stdout


def test_what_cannot_be_judged_is_undecided_and_named(repository: Repository, call: Call, tmp_path: Path) -> None:
    repository.commit(bench__py=BENCH + "print('setup time: 0.00 s')\n")
    words = ("main", "main", "--limit", "1.9", "--within", "15s")
    result = call(*words, command=("python", "bench.py", "https://ada:secret@example.org/"))
    assert result.returncode == EXIT_NOTHING_CHECKED, result.stdout + result.stderr
    assert "setup time: undecided: some trial gave 0, which has no ratio: print more digits" in result.stdout
    assert "1 compared: 1 not slower, 1 not judged" in result.stdout
    assert "secret" not in outcome(tmp_path, "summary.md")
    short = call("main", "main", "--within", "1s")
    assert short.returncode == EXIT_NOTHING_CHECKED, short.stdout + short.stderr
    assert "undecided: " in short.stdout
    assert not [*(tmp_path / "data").rglob("variables.json")]


def test_a_side_has_the_users_variables_but_those_that_name_the_repository(repository: Repository, call: Call) -> None:
    checks = "import os\nassert os.getcwd() == os.environ['PWD'] and 'GIT_DIR' not in os.environ\n"
    repository.commit(bench__py=f"{checks}assert os.environ['MINE'] == 'here'\n{BENCH}")
    hook = {"GIT_DIR": str(repository.path / ".git"), "MINE": "here", "PWD": str(repository.path)}
    result = call("main", "main", "--limit", "1.9", **hook)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_shallow_clone_is_compared_as_far_as_it_reaches(repository: Repository, call: Call, tmp_path: Path) -> None:
    for seconds in ("0.06", "0.061", "0.09"):
        repository.commit(seconds__txt=seconds)
    origin = repository.path.rename(tmp_path / "origin")
    subprocess.run(["git", "clone", "-q", "--depth=2", f"file://{origin}", str(repository.path)], check=True)
    result = call("main~1", "main")
    assert result.returncode == EXIT_VERDICT, result.stdout + result.stderr
    assert "step time: slower: at least 1." in result.stdout
    missing = call("main~2", "main")
    assert "this clone is shallow: fetch the commits" in missing.stderr


def test_two_files_are_two_sides(repository: Repository, call: Call) -> None:
    for name, seconds in (("one.py", "0.02"), ("two.py", "0.04")):
        (repository.path / name).write_text(BENCH.replace('float(pathlib.Path("seconds.txt").read_text())', seconds))
    result = call("one.py", "two.py", command=())
    assert result.returncode == EXIT_VERDICT, result.stdout + result.stderr
    assert "two.py (" in result.stdout


def test_two_environments_are_two_sides(root: Path, repository: Repository, call: Call) -> None:
    for version in ("1.0", "2.0"):
        add_tiny(root, root / "images", f"tiny{version}", version)
    bench = BENCH.replace('float(pathlib.Path("seconds.txt").read_text())', "0.04 * float(tiny.__version__)")
    (repository.path / "bench.py").write_text(f"import tiny\n{bench}")
    result = call("tiny1.0", "tiny2.0", INVOKE_TSUISHI_OFFLINE="true", INVOKE_TSUISHI_PYTHONS=PYTHONS[0])
    assert result.returncode == EXIT_VERDICT, result.stdout + result.stderr
    assert "step time: slower: at least 1." in result.stdout
    assert "tiny2.0 beside tiny1.0: 1 compared: 1 slower" in result.stdout


@pytest.mark.parametrize(
    ("words", "command", "why"),
    [
        (
            ("main", "mian"),
            ("true",),
            "unknown commit, file or environment 'mian'; did you mean 'main'? known: ., main",
        ),
        (("main", "main"), (), "say what to run behind --, as in: "),
        (("main", "main", "--limit", "0.9"), ("true",), "--limit takes a number above 1, as 1.05; given: 0.9"),
        (("main", "main", "--undecided", "passs"), ("true",), "--undecided takes fail or pass; given: passs"),
        (("main", "main", "--within", "none"), ("true",), "give the longest, as --within 2h"),
        (("bench.py", "bench.py"), ("true",), "two files are run by `python`: give no command behind --"),
        (("host", "host", "--setup", "true"), ("true",), "--setup is for commits"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    call: Call, words: tuple[str, ...], command: tuple[str, ...], why: str
) -> None:
    result = call(*words, command=command)
    assert result.returncode == EXIT_USER_ERROR
    assert why in result.stderr
