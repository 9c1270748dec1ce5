"""Long requests to a Docker engine, cut off by an interrupt: the engine gives up a request when nobody listens."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsuishi.base import threads

if TYPE_CHECKING:
    from docker import DockerClient


@contextmanager
def interruptible(client: "DockerClient") -> Iterator[None]:
    """Inside, an interrupt closes the connections over which answers come to this client."""
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
