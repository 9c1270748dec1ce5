"""The verification of an archive: nobody altered it since it was made, and every run in it is what its runner wrote.

An archive may come from anybody. It is read once, from its first byte to its last; nothing of it is run, and only its
runs and their inputs are written, into a folder of their own that is removed at the end.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.etree import ElementTree

from tsuishi.archives import archive_manifest, archive_record, zip_container
from tsuishi.archives.archive_record import ArchivedRun, ArchiveRecord
from tsuishi.archives.member_names import ARTIFACTS, CRATE, INPUTS, MANIFEST, RECORD, REPORT, RUNS, SBOMS
from tsuishi.archives.run_inputs import place_of
from tsuishi.archives.zip_container import BadArchive, Entry
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.printable import line
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import WorkloadRecord
from tsuishi.results.verification import verify
from tsuishi.specs.vocabulary import Vocabulary

# What a report in an archive may hold: nothing that a program runs when somebody opens it.
_DRAWING = ".svg"
_REPORT_KINDS = frozenset({".md", ".json", ".csv", _DRAWING})
# The files that are read whole, and the most bytes of them; and of a drawing, whose elements take many times its size.
_KEPT = {MANIFEST: archive_manifest.MOST_BYTES, RECORD: files.MOST_JSON_BYTES, CRATE: files.MOST_JSON_BYTES}
_MOST_DRAWN = 8 << 20
_ASKING = re.compile(r"@import|url\((?![\"']?#)|javascript:", re.IGNORECASE)
_MOST_FAULTS = 100


@dataclass
class ArchiveVerification:
    """What the verification of an archive came to. `faults`: a line each.

    `root`: the digest that stands for the archive; empty where it has no manifest. `record`: None where it has none
    that can be read. `bytes`: of the files in it.
    """

    root: str = ""
    record: ArchiveRecord | None = None
    bytes: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def is_verified(self) -> bool:
        return bool(self.root) and self.record is not None and not self.faults


def verify_archive(path: Path, words: Vocabulary, into: Path | None = None) -> ArchiveVerification:
    """Read every byte of an archive, and verify its runs. words: describes the axes of their cases.

    into: an empty folder in which runs and inputs stay; without it they are removed. No fault of the archive raises an
    error; UserError says that the file cannot be opened.
    """
    if into is None:
        with files.private_folder() as folder:
            return verify_archive(path, words, folder)
    found = ArchiveVerification()
    try:
        with files.reading(path) as file:
            for fault in _faults(file, into, words, found):
                if len(found.faults) == _MOST_FAULTS:
                    found.faults.append(f"{path}: more faults than these {_MOST_FAULTS}")
                    break
                found.faults.append(f"{path}: {line(fault)}")
    except BadArchive as error:
        found.faults.append(f"{path}: {line(error)}")
    return found


class Unpacked(NamedTuple):
    """The runs of a verified archive, with the root of each; `root` is that of the archive, `said` a line on it."""

    runs: list[RunDirectory]
    roots: list[str]
    root: str
    said: str


def unpacked_runs(path: Path, words: Vocabulary, into: Path) -> Unpacked:
    """The runs of a verified archive, in the empty folder `into`. Raises UserError where it is not verified."""
    found = verify_archive(path, words, into)
    if found.record is None or not found.is_verified:
        raise UserError(f"{found.faults[0]}; `invoke verify --archive {path}` names every fault")
    runs = [RunDirectory(into / RUNS / run.run_id) for run in found.record.runs]
    said = f"{path}: {'scrubbed, ' if found.record.scrubbed else ''}runs: {len(runs)}; root {found.root}"
    return Unpacked(runs, [run.root for run in found.record.runs], found.root, said)


def _faults(file: BinaryIO, into: Path, words: Vocabulary, found: ArchiveVerification) -> Iterator[str]:
    kept: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    found_beside: list[str] = []
    for entry in zip_container.read(file):
        found.bytes += entry.size
        digests[entry.name], text = _taken(entry, into)
        if entry.name in _KEPT:
            kept[entry.name] = text
        elif entry.name.startswith(f"{REPORT}/"):
            found_beside += [f"{entry.name}: {why}" for why in _report_problems(entry.name, text)]
        elif entry.name.startswith(f"{SBOMS}/"):
            found_beside += _json_problems(entry.name, text)
    if MANIFEST not in kept:
        raise BadArchive(f"it has no {MANIFEST}")
    found.root = archive_manifest.root_of(kept[MANIFEST])
    differing = list(archive_manifest.differences(kept[MANIFEST], {n: d for n, d in digests.items() if n != MANIFEST}))
    yield from differing
    if differing:
        return
    if RECORD not in kept:
        raise BadArchive(f"it has no {RECORD}")
    found.record = archive_record.read(kept[RECORD])
    yield from found_beside
    yield from _other_faults(kept, digests)
    yield from _run_faults(found.record, into, digests, words)


def _other_faults(kept: dict[str, bytes], digests: dict[str, str]) -> Iterator[str]:
    """Faults of metadata and packages."""
    if CRATE not in kept:
        yield f"it has no {CRATE}"
    else:
        yield from _json_problems(CRATE, kept[CRATE])
    for name, digest in sorted(digests.items()):
        if name.startswith(f"{ARTIFACTS}/") and name.split("/")[1] != digest:
            yield f"{name}: another content than the SHA-256 in its name"


def _json_problems(name: str, text: bytes) -> list[str]:
    try:
        files.parse_json(name, text)
    except UserError as error:
        return [str(error)]
    return []


def _taken(entry: Entry, into: Path) -> tuple[str, bytes]:
    """The SHA-256 of an entry, and its content where that is read. Runs and inputs are written below `into`."""
    sha256 = hashlib.sha256()
    folder = entry.name.partition("/")[0]
    if folder in (RUNS, INPUTS):
        path = into / entry.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            for piece in entry.content:
                sha256.update(piece)
                file.write(piece)
        return sha256.hexdigest(), b""
    is_drawing = entry.name.endswith(_DRAWING)
    is_needed = entry.name in _KEPT or folder == SBOMS or is_drawing
    most = _MOST_DRAWN if is_drawing else _KEPT.get(entry.name, files.MOST_JSON_BYTES)
    if is_needed and entry.size > most:
        raise BadArchive(f"{entry.name} has {entry.size:,} bytes, and {most:,} are the most that are read")
    pieces = []
    for piece in entry.content:
        sha256.update(piece)
        pieces += [piece] * is_needed
    return sha256.hexdigest(), b"".join(pieces)


def _report_problems(name: str, text: bytes) -> Iterator[str]:
    """What a file of a report may do to a reader: run something, or ask for something."""
    if Path(name).suffix not in _REPORT_KINDS:
        yield "no kind of file that a report in an archive has: it could run when it is opened"
    if not name.endswith(_DRAWING):
        return
    if b"<!" in text or b"<?" in text or b"\0" in text:
        yield "a drawing that declares or hides something"
        return
    try:
        elements = list(ElementTree.fromstring(text).iter())  # noqa: S314  # without a declaration there are no entities
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        yield f"no drawing that can be read: {error}"
        return
    for element in elements:
        tag = str(element.tag).rpartition("}")[2].lower()
        if tag in ("script", "foreignobject", "iframe", "animate", "set", "handler"):
            yield f"a drawing with a {tag}, which could run"
        if any(map(_ASKING.search, (element.text or "", *element.attrib.values()))):
            yield f"a drawing with a {tag} that asks for something"
        for key, value in element.attrib.items():
            attribute = key.rpartition("}")[2].lower()
            if attribute.startswith("on") or (attribute == "href" and not value.startswith("#")):
                yield f"a drawing with {attribute}, which could run or ask for something"


def _run_faults(record: ArchiveRecord, into: Path, digests: dict[str, str], words: Vocabulary) -> Iterator[str]:
    """Faults of runs: one that the record does not name, or names with another root, and what `verify` finds."""
    named = {run.run_id: run for run in record.runs}
    there = {name.split("/")[1] for name in digests if name.startswith(f"{RUNS}/")}
    for run_id in sorted(there - named.keys()):
        yield f"{RUNS}/{run_id}: a run that {RECORD} does not name"
    for run_id, archived in named.items():
        if run_id not in there:
            yield f"{RUNS}/{run_id}: {RECORD} names it, and it is not there"
            continue
        yield from _of_run(archived, RunDirectory(into / RUNS / run_id), digests, words)


def _of_run(archived: ArchivedRun, run: RunDirectory, digests: dict[str, str], words: Vocabulary) -> Iterator[str]:
    checked = verify(run, words)
    yield from (fault.replace(f"{run.path.parent}/", f"{RUNS}/") for fault in checked.faults)
    if checked.root != archived.root:
        yield f"{RUNS}/{run.id}: another run than {RECORD} names: its digest is {checked.root or 'missing'}"
    if checked.faults:
        return
    if run.run().run_id != archived.run_id:
        yield f"{RUNS}/{run.id}: its run.json is of run {run.run().run_id}"
    before = f"{INPUTS}/{run.id}/"
    wanted: dict[str, str] = {}
    for path in run.record_files():
        if isinstance(workload := run.record(path.stem), WorkloadRecord):
            wanted |= {place_of(file): digest for file, digest in (workload.files or {}).items()}
    for name, digest in sorted(digests.items()):
        if name.startswith(before) and wanted.get(name.removeprefix(before), digest) != digest:
            yield f"{name}: another workload than run {run.id} ran"
