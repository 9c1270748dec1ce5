"""Whether two builds give the same image: `python -m benchmarks.two_builds --env tf1.13-cpu`, with .venv active.

Builds an environment twice from empty caches (its packages are fetched again each time, and no layer is reused), and
compares the two images file by file: path, kind, mode, owner, size, SHA-256, target of a link. Times of modification
are counted and not compared. Layers with the same digest are the same tar byte for byte, times included. Both builds
are removed in the end.
"""

import argparse
import hashlib
import io
import os
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError, unknown
from tsuishi.base.settings import Settings, read_settings
from tsuishi.engines.docker import recipe
from tsuishi.engines.docker.base_images import Bases
from tsuishi.engines.docker.daemon import Connection
from tsuishi.engines.docker.image_maker import Layers
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import Environment, known_environments, read_environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_CHUNK = 1 << 20
_SHOWN = 50


@dataclass(frozen=True)
class Entry:
    """A path in an image. `modified_s`: seconds since 1970. `sha256`: empty for paths without content."""

    kind: str
    mode: str
    owner: str
    size_bytes: int
    sha256: str
    points_to: str
    modified_s: float

    def differences(self, other: "Entry") -> list[str]:
        """The properties that differ, except the time of modification, in words: `mode 0o644, 0o755`."""
        names = ("kind", "mode", "owner", "size_bytes", "sha256", "points_to")
        return [
            f"{name} {getattr(self, name)}, {getattr(other, name)}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        ]


@dataclass(frozen=True)
class Comparison:
    """The differences between two images, by path. `files`: the number of paths in both images.

    `times_differing`: the number of those paths with different times of modification.
    """

    files: int
    differing: dict[str, list[str]]
    times_differing: int


def compare(first: Mapping[str, Entry], second: Mapping[str, Entry]) -> Comparison:
    """Compare two images, each given as its entries by path."""
    differing = {}
    for path in sorted({*first, *second}):
        if path in first and path in second:
            differences = first[path].differences(second[path])
        else:
            differences = ["only in the first" if path in first else "only in the second"]
        if differences:
            differing[path] = differences
    both = first.keys() & second.keys()
    times = sum(first[path].modified_s != second[path].modified_s for path in both)
    return Comparison(len(both), differing, times)


def read_content(chunks: Iterable[bytes]) -> dict[str, Entry]:
    """The entries of a tar, by path."""
    content = {}
    with tarfile.open(fileobj=cast("IO[bytes]", io.BufferedReader(_Stream(chunks))), mode="r|") as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            content[member.name] = Entry(
                kind=_kind(member),
                mode=oct(member.mode),
                owner=f"{member.uid}:{member.gid}",
                size_bytes=member.size,
                sha256=hashlib.file_digest(cast("Any", file), "sha256").hexdigest() if file else "",
                points_to=member.linkname,
                modified_s=member.mtime,
            )
    return content


def _kind(member: tarfile.TarInfo) -> str:
    kinds = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "same file"}
    return kinds.get(member.type, f"tar type {member.type!r}")


class _Stream(io.RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            try:
                self._rest = next(self._chunks)
            except StopIteration:
                return 0
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)


def image_content(client: "DockerClient", image_id: str) -> dict[str, Entry]:
    """The entries that a container of the image sees, by path, with the few empty files that the engine adds."""
    container = client.containers.create(image_id, network_mode="none")
    try:
        return read_content(cast("Iterator[bytes]", container.export(_CHUNK)))
    finally:
        container.remove(force=True)


def build(client: "DockerClient", environment: Environment, settings: Settings, number: int) -> tuple["Image", float]:
    """Build the image from an empty cache, without layers of earlier builds. Returns the image, and the seconds."""
    begin = time.monotonic()
    checkout = Checkout()
    bases = Bases(Connection(), settings.cache, settings.mirrors)
    base = bases.ensure(environment, print, lambda size: None).image
    settings.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.cache, prefix=".two-builds-") as folder:
        fetcher = Builder(settings.model_copy(update={"cache": Path(folder)}), checkout).fetcher(lambda line: None)
        wheels, debs = fetcher.fetch(environment), fetcher.fetch_debs(environment)
        template = checkout.dockerfile.read_text(encoding="utf-8")
        tag = f"tsuishi-two-builds/{environment.name}:{number}"
        with (
            recipe.context(template, environment, str(base.id), wheels, debs, Path(folder)) as tar,
            tar.open("rb") as file,
        ):
            stream = client.api.build(
                fileobj=file, custom_context=True, tag=tag, network_mode="none", nocache=True, rm=True, decode=True
            )
            layers = Layers()
            try:
                layers.follow(stream, str(base.id), lambda line: None)
                image = client.images.get(tag)
                layers.keep(image)
            finally:
                layers.remove(client)
    return image, time.monotonic() - begin


def report(client: "DockerClient", environment: Environment, images: list["Image"]) -> Iterator[str]:
    """Lines on what the two images share, and on their differences."""
    comparison = compare(*(image_content(client, str(image.id)) for image in images))
    yield f"{environment.name}: {comparison.files} paths in both images, {len(comparison.differing)} differ"
    for path, differences in list(comparison.differing.items())[:_SHOWN]:
        yield f"  {path}: {'; '.join(differences)}"
    yield f"  times of modification that differ: {comparison.times_differing}"
    first, second = (image.attrs["RootFS"]["Layers"] for image in images)
    same = sum(layer == other for layer, other in zip(first, second, strict=False))
    yield f"  layers: {same} of {max(len(first), len(second))} are the same byte for byte"
    yield f"  image ids: {' and '.join(str(image.id) for image in images)}"
    if images[0].id != images[1].id:
        yield "  (an id is the hash of a configuration, which holds when, and in which containers, the image was built)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", required=True, help="the environment")
    name = parser.parse_args().env
    known = known_environments(Checkout().images)
    if name not in known:
        raise SystemExit(str(unknown("environment", name, known)))
    environment = read_environment(known[name])
    import docker

    client, images = docker.from_env(timeout=600), []
    try:
        for number in (1, 2):
            image, taken_s = build(client, environment, read_settings({}, os.environ, {}), number)
            images.append(image)
            print(f"{environment.name}: build {number} took {taken_s:.0f} s", flush=True)
        for line in report(client, environment, images):
            print(line)
    except UserError as error:
        raise SystemExit(str(error)) from error
    finally:
        for image in images:
            client.images.remove(str(image.id), force=True)


if __name__ == "__main__":
    main()
