"""The errors a person sees: one line that says what was given, which values are known, and what to do next."""

import difflib
import sys
from collections.abc import Iterable
from functools import cache

from tsuishi.base.printable import line
from tsuishi.base.redaction import redacted

EXIT_USER_ERROR = 1
EXIT_TRIAL_FAILED = 3
EXIT_VERDICT = 4
# As pytest ends where it collected no test: a check over nothing is no pass.
EXIT_NOTHING_CHECKED = 5
EXIT_INTERRUPTED = 130
# As a shell has it for a program that ends because the reader of its output is gone.
EXIT_UNREAD = 141


class UserError(Exception):
    """Something the user can mend. Shown as one line without a traceback; exit code 1.

    >>> str(UserError("https://ada:secret@packages.example/simple: 404"))
    'https://packages.example/simple: 404'
    """

    def __init__(self, message: str) -> None:
        super().__init__(line(redacted(message)))


class BuildError(UserError):
    """The build of an environment failed, or the environment differs from its spec."""


class EngineLost(Exception):
    """The engine stopped answering during its work: its daemon died, say."""

    def __init__(self, message: str) -> None:
        super().__init__(line(redacted(message)))


@cache
def leave_out(problem: str) -> None:
    """Say once on standard error what is wrong with a file that the command goes on without."""
    print(f"left out: {problem}", file=sys.stderr)


def unknown(kind: str, given: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist. It lists the known names, and suggests the nearest.

    >>> str(unknown("engine", "dockr", ["docker", "host", "venv"]))
    "unknown engine 'dockr'; did you mean 'docker'? known: docker, host, venv"
    """
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return UserError(f"unknown {kind} '{given}'; {hint}known: {', '.join(names) or 'none'}")
