"""Worker processes: a module of tsuishi does a part of the work while the process that started it goes on.

A worker may answer once, by pickle, with a result or an error.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from tsuishi.base.errors import UserError

_ROOT = Path(__file__).parents[2]


def start(module: str, *arguments: str, **options: Any) -> "subprocess.Popen[Any]":
    """Start a module as a program, with the options of Popen.

    Ctrl-C does not reach workers: the process that started them ends them. They stay in its session, because a session
    of their own would get a full share of the processors, whatever their nice value (sched(7), autogroup).
    """
    return subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=_ROOT, process_group=0, **options)


def answer(process: "subprocess.Popen[bytes]", does: str) -> Any:
    """The result of a worker. Raises the error that it answers with, or UserError where it ended without an answer."""
    assert process.stdout
    try:
        result = pickle.load(process.stdout)  # noqa: S301  from our own process
    except EOFError:
        raise UserError(f"the process that {does} has ended before its time; make the report again") from None
    if isinstance(result, Exception):
        raise result
    return result


def reply(result: Any) -> None:
    """The worker's side of `answer`: send a result or an exception."""
    with os.fdopen(1, "wb", buffering=1 << 20, closefd=False) as file:
        pickle.dump(result, file, protocol=5)
