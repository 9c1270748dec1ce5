"""archive.json, typed: the runs in an archive, its scrubbed files, and its omissions with their reasons."""

from typing import Annotated

from pydantic import Field

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.toml import Record, Sha256
from tsuishi.extras.handover.archives.member_names import RECORD
from tsuishi.extras.handover.archives.zip_container import BadArchive
from tsuishi.results.record_files import is_schema, parsed
from tsuishi.results.records import Count
from tsuishi.specs.trial_id import Name

SCHEMA_VERSION = 2


class ArchivedRun(Record):
    """A run of an archive. `root`: the digest that stands for the run, see results/manifest.py."""

    run_id: Name
    root: Sha256
    trials: Count


class ScrubbedFile(Record):
    """A file that was altered to make an archive anonymous.

    `raw`: the SHA-256 of a salt and the original file. The archive's maker can give the salt, and so prove which file
    it was; no other person can guess the content and test the guess.
    """

    file: str
    raw: Sha256


class ArchiveRecord(Record):
    """archive.json. `scrubbed`: whether the archive is anonymous; then its runs have chains of their own."""

    schema_version: int = SCHEMA_VERSION
    tsuishi_version: str
    scrubbed: bool
    runs: Annotated[tuple[ArchivedRun, ...], Field(min_length=1)]
    scrubbed_files: tuple[ScrubbedFile, ...] = ()
    authors: tuple[str, ...] = ()
    licence: str = ""
    left_out: tuple[str, ...] = ()


def read(text: bytes) -> ArchiveRecord:
    """The record in the text of an archive.json.

    Raises BadArchive where it is not a record, or is of another schema.
    """
    try:
        version = files.parse_json(RECORD, text).get("schema_version")
        if not is_schema(version, SCHEMA_VERSION):
            raise BadArchive(f"{RECORD}: schema {version}, and this tsuishi reads {SCHEMA_VERSION}")
        return parsed(RECORD, text, ArchiveRecord)
    except UserError as error:
        raise BadArchive(str(error)) from error
