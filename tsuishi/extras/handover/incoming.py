"""Reads exports of `invoke export`, and gives their images to an engine, which checks the parts of the image itself.

    tsuishi/<name>     the record of the environment, its spec, locks and template
    <the rest>         the image, as the engine saved it

The whole file is compressed by gzip. Engines ignore the first part. The SHA-256 of a file is compared before an engine
sees it, and its image afterwards. A check says nothing about the author of an image: see docs/security.md.
"""

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tsuishi.base import files, threads, toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.files import sha256_of
from tsuishi.base.screen import Progress
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.saved_image import config_of
from tsuishi.extras.handover.archives.specifications import asked_files
from tsuishi.machine import disk

if TYPE_CHECKING:
    from tsuishi.engines.docker.engine import DockerEngine

NOTES = "tsuishi/"
CHECKSUM = ".sha256"
# The name of the record in an archive.
RECORD = "environment.json"
# The folder of a cache in which images are on their way.
ON_THE_WAY = "on-the-way"
ALTERED = "altered; do not use it, and export it again"
# The notes are among the first bytes. A record, with its bill of materials, has a few hundred kilobytes.
_MOST_NOTES = 16 << 20
_GZIP_MAGIC = b"\x1f\x8b"
# Level 4 compressed the 1,254 MB of torch2-cpu to 373 MB in 18 s, level 1 to 407 MB in 12 s, level 6 to 359 MB in 40 s
# (one core).
_GZIP_LEVEL = 4


class _RecordedImage(BaseModel):
    """The image in a record."""

    model_config = ConfigDict(strict=True)

    layers: list[toml.ImageDigest]
    labels: dict[str, str]
    size_bytes: Annotated[int, Field(ge=0)]


class IncomingRecord(BaseModel):
    """The part of a record in an archive that must agree with its image."""

    model_config = ConfigDict(strict=True)

    name: toml.Name
    spec_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    realised_id: toml.ImageDigest
    image: _RecordedImage


@dataclass(frozen=True)
class IncomingImage:
    """An export that was not altered on its way. No engine has its image yet."""

    path: Path
    record: IncomingRecord
    # The files beside the record, by their place in a checkout.
    notes: Mapping[str, bytes]

    @property
    def tag(self) -> str:
        """The name of the image."""
        return f"tsuishi/{self.record.name}:{self.record.spec_id}"

    def load(self, engine: "DockerEngine", progress: Progress = lambda size: None) -> str:
        """Give the image to an engine. progress gets the bytes that the engine has taken. Returns its id there.

        Raises UserError where there is no room, where the engine refuses the file, and where the file holds another
        image than its record says; then no part of the file stays.
        """
        require_room((engine.store.folder(), self.record.image.size_bytes + self.path.stat().st_size))
        with _readable(self.path), _content(self.path) as content:  # Podman takes no compressed file with notes in it
            return engine.store.load(
                counted(threads.pieces_until_halted(content), progress), self.tag, self.refuse_other
            )

    def unpacked(self, folder: Path, progress: Progress) -> Path:
        """The image as an archive that is not compressed, in a folder. progress gets the bytes that are written.

        Raises UserError where it is another image than its record says.
        """
        path = folder / "image.tar"
        with _readable(self.path):
            with _content(self.path) as content, path.open("xb") as file:
                file.writelines(counted(threads.pieces_until_halted(content), progress))
            config = config_of(path)
            self.refuse_other(config["rootfs"]["diff_ids"], config["config"]["Labels"])
        return path

    def refuse_other(self, layers: Sequence[str], labels: Mapping[str, str]) -> None:
        """Raise UserError for an image with other layers or labels than the record says.

        Its id may differ: some engines name images by their config, others by their manifest.
        """
        for what, expected, actual in (
            ("layers", self.record.image.layers, layers),
            ("labels", self.record.image.labels, labels),
        ):
            if expected != actual:
                raise UserError(f"{self.path}: its image has other {what} than its record says: {ALTERED}")


def incoming_image(checkout: Checkout, path: Path) -> IncomingImage:
    """Read the checksum and the notes of an export. Raises UserError where they do not match it, or each other."""
    beside = path.with_name(path.name + CHECKSUM)
    if beside.exists():
        expected, actual = files.read_bytes(beside).decode("ascii", "replace").split()[:1], sha256_of(path)
        if [actual] != expected:
            raise UserError(
                f"{path}: sha256 is {actual}, {beside.name} says {' '.join(expected)[:64] or 'nothing'}: "
                "altered or incomplete; copy it again"
            )
    with _readable(path):
        notes = _notes(path)
    if RECORD not in notes:
        raise UserError(f"{path}: not written by `invoke export`; `docker load` takes images of other origin")
    incoming = IncomingImage(path, _record(path, notes.pop(RECORD)), notes)
    for name in notes.keys() - asked_files(checkout, incoming.record.name):
        raise UserError(f"{path}: {name} is no file of {incoming.record.name}: {ALTERED}")
    return incoming


def _record(path: Path, text: bytes) -> IncomingRecord:
    try:
        record = IncomingRecord.model_validate_json(text)
    except ValidationError as error:
        raise UserError(f"{path}: {RECORD}: {toml.explain(error, IncomingRecord)}: {ALTERED}") from error
    made_for = record.image.labels.get(f"{OURS}spec-id")
    if made_for != record.spec_id:
        raise UserError(
            f"{path}: its record is of spec id {record.spec_id}, and its image was made for {made_for or 'none'}: "
            f"{ALTERED}"
        )
    return record


def _notes(path: Path) -> dict[str, bytes]:
    """The files in front of the image."""
    with _content(path) as content:
        head = io.BytesIO(content.read(_MOST_NOTES))
    notes = {}
    with tarfile.open(fileobj=head) as tar:
        for entry in tar:
            if not entry.name.startswith(NOTES) or not entry.isreg() or entry.size > _MOST_NOTES:
                break
            note = tar.extractfile(entry)
            assert note
            notes[entry.name.removeprefix(NOTES)] = note.read()
    return notes


def write_export(path: Path, notes: Mapping[str, bytes], image: Iterable[bytes]) -> None:
    """Write notes and the image, as an engine saves it, to `path`, and the checksum beside it.

    An interruption leaves nothing there. The same image, saved by the same engine, gives the same bytes.
    """
    with files.temporary_folder(path.parent, ".export-") as folder:
        partial, checksum = folder / path.name, folder / (path.name + CHECKSUM)
        with partial.open("wb") as file:
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
                for name, text in notes.items():
                    entry = tarfile.TarInfo(NOTES + name)
                    entry.size = len(text)
                    packed.write(entry.tobuf() + text + bytes(-len(text) % tarfile.BLOCKSIZE))
                packed.writelines(image)
            file.flush()
            os.fsync(file.fileno())
        checksum.write_text(f"{sha256_of(partial)}  {path.name}\n", encoding="ascii")
        for finished in (partial, checksum):
            finished.replace(path.parent / finished.name)


@contextmanager
def _content(path: Path) -> Iterator[IO[bytes]]:
    """The content of an export. Earlier exports are not compressed."""
    with files.reading(path) as file:
        is_packed = file.peek(2).startswith(_GZIP_MAGIC)
        with gzip.open(file) if is_packed else nullcontext(file) as content:
            yield cast("IO[bytes]", content)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Inside the block, the error of a file that is damaged, or not an export, becomes UserError."""
    try:
        yield
    except (OSError, EOFError, ValueError, LookupError, TypeError, zlib.error, tarfile.TarError) as error:
        raise UserError(f"{path}: not an archive of an image, or an incomplete archive: {error}") from error


def temporary_room(cache: Path) -> AbstractContextManager[Path]:
    """A folder for images on their way; it is removed at the end, or by a later call where a process was killed."""
    return files.temporary_folder(cache / ON_THE_WAY, ".images-")


def require_room(*needs: tuple[Path | None, int]) -> None:
    """Raise UserError where a disk has too little room. needs: (place, bytes); None is an unknown place."""
    disk.require(needs, "or choose another disk")


def counted(pieces: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    """The same pieces; `progress` is called with the size of each."""
    for piece in pieces:
        threads.check()
        progress(len(piece))
        yield piece
