"""A repository of a user."""

import subprocess
from pathlib import Path


class Repository:
    """A repository of a user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", "-C", str(self.path), *who, *words], check=True, capture_output=True, text=True
        ).stdout

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            (self.path / name.replace("__", ".")).write_text(text)
        self.git("add", "--all")
        self.git("commit", "-qm", "next")

    def state(self) -> tuple[str, str, str]:
        """What a call must leave as it was."""
        counted = self.git("count-objects", "-v")
        return self.git("status", "--porcelain", "--ignored"), counted, self.git("worktree", "list")
