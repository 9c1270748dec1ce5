"""The folders of a checkout, and its state in git."""

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tsuishi.base.home import expanded


@dataclass(frozen=True)
class Checkout:
    """The folders of one checkout of tsuishi."""

    root: Path = Path(__file__).resolve().parents[2]

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


@cache
def git_state() -> dict[str, Any]:
    """`commit` of this checkout, `unknown` outside git; `dirty` says whether it has uncommitted changes."""
    root = Checkout().root
    commit = _git(root, "rev-parse", "HEAD")
    return {"commit": commit or "unknown", "dirty": bool(commit and _git(root, "status", "--porcelain"))}


def _git(root: Path, *arguments: str) -> str:
    try:
        result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)  # noqa: S607
    except OSError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
