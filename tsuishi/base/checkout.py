"""The folders of a checkout, and its state in git."""

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tsuishi.base import files
from tsuishi.base.home import expanded

# The variables by which git finds another repository, and none that hold configuration.
_OF_OTHERS = re.compile(r"GIT_(?!CONFIG)")
# What git says, and the reason that is recorded.
_REFUSALS = {
    b"dubious ownership": "its folder belongs to another user, and git's safe.directory does not name it",
    b"not a git repository": "it is not in git",
}
_FAILED = "git failed"


# An installed package has the tree of a checkout inside. A copy of it where people work (base/tree.py) is used in its
# place: tasks.py says where that is, also to the processes that are started from here.
ROOT = "TSUISHI_ROOT"
PACKAGED = Path(__file__).resolve().parents[1] / "tree"
IS_INSTALLED = PACKAGED.is_dir()


def _root() -> Path:
    return Path(os.environ.get(ROOT, PACKAGED)) if IS_INSTALLED else Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Checkout:
    """The folders of one checkout of tsuishi."""

    root: Path = field(default_factory=_root)

    @property
    def images(self) -> Path:
        return self.root / "images"

    @property
    def suites(self) -> Path:
        return self.root / "suites"

    @property
    def workloads(self) -> Path:
        return self.root / "suites" / "workloads"

    @property
    def published(self) -> Path:
        return self.root / "reports" / "published"

    @property
    def templates(self) -> Path:
        return self.root / "templates"

    @property
    def dockerfile(self) -> Path:
        return self.templates / "Dockerfile.j2"

    def from_here(self, path: str | Path) -> Path:
        """A path relative to the root, written relative to the current folder if that lies in the checkout.

        So the user can copy it: `reports/out` in the root is `../reports/out` in suites/.
        """
        whole = self.root / expanded(path)
        here = Path.cwd()
        inside = here.is_relative_to(self.root) and not expanded(path).is_absolute()
        return Path(os.path.relpath(whole, here)) if inside else whole


class NoRepository(Exception):
    """Why nothing is known from git, as a sentence that names no folder. `said`: git's own words."""

    def __init__(self, why: str, said: str = "") -> None:
        super().__init__(why)
        self.said = said


def git(root: Path, *arguments: str) -> bytes:
    """The output of git on the repository at `root`. Raises NoRepository where git fails, or finds another repository.

    GIT_DIR and similar variables, which git sets for hooks, name other repositories; GIT_CONFIG_* may declare this
    repository safe.
    """
    top = git_in(root, "rev-parse", "--show-toplevel").decode(errors="surrogateescape").rstrip("\n")
    if Path(top) != root.resolve():
        raise NoRepository("it lies in another repository, and has none of its own")
    return git_in(root, *arguments)


def own_variables() -> dict[str, str]:
    """The variables of this process, without those by which a hook of git names its repository."""
    return {name: value for name, value in os.environ.items() if not _OF_OTHERS.match(name)}


def git_in(root: Path, *arguments: str, **variables: str) -> bytes:
    """The output of git in a folder, of whatever repository. Raises NoRepository where git fails."""
    command, english = ["git", "-C", str(root), *arguments], {**own_variables(), **variables, "LC_ALL": "C"}
    try:
        result = subprocess.run(command, capture_output=True, check=False, env=english)
    except OSError:
        raise NoRepository("there is no git here") from None
    if result.returncode:
        why = next((why for said, why in _REFUSALS.items() if said in result.stderr), _FAILED)
        raise NoRepository(why, result.stderr.decode(errors="replace").strip())
    return result.stdout


def _is_changed(root: Path) -> bool:
    """Whether a file is not as in the commit, or in no commit, whatever the configuration and the index of git say.

    They can hide new files (status.showUntrackedFiles, core.excludesFile, .git/info/exclude) and changed files
    (core.fsmonitor, `git update-index --assume-unchanged`). So an index of its own is compared, and of the lists of
    ignored files only those in the checkout count.
    """
    with files.private_folder() as folder:
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        git_in(root, "read-tree", "HEAD", **index)
        plain = ("-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null")
        changed = git_in(root, *plain, "status", "--porcelain", "-uno", "--ignore-submodules=none", **index)
        return bool(changed or git_in(root, "ls-files", "--others", "--exclude-per-directory=.gitignore", **index))


@cache
def git_state() -> dict[str, Any]:
    """`commit` of this checkout; `dirty` says whether it has uncommitted changes.

    Where it is in no git repository of its own, they are None, with the reason as `why_unknown`; of an installed
    package, `package` has its version and the digest of its files.
    """
    root, state = Checkout().root, dict[str, Any](commit=None, dirty=None)
    try:
        state["commit"] = git(root, "rev-parse", "HEAD").decode().strip()
        state["dirty"] = _is_changed(root)
    except NoRepository as why:
        state["why_unknown"] = str(why)
    if IS_INSTALLED:
        state["package"] = _package()
    return state


def _package() -> str:
    """The version of the installed package, and a digest of its files: the same for all installations of a wheel."""
    from importlib import metadata  # which takes longer than the rest of this module

    files = sorted(
        f"{file.hash.value if file.hash else ''}  {file}\n"
        for file in metadata.files("tsuishi") or ()
        if file.parts[0] == "tsuishi" and "__pycache__" not in file.parts
    )
    return f"{metadata.version('tsuishi')} sha256:{hashlib.sha256(''.join(files).encode()).hexdigest()}"
