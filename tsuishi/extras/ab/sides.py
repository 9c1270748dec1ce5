"""The two sides of a comparison: a commit in a clone of its own, a file, or an environment; each made ready once.

The user's own repository is only read: a side is a clone that borrows its objects, and the files as they are now (`.`)
become a commit of that clone alone.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tsuishi.base.checkout import NoRepository, git_in, own_variables
from tsuishi.base.errors import UserError, unknown
from tsuishi.base.files import private_folder, sha256_of
from tsuishi.specs.environment import known_environments

NAMES = ("base", "head")
NOW = "."
# The mark of a side whose setup ended well, beside its folder.
_READY = ".ready"
_LINES = 5
_NOBODY = {"NAME": "tsuishi", "EMAIL": "tsuishi@localhost", "DATE": "2000-01-01T00:00:00Z"}
_VENV, _FILES = "venv", "files"
_OURS = ("TSUISHI_", "INVOKE_TSUISHI_")
# Without Git LFS, which would fetch files, and write into the user's repository.
_AS_STORED = tuple(
    word for key in ("smudge=", "clean=", "process=", "required=false") for word in ("-c", f"filter.lfs.{key}")
)
# The folders of packages that are installed to be changed: PEP 610.
_EDITABLE = """
import importlib.metadata, json, urllib.parse
for each in importlib.metadata.distributions():
    about = json.loads(each.read_text("direct_url.json") or "{}")
    if about.get("dir_info", {}).get("editable"):
        print(urllib.parse.unquote(urllib.parse.urlparse(about["url"]).path))
"""


@dataclass(frozen=True)
class Side:
    """A side. given: as the user wrote it. version: the commit, or the digest of a file; empty for an environment.

    folder: where its command starts. environment: in which it starts; empty for the interpreter of this machine.
    command, variables: in place of those of the call; empty for the same.
    """

    given: str
    version: str
    folder: Path
    environment: str = ""
    command: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The side for a reader: main (1a2b3c4d5e6f)."""
        return f"{self.given} ({self.version[:12]})" if self.version and self.version[:12] != self.given else self.given


def sides_of(given: Sequence[str], command: Sequence[str], images: Path, here: Path) -> list[Side]:
    """The two sides, not made yet. command: that of the call. images: the environments. here: where the user is.

    Raises UserError where a word names no commit, file or environment, and for sides of two kinds.
    """
    top = _asked(here, "rev-parse", "--show-toplevel")
    commits = [_commit(Path(top), each) if top else "" for each in given]
    if all(commits):
        below = here.resolve().relative_to(Path(top).resolve())
        return [Side(each, commit, below) for each, commit in zip(given, commits, strict=True)]
    known = known_environments(images)
    if all(each in known for each in given):
        return [Side(name, "", here, environment=name) for name in given]
    if all((here / each).is_file() for each in given):
        if command:
            raise UserError("two files are run by `python`: give no command behind --")
        return [
            Side(each, sha256_of(here / each), here, command=("python", str((here / each).resolve()))) for each in given
        ]
    wrong = next((each for each, commit in zip(given, commits, strict=True) if not commit), given[0])
    names = _asked(here, "for-each-ref", "--format=%(refname:short)", "--count=40", "--sort=-committerdate").split()
    where = "" if top else f"{here} is in no git repository: go to it, or give two files or environments; "
    if _asked(here, "rev-parse", "--is-shallow-repository") == "true":
        where = "this clone is shallow: fetch the commits (fetch-depth: 0 in a job of GitHub); "
    raise UserError(f"{where}{unknown('commit, file or environment', wrong, [NOW, *names])}")


def made(
    sides: Sequence[Side], parent: Path, here: Path, python: str, setup: str, say: Callable[[str], None]
) -> list[Side]:
    """The sides, each with its folder: clones of the repository at `here` below `parent`, and virtual environments.

    python: the interpreter of virtual environments. setup: a line of the shell. Folders of other commits are removed.
    Raises UserError where a side cannot be made, with the last lines of its setup.
    """
    if sides[0].environment:
        if setup:
            raise UserError("--setup is for commits: an environment has its packages already")
        return [*sides]
    digest = hashlib.sha256(f"{python}\n{setup}".encode()).hexdigest()[:12]
    places = [parent / f"{side.version[:12]}-{digest}" for side in sides]
    for old in parent.glob("*-*"):
        if old not in places and old.is_dir():
            shutil.rmtree(old)
    return [_made(side, place, here, python, setup, say) for side, place in zip(sides, places, strict=True)]


def _made(side: Side, place: Path, here: Path, python: str, setup: str, say: Callable[[str], None]) -> Side:
    is_commit, files, venv = not side.command, place / _FILES, place / _VENV
    folder = files / side.folder if is_commit else side.folder
    variables = variables_of_user()
    if is_commit:
        variables["PWD"] = str(folder)  # else the folder of the user
    if setup:
        programs = f"{venv / 'bin'}{os.pathsep}{variables.get('PATH', os.defpath)}"
        variables |= {"VIRTUAL_ENV": str(venv), "PATH": programs}
    ready = Side(side.given, side.version, folder, "", side.command, variables)
    if (place / _READY).exists():
        return ready
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if is_commit:
        _clone(side, files, here)
        if not folder.is_dir():
            raise UserError(f"{side.title} has no folder {side.folder}, from which the command starts")
    if setup:
        say(f"setting up {side.title}: {setup}")
        _run([python, "-m", "venv", str(venv)], folder, variables_of_user(), f"no virtual environment by {python}")
        _run(["sh", "-c", setup], folder, variables, f"--setup failed for {side.title}")
    (place / _READY).touch()
    return ready


def _run(command: Sequence[str], folder: Path, variables: Mapping[str, str], why: str) -> None:
    """Run a command to its end. Raises UserError with its last lines where it fails."""
    ended = subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip
    if ended.returncode:
        lines = [line.strip() for line in ended.stdout.decode(errors="replace").splitlines() if line.strip()]
        raise UserError(
            f"{why}: it ended with {ended.returncode}: {' | '.join(lines[-_LINES:]) or 'it printed nothing'}"
        )


def variables_of_user() -> dict[str, str]:
    """The variables of the call, without ours, and without those of a hook of git, which name the user's repository."""
    return {name: value for name, value in own_variables().items() if not name.startswith(_OURS)}


def why_shared(here: Path) -> Iterator[str]:
    """Why both sides, without a setup of their own, may run the files of the user's repository; a line for each."""
    top = Path(_git(here, "rev-parse", "--show-toplevel")).resolve()
    if python := shutil.which("python") or shutil.which("python3"):
        asked = subprocess.run([python, "-c", _EDITABLE], cwd="/", capture_output=True, text=True, check=False)
        if any(Path(path).resolve().is_relative_to(top) for path in asked.stdout.splitlines()):
            yield (
                f"{python} imports a package from {top} itself (pip install -e), maybe for both sides: "
                '--setup "pip install -e ." gives each side its own'
            )
    for path in os.environ.get("PATH", "").split(os.pathsep):
        if path and Path(path).resolve().is_relative_to(top) and not (Path(path).parent / "pyvenv.cfg").is_file():
            yield f"PATH has {path}, whose programs are those of your files now, for both sides"


def _clone(side: Side, files: Path, here: Path) -> None:
    """A repository that borrows the objects of that at `here`, with the files of the side's commit."""
    top = Path(_git(here, "rev-parse", "--show-toplevel"))
    origin = _asked(top, "remote", "get-url", "origin")
    if _asked(top, "rev-parse", "--is-shallow-repository") == "true":
        _git(here, "init", "--quiet", str(files))
        inside, theirs = files / ".git", top / _git(top, "rev-parse", "--git-path", "objects")
        (inside / "objects" / "info" / "alternates").write_text(f"{theirs.resolve()}\n")
        shutil.copyfile(top / _git(top, "rev-parse", "--git-path", "shallow"), inside / "shallow")
        _git(files, "remote", "add", "origin", origin or str(top))
    else:
        _git(here, "clone", "--quiet", "--shared", "--no-checkout", str(top), str(files))
        if origin:
            _git(files, "remote", "set-url", "origin", origin)  # relative addresses of submodules begin there
    version = _commit_of_now(top, files / ".git" / "objects") if side.given == NOW else side.version
    if version != side.version:
        raise UserError("files have changed since the call began: call again")
    _git(files, *_AS_STORED, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", version)
    if missing := _git(files, "ls-files", "--deleted"):
        first = missing.splitlines()[0]
        raise UserError(f"{side.title}: files are not there, as {first}: fetch them (is it a partial clone?)")


def _commit(top: Path, given: str) -> str:
    """The commit of a word in a repository; empty where it is none."""
    if given != NOW:
        return _asked(top, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{given}^{{commit}}")
    with private_folder() as folder:
        return _commit_of_now(top, folder)


def _commit_of_now(top: Path, objects: Path) -> str:
    """A commit of all files of a repository that git does not ignore, as they are now; always the same of the same.

    Its objects are written into the folder `objects`, and nothing into the repository.
    """
    path = (_git(top, "rev-parse", "--git-path", name) for name in ("index", "objects"))
    index, theirs = (top / each for each in path)
    with private_folder() as folder:
        if index.exists():
            shutil.copyfile(index, folder / "index")  # so that only changed files are read
        apart = {
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(theirs),
            **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _NOBODY.items()},
        }
        _git(top, *_AS_STORED, "add", "--all", variables=apart)
        tree = _git(top, "write-tree", variables=apart)
        head = _asked(top, "rev-parse", "--quiet", "--verify", "HEAD")
        parents = ("-p", head) if head else ()
        return _git(top, "commit-tree", tree, *parents, "-m", "files as they are now", variables=apart)


def _git(folder: Path, *words: str, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """What git prints in a folder. Raises UserError where it fails."""
    try:
        return git_in(folder, *words, **variables).decode(errors="surrogateescape").strip()
    except NoRepository as error:
        what = next(word for word in words if not word.startswith("-") and "=" not in word)
        raise UserError(f"git {what}: {error.said or error}") from None


def _asked(folder: Path, *words: str) -> str:
    """What git prints in a folder; empty where it fails."""
    try:
        return _git(folder, *words)
    except UserError:
        return ""
