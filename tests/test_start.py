"""`./invoke` as a user starts it: with whatever the shell, the home and the file system of the user bring."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_tasks import REAL, checkout
from tests.conftest import missing
from tsuishi import __version__
from tsuishi.base.checkout import ROOT
from tsuishi.base.files import sha256_of
from tsuishi.base.tree import MANIFEST

LOCK = "requirements.lock"
# The title of the only suite of a checkout for tests.
TITLE = "what workloads may do"
# invoke/main.py of a package that only prints its arguments.
PRINTS = """
import sys
class program:
    def run(): print('invoke', *sys.argv[3:])
"""
# A tasks.py that sends Ctrl-C to itself: while it is imported, or in a task.
PRESSED = """
import os, signal, sys
from functools import partial
from tsuishi.commands import command_line

def press():
    os.kill(os.getpid(), signal.SIGINT)

@partial(command_line.task, rows=[])
def late(chain):
    press()

if "early" in sys.argv:
    press()
namespace = command_line.collected(globals())
"""
# A module of every Python that ends whatever imports it.
TRAP = "raise SystemExit('a module that is not ours')\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the virtual environment of these tests, in a folder with a blank and a letter beyond ASCII."""
    root = checkout(tmp_path_factory.mktemp("start") / "a chéckout", "ok")
    shutil.copy(REAL.root / "invoke", root)
    if not (Path(sys.prefix) / LOCK).exists():
        missing("a virtual environment that ./invoke made")
    shutil.copy(Path(sys.prefix) / LOCK, root)
    (root / ".venv").symlink_to(sys.prefix)
    suite = root / "suites" / "bench.toml"
    suite.write_text(suite.read_text().replace(TITLE, "追試"))
    for folder in ("suites", "images"):  # as macOS leaves them on disks of others
        (root / folder / "._bench.toml").write_bytes(b"\0\5\x16\7")
    return root


def start(
    root: Path, command: str, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """A command of sh in a folder, where "$invoke" is this checkout's; an empty variable is not set."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("INVOKE_", "PYTHON", "PIP_"))}
    given |= {"invoke": str(root / "invoke"), "INVOKE_TSUISHI_CACHE": str(root / "cache")}
    given = {name: value for name, value in {**given, **(environ or {})}.items() if value}
    options: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
    return subprocess.run(["/bin/sh", "-c", command], cwd=folder or root, env=given, check=False, **options)


@pytest.fixture(scope="module")
def usual(root: Path) -> str:
    """What `./invoke list` prints."""
    result = start(root, '"$invoke" list')
    assert (result.returncode, result.stderr) == (0, "")
    assert "追試" in result.stdout
    return result.stdout


OF_OTHER_PYTHONS = {
    "PYTHONHOME": "/nowhere",
    "PYTHONINSPECT": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONPATH": "{modules}",
    "PYTHONSAFEPATH": "1",
    "PYTHONWARNINGS": "error",
}


@pytest.mark.parametrize(
    ("command", "environ", "says"),
    [
        (
            '"$invoke" list',
            OF_OTHER_PYTHONS,
            f"variables that do not count here: {' '.join(sorted(OF_OTHER_PYTHONS))}\n",
        ),
        ('"$invoke" list', {"PYTHONSTARTUP": "{modules}/json.py", "CDPATH": "/", "ENV": "/nowhere", "IFS": "i"}, ""),
        ('"$invoke" list', {"LC_ALL": "C", "PYTHONUTF8": "0", "TERM": "dumb", "COLUMNS": "0"}, ""),
        ('"$invoke" list', {"XDG_CACHE_HOME": "cache", "INVOKE_TSUISHI_CACHE": "", "TMPDIR": "/nowhere"}, ""),
        ('umask 777; ulimit -n 64; "$invoke" list', {}, ""),
        ('"$invoke" list <&- 2>&-', {}, ""),
    ],
    ids=["other Pythons", "shell", "locale", "folders", "limits", "closed"],
)
def test_what_a_shell_brings_changes_nothing(
    root: Path, usual: str, tmp_path: Path, command: str, environ: dict[str, str], says: str
) -> None:
    """Typed in a folder with modules of the names of Python's own, as some folders of PYTHONPATH have."""
    for name in ("json", "typing_extensions", "pandas"):
        (tmp_path / f"{name}.py").write_text(TRAP)
    given = {name: value.format(modules=tmp_path) for name, value in environ.items()}
    result = start(root, command, given, tmp_path)
    assert (result.returncode, result.stderr) == (0, says)
    assert result.stdout == usual
    assert {path.suffix for path in tmp_path.iterdir()} == {".py"}, "nothing is made where it was typed"


def test_letters_that_a_terminal_lacks_are_replaced_and_nobody_need_listen(root: Path, usual: str) -> None:
    told = start(root, '"$invoke" list', {"PYTHONIOENCODING": "ascii"})
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == usual.encode("ascii", "replace").decode()
    closed = start(root, '"$invoke" list >&-')
    assert (closed.returncode, closed.stdout, closed.stderr) == (0, "", "")


def test_without_a_home_it_says_what_to_set(root: Path) -> None:
    """A number without a name, as some container platforms give to each user."""
    user = "unshare --user --map-user=12345 --map-group=12345"
    if start(root, f"{user} true").returncode:
        missing("user namespaces")
    without = {"HOME": "", "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "INVOKE_TSUISHI_CACHE": ""}
    told = start(root, f'{user} "$invoke" list', without)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == (
        "error: user 12345 has no home: HOME is not set, and no entry of the system's users has this number: "
        "set HOME to a folder that you can write\n"
    )
    assert start(root, f'{user} "$invoke" list', without | {"HOME": str(root)}).returncode == 0
    readonly = start(root, f'{user} "$invoke" build --env host', without | {"HOME": "/proc"})
    assert (
        readonly.stderr
        == "error: No such file or directory: /proc/.cache; set XDG_CACHE_HOME to a folder that you can write\n"
    )


@pytest.fixture(autouse=True)
def _no_named_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that loads tasks.py in this process names its tree to all that the process starts later."""
    monkeypatch.delenv(ROOT, raising=False)


@pytest.mark.parametrize("door", ['"$invoke"', 'python -c "from tsuishi.commands.door import main; main()"'])
def test_ctrl_c_ends_an_import_without_a_word_and_a_task_with_how_to_go_on(
    root: Path, tmp_path: Path, door: str
) -> None:
    for name in ("invoke", LOCK, ".venv", "tsuishi", "invoke.yaml"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "tasks.py").write_text(PRESSED)
    (tmp_path / MANIFEST).touch()  # a tree of its own for an installed tsuishi
    given = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for when, said in (("early", ""), ("late", "interrupted; the same command goes on\n")):
        told = start(tmp_path, f"{door} {when}; echo $?", given)
        assert (told.stdout, told.stderr) == ("130\n", said)


@pytest.mark.parametrize("planted", ["tree", "tree.sha256", "tasks.py", "suite", "link", "open folder", "open file"])
def test_a_tree_that_another_user_could_write_is_not_run_unless_it_is_named(tmp_path: Path, planted: str) -> None:
    """In a sticky folder above the current one, as /tmp is."""
    own, tree, here = tmp_path / "data" / "tsuishi", tmp_path / "tree", tmp_path / "tree" / "here"
    for folder, said in ((own, "own"), (tree, "planted")):
        (folder / "suites").mkdir(parents=True)
        (folder / "suites" / "zoo.toml").touch()
        (folder / MANIFEST).touch()
        (folder / "tasks.py").write_text(f"raise SystemExit('{said}')\n")
    here.mkdir()

    def ran(**given: str) -> "subprocess.CompletedProcess[str]":
        command = f"{sys.executable} -c 'from tsuishi.commands.door import main; main()' --list"
        variables = {"XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONPATH": str(REAL.root), **given}
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=here,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    assert ran().stderr == "planted\n", "a tree of one's own, of which anything may be changed"
    if planted.startswith("open"):
        path = tree if planted == "open folder" else tree / "suites" / "zoo.toml"
        path.chmod(path.stat().st_mode | 0o002)
        why = f"everybody may write {path}"
    else:
        path = {"tree": tree, "suite": tree / "suites" / "zoo.toml", "link": tree / "tasks.py"}.get(
            planted, tree / planted
        )
        if planted == "link":
            path.rename(tmp_path / "elsewhere.py")
            path.symlink_to(tmp_path / "elsewhere.py")
        try:
            os.chown(path, 65534, -1, follow_symlinks=planted != "link")
        except PermissionError:
            missing("no right to give files away")
        why = f"{path} belongs to user 65534"
    tree.parent.chmod(0o1777)
    name = f"{tree}: not used: {why}; TSUISHI_ROOT={tree} uses it all the same\n"
    assert ran().stderr == f"{name}own\n"
    assert ran(TSUISHI_ROOT=str(tree)).stderr == "planted\n"
    nothing = ran(TSUISHI_ROOT=str(here)).stderr
    assert nothing == f"error: TSUISHI_ROOT: {here} has no tasks.py: name a folder that `tsuishi init` made\n"
    (tree / "tasks.py").unlink()
    assert ran().stderr == "own\n"


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A checkout without .venv, whose lock has one package: `invoke`, which prints its arguments."""
    wheel = tmp_path / "wheels" / "invoke-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("invoke/__init__.py", "")
        file.writestr("invoke/main.py", PRINTS)
        file.writestr("invoke-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("invoke-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: invoke\nVersion: 1.0\n")
        file.writestr("invoke-1.0.dist-info/RECORD", "")
    root = tmp_path / "a checkout"
    shutil.copytree(REAL.root / "tsuishi" / "artifacts", root / "tsuishi" / "artifacts")
    (root / "tsuishi" / "commands").mkdir()
    for name in ("__init__.py", "commands/__init__.py", "commands/call.py"):
        shutil.copy(REAL.root / "tsuishi" / name, root / "tsuishi" / name)
    shutil.copy(REAL.root / "invoke", root)
    (root / LOCK).write_text(f"invoke==1.0 --hash=sha256:{sha256_of(wheel)}\n")
    return root


@pytest.mark.long
def test_a_virtual_environment_of_a_python_that_was_replaced_is_made_again_whatever_pip_is_configured_to_do(
    fresh: Path, tmp_path: Path
) -> None:
    """Its configuration says where packages come from, which counts, and where they go, which does not."""
    venv, elsewhere = fresh / ".venv", tmp_path / "elsewhere"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    next(venv.glob("lib/python3.*")).rename(venv / "lib" / "python3.0")
    shutil.copy(fresh / LOCK, venv)
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nno-index = true\nfind-links = {tmp_path / 'wheels'}\n[install]\nuser = true\n")
    given = {"PIP_CONFIG_FILE": str(configuration), "PIP_TARGET": str(elsewhere), "PIP_NO_BINARY": ":all:"}
    made = start(fresh, '"$invoke" list', given)
    assert (made.returncode, made.stdout) == (0, "invoke list\n"), made.stderr
    (begun,) = made.stderr.splitlines()
    assert begun.startswith("setting up .venv with Python 3.")
    assert not elsewhere.exists()
    again = start(fresh, '"$invoke" list', given)
    assert (again.returncode, again.stdout, again.stderr) == (0, "invoke list\n", "")


@pytest.mark.long
@pytest.mark.parametrize("without_index", [False, True])
def test_uv_installs_the_lock_that_names_it_from_where_pip_is_configured_to_look(
    fresh: Path, tmp_path: Path, without_index: bool
) -> None:
    """pip takes four times as long. The package is in a folder that only pip's configuration names.

    Without an index, as on a machine without a network, uv itself is in that folder, too.
    """
    uv = re.search(r"^uv==(?:.*\\\n)*.*\n", (REAL.root / LOCK).read_text(), re.MULTILINE)
    assert uv
    with (fresh / LOCK).open("a") as lock:
        lock.write(uv[0])
    given = {"PIP_FIND_LINKS": str(tmp_path / "wheels"), "UV_NO_INDEX": "1"}
    if without_index:
        (tmp_path / "uv.lock").write_text(uv[0])
        download = ["download", "--quiet", "--no-deps", "--require-hashes", "-r", "uv.lock", "-d", "wheels"]
        subprocess.run([sys.executable, "-m", "pip", *download], cwd=tmp_path, check=True)
        given |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
    made = start(fresh, '"$invoke" list', given)
    assert (made.returncode, made.stdout) == (0, "invoke list\n"), made.stderr
    (installer,) = fresh.glob(".venv/lib/python3*/site-packages/invoke-1.0.dist-info/INSTALLER")
    assert installer.read_text().strip() == "uv"
    assert [*(fresh / ".venv").glob("uv-*")] == [], "its cache is left"


@pytest.mark.long
def test_of_several_first_commands_one_sets_up_and_the_others_wait(fresh: Path, tmp_path: Path) -> None:
    """They removed each other's .venv while it was made."""
    given = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    made = start(fresh, 'for n in 1 2 3; do "$invoke" list & done; wait', given)
    assert (made.returncode, made.stdout) == (0, 3 * "invoke list\n"), made.stderr
    assert made.stderr.count("setting up .venv") == 1
    assert made.stderr.count("another ./invoke sets up .venv: waiting for it\n") == 2


def test_a_python_without_its_module_for_virtual_environments_is_told_what_to_install(
    fresh: Path, tmp_path: Path
) -> None:
    """As Debian's python3 without python3-venv."""
    name, library = f"python3.{sys.version_info.minor}", Path(os.__file__).parent
    (tmp_path / "lib" / name).mkdir(parents=True)
    for path in library.iterdir():
        if path.name not in ("ensurepip", "site-packages"):
            (tmp_path / "lib" / name / path.name).symlink_to(path)
    (tmp_path / "bin").mkdir()
    shutil.copy(Path(sys.executable).resolve(), tmp_path / "bin" / "python3")
    for program in ("date", "dirname"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program) or missing(program))
    told = start(fresh, '/bin/sh "$invoke" list', {"PATH": str(tmp_path / "bin")})
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == (
        "error: python3 makes no virtual environments, as its module ensurepip is missing: "
        "install it, e.g. with `apt install python3-venv`\n"
    )


def test_a_clone_for_windows_has_the_same_bytes(tmp_path: Path) -> None:
    """Git for Windows writes CRLF where nothing else is said; digests of files would be others, and sh starts none."""
    text, picture = b"#!/bin/sh\necho started\n", b"\x89PNG\r\n\x1a\n\0"
    (source := tmp_path / "source").mkdir()
    shutil.copy(REAL.root / ".gitattributes", source)
    (source / "invoke").write_bytes(text)
    (source / "report.png").write_bytes(picture)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.net", "-c", "core.autocrlf=true"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"], ["clone", "-q", ".", "../clone"]):
        subprocess.run([*git, *words], cwd=source, check=True, capture_output=True)
    clone = tmp_path / "clone"
    assert ((clone / "invoke").read_bytes(), (clone / "report.png").read_bytes()) == (text, picture)


def test_messages_name_commands_as_they_were_typed(root: Path) -> None:
    refused = start(root, "./invoke report")
    assert (refused.returncode, refused.stderr) == (
        1,
        "error: there is no run in results/ yet: make one with `./invoke run-suite`\n",
    )
    assert "make one with `'../a chéckout/invoke' run-suite`" in start(root, '"../a chéckout/invoke" report').stderr


def test_without_a_task_the_commands_to_begin_with_are_shown(root: Path) -> None:
    for words in ("", "--help", "-h"):
        shown = start(root, f"./invoke {words}")
        assert (shown.returncode, shown.stderr) == (0, "")
        lines = shown.stdout.splitlines()
        assert len(lines) < 10
        assert max(map(len, lines)) <= 84
        assert "  ./invoke build run-suite report   the main job: about ten minutes, then a report" in lines
    assert start(root, "./invoke --version").stdout == f"tsuishi {__version__}\n"
