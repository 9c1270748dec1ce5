"""Ends long requests to a Docker engine at an interrupt. The engine gives up a request without a listener."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsuishi.base import threads

if TYPE_CHECKING:
    from docker import DockerClient


@contextmanager
def interruptible(client: "DockerClient") -> Iterator[None]:
    """Inside the block, an interrupt closes the connections on which this client receives answers."""
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
