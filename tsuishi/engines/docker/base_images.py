"""Base images: found in the engine, loaded from the cache, or pulled; kept in the cache for machines without a network.

    <cache>/bases/<digest, or image id>.tar      as `docker save` writes it
    <cache>/bases/<digest, or image id>.json     reference, digest, reference used, image id, bytes

An image id is a hash over configuration and layers: what is loaded has the id that was noted when it was kept, or is
not used. Another machine or user may have filled the cache: of a tar, an engine gets that image and nothing else.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, ValidationError

from tsuishi.artifacts.repacking import Digest, Received, Text
from tsuishi.artifacts.strict_tar import Damaged
from tsuishi.base import files, threads, toml
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.base.settings import mirrored
from tsuishi.engines.docker import saved_images
from tsuishi.engines.docker.daemon import image_or_none
from tsuishi.engines.docker.interruptible import interruptible
from tsuishi.specs.environment import BaseImage, Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_CHUNK = 1 << 20
_AGAIN = "remove it, and get it again with `invoke fetch`"


class KeptBase(Received):
    """A base image in the cache."""

    reference: Text
    digest: Digest | Literal["unpinned"]
    used: Text
    image_id: Digest
    size_bytes: Annotated[int, Field(ge=0)]


class PresentBase(NamedTuple):
    """A base image in the engine, and the reference under which it goes into records."""

    image: "Image"
    used: str


class Bases:
    """The base images of one engine and one cache."""

    def __init__(self, cache: Path, mirrors: Mapping[str, str], offline: bool = False) -> None:
        self._folder = cache / "bases"
        self._mirrors = mirrors
        self._offline = offline
        # Two builds on one base: one brings it, the other finds it.
        self._bringing = threading.Lock()

    def references(self, base: BaseImage) -> tuple[str, ...]:
        """What to build on, the best first: by digest where the spec has one, for which a mirror's tag may stand in."""
        used = mirrored(base.reference, self._mirrors)
        if not base.digest or "@" in used:
            return (used,)
        by_digest = _by_digest(used, base.digest)
        return (by_digest,) if used == base.reference else (by_digest, used)

    def ensure(self, client: "DockerClient", environment: Environment, say: Say, downloaded: Progress) -> PresentBase:
        """The base image, in the engine. Raises BuildError where it is nowhere to be had."""
        base = _base(environment)
        with self._bringing:
            threads.check()
            found = self._in_engine(client, base) or self._from_cache(client, base, say)
            if found is not None:
                return found
            if self._offline:
                raise BuildError(f"{environment.name}: {_title(base)} is not in the cache, and --offline pulls nothing")
            return self._pulled(client, environment, say, downloaded)

    def keep(self, client: "DockerClient", environment: Environment, say: Say, downloaded: Progress) -> KeptBase:
        """Put the base image into the cache, where it is not there already."""
        base = _base(environment)
        kept = self._kept(base)
        found = self._in_engine(client, base)
        if kept is not None and (found is None or found.image.id == kept.image_id):
            return kept
        found = found or self.ensure(client, environment, say, downloaded)
        with self._bringing:
            threads.check()
            kept = self._kept(base)
            if kept is not None and kept.image_id == found.image.id:
                return kept
            return self._save(client, base, found, say)

    def missing(self, client: "DockerClient", environment: Environment) -> tuple[str, ...]:
        """The base image, in words, where neither the engine nor the cache has it."""
        base = _base(environment)
        return () if self._in_engine(client, base) or self._kept(base) else (_title(base),)

    def _places(self, base: BaseImage) -> dict[str, str]:
        """Every name by which it is to be had, in order, and the reference that it is used by then."""
        references = self.references(base)
        copies = base.copies if references == (_by_digest(base.reference, base.digest),) else ()
        same = {_by_digest(copy, base.digest): references[0] for copy in copies}
        return {name: name for name in references} | same

    def _in_engine(self, client: "DockerClient", base: BaseImage) -> PresentBase | None:
        """The image by any of its names; by its id, where it was loaded from the cache, which knows no digests."""
        kept = self._kept(base)
        by_id = {kept.image_id: kept.used} if kept and "@" in kept.used else {}
        places = self._places(base)
        by_digest = {name: used for name, used in places.items() if "@" in name}
        for name, used in (by_digest | by_id | places).items():
            image = image_or_none(client, name)
            if image is not None:
                return PresentBase(image, used)
        return None

    def _kept(self, base: BaseImage) -> KeptBase | None:
        there: dict[str, KeptBase] = {}
        for path in sorted(self._folder.glob("*.json")):
            kept = _read(path)
            tar = self._tar(kept)
            if tar.is_file() and not tar.is_symlink() and tar.stat().st_size == kept.size_bytes:
                there.setdefault(kept.used, kept)
        return next((there[used] for used in self.references(base) if used in there), None)

    def _from_cache(self, client: "DockerClient", base: BaseImage, say: Say) -> PresentBase | None:
        from docker.errors import APIError
        from docker.utils import parse_repository_tag

        kept = self._kept(base)
        if kept is None:
            return None
        tar = self._tar(kept)
        say(f"loading {kept.used} from the cache")
        problem = "it holds another image"
        with tar.open("rb") as file, patient(client):
            try:
                for chunk in client.api.load_image(saved_images.repacked(file, kept.image_id)):  # type: ignore[no-untyped-call]
                    problem = chunk.get("error", problem)
            except Damaged as error:
                problem = str(error)
            except APIError as error:
                problem = str(error.explanation or error)
        image = image_or_none(client, kept.image_id)
        if image is None:
            raise BuildError(f"{tar} is damaged ({problem.strip()}): {_AGAIN}")
        if "@" not in kept.used:
            image.tag(*parse_repository_tag(kept.used))
        return PresentBase(image, kept.used)

    def _pulled(self, client: "DockerClient", environment: Environment, say: Say, downloaded: Progress) -> PresentBase:
        from docker.errors import APIError

        problems = []
        for name, used in self._places(_base(environment)).items():
            say(f"pulling {name}")
            try:
                _pull(client, name, downloaded)
                return PresentBase(client.images.get(name), used)
            except (APIError, UserError) as error:
                problem = error.explanation if isinstance(error, APIError) else str(error)
                problems.append(f"{name}: {problem or error}")
                say(f"cannot pull {problems[-1]}")
        raise BuildError(
            f"{environment.name}: cannot pull {'; nor '.join(problems)}; where the registry is out of reach, name a "
            "copy of it in tsuishi.mirrors, bring it in the cache (`invoke fetch`), or use --engine venv"
        )

    def _save(self, client: "DockerClient", base: BaseImage, found: PresentBase, say: Say) -> KeptBase:
        image, used = found
        say(f"keeping {used} in the cache")
        with files.temporary_folder(self._folder, ".saving-") as folder:
            part = folder / "image.tar"
            with part.open("wb") as file, patient(client):
                for chunk in client.api.get_image(str(image.id), _CHUNK):
                    threads.check()
                    file.write(chunk)
            for path in self._folder.glob("*.json"):  # of a tag that has moved
                if _read(path).used == used:
                    path.unlink()
                    path.with_suffix(".tar").unlink(missing_ok=True)
            size = part.stat().st_size
            kept = KeptBase(
                reference=base.reference,
                digest=base.digest or "unpinned",
                used=used,
                image_id=str(image.id),
                size_bytes=size,
            )
            part.replace(self._tar(kept))
        files.write_json(self._tar(kept).with_suffix(".json"), kept.model_dump())
        return kept

    def _tar(self, kept: KeptBase) -> Path:
        name = kept.digest if "@" in kept.used else kept.image_id
        return self._folder / f"{name.removeprefix('sha256:')}.tar"


def _read(path: Path) -> KeptBase:
    try:
        return KeptBase.model_validate_json(files.read_bytes(path, files.MOST_JSON_BYTES))
    except ValidationError as error:
        raise UserError(f"{path}: {toml.explain(error, KeptBase)}: {_AGAIN}") from error


def _base(environment: Environment) -> BaseImage:
    assert environment.base is not None
    return environment.base


def _by_digest(reference: str, digest: str) -> str:
    """The image of that digest in the same repository.

    >>> _by_digest("localhost:5000/python:3.6", "sha256:ab"), _by_digest("localhost:5000/python", "sha256:ab")
    ('localhost:5000/python@sha256:ab', 'localhost:5000/python@sha256:ab')
    """
    return f"{re.sub(':[^:/]+$', '', reference)}@{digest}"


def _title(base: BaseImage) -> str:
    return f"base image {base.reference}{base.digest and f'@{base.digest}'}"


def _pull(client: "DockerClient", name: str, downloaded: Progress) -> None:
    """Pull one reference, counting the bytes of its layers. Raises APIError, or UserError with the engine's reason."""
    so_far: dict[str, int] = {}
    with interruptible(client):
        for chunk in client.api.pull(name, stream=True, decode=True):
            threads.check()
            if "error" in chunk:
                raise UserError(str(chunk["error"]).strip())
            if chunk.get("status") == "Downloading":
                current = int(chunk["progressDetail"].get("current", 0))
                downloaded(current - so_far.get(chunk["id"], 0))
                so_far[chunk["id"]] = current


@contextmanager
def patient(client: "DockerClient") -> Iterator[None]:
    """An engine that packs or unpacks gigabytes says nothing meanwhile."""
    usual = client.api.timeout
    client.api.timeout = None  # type: ignore[assignment]
    try:
        yield
    finally:
        client.api.timeout = usual
