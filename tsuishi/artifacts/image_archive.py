"""The archive an image travels in: an OCI image layout that every Docker engine since 1.10 loads as well.

    tsuishi/<name>            what tsuishi knows of the image; readers of OCI layouts and engines leave it alone
    oci-layout, index.json    as the OCI Image Format (1.0, "Image Layout") has them
    manifest.json             as `docker save` writes it, naming the same blobs
    blobs/sha256/<digest>     manifest, config, layers (tar+gzip)

Engines save in formats that differ by version; what all of them have is manifest.json, which names the config and the
layers. The config is taken over byte for byte: its SHA-256 is the image's id, and a conversion that writes it anew
(skopeo's does) makes another image of it. The same image gives the same bytes, as long as zlib compresses alike.
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
from tsuishi.artifacts.cache import sha256_of
from tsuishi.base import toml
from tsuishi.base.files import temporary_folder
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
# What is larger, of all that an engine saves, is a layer: descriptions have a few kilobytes.
_DESCRIPTION = 1 << 20
# Of annotations.
OCI = "org.opencontainers.image."
# Of zlib: header and checksum as gzip has them; and a level. Of the 1,254 MB of torch2-cpu level 4 left 373 MB in 18 s,
# level 1 407 MB in 12 s, level 6 359 MB in 40 s (one core).
_GZIP_FORMAT = 31
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_LEVEL = 4


@dataclass(frozen=True)
class Blob:
    """A file that is named by its content."""

    digest: str
    size: int

    @property
    def name(self) -> str:
        """Its place in the archive."""
        return BLOBS + self.digest

    def descriptor(self, media_type: str) -> dict[str, Any]:
        """How OCI points at it."""
        return {"mediaType": media_type, "digest": f"sha256:{self.digest}", "size": self.size}


@dataclass(frozen=True)
class _Kept(Blob):
    """One that lies in a folder that will be gone."""

    file: Path


def write_archive(
    path: Path,
    saved: Iterable[bytes],
    tag: str,
    notes: Callable[[str], Mapping[str, bytes]],
    progress: Progress = lambda size: None,
) -> str:
    """Turn what an engine's `save` streams into an archive at `path`, with its checksum beside it; the image's id.

    `notes` gives what travels with an image of that id; `progress` is told the bytes taken from the stream. Beside the
    archive it takes the room of the compressed layers, in the same folder; nothing is left behind where it is
    interrupted. Raises archives.Damaged for a stream that is no archive, or not the whole of one.
    """
    with temporary_folder(path.parent, ".export-") as folder:
        files = _take_apart(saved, folder, progress)
        (described,) = json.loads(files[MANIFEST].file.read_bytes())
        config = files[described["Config"]]
        layers = [_compressed(files[name], folder) for name in described["Layers"]]
        partial = folder / path.name
        with partial.open("wb") as file:
            _write(file, config, layers, tag, notes(f"sha256:{config.digest}"))
            file.flush()
            os.fsync(file.fileno())
        checksum = folder / (path.name + CHECKSUM)
        checksum.write_text(f"{sha256_of(partial)}  {path.name}\n", encoding="ascii")
        for file_made in (partial, checksum):
            file_made.replace(path.parent / file_made.name)
    return f"sha256:{config.digest}"


def _take_apart(saved: Iterable[bytes], folder: Path, progress: Progress) -> dict[str, _Kept]:
    """Every file of what an engine saved, by its name there; layers are compressed on the way."""
    files: dict[str, _Kept] = {}
    links: dict[str, str] = {}
    stream = io.BufferedReader(_Stream(saved, progress), _CHUNK)
    for member in strict_tar.members(stream):
        if member.kind == tarfile.SYMTYPE:  # a layer that is there under another name
            links[member.name] = target(member)
        elif member.kind == tarfile.REGTYPE:
            packed = member.content if member.size <= _DESCRIPTION else _gzipped(member.content)
            files[member.name] = _keep(packed, folder)
    return files | {name: files[target] for name, target in links.items()}


def target(link: strict_tar.Member) -> str:
    """The name of the entry that a link points to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(link.name), link.link))


def _compressed(layer: _Kept, folder: Path) -> _Kept:
    """A layer that was taken for a description, so small is it, as it goes into the archive; others are ready."""
    return layer if layer.size > _DESCRIPTION else _keep(_gzipped([layer.file.read_bytes()]), folder)


def _gzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same compressed, without time or name; what is compressed already as it is."""
    packer = None
    for chunk in chunks:
        if packer is None and chunk.startswith(_GZIP_MAGIC):
            yield chunk
            yield from chunks
            return
        packer = packer or zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
        yield packer.compress(chunk)
    if packer:
        yield packer.flush()


def _keep(chunks: Iterable[bytes], folder: Path) -> _Kept:
    """Write a blob into the folder."""
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        return _Kept(digest.hexdigest(), file.tell(), Path(file.name))


def _write(file: IO[bytes], config: _Kept, layers: list[_Kept], tag: str, notes: Mapping[str, bytes]) -> None:
    texts = {**{NOTES + name: note for name, note in notes.items()}, **descriptions(config, layers, tag)}
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, text in texts.items():
            tar.addfile(entry(name, len(text)), io.BytesIO(text))
        for blob in {blob.digest: blob for blob in (config, *layers)}.values():
            with blob.file.open("rb") as content:
                tar.addfile(entry(blob.name, blob.size), content)
            blob.file.unlink()


def descriptions(config: Blob, layers: Sequence[Blob], tag: str) -> dict[str, bytes]:
    """Every file that says of which blobs the image is made and how it is called, by its place in the archive."""
    manifest = {
        **_SCHEMA,
        "mediaType": _MANIFEST_TYPE,
        "config": config.descriptor(_CONFIG_TYPE),
        "layers": [layer.descriptor(_LAYER_TYPE) for layer in layers],
    }
    text = toml.canonical_json(manifest).encode()
    top = Blob(hashlib.sha256(text).hexdigest(), len(text))
    # Under which engines that keep images by their OCI manifest, and podman, load it.
    names = {
        "io.containerd.image.name": f"docker.io/{tag}",
        f"{OCI}ref.name": tag.rpartition(":")[2],
    }
    saved = [{"Config": config.name, "RepoTags": [tag], "Layers": [layer.name for layer in layers]}]
    return {
        **layout(top, _MANIFEST_TYPE, names),
        MANIFEST: toml.canonical_json(saved).encode(),
        top.name: text,
    }


def layout(top: Blob, media_type: str, names: Mapping[str, str]) -> dict[str, bytes]:
    """The files by which readers of OCI layouts find the one image, by their place in the archive."""
    index = {**_SCHEMA, "manifests": [{**top.descriptor(media_type), "annotations": names}]}
    return {"oci-layout": _LAYOUT, "index.json": toml.canonical_json(index).encode()}


def entry(name: str, size: int) -> tarfile.TarInfo:
    """A tar entry that says nothing of when, where and by whom it was written."""
    made = tarfile.TarInfo(name)
    made.size = size
    return made


class _Stream(io.RawIOBase):
    """Chunks of bytes, read like a file."""

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
