"""Brings base images into the engine, from the cache or a registry, and into the cache.

The cache is for machines without a network:

    <cache>/bases/<digest, or image id>.tar      the output of `docker save`
    <cache>/bases/<digest, or image id>.json     reference, digest, reference used, image id, bytes

An image id is a hash over configuration and layers. A loaded image must have the id that was noted when it was saved.
The engine removes an image with another id again, but a name that such an archive has may be taken from another image.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tsuishi.base import files, threads, toml
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.base.settings import mirrored
from tsuishi.engines.docker import transfer
from tsuishi.engines.docker.daemon import Connection, image_or_none, patient
from tsuishi.specs.environment import BaseImage, Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_CHUNK = 1 << 20
_AGAIN = "remove it, and get it again with `invoke fetch`"


class CachedBase(BaseModel):
    """The .json file of a base image in the cache."""

    model_config = ConfigDict(frozen=True, strict=True)

    reference: str
    digest: toml.ImageDigest | Literal["unpinned"]
    # The reference for records: that of a mirror, say.
    used: str
    image_id: toml.ImageDigest
    size_bytes: Annotated[int, Field(ge=0)]


class BaseCache:
    """The base images in a cache."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "bases"

    def find(self, references: Sequence[str]) -> CachedBase | None:
        """The image that was saved under the first of these references. Raises UserError for a damaged .json file."""
        by_reference: dict[str, CachedBase] = {}
        for path in sorted(self._folder.glob("*.json")):
            cached = _read(path)
            tar = self._tar(cached)
            if tar.is_file() and not tar.is_symlink() and tar.stat().st_size == cached.size_bytes:
                by_reference.setdefault(cached.used, cached)
        return next((by_reference[used] for used in references if used in by_reference), None)

    def load(self, client: "DockerClient", cached: CachedBase, say: Say) -> "Image":
        """Load the image into the engine. Raises BuildError where the tar does not hold the image with the noted id."""
        from docker.utils import parse_repository_tag

        tar = self._tar(cached)
        say(f"loading {cached.used} from the cache")
        try:
            with tar.open("rb") as file:
                image = transfer.load(client, threads.pieces_until_halted(file), partial(_refuse_other, cached))
        except UserError as error:
            raise BuildError(f"{tar} is damaged ({error}): {_AGAIN}") from error
        if "@" not in cached.used:
            image.tag(*parse_repository_tag(cached.used))
        return image

    def save(self, client: "DockerClient", base: BaseImage, image: "Image", used: str, say: Say) -> CachedBase:
        """Save an image of the engine. It replaces an image that was saved under the same reference."""
        say(f"keeping {used} in the cache")
        with files.temporary_folder(self._folder, ".saving-") as folder:
            part = folder / "image.tar"
            with part.open("wb") as file, patient(client):
                for chunk in client.api.get_image(str(image.id), _CHUNK):
                    threads.check()
                    file.write(chunk)
            for path in self._folder.glob("*.json"):  # the tag may have moved to another image
                if _read(path).used == used:
                    path.unlink()
                    path.with_suffix(".tar").unlink(missing_ok=True)
            size = part.stat().st_size
            cached = CachedBase(
                reference=base.reference,
                digest=base.digest or "unpinned",
                used=used,
                image_id=str(image.id),
                size_bytes=size,
            )
            part.replace(self._tar(cached))
        files.write_json(self._tar(cached).with_suffix(".json"), cached.model_dump())
        return cached

    def _tar(self, cached: CachedBase) -> Path:
        name = cached.digest if "@" in cached.used else cached.image_id
        return self._folder / f"{name.removeprefix('sha256:')}.tar"


class PresentBase(NamedTuple):
    """A base image in the engine. `used` is the reference for records."""

    image: "Image"
    used: str


class Bases:
    """The base images of an engine and a cache."""

    def __init__(
        self, connection: Connection, cache: Path, mirrors: Mapping[str, str], *, offline: bool = False
    ) -> None:
        self._connection = connection
        self._cache = BaseCache(cache)
        self._mirrors = mirrors
        self._offline = offline
        # Of two builds on the same base, the first brings it and the second waits.
        self._bringing = threading.Lock()

    def references(self, base: BaseImage) -> tuple[str, ...]:
        """The references to build on, the best first: by the spec's digest, if any; for a mirror, then also by tag."""
        used = mirrored(base.reference, self._mirrors)
        if not base.digest or "@" in used:
            return (used,)
        by_digest = _by_digest(used, base.digest)
        return (by_digest,) if used == base.reference else (by_digest, used)

    def ensure(self, environment: Environment, say: Say, downloaded: Progress) -> PresentBase:
        """Bring the base image into the engine. Raises BuildError where neither engine, cache nor registry has it."""
        base = _base(environment)
        with self._bringing, self._connection.speaking() as client:
            threads.check()
            present = self._in_engine(client, base)
            if present is not None:
                return present
            if cached := self._cached(base):
                return PresentBase(self._cache.load(client, cached, say), cached.used)
            if self._offline:
                raise BuildError(f"{environment.name}: {_title(base)} is not in the cache, and --offline pulls nothing")
            return self._pulled(client, environment, say, downloaded)

    def fetch(self, environment: Environment, say: Say, downloaded: Progress) -> int:
        with self._connection.speaking() as client:
            base = _base(environment)
            cached, present = self._cached(base), self._in_engine(client, base)
            if cached is not None and (present is None or present.image.id == cached.image_id):
                return cached.size_bytes
            present = present or self.ensure(environment, say, downloaded)
            with self._bringing:
                threads.check()
                cached = self._cached(base)
                if cached is None or cached.image_id != present.image.id:
                    cached = self._cache.save(client, base, present.image, present.used, say)
                return cached.size_bytes

    def missing(self, environment: Environment) -> tuple[str, ...]:
        base = _base(environment)
        with self._connection.speaking() as client:
            return () if self._in_engine(client, base) or self._cached(base) else (_title(base),)

    def _places(self, base: BaseImage) -> dict[str, str]:
        """The names of the image in registries, in order, each with the reference for records."""
        references = self.references(base)
        copies = base.copies if references == (_by_digest(base.reference, base.digest),) else ()
        same = {_by_digest(copy, base.digest): references[0] for copy in copies}
        return {name: name for name in references} | same

    def _in_engine(self, client: "DockerClient", base: BaseImage) -> PresentBase | None:
        """The image, by any of its names; by its id if it was loaded from the cache, because then it has no digest."""
        cached = self._cached(base)
        by_id = {cached.image_id: cached.used} if cached and "@" in cached.used else {}
        places = self._places(base)
        by_digest = {name: used for name, used in places.items() if "@" in name}
        for name, used in (by_digest | by_id | places).items():
            image = image_or_none(client, name)
            if image is not None:
                return PresentBase(image, used)
        return None

    def _cached(self, base: BaseImage) -> CachedBase | None:
        return self._cache.find(self.references(base))

    def _pulled(self, client: "DockerClient", environment: Environment, say: Say, downloaded: Progress) -> PresentBase:
        problems = []
        for name, used in self._places(_base(environment)).items():
            say(f"pulling {name}")
            try:
                transfer.pull(client, name, downloaded)
                return PresentBase(client.images.get(name), used)
            except UserError as error:
                problems.append(f"{name}: {error}")
                say(f"cannot pull {problems[-1]}")
        raise BuildError(
            f"{environment.name}: cannot pull {'; nor '.join(problems)}; where the registry is out of reach, name a "
            "copy of it in tsuishi.mirrors, bring it in the cache (`invoke fetch`), or use --engine venv"
        )


def _base(environment: Environment) -> BaseImage:
    assert environment.base is not None
    return environment.base


def _by_digest(reference: str, digest: str) -> str:
    """The reference with a digest in place of the tag.

    >>> _by_digest("localhost:5000/python:3.6", "sha256:ab"), _by_digest("localhost:5000/python", "sha256:ab")
    ('localhost:5000/python@sha256:ab', 'localhost:5000/python@sha256:ab')
    """
    return f"{re.sub(':[^:/]+$', '', reference)}@{digest}"


def _title(base: BaseImage) -> str:
    return f"base image {base.reference}{base.digest and f'@{base.digest}'}"


def _refuse_other(cached: CachedBase, image: "Image") -> None:
    if image.id != cached.image_id:
        raise UserError("it holds another image")


def _read(path: Path) -> CachedBase:
    try:
        return CachedBase.model_validate_json(files.read_bytes(path, files.MOST_JSON_BYTES))
    except ValidationError as error:
        raise UserError(f"{path}: {toml.explain(error, CachedBase)}: {_AGAIN}") from error
