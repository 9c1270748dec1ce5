"""Base images in the cache, for machines without a network.

    <cache>/bases/<digest, or image id>.tar      the output of `docker save`
    <cache>/bases/<digest, or image id>.json     reference, digest, reference used, image id, bytes

An image id is a hash over configuration and layers. A loaded image must have the id that was noted when it was saved.
The engine removes an image with another id again, but a name that such an archive has may be taken from another image.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tsuishi.base import files, threads, toml
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Say
from tsuishi.engines.docker import transfer
from tsuishi.engines.docker.daemon import patient
from tsuishi.specs.environment import BaseImage

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


def _refuse_other(cached: CachedBase, image: "Image") -> None:
    if image.id != cached.image_id:
        raise UserError("it holds another image")


def _read(path: Path) -> CachedBase:
    try:
        return CachedBase.model_validate_json(files.read_bytes(path, files.MOST_JSON_BYTES))
    except ValidationError as error:
        raise UserError(f"{path}: {toml.explain(error, CachedBase)}: {_AGAIN}") from error
