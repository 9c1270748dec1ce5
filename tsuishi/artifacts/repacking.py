"""Archives of images that others made: their JSON texts as typed objects, and new archives of their parts."""

import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tsuishi.artifacts import image_archive
from tsuishi.artifacts.strict_tar import Damaged
from tsuishi.base import threads, toml
from tsuishi.base.errors import UserError

# Engines load no image with more layers.
MOST_LAYERS = 127
_CHUNK = 1 << 20

M = TypeVar("M", bound=BaseModel)

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=1 << 16)]


class Received(BaseModel):
    """Base of the objects in archives. Fields that a model does not name are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)


@dataclass(frozen=True)
class Part(image_archive.Blob):
    """A blob in an archive, from byte `offset` on."""

    offset: int


def typed(name: str, text: bytes, model: type[M]) -> M:
    """A JSON text in an archive as a model. Raises Damaged where it does not fit the model, or has a key twice."""
    try:
        return model.model_validate(json.loads(text, object_pairs_hook=_object))
    except ValidationError as error:
        raise Damaged(f"{name}: {toml.explain(error, model)}") from error
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{name}: cannot be read: {error}") from error


def packed(texts: Mapping[str, bytes], parts: Iterable[Part], file: IO[bytes]) -> Iterator[bytes]:
    """A tar archive of texts by their names, and of parts of a file, each part once.

    Raises UserError before its end where a part has changed since it was checked.
    """
    for name, text in texts.items():
        yield from _entry(name, len(text), [text])
    for part in {part.digest: part for part in parts}.values():
        file.seek(part.offset)
        yield from _entry(part.name, part.size, _content(file, part))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ValueError where keys differ in case only, because engines (in Go) treat them as equal."""
    if len({key.casefold() for key, _ in pairs}) != len(pairs):
        raise ValueError(f"a key is there twice among {', '.join(key for key, _ in pairs)[:60]!r}")
    return dict(pairs)


def _content(file: IO[bytes], part: Part) -> Iterator[bytes]:
    """The bytes of a part. Raises UserError after the last byte where the digest has changed."""
    digest, left = hashlib.sha256(), part.size
    while left and (chunk := file.read(min(left, _CHUNK))):
        threads.check()
        left -= len(chunk)
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != part.digest:
        raise UserError(f"{part.name} has changed since it was checked: do not use the archive, and copy it again")


def _entry(name: str, size: int, content: Iterable[bytes]) -> Iterator[bytes]:
    yield image_archive.entry(name, size).tobuf()
    yield from content
    yield bytes(-size % tarfile.BLOCKSIZE)
