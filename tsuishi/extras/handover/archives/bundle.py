"""The files of a future archive, by their names in it, and how the archive is written."""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives import archive_manifest, zip_container
from tsuishi.extras.handover.archives.member_names import ARTIFACTS, IMAGES, MANIFEST, problem_of_size
from tsuishi.extras.handover.archives.secret_search import Secrets

# Public files of others are not searched for secrets of this user.
_OF_OTHERS = (f"{IMAGES}/", f"{ARTIFACTS}/")

# zlib's number for the header and the checksum of gzip; and the most bytes of a piece, unpacked and packed. The
# packed rest behind each part of a file is copied, and there may be a part in every twenty bytes.
_GZIP, _PIECE, _PACKED = 31, 1 << 20, 1 << 14


@dataclass
class Bundle:
    """Files by their names in an archive: each a file on the disk, or its content."""

    files: dict[str, Path | bytes] = field(default_factory=dict)

    def add_folder(self, name: str, folder: Path, left_out: Iterable[str] = ()) -> None:
        """Add every file in a folder under a name, except those with a name in `left_out`.

        Names that begin with a dot are left out too: killed processes leave them. Raises UserError where something in
        it is neither a file nor a folder.
        """
        for entry, is_folder in files.entries(folder):
            if entry in left_out or entry.startswith("."):
                continue
            if is_folder:
                self.add_folder(f"{name}/{entry}", folder / entry, left_out)
            else:
                self.files[f"{name}/{entry}"] = folder / entry

    def refuse_secrets(self, secrets: Secrets, remedy: str) -> None:
        """Read every file. Raises UserError where a file holds a secret; it ends with `remedy`."""
        for name, source in self.files.items():
            if name.startswith(_OF_OTHERS):
                continue
            if why := secrets.problem(name) or secrets.problem_in(unpacked(name, source)):
                raise UserError(f"{name}: {why}; {remedy}")

    def write(self, place: Callable[[str], Path]) -> tuple[Path, str]:
        """Write the archive with its manifest. place: gives its path by its root. Returns path and root.

        Each file is read twice. Raises UserError where a file is altered meanwhile, or may not have its name.
        """
        about = {name: _size_and_digest(source) for name, source in self.files.items()}
        for name, (size, _) in about.items():
            if why := problem_of_size(name, size):
                raise UserError(f"{name}: {why}: no archive of it could be verified")
        manifest = archive_manifest.text_of({name: digest for name, (_, digest) in about.items()})
        root = archive_manifest.root_of(manifest)
        every = {**self.files, MANIFEST: manifest}
        about[MANIFEST] = len(manifest), root
        path = place(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.replacing(path) as file:
            try:
                zip_container.write(
                    file.buffer, ((name, *about[name], partial(_pieces, every[name])) for name in sorted(every))
                )
            except zip_container.BadArchive as error:
                raise UserError(f"{path}: {error}") from error
        return path, root


def _size_and_digest(source: Path | bytes) -> tuple[int, str]:
    """The bytes of a file, and its SHA-256."""
    if isinstance(source, bytes):
        return len(source), hashlib.sha256(source).hexdigest()
    return files.size_and_sha256(source)


def _pieces(source: Path | bytes) -> Iterable[bytes]:
    return [source] if isinstance(source, bytes) else files.pieces(source)


def _short(pieces: Iterable[bytes]) -> Iterator[bytes]:
    return (piece[begin : begin + _PACKED] for piece in pieces for begin in range(0, len(piece), _PACKED))


def unpacked(name: str, source: Path | bytes) -> Iterator[bytes]:
    """The content of a file in pieces; of a file whose name ends with .gz, its unpacked content.

    The log of a killed runner may be incomplete: its existing part counts. Raises UserError for other damage, and
    where more than a gigabyte is packed.
    """
    if not name.endswith(".gz"):
        yield from _pieces(source)
        return
    unpacker, size = zlib.decompressobj(_GZIP), 0
    for rest in _short(_pieces(source)):
        while rest:
            try:
                piece = unpacker.decompress(rest, _PIECE)
            except zlib.error as error:
                raise UserError(f"{name}: cannot be unpacked: {error}") from error
            size += len(piece)
            if size > files.MOST_BYTES:
                raise UserError(f"{name}: more than {files.MOST_BYTES:,} bytes are packed in it")
            yield piece
            rest = unpacker.unconsumed_tail
            if unpacker.eof:
                rest, unpacker = unpacker.unused_data, zlib.decompressobj(_GZIP)
    yield unpacker.flush()
