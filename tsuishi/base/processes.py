"""A started workload as its listener sees it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

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
