"""Processes: a started workload as its listener sees it, and the worker processes of tsuishi itself.

A worker is a module of tsuishi that does a part of the work while the process that started it goes on.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

_ROOT = Path(__file__).parents[2]

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Ended:
    """How a process ended. A signal's number is in `code`: negative, or plus 128 where it was in a container."""

    code: int
    out_of_memory: bool = False


class Process(Protocol):
    """A started workload."""

    def output(self) -> Iterator[tuple[Stream, bytes]]:
        """Everything it prints, as it comes, until it ends. Raises EngineLost where the engine goes away."""

    def pids(self) -> Sequence[int]:
        """The process ids on this machine whose process trees are the workload's; none where they cannot be known."""

    def stop(self) -> None:
        """End it at once, with everything it started. Does nothing where it has ended."""

    def wait(self) -> Ended:
        """How it ended, once `output` is exhausted; cleans up after it."""


def start(module: str, *arguments: str, **options: Any) -> "subprocess.Popen[Any]":
    """Start a module as a program, with the options of Popen.

    Ctrl-C does not reach workers: the process that started them ends them. They stay in its session, because a session
    of their own would get a full share of the processors at any nice value (sched(7), autogroup).
    """
    return subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=_ROOT, process_group=0, **options)
