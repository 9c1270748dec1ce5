"""Archives of images in a registry: put there in their parts, and fetched as archives again.

    <path>/<name>:<tag>             the image, which engines pull as any image
    <path>/<name>:<tag>.tsuishi     the notes beside it in the archive: an artifact whose subject is the image

A fetched archive is what a registry, or whoever may write there, says: intake.py reads it as every other archive.
"""

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field

from tsuishi.artifacts.image_archive import OCI, Blob, write_blobs
from tsuishi.artifacts.intake import ArchivedImage
from tsuishi.artifacts.oci_registry import MANIFEST_TYPE, Registry
from tsuishi.artifacts.repacking import MOST_LAYERS, Digest, Part, Received, Text, typed
from tsuishi.artifacts.strict_tar import Damaged
from tsuishi.base import threads, toml
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Progress, Say

_NOTES = ".tsuishi"
_NOTES_TYPE = "application/vnd.tsuishi.environment.v1"
_NOTE_TYPE = "application/octet-stream"
_EMPTY_TYPE, _EMPTY = "application/vnd.oci.empty.v1+json", b"{}"
_TITLE = f"{OCI}title"
# The most bytes of all layers as they are sent, and of all other parts; the most notes.
_MOST_LAYER_BYTES, _MOST_TEXT, _MOST_NOTES = 64 << 30, 16 << 20, 10
_PIECE = 1 << 20


class _Descriptor(Received):
    """OCI's descriptor of a blob."""

    digest: Digest
    size: Annotated[int, Field(ge=0, le=_MOST_LAYER_BYTES)]

    @property
    def blob(self) -> Blob:
        return Blob(self.digest.removeprefix("sha256:"), self.size)


class _Note(_Descriptor):
    annotations: dict[Text, Text]


class _RegistryManifest(Received):
    config: _Descriptor
    layers: list[_Descriptor] = Field(min_length=1, max_length=MOST_LAYERS)


class _NotesManifest(Received):
    layers: list[_Note] = Field(max_length=_MOST_NOTES)
    subject: _Descriptor


def put_image(registry: Registry, path: Path, image: ArchivedImage, progress: Progress) -> str:
    """Put the image of an archive, which was read as `image`, into a registry. Returns its name there.

    progress gets the bytes of each layer that is there. The notes come last: an image without notes counts as missing.
    """
    name, _, tag = image.tag.rpartition("/")[2].partition(":")
    with path.open("rb") as file:
        for layer in {layer.digest: layer for layer in image.layers}.values():
            registry.put(name, layer, partial(_content, file, layer))
            progress(layer.size)
    registry.put_text(name, image.config)
    text = list(image.descriptions.values())[-1]
    registry.put_manifest(name, tag, text)
    notes = [
        {**registry.put_text(name, note).descriptor(_NOTE_TYPE), "annotations": {_TITLE: title}}
        for title, note in image.notes.items()
    ]
    artifact = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": _NOTES_TYPE,
        "config": registry.put_text(name, _EMPTY).descriptor(_EMPTY_TYPE),
        "layers": notes,
        "subject": Blob(hashlib.sha256(text).hexdigest(), len(text)).descriptor(MANIFEST_TYPE),
    }
    registry.put_manifest(name, f"{tag}{_NOTES}", toml.canonical_json(artifact).encode())
    return registry.reference(name, tag)


def fetch_image(registry: Registry, name: str, tag: str, folder: Path, say: Say, progress: Progress) -> Path | None:
    """The archive of an image in a registry, written into an empty folder; None where no image with notes is there.

    progress gets the bytes that come. Raises UserError where something else is there than it announces.
    """
    text = registry.manifest(name, f"{tag}{_NOTES}")
    if text is None:
        return None
    try:
        notes = typed(f"{tag}{_NOTES}", text, _NotesManifest)
        text = registry.manifest(name, notes.subject.digest)
        if text is None or notes.subject.blob.digest != hashlib.sha256(text).hexdigest():
            raise Damaged("its notes are on an image that is not there")
        image = typed(f"{tag}", text, _RegistryManifest)
        _refuse_large(image, notes)
    except Damaged as error:
        raise UserError(f"{registry.reference(name, tag)}: {error}") from error
    texts = {
        note.annotations.get(_TITLE, ""): registry.fetch(name, note.blob, folder, say, progress).file.read_bytes()
        for note in notes.layers
    }
    parts = {
        pointer.digest: registry.fetch(name, pointer.blob, folder, say, progress)
        for pointer in {pointer.digest: pointer for pointer in (image.config, *image.layers)}.values()
    }
    path = folder / "image.oci.tar"
    layers = [parts[layer.digest] for layer in image.layers]
    write_blobs(path, parts[image.config.digest], layers, f"tsuishi/{name}:{tag}", texts)
    return path


def _refuse_large(image: _RegistryManifest, notes: _NotesManifest) -> None:
    layers = sum(layer.size for layer in image.layers)
    texts = sum(part.size for part in (image.config, *notes.layers))
    if layers > _MOST_LAYER_BYTES or texts > _MOST_TEXT:
        raise Damaged(f"{layers:,} bytes of layers and {texts:,} bytes of notes are more than any environment has")


def _content(file: IO[bytes], part: Part) -> Iterator[bytes]:
    file.seek(part.offset)
    left = part.size
    while left and (piece := file.read(min(left, _PIECE))):
        threads.check()
        left -= len(piece)
        yield piece
