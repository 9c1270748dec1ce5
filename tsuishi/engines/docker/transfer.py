"""Brings images into the engine, from a file or a registry, and into a registry. The engine copies and checks them.

The SDK sends the name and password that `docker login` left in the user's configuration.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsuishi.base import threads
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Progress
from tsuishi.engines.docker.daemon import image_or_none, patient

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_LOADED = re.compile("Loaded image(?: ID)?: (.+)")


def load(client: "DockerClient", archive: Iterable[bytes], check: Callable[["Image"], None]) -> "Image":
    """Load the image of an archive. `check` raises UserError for an image that is not the right one.

    Raises UserError where the engine refuses the archive, where it holds several images, and where the check fails;
    then its images do not stay.
    """
    before = client.api.images(quiet=True, all=True)
    names: list[str] = []
    problem = ""
    with _in_its_words(), patient(client):
        for chunk in client.api.load_image(archive):  # type: ignore[no-untyped-call]
            problem = problem or str(chunk.get("error", "")).strip()
            if match := _LOADED.match(chunk.get("stream", "")):
                names += match[1].split(",")  # Podman names all in one line
    loaded = {str(image.id): image for name in names if (image := image_or_none(client, name))}
    try:
        if problem or len(loaded) != 1:
            raise UserError(problem or f"it holds {len(loaded)} images, and one was expected")
        (image,) = loaded.values()
        check(image)
    except UserError:
        for image_id in loaded.keys() - set(before):
            client.images.remove(image_id, force=True)
        raise
    return image


def pull(client: "DockerClient", name: str, downloaded: Progress) -> None:
    """Pull an image, and count the bytes of its layers. Raises UserError where it cannot be pulled."""
    with _in_its_words(), interruptible(client):
        _follow(client.api.pull(name, stream=True, decode=True), "Downloading", downloaded)


def push(client: "DockerClient", name: str, sent: Progress) -> None:
    """Push an image, and count the bytes of its layers. Raises UserError where it cannot be pushed."""
    with _in_its_words(), interruptible(client):
        _follow(client.api.push(name, stream=True, decode=True), "Pushing", sent)


@contextmanager
def interruptible(client: "DockerClient") -> Iterator[None]:
    """Inside the block, an interrupt closes the connections on which this client receives answers.

    The engine gives up a request without a listener.
    """
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


def _follow(stream: Iterable[Any], moving: str, progress: Progress) -> None:
    so_far: dict[str, int] = {}
    for chunk in stream:
        threads.check()
        if "error" in chunk:
            raise UserError(str(chunk["error"]).strip())
        if chunk.get("status") == moving:
            current = int(chunk["progressDetail"].get("current", 0))
            progress(current - so_far.get(chunk["id"], 0))
            so_far[chunk["id"]] = current


@contextmanager
def _in_its_words() -> Iterator[None]:
    """Inside the block a refusal of the engine, or of the registry that it asks, becomes UserError with its words."""
    from docker.errors import DockerException

    try:
        yield
    except DockerException as error:
        raise UserError(str(getattr(error, "explanation", None) or error).strip()) from error
