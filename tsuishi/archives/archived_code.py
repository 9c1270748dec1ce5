"""Suites, workloads and specifications out of an archive, as a checkout: for replays that somebody trusted signed."""

import hashlib
import shutil
from pathlib import Path

from tsuishi.archives import archive_manifest, zip_container
from tsuishi.archives.member_names import INPUTS, MANIFEST
from tsuishi.archives.zip_container import BadArchive
from tsuishi.base import files
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.specs.environment import COMPATIBILITY
from tsuishi.specs.vocabulary import AXES_FILE, QUANTITIES_FILE

# What is taken of the inputs. The template of a Dockerfile is not: it would be rendered outside of a container.
_TAKEN = ("suites/", "images/", "reports/published/")
_NEEDED = (f"suites/{AXES_FILE}", f"suites/{QUANTITIES_FILE}", "suites/workloads/run.py")


def archived_checkout(archive: Path, root: str, run_id: str, into: Path, ours: Checkout) -> Checkout:
    """The inputs of a run in an archive, written below the new folder `into`.

    root: of the archive when it was verified. Templates, and what is known of GPUs, are those of our checkout. Raises
    UserError where the archive has changed since, or does not hold all inputs of the run.
    """
    before = f"{INPUTS}/{run_id}/"
    digests: dict[str, str] = {}
    manifest = b""
    try:
        with files.reading(archive) as file:
            for entry in zip_container.read(file):
                name = entry.name.removeprefix(before)
                is_taken = entry.name.startswith(before) and name.startswith(_TAKEN)
                sha256, pieces = hashlib.sha256(), []
                for piece in entry.content:
                    sha256.update(piece)
                    if is_taken or entry.name == MANIFEST:
                        pieces.append(piece)
                if entry.name == MANIFEST:
                    manifest = b"".join(pieces)
                    continue
                digests[entry.name] = sha256.hexdigest()
                if is_taken:
                    path = into / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(b"".join(pieces))
    except BadArchive as error:
        raise UserError(f"{archive}: {error}") from error
    if archive_manifest.root_of(manifest) != root or any(archive_manifest.differences(manifest, digests)):
        raise UserError(f"{archive}: it changed while it was read")
    if missing := [name for name in _NEEDED if not (into / name).is_file()]:
        raise UserError(
            f"{archive}: it does not hold the code of run {run_id} ({', '.join(missing)}); `left_out` in its "
            "archive.json says why"
        )
    (into / "images").mkdir(exist_ok=True)
    (into / "reports" / "published").mkdir(parents=True, exist_ok=True)
    shutil.copy(ours.images / COMPATIBILITY, into / "images")
    (into / "templates").symlink_to(ours.templates)
    return Checkout(into)
