"""Repacks an archive of `docker save` or `podman save` for an engine. Somebody may have changed the archive meanwhile.

The archive must hold one image. The engine gets this image without a name, in a new archive, so that its other images
keep their names.
"""

import hashlib
import tarfile
from collections.abc import Iterator
from typing import IO, Annotated

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
from tsuishi.base import threads, toml

# Engines before Docker 25 write four entries for each layer: its folder, version, description and content.
_LIMITS = strict_tar.ArchiveLimits(members=4 * MOST_LAYERS + 20)
# The most bytes of a manifest.
_MOST_TEXT = 4 << 20


class _Saved(Received):
    """The image in a manifest.json."""

    config: Text = Field(alias="Config")
    layers: list[Text] = Field(alias="Layers", max_length=MOST_LAYERS)


class _SavedFile(RootModel[Annotated[list[_Saved], Field(min_length=1, max_length=1)]]):
    """manifest.json with exactly one image."""


class _Pointer(Received):
    digest: Digest


class _Manifest(Received):
    """A manifest of OCI or of Docker, or an index of manifests."""

    media_type: Text = Field(alias="mediaType")
    manifests: list[_Pointer] = Field([], max_length=500)
    config: _Pointer | None = None
    layers: list[_Pointer] = Field([], max_length=MOST_LAYERS)


def repacked(file: IO[bytes], image_id: str) -> Iterator[bytes]:
    """The archive of the image with this id, for an engine. The archive in `file` is first read from end to end.

    Raises Damaged where `file` holds several images, another image or only a part of an image. Raises UserError, before
    the end of the new archive, where `file` changes meanwhile.
    """
    parts = _parts(file)
    (saved,) = _read(file, parts, image_archive.MANIFEST, _SavedFile).root
    config, *layers = image = [_part(parts, name) for name in (saved.config, *saved.layers)]
    described = [{"Config": config.name, "RepoTags": None, "Layers": [layer.name for layer in layers]}]
    texts = {image_archive.MANIFEST: toml.canonical_json(described).encode()}
    if image_id != _digest(config):  # the engine's ids are those of manifests, or of indexes of manifests
        manifests = {part.name: part for part in parts.values()}
        name = image_archive.BLOBS + image_id.removeprefix("sha256:")
        if name not in manifests:
            raise Damaged("it holds another image")
        top = _read(file, manifests, name, _Manifest)
        texts |= image_archive.layout(manifests[name], top.media_type, {})
        image += [manifests[name], _manifest_of(image, file, manifests, top_name=name, top=top)]
    return packed(texts, image, file)


def _manifest_of(
    image: list[Part], file: IO[bytes], manifests: dict[str, Part], *, top_name: str, top: _Manifest
) -> Part:
    """The manifest of an image: `top`, or a manifest in the index `top`. Raises Damaged where no manifest fits."""
    digests = [_digest(part) for part in image]
    listed = [image_archive.BLOBS + pointer.digest.removeprefix("sha256:") for pointer in top.manifests]
    for name in listed or [top_name]:
        if name in manifests:  # manifests for other machines are not
            manifest = _read(file, manifests, name, _Manifest)
            if [pointer and pointer.digest for pointer in (manifest.config, *manifest.layers)] == digests:
                return manifests[name]
    raise Damaged("it holds another image")


def _digest(part: Part) -> str:
    return f"sha256:{part.digest}"


def _part(parts: dict[str, Part], name: str) -> Part:
    if name not in parts:
        raise Damaged(f"{name} is missing")
    return parts[name]


def _read(file: IO[bytes], parts: dict[str, Part], name: str, model: type[M]) -> M:
    part = _part(parts, name)
    if part.size > _MOST_TEXT:
        raise Damaged(f"{name} has {part.size:,} bytes, and {_MOST_TEXT:,} are the most")
    file.seek(part.offset)
    return typed(name, file.read(part.size), model)


def _parts(file: IO[bytes]) -> dict[str, Part]:
    """The files of an archive by name."""
    parts: dict[str, Part] = {}
    links: dict[str, str] = {}
    for member in strict_tar.members(file, _LIMITS):
        if member.kind == tarfile.SYMTYPE:
            links[member.name] = image_archive.target(member)
        elif member.kind == tarfile.REGTYPE:
            digest = hashlib.sha256()
            for chunk in member.content:
                threads.check()
                digest.update(chunk)
            parts[member.name] = Part(digest.hexdigest(), member.size, member.offset)
    return parts | {name: parts[place] for name, place in links.items() if place in parts}
