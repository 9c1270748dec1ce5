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
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tsuishi import spec
from tsuishi.engines.labels import OCI
from tsuishi.errors import UserError
from tsuishi.fetching.artifacts import Progress, sha256_of
from tsuishi.files import temporary_folder

NOTES = "tsuishi/"
CHECKSUM = ".sha256"
# Everything an archive may hold; a name that an environment cannot have is none of a note.
_NAMES = re.compile(
    rf"oci-layout|(index|manifest)\.json|blobs/sha256/[0-9a-f]{{64}}"
    rf"|{NOTES}(environment\.json|templates/Dockerfile\.j2|images/[a-z0-9][a-z0-9._-]*\.(toml|lock))"
)
_BLOBS = "blobs/sha256/"
_SCHEMA = {"schemaVersion": 2}
_ALTERED = "altered; do not use it, and export it again"
_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'
_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_CHUNK = 1 << 20
# What is larger, of all that an engine saves, is a layer: descriptions have a few kilobytes.
_DESCRIPTION = 1 << 20
# The record has the bill of materials in it: a few hundred kilobytes.
_TEXT = 16 << 20
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
        return _BLOBS + self.digest

    def descriptor(self, media_type: str) -> dict[str, Any]:
        """How OCI points at it."""
        return {"mediaType": media_type, "digest": f"sha256:{self.digest}", "size": self.size}


@dataclass(frozen=True)
class _Kept(Blob):
    """One that lies in a folder that will be gone."""

    file: Path


@dataclass(frozen=True)
class Contents:
    """What an archive says it holds: one image with one name, and the notes that travel with it."""

    tag: str
    labels: Mapping[str, str]
    notes: Mapping[str, bytes]


def write_archive(
    path: Path, saved: Iterable[bytes], tag: str, notes: Mapping[str, bytes], progress: Progress = lambda size: None
) -> str:
    """Turn what an engine's `save` streams into an archive at `path`, with its checksum beside it; the image's id.

    `progress` is told the bytes taken from the stream. Beside the archive it takes the room of the compressed layers,
    in the same folder; nothing is left behind where it is interrupted.
    """
    with temporary_folder(path.parent, ".export-") as folder:
        files = _take_apart(saved, folder, progress)
        described = _image_of(json.loads(files["manifest.json"].file.read_bytes()), "the engine's archive")
        config = files[described["Config"]]
        layers = [_compressed(files[name], folder) for name in described["Layers"]]
        partial = folder / path.name
        with partial.open("wb") as file:
            _write(file, config, layers, tag, notes)
            file.flush()
            os.fsync(file.fileno())
        checksum = folder / (path.name + CHECKSUM)
        checksum.write_text(f"{sha256_of(partial)}  {path.name}\n", encoding="ascii")
        for file_made in (partial, checksum):
            file_made.replace(path.parent / file_made.name)
    return f"sha256:{config.digest}"


def read_archive(path: Path) -> Contents:
    """Read an archive from end to end; raises UserError where anything in it is not what its name or checksum says."""
    beside = path.with_name(path.name + CHECKSUM)
    if beside.exists():
        expected, actual = beside.read_text(encoding="ascii", errors="replace").split()[:1], sha256_of(path)
        if [actual] != expected:
            raise UserError(
                f"{path}: sha256 is {actual}, {beside.name} says {' '.join(expected) or 'nothing'}: "
                "altered or incomplete; copy it again"
            )
    try:
        return _contents(path)
    except (tarfile.TarError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: no archive of an image, or not the whole of one: {error}") from error


def _contents(path: Path) -> Contents:
    with tarfile.open(path, "r:") as tar:
        entries = tar.getmembers()
        if not any(entry.name.startswith(NOTES) for entry in entries):
            raise UserError(f"{path}: not written by `invoke export`; `docker load` takes images of other origin")
        found: dict[str, tarfile.TarInfo] = {}
        for entry in entries:
            _check(path, tar, entry)
            if entry.name in found:
                raise UserError(f"{path}: {entry.name} is there twice: {_ALTERED}")
            found[entry.name] = entry
        described = _image_of(json.loads(_text(path, tar, found["manifest.json"])), str(path))
        for name in (described["Config"], *described["Layers"]):
            if name not in found:
                raise UserError(f"{path}: {name} is missing: not the whole archive; copy it again")
        (tag,) = described["RepoTags"]
        config, *layers = (
            Blob(name.removeprefix(_BLOBS), found[name].size) for name in (described["Config"], *described["Layers"])
        )
        # One engine reads the index and what it leads to, another manifest.json.
        for name, text in _descriptions(config, layers, tag).items():
            if name not in found or _text(path, tar, found[name]) != text:
                raise UserError(f"{path}: {name} does not describe the image that manifest.json does: {_ALTERED}")
        return Contents(
            tag=tag,
            labels=json.loads(_text(path, tar, found[config.name]))["config"].get("Labels") or {},
            notes={name.removeprefix(NOTES): _text(path, tar, found[name]) for name in found if name.startswith(NOTES)},
        )


def _check(path: Path, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
    """Raise UserError for an entry that `write_archive` cannot have written.

    Its header has to be the very bytes: what programs make of links, extensions and sparse files differs.
    """
    with path.open("rb") as file:
        file.seek(entry.offset)
        header = file.read(entry.offset_data - entry.offset)
    if not _NAMES.fullmatch(entry.name) or header != _entry(entry.name, entry.size).tobuf():
        raise UserError(f"{path}: {entry.name} is nothing that `invoke export` writes: {_ALTERED}")
    if entry.name.startswith(_BLOBS) and _digest(tar, entry) != entry.name.removeprefix(_BLOBS):
        raise UserError(f"{path}: {entry.name} is not what its name says: altered; copy it again")


def _text(path: Path, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    if entry.size > _TEXT:
        raise UserError(
            f"{path}: {entry.name} has {entry.size:,} bytes, and no such part has over {_TEXT:,}: {_ALTERED}"
        )
    return b"".join(_read(tar, entry))


def _digest(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    digest = hashlib.sha256()
    for chunk in _read(tar, entry):
        digest.update(chunk)
    return digest.hexdigest()


def _read(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(entry)
    assert file is not None
    while chunk := file.read(_CHUNK):
        yield chunk


def _image_of(manifest: Any, where: str) -> dict[str, Any]:
    """The one image of a manifest.json."""
    if len(manifest) != 1:
        raise UserError(f"{where}: holds {len(manifest)} images; tsuishi's archives hold one")
    image: dict[str, Any] = manifest[0]
    return image


def _take_apart(saved: Iterable[bytes], folder: Path, progress: Progress) -> dict[str, _Kept]:
    """Every file of what an engine saved, by its name there; layers are compressed on the way."""
    files: dict[str, _Kept] = {}
    links: dict[str, str] = {}
    stream = io.BufferedReader(_Stream(saved, progress), _CHUNK)
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for entry in tar:
            if entry.issym():  # a layer that is there under another name
                links[entry.name] = posixpath.normpath(posixpath.join(posixpath.dirname(entry.name), entry.linkname))
            elif (file := tar.extractfile(entry)) is not None:
                chunks = iter(lambda file=file: file.read(_CHUNK), b"")  # type: ignore[misc]
                files[entry.name] = _keep(chunks if entry.size <= _DESCRIPTION else _gzipped(chunks), folder)
    return files | {name: files[target] for name, target in links.items()}


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
    texts = {**{NOTES + name: note for name, note in notes.items()}, **_descriptions(config, layers, tag)}
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, text in texts.items():
            tar.addfile(_entry(name, len(text)), io.BytesIO(text))
        for blob in {blob.digest: blob for blob in (config, *layers)}.values():
            with blob.file.open("rb") as content:
                tar.addfile(_entry(blob.name, blob.size), content)
            blob.file.unlink()


def _descriptions(config: Blob, layers: Sequence[Blob], tag: str) -> dict[str, bytes]:
    """Every file that says of which blobs the image is made and how it is called, by its place in the archive."""
    manifest = {
        **_SCHEMA,
        "mediaType": _MANIFEST_TYPE,
        "config": config.descriptor(_CONFIG_TYPE),
        "layers": [layer.descriptor(_LAYER_TYPE) for layer in layers],
    }
    text = spec.canonical_json(manifest).encode()
    top = Blob(hashlib.sha256(text).hexdigest(), len(text))
    # Under which engines that keep images by their OCI manifest, and podman, load it.
    names = {
        "io.containerd.image.name": f"docker.io/{tag}",
        f"{OCI}ref.name": tag.rpartition(":")[2],
    }
    index = {**_SCHEMA, "manifests": [{**top.descriptor(_MANIFEST_TYPE), "annotations": names}]}
    saved = [{"Config": config.name, "RepoTags": [tag], "Layers": [layer.name for layer in layers]}]
    return {
        "oci-layout": _LAYOUT,
        "index.json": spec.canonical_json(index).encode(),
        "manifest.json": spec.canonical_json(saved).encode(),
        top.name: text,
    }


def _entry(name: str, size: int) -> tarfile.TarInfo:
    """A tar entry that says nothing of when, where and by whom it was written."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


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
