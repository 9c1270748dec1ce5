"""Worker processes: modules of tsuishi that do a part of the work while the process that asked goes on.

A worker may answer once, by pickle: with what it was asked for, or the error that kept it from that.
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
    """A module begun as a program, with the options of Popen.

    Ctrl-C is for the process that asks: it ends its workers. In a session of their own they would have a share of the
    processors of their own too, however nice they are (sched(7), autogroup).
    """
    return subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=_ROOT, process_group=0, **options)


def answer(process: "subprocess.Popen[bytes]", does: str) -> Any:
    """What a worker answers. Raises what it answers with, where that is an error, and UserError where it just ended."""
    assert process.stdout
    try:
        found = pickle.load(process.stdout)  # noqa: S301  from our own process
    except EOFError:
        raise UserError(f"the process that {does} has ended before its time; make the report again") from None
    if isinstance(found, Exception):
        raise found
    return found


def reply(found: Any) -> None:
    """The worker's side of `answer`."""
    with os.fdopen(1, "wb", buffering=1 << 20, closefd=False) as file:
        pickle.dump(found, file, protocol=5)
