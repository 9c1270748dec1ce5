"""The gate for images that others made: an archive is checked whole, and only then an engine gets the image.

A check says nothing about the author of an image: see docs/security.md.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tsuishi.artifacts import intake
from tsuishi.artifacts.repacking import Digest, Received, Text
from tsuishi.base import files, threads, toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Progress
from tsuishi.engines.docker.labels import OURS
from tsuishi.machine import disk
from tsuishi.specs.debian import apt_lock

if TYPE_CHECKING:
    from tsuishi.engines.docker.engine import DockerEngine

# The name of the record in an archive.
RECORD = "environment.json"
# The folder of a cache in which images are on their way.
ON_THE_WAY = "on-the-way"


class _RecordedImage(Received):
    """The image in a record."""

    layers: list[Digest]
    labels: dict[Text, Text]


class IncomingRecord(Received):
    """The part of a record in an archive that must agree with its image."""

    name: toml.Name
    spec_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    realised_id: Digest
    image: _RecordedImage


@dataclass(frozen=True)
class IncomingImage:
    """An image in an archive whose every part was checked, with its record. No engine has it yet."""

    path: Path
    image: intake.ArchivedImage
    record: IncomingRecord

    def load(self, engine: "DockerEngine", progress: Progress = lambda size: None) -> str:
        """Give the image to an engine. progress gets the bytes that the engine has taken. Returns its id there.

        Raises UserError where there is no room, where the archive changed meanwhile, and where the engine made another
        image of it; then the engine's images are the same as before.
        """
        require_room((engine.store.folder(), self.image.unpacked_bytes + self.path.stat().st_size))
        with self.path.open("rb") as file:
            return engine.store.load(counted(self.image.packed(file), progress), self.image.tag, self.image.ids)


def incoming_image(checkout: Checkout, path: Path) -> IncomingImage:
    """Read an archive from end to end. Raises UserError where it is damaged, or holds what does not belong together."""
    image = intake.read_archive(path)
    return IncomingImage(path, image, record_of(checkout, path, image))


def record_of(checkout: Checkout, path: Path, image: intake.ArchivedImage) -> IncomingRecord:
    """The record in an archive. Raises UserError where the record, or a file beside it, belongs to another image.

    The record is only compared. After the import, engine and image are asked again.
    """
    record = intake.parsed(path, RECORD, image.notes.get(RECORD, b""), IncomingRecord)
    says, is_ = f"tsuishi/{record.name}:{record.spec_id}", image.labels.get(f"{OURS}spec-id")
    if image.tag != says or is_ != record.spec_id:
        raise UserError(
            f"{path}: its record is of {says}, and its image is {image.tag}, made for spec id {is_ or 'none'}: "
            f"{intake.ALTERED}"
        )
    for difference, expected, actual in (
        ("another id", record.realised_id, image.id),
        ("other layers", record.image.layers, image.diff_ids),
        ("other labels", record.image.labels, image.labels),
    ):
        if expected != actual:
            raise UserError(f"{path}: its image has {difference} than its record says: {intake.ALTERED}")
    for name in image.notes.keys() - {RECORD, *asked_files(checkout, record.name)}:
        raise UserError(f"{path}: {name} is no file of {record.name}: {intake.ALTERED}")
    return record


def temporary_room(cache: Path) -> AbstractContextManager[Path]:
    """A folder for images on their way; it is removed at the end, or by a later call where a process was killed."""
    return files.temporary_folder(cache / ON_THE_WAY, ".images-")


def require_room(*needs: tuple[Path | None, int]) -> None:
    """Raise UserError where a disk has not the bytes that go to it. needs: (place, bytes); None is an unknown place."""
    disk.require(needs, "or choose another disk")


def asked_files(checkout: Checkout, name: str) -> dict[str, Path]:
    """Spec, locks and template of an environment, by their place in a checkout. They may not exist."""
    spec = checkout.images / f"{name}.toml"
    parts = (spec, spec.with_suffix(".lock"), apt_lock(spec), checkout.dockerfile)
    return {part.relative_to(checkout.root).as_posix(): part for part in parts}


def counted(pieces: Iterator[bytes], progress: Progress) -> Iterator[bytes]:
    """The same pieces; `progress` is called with the size of each."""
    for piece in pieces:
        threads.check()
        progress(len(piece))
        yield piece
