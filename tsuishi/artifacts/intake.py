"""Reads archives of images, by `invoke export` or from elsewhere, from end to end before an engine gets any byte.

The engine gets a new archive (repacking.py) of the checked parts only: other readings of the same file, by other
programs, do not matter. A check says nothing about the author of an image: see docs/security.md.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import Field, RootModel

from tsuishi.artifacts import image_archive, strict_tar
from tsuishi.artifacts.repacking import (
    MOST_LAYERS,
    Digest,
    M,
    Part,
    Received,
    Text,
    packed,
    typed,
)
from tsuishi.artifacts.strict_tar import Damaged
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.files import sha256_of

ALTERED = "altered; do not use it, and export it again"
# The names that an archive may hold; the names of notes are as strict as the names of environments.
_NAMES = re.compile(
    rf"oci-layout|(index|manifest)\.json|{image_archive.BLOBS}[0-9a-f]{{64}}"
    rf"|{image_archive.NOTES}(environment\.json|templates/Dockerfile\.j2|images/[a-z0-9][a-z0-9._-]*\.(toml|lock))"
)
_LIMITS = strict_tar.ArchiveLimits(members=MOST_LAYERS + 20)
# Bytes of all parts without the layers. The record, with its bill of materials, has a few hundred kilobytes.
_TEXT = 16 << 20
# Bytes of all unpacked layers.
_UNPACKED = 64 << 30

_BlobName = Annotated[str, Field(pattern=rf"^{image_archive.BLOBS}[0-9a-f]{{64}}$")]


class _ManifestEntry(Received):
    """The image in a manifest.json."""

    config: _BlobName = Field(alias="Config")
    tags: list[Text] = Field(alias="RepoTags", min_length=1, max_length=1)
    layers: list[_BlobName] = Field(alias="Layers", min_length=1, max_length=MOST_LAYERS)


class _ManifestFile(RootModel[Annotated[list[_ManifestEntry], Field(min_length=1, max_length=1)]]):
    """manifest.json with exactly one image."""


class _Process(Received):
    """The settings of an image's containers. An entrypoint is refused: it would run before every trial."""

    labels: dict[Text, Text] = Field(alias="Labels", max_length=500)
    variables: list[Text] | None = Field(None, alias="Env", max_length=500)
    entrypoint: list[Text] | None = Field(None, alias="Entrypoint", max_length=0)
    command: list[Text] | None = Field(None, alias="Cmd", max_length=500)


class _Root(Received):
    diff_ids: list[Digest] = Field(max_length=MOST_LAYERS)


class _Config(Received):
    """An image's config: labels, and the SHA-256 of each unpacked layer."""

    process: _Process = Field(alias="config")
    root: _Root = Field(alias="rootfs")
    history: list[dict[Text, Any]] = Field([], max_length=500)


@dataclass(frozen=True)
class _Layer(Part):
    """A layer in an archive, with the SHA-256 and the size of its unpacked content."""

    diff_id: str
    unpacked_bytes: int


@dataclass(frozen=True)
class ArchivedImage:
    """The checked content of an archive: an image with its name, and the notes on it."""

    tag: str
    labels: Mapping[str, str]
    notes: Mapping[str, bytes]
    config: bytes
    layers: tuple[_Layer, ...]

    @property
    def id(self) -> str:
        """The SHA-256 of the config, which most engines use as the id."""
        return f"sha256:{self._config.digest}"

    @property
    def ids(self) -> tuple[str, str]:
        """The ids that engines use: the SHA-256 of the config or of the manifest."""
        return self.id, "sha256:" + list(self.descriptions)[-1].removeprefix(image_archive.BLOBS)

    @property
    def diff_ids(self) -> list[str]:
        """The SHA-256 of each unpacked layer."""
        return [layer.diff_id for layer in self.layers]

    @property
    def unpacked_bytes(self) -> int:
        """The size of all unpacked layers."""
        return sum(layer.unpacked_bytes for layer in self.layers)

    @property
    def descriptions(self) -> dict[str, bytes]:
        """The files that name the blobs and the tag: see image_archive.descriptions."""
        return image_archive.descriptions(self._config, self.layers, self.tag)

    @property
    def _config(self) -> image_archive.Blob:
        return image_archive.Blob(hashlib.sha256(self.config).hexdigest(), len(self.config))

    def packed(self, file: IO[bytes]) -> Iterator[bytes]:
        """A new archive for an engine. Of the archive in `file` only the layers are copied.

        Raises UserError before the end of the new archive where a layer has changed since it was checked.
        """
        return packed({**self.descriptions, self._config.name: self.config}, self.layers, file)


def read_archive(path: Path) -> ArchivedImage:
    """Read an archive from end to end. Raises UserError where a part of it does not fit its name or the checksum."""
    beside = path.with_name(path.name + image_archive.CHECKSUM)
    if beside.exists():
        expected, actual = files.read_bytes(beside).decode("ascii", "replace").split()[:1], sha256_of(path)
        if [actual] != expected:
            raise UserError(
                f"{path}: sha256 is {actual}, {beside.name} says {' '.join(expected)[:64] or 'nothing'}: "
                "altered or incomplete; copy it again"
            )
    try:
        with path.open("rb") as file:
            return _image(path, file)
    except (OSError, Damaged) as error:
        raise UserError(f"{path}: no archive of an image, or not the whole of one: {error}") from error


def parsed(path: Path, name: str, text: bytes, model: type[M]) -> M:
    """A JSON text in an archive as a model. Raises UserError where it does not fit the model, or has a key twice."""
    try:
        return typed(name, text, model)
    except Damaged as error:
        raise UserError(f"{path}: {error}: {ALTERED}") from error


def _image(path: Path, file: IO[bytes]) -> ArchivedImage:
    texts: dict[str, bytes] = {}
    layers: dict[str, _Layer] = {}
    saved: _ManifestEntry | None = None
    for member in strict_tar.members(file, _LIMITS):
        if not texts and not member.name.startswith(image_archive.NOTES):
            raise UserError(f"{path}: not written by `invoke export`; `docker load` takes images of other origin")
        # Programs read other headers in different ways.
        if not _NAMES.fullmatch(member.name) or member.header != image_archive.entry(member.name, member.size).tobuf():
            raise UserError(f"{path}: {member.name} is nothing that `invoke export` writes: {ALTERED}")
        if saved and member.name in saved.layers:
            layers[member.name] = _layer(path, member, sum(layer.unpacked_bytes for layer in layers.values()))
        else:
            texts[member.name] = _text(path, member, sum(map(len, texts.values())))
        if member.name == image_archive.MANIFEST:
            (saved,) = parsed(path, image_archive.MANIFEST, texts[image_archive.MANIFEST], _ManifestFile).root
    for name in (image_archive.MANIFEST, *((saved.config, *saved.layers) if saved else ())):
        if name not in texts and name not in layers:
            raise UserError(f"{path}: {name} is missing: not the whole archive; copy it again")
    assert saved is not None
    return _checked(path, saved, texts, tuple(layers[name] for name in saved.layers))


def _checked(path: Path, saved: _ManifestEntry, texts: dict[str, bytes], layers: tuple[_Layer, ...]) -> ArchivedImage:
    """The image of these parts. Raises UserError where its config is of no use, or parts contradict each other."""
    text = texts.pop(saved.config, b"")
    config = parsed(path, "the image's config", text, _Config)
    notes = {
        name.removeprefix(image_archive.NOTES): texts.pop(name)
        for name in list(texts)
        if name.startswith(image_archive.NOTES)
    }
    image = ArchivedImage(saved.tags[0], config.process.labels, notes, text, layers)
    # Some engines read the index and the manifest it names, others manifest.json.
    for name, description in image.descriptions.items():
        if texts.pop(name, None) != description:
            raise UserError(f"{path}: {name} does not describe the image that manifest.json does: {ALTERED}")
    for name in texts:
        raise UserError(f"{path}: {name} is nothing that `invoke export` writes: {ALTERED}")
    if config.root.diff_ids != image.diff_ids:
        raise UserError(f"{path}: the image's config is of other layers than there are: {ALTERED}")
    return image


def _layer(path: Path, member: strict_tar.Member, before: int) -> _Layer:
    """Read a layer. `before`: the unpacked bytes of the layers before it."""
    packed, unpacked, size = hashlib.sha256(), hashlib.sha256(), 0
    content = _hashed(member.content, packed)
    try:
        for piece in strict_tar.inflated(content, _UNPACKED - before):
            unpacked.update(piece)
            size += len(piece)
    except BadGzipFile as error:
        for _ in content:
            pass
        # A wrong digest means that the layer was damaged in transport: that message says more.
        _refuse_other_content(path, member.name, packed.hexdigest())
        raise UserError(f"{path}: {member.name} is no layer: {error}: {ALTERED}") from error
    _refuse_other_content(path, member.name, packed.hexdigest())
    return _Layer(packed.hexdigest(), member.size, member.offset, f"sha256:{unpacked.hexdigest()}", size)


def _text(path: Path, member: strict_tar.Member, before: int) -> bytes:
    """Read a part that is no layer. `before`: the bytes of such parts before it."""
    if before + member.size > _TEXT:
        raise UserError(
            f"{path}: {member.name} has {member.size:,} bytes, and such parts have {_TEXT:,} at most: {ALTERED}"
        )
    text = b"".join(member.content)
    if member.name.startswith(image_archive.BLOBS):
        _refuse_other_content(path, member.name, hashlib.sha256(text).hexdigest())
    return text


def _refuse_other_content(path: Path, name: str, digest: str) -> None:
    if name != image_archive.BLOBS + digest:
        raise UserError(f"{path}: {name} is not what its name says: altered; copy it again")


def _hashed(chunks: Iterable[bytes], digest: "hashlib._Hash") -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk
