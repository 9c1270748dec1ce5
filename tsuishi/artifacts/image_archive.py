"""Writes the archive of an image: an OCI image layout that every Docker engine since 1.10 loads as well.

    tsuishi/<name>            tsuishi's notes on the image; readers of OCI layouts and engines ignore them
    oci-layout, index.json    as in the OCI Image Format (1.0, "Image Layout")
    manifest.json             as `docker save` writes it, with the names of the same blobs
    blobs/sha256/<digest>     manifest, config, layers (tar+gzip)

The formats in which engines save an image differ by version. All of them have manifest.json, which names the config and
the layers. The config is copied byte for byte: its SHA-256 is the id of the image, so a conversion that writes the
config anew (as skopeo's) makes another image. The same image and the same zlib give the same bytes.
"""

import hashlib
import io
import json
import os
import posixpath
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tsuishi.artifacts import strict_tar
from tsuishi.base import toml
from tsuishi.base.files import sha256_of, temporary_folder
from tsuishi.base.screen import Progress

NOTES = "tsuishi/"
CHECKSUM = ".sha256"
MANIFEST = "manifest.json"
BLOBS = "blobs/sha256/"
_SCHEMA = {"schemaVersion": 2}
_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'
_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_CHUNK = 1 << 20
# A larger file in the output of an engine is a layer: descriptions have a few kilobytes.
_DESCRIPTION = 1 << 20
# The prefix of OCI's annotations.
OCI = "org.opencontainers.image."
# zlib's number for the header and the checksum of gzip.
_GZIP_FORMAT = 31
_GZIP_MAGIC = b"\x1f\x8b"
# Level 4 compressed the 1,254 MB of torch2-cpu to 373 MB in 18 s, level 1 to 407 MB in 12 s, level 6 to 359 MB in 40 s
# (one core).
_GZIP_LEVEL = 4


@dataclass(frozen=True)
class Blob:
    """A file in an archive whose name is its SHA-256. `size` is in bytes."""

    digest: str
    size: int

    @property
    def name(self) -> str:
        """The path in the archive."""
        return BLOBS + self.digest

    def descriptor(self, media_type: str) -> dict[str, Any]:
        """OCI's descriptor of the blob."""
        return {"mediaType": media_type, "digest": f"sha256:{self.digest}", "size": self.size}


@dataclass(frozen=True)
class FileBlob(Blob):
    """A blob whose content is in a temporary file, which is removed once the blob is in an archive."""

    file: Path


def write_archive(
    path: Path,
    saved: Iterable[bytes],
    tag: str,
    notes: Callable[[str], Mapping[str, bytes]],
    progress: Progress = lambda size: None,
) -> str:
    """Write the image that an engine's `save` streams to an archive at `path`, and its checksum beside it.

    `notes` returns the notes for an image id: contents by name. `progress` gets the bytes taken from the stream. The
    folder of `path` also needs room for the compressed layers; an interruption leaves nothing there. Returns the image
    id. Raises strict_tar.Damaged for a stream that is no archive, or incomplete.
    """
    with temporary_folder(path.parent, ".export-") as folder:
        files = _blobs(saved, folder, progress)
        (manifest,) = json.loads(files[MANIFEST].file.read_bytes())
        config = files[manifest["Config"]]
        layers = [_compressed(files[name], folder) for name in manifest["Layers"]]
        partial = folder / path.name
        with partial.open("wb") as file:
            _write(file, config, layers, tag, notes(f"sha256:{config.digest}"))
            file.flush()
            os.fsync(file.fileno())
        checksum = folder / (path.name + CHECKSUM)
        checksum.write_text(f"{sha256_of(partial)}  {path.name}\n", encoding="ascii")
        for finished in (partial, checksum):
            finished.replace(path.parent / finished.name)
    return f"sha256:{config.digest}"


def write_blobs(path: Path, config: FileBlob, layers: Sequence[FileBlob], tag: str, notes: Mapping[str, bytes]) -> None:
    """Write the archive of an image whose parts came one by one, without a checksum. Reading it checks the parts."""
    with path.open("xb") as file:
        _write(file, config, layers, tag, notes)


def _blobs(saved: Iterable[bytes], folder: Path, progress: Progress) -> dict[str, FileBlob]:
    """Every file in the output of an engine, by its name there; layers are compressed."""
    files: dict[str, FileBlob] = {}
    links: dict[str, str] = {}
    stream = io.BufferedReader(_Stream(saved, progress), _CHUNK)
    for member in strict_tar.members(stream):
        if member.kind == tarfile.SYMTYPE:  # a second name of a layer
            links[member.name] = target(member)
        elif member.kind == tarfile.REGTYPE:
            content = member.content if member.size <= _DESCRIPTION else _gzipped(member.content)
            files[member.name] = _temporary_blob(content, folder)
    return files | {name: files[target] for name, target in links.items()}


def target(link: strict_tar.Member) -> str:
    """The name of the entry that a link points to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(link.name), link.link))


def _compressed(layer: FileBlob, folder: Path) -> FileBlob:
    """The layer, compressed now if it is as small as a description: then `_blobs` did not compress it."""
    return layer if layer.size > _DESCRIPTION else _temporary_blob(_gzipped([layer.file.read_bytes()]), folder)


def _gzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks compressed, without time or name; compressed chunks stay as they are."""
    packer = None
    left = iter(chunks)
    for chunk in left:
        if packer is None and chunk.startswith(_GZIP_MAGIC):
            yield chunk
            yield from left
            return
        packer = packer or zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
        yield packer.compress(chunk)
    if packer:
        yield packer.flush()


def _temporary_blob(chunks: Iterable[bytes], folder: Path) -> FileBlob:
    """Write chunks to a blob in the folder."""
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        return FileBlob(digest.hexdigest(), file.tell(), Path(file.name))


def _write(file: IO[bytes], config: FileBlob, layers: Sequence[FileBlob], tag: str, notes: Mapping[str, bytes]) -> None:
    """Write the archive. Each blob is removed after it is written, to save room."""
    texts = {**{NOTES + name: note for name, note in notes.items()}, **descriptions(config, layers, tag)}
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, text in texts.items():
            tar.addfile(entry(name, len(text)), io.BytesIO(text))
        for blob in {blob.digest: blob for blob in (config, *layers)}.values():
            with blob.file.open("rb") as content:
                tar.addfile(entry(blob.name, blob.size), content)
            blob.file.unlink()


def descriptions(config: Blob, layers: Sequence[Blob], tag: str) -> dict[str, bytes]:
    """The files that name the blobs and the tag of the image: contents by path in the archive."""
    manifest = {
        **_SCHEMA,
        "mediaType": _MANIFEST_TYPE,
        "config": config.descriptor(_CONFIG_TYPE),
        "layers": [layer.descriptor(_LAYER_TYPE) for layer in layers],
    }
    text = toml.canonical_json(manifest).encode()
    top = Blob(hashlib.sha256(text).hexdigest(), len(text))
    # The names that podman, and engines that store images by their OCI manifest, give to the image.
    names = {
        "io.containerd.image.name": f"docker.io/{tag}",
        f"{OCI}ref.name": tag.rpartition(":")[2],
    }
    docker_manifest = [{"Config": config.name, "RepoTags": [tag], "Layers": [layer.name for layer in layers]}]
    return {
        **layout(top, _MANIFEST_TYPE, names),
        MANIFEST: toml.canonical_json(docker_manifest).encode(),
        top.name: text,
    }


def layout(top: Blob, media_type: str, names: Mapping[str, str]) -> dict[str, bytes]:
    """The files by which readers of OCI layouts find the image: contents by path in the archive."""
    index = {**_SCHEMA, "manifests": [{**top.descriptor(media_type), "annotations": names}]}
    return {"oci-layout": _LAYOUT, "index.json": toml.canonical_json(index).encode()}


def entry(name: str, size: int) -> tarfile.TarInfo:
    """A tar entry without time, host or user."""
    header = tarfile.TarInfo(name)
    header.size = size
    return header


class _Stream(io.RawIOBase):
    """A file object that reads chunks of bytes."""

    def __init__(self, chunks: Iterable[bytes], progress: Progress) -> None:
        self._chunks = iter(chunks)
        self._progress = progress
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            chunk = next(self._chunks, b"")
            self._progress(len(chunk))
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
