"""What a Docker engine does for minutes, cut off by an interrupt: it gives up what nobody listens to any more."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsuishi.base import threads

if TYPE_CHECKING:
    from docker import DockerClient


@contextmanager
def interruptible(client: "DockerClient") -> Iterator[None]:
    """While inside, an interrupt closes the connections over which this client is being answered."""
    from docker.types import CancellableStream

    answers: list[Any] = []

    def note(answer: Any, **_: Any) -> None:
        answers.append(answer)

    def cut_off() -> None:
        for answer in answers:
            CancellableStream(iter(()), answer).close()

    hooks = client.api.hooks["response"]
    hooks.append(note)
    try:
        with threads.closing(cut_off):
            yield
    finally:
        hooks.remove(note)
