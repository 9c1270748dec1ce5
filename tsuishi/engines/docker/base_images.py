"""Brings base images into the engine, from the cache or a registry, and into the cache."""

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tsuishi.base import threads
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.base.settings import mirrored
from tsuishi.engines.docker import transfer
from tsuishi.engines.docker.base_cache import BaseCache, CachedBase
from tsuishi.engines.docker.daemon import Connection, image_or_none
from tsuishi.specs.environment import BaseImage, Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image


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
