"""The verification of an archive: its runs are unchanged, and its derived files follow from the runs.

An archive may come from any person. It is read once, from its first byte to its last. No code in it is run, and only
its runs and their inputs are written, into a separate folder that is removed at the end.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.printable import line
from tsuishi.extras.handover.archives import archive_manifest, archive_record, derived, zip_container
from tsuishi.extras.handover.archives.archive_record import ArchivedRun, ArchiveRecord
from tsuishi.extras.handover.archives.member_names import ARTIFACTS, INPUTS, MANIFEST, RECORD, RUNS
from tsuishi.extras.handover.archives.run_inputs import place_of
from tsuishi.extras.handover.archives.zip_container import BadArchive, Entry
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import WorkloadRecord
from tsuishi.results.verification import verify
from tsuishi.specs.vocabulary import Vocabulary

_MOST_FAULTS = 100


@dataclass
class ArchiveVerification:
    """The result of the verification of an archive. `faults`: a line each.

    `root`: the digest that stands for the archive; empty where it has no manifest. `record`: None where it has none
    that can be read. `bytes`: of the files in it. `not_compared`: the parts that a signature alone covers, in words.
    """

    root: str = ""
    record: ArchiveRecord | None = None
    bytes: int = 0
    not_compared: str = ""
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
    """The runs of a verified archive, with the root of each; `root` is that of the archive."""

    runs: list[RunDirectory]
    roots: list[str]
    root: str


def unpacked_runs(session: Session, path: Path, into: Path) -> Unpacked:
    """The runs of an archive, unpacked into a new folder; a line says what it is. Raises UserError for faults."""
    into.mkdir()
    found = verify_archive(path, session.words, into)
    if found.record is None or not found.is_verified:
        raise UserError(f"{found.faults[0]}; `invoke verify --archive {path}` names every fault")
    runs = [RunDirectory(into / RUNS / run.run_id) for run in found.record.runs]
    scrubbed = "scrubbed, " if found.record.scrubbed else ""
    session.screen.say(f"{path}: {scrubbed}runs: {len(runs)}; root {found.root}")
    return Unpacked(runs, [run.root for run in found.record.runs], found.root)


def _faults(file: BinaryIO, into: Path, words: Vocabulary, found: ArchiveVerification) -> Iterator[str]:
    kept: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    for entry in zip_container.read(file):
        found.bytes += entry.size
        digests[entry.name], text = _taken(entry, into)
        if _is_kept(entry.name):
            kept[entry.name] = text
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
    found.not_compared = derived.not_compared(found.record, digests)
    for name, digest in sorted(digests.items()):
        if name.startswith(f"{ARTIFACTS}/") and name.split("/")[1] != digest:
            yield f"{name}: another content than the SHA-256 in its name"
    of_runs = list(_run_faults(found.record, into, digests, words))
    yield from of_runs
    if not of_runs:
        runs = [RunDirectory(into / RUNS / run.run_id) for run in found.record.runs]
        there = {name: text for name, text in kept.items() if derived.is_derived(name)}
        yield from derived.differences(there, runs, found.record, digests)


def _is_kept(name: str) -> bool:
    """Whether a file is read whole."""
    return name in (MANIFEST, RECORD) or derived.is_derived(name)


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
    is_needed = _is_kept(entry.name)
    most = archive_manifest.MOST_BYTES if entry.name == MANIFEST else files.MOST_JSON_BYTES
    if is_needed and entry.size > most:
        raise BadArchive(f"{entry.name} has {entry.size:,} bytes, and {most:,} are the most that are read")
    pieces = []
    for piece in entry.content:
        sha256.update(piece)
        pieces += [piece] * is_needed
    return sha256.hexdigest(), b"".join(pieces)


def _run_faults(record: ArchiveRecord, into: Path, digests: dict[str, str], words: Vocabulary) -> Iterator[str]:
    """Faults of runs: those that the record does not name, or names with another root, and faults of `verify`."""
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
    if checked.trials != archived.trials:
        yield f"{RUNS}/{run.id}: {checked.trials} trials, and {RECORD} says {archived.trials}"
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
