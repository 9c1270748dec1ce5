"""A call of `ab` as a user makes it, on a repository that a benchmark has made."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.extras.ab.repository import Repository

_ROOT = Path(__file__).resolve().parent.parent


def compare(repository: Repository, words: Sequence[str], command: Sequence[str]) -> tuple[int, str]:
    """The exit code of `ab` with these words in a repository, and what it printed; its files lie beside the repository.

    Prints the lines on numbers and sides; the last lines of a call that has none.
    """
    given = {**os.environ, "XDG_DATA_HOME": str(repository.path.with_suffix(".data"))}
    typed = [sys.executable, "-m", "invoke", "--search-root", str(_ROOT), "ab", *words, "--host-python", sys.executable]
    ended = subprocess.run(
        [*typed, "--", *command], cwd=repository.path, env=given, capture_output=True, text=True, check=False
    )
    shown = [line for line in ended.stdout.splitlines() if " beside " in line and " run " not in line]
    print(*(f"    {line}" for line in shown or (ended.stdout + ended.stderr).splitlines()[-4:]), sep="\n", flush=True)
    return ended.returncode, ended.stdout
