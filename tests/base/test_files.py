"""What killed processes leave: removed or written over by the next call, and never taken from a living one."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.synthetic_run import run_record
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.results.directory import RunDirectory, known_runs, open_run

ROOT = Path(__file__).parents[2]
GIVEN = """
import sys
from pathlib import Path
from tsuishi.base import files
def ready():
    print(flush=True)
    sys.stdin.read()
"""
HOLDS_A_FOLDER = """
with files.temporary_folder(Path(sys.argv[1]), ".context-") as folder:
    (folder / "part").write_text("gigabytes")
    ready()
"""
WRITES_A_FILE = """
with files.replacing(Path(sys.argv[1]) / "run.json") as file:
    file.write("half " * 9999)
    file.flush()
    ready()
"""
INSTALLS = """
from tsuishi.engines import venv
venv._run("tiny", [sys.executable, "-c", f"open({sys.argv[1]!r} + '/pid', 'w').write(str(__import__('os').getpid()));"
    "__import__('time').sleep(60)"], Path(sys.argv[1]))
"""
CREATES_A_RUN = """
from tests.synthetic_run import run_record
from tsuishi.results.directory import RunDirectory
files.sync = lambda path: ready()
RunDirectory.create(Path(sys.argv[1]) / "20260101-000000-quick", run_record("20260101-000000-quick"))
"""


@contextmanager
def process(program: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that does that in a folder, and waits where it calls ready()."""
    command = [sys.executable, "-c", GIVEN + program, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as one:
        yield one
        one.kill()


def killed(program: str, folder: Path) -> None:
    """What such a process leaves that is killed there."""
    with process(program, folder) as one:
        assert one.stdout
        assert one.stdout.readline() == b"\n"


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def test_the_temporary_folder_of_a_killed_process_is_removed_by_the_next_call(tmp_path: Path) -> None:
    killed(HOLDS_A_FOLDER, tmp_path)
    (left,) = hidden(tmp_path)
    with files.temporary_folder(tmp_path, ".export-"):
        assert left.exists(), "what something else left is not looked for"
    with files.temporary_folder(tmp_path, ".context-") as folder:
        assert hidden(tmp_path) == [folder]
    assert hidden(tmp_path) == []


def test_the_temporary_folder_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    with process(HOLDS_A_FOLDER, tmp_path) as one:
        assert one.stdout
        one.stdout.readline()
        (theirs,) = hidden(tmp_path)
        with files.temporary_folder(tmp_path, ".context-"), files.temporary_folder(tmp_path, ".context-"):
            assert (theirs / "part").read_text() == "gigabytes"


@pytest.mark.parametrize("name", [".context-mine", ".context-12345678x", ".context-"])
def test_what_only_looks_like_a_temporary_folder_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with files.temporary_folder(tmp_path, ".context-"):
        assert (tmp_path / name).is_dir()


def test_a_link_in_the_place_of_a_temporary_folder_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    (tmp_path / ".context-01234567").symlink_to("home")
    with files.temporary_folder(tmp_path, ".context-"):
        assert (tmp_path / "home" / "thesis.tex").exists()


def test_many_threads_make_and_remove_temporary_folders_and_none_loses_its_own(tmp_path: Path) -> None:
    lost = []

    def work() -> None:
        for _ in range(20):
            with files.temporary_folder(tmp_path, ".context-") as folder:
                (folder / "part").touch()
                if not (folder / "part").exists():
                    lost.append(folder)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (lost, list(tmp_path.iterdir())) == ([], [])


def test_the_half_written_file_of_a_killed_process_is_written_over_by_the_next_call(tmp_path: Path) -> None:
    files.write_json(tmp_path / "run.json", {"a": 1})
    killed(WRITES_A_FILE, tmp_path)
    assert files.read_json(tmp_path / "run.json") == {"a": 1}
    files.write_json(tmp_path / "run.json", {"a": 2})
    assert files.read_json(tmp_path / "run.json") == {"a": 2}
    assert hidden(tmp_path) == []


def test_two_writers_of_a_file_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    values = [{"writer": number, "text": "x" * 5000} for number in range(4)]

    def write(value: dict[str, object]) -> None:
        for _ in range(10):
            files.write_json(path, value)

    threads = [threading.Thread(target=write, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert files.read_json(path) in values
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_that_was_killed_while_it_was_made_is_none_and_is_removed_by_the_next(tmp_path: Path) -> None:
    killed(CREATES_A_RUN, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert known_runs(tmp_path) == {}
    with pytest.raises(UserError, match="there is no run in"):
        open_run(tmp_path)
    run = RunDirectory.create(tmp_path / "20260101-000000-quick", run_record("20260101-000000-quick"))
    assert list(tmp_path.iterdir()) == [run.path]


def test_what_installs_packages_ends_with_a_killed_process(tmp_path: Path) -> None:
    with process(INSTALLS, tmp_path) as one:
        deadline = time.monotonic() + 30
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        orphan = psutil.Process(int((tmp_path / "pid").read_text()))
        os.kill(one.pid, signal.SIGKILL)
        try:
            orphan.wait(10)
        except psutil.TimeoutExpired:
            orphan.kill()
            pytest.fail("it would write into an environment that the next call makes anew")


def test_two_folders_change_their_names_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    files.exchange(tmp_path / "a", tmp_path / "b")
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")} == {"a/b", "b/a"}
    with pytest.raises(FileNotFoundError):
        files.exchange(tmp_path / "a", tmp_path / "none")


def test_whatever_is_made_for_a_while_in_a_lasting_place_is_removed_by_the_next_call() -> None:
    lasting = [path.name for path in (ROOT / "tsuishi").rglob("*.py") if "TemporaryDirectory(dir=" in path.read_text()]
    assert lasting == [], "files.temporary_folder looks for what killed processes left"


def test_a_file_is_digested_piece_by_piece_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "large"
    content = os.urandom(3 << 20)
    path.write_bytes(content)
    assert files.size_and_sha256(path) == (3 << 20, hashlib.sha256(content).hexdigest())
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, why in (("link", "cannot be read"), ("pipe", "no regular file"), ("folder", "no regular file")):
        with pytest.raises(UserError, match=rf"^{tmp_path / name}: {why}"):
            files.size_and_sha256(tmp_path / name)
