"""The verification of an archive: its runs are unchanged, and its derived files follow from the runs.

An archive may come from any person. Each file that its manifest names is read once. No code in it is run, and only its
runs and their inputs are written, into a separate folder that is removed at the end.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.printable import line
from tsuishi.extras.handover.archives import archive_manifest, archive_record, derived
from tsuishi.extras.handover.archives.archive_record import ArchivedRun, ArchiveRecord
from tsuishi.extras.handover.archives.member_names import ARTIFACTS, INPUTS, RECORD, RUNS, problem_of_size
from tsuishi.extras.handover.archives.run_inputs import is_of_workloads, lacking_text, place_of
from tsuishi.extras.handover.archives.zip_container import BadArchive, Container, Entry
from tsuishi.extras.handover.incoming import require_room
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
    """Read every file of an archive, and verify its runs. words: describes the axes of their cases.

    into: an empty folder in which runs and inputs stay; without it they are removed. No fault of the archive raises an
    error; UserError says that the file cannot be opened, or that its runs have no room on the disk.
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
    archive = Container(file)
    found.root, found.bytes = archive_manifest.root_of(archive.manifest), len(archive.manifest)
    if wrong := [f"{name}: {why}" for name, size in archive.sizes.items() if (why := problem_of_size(name, size))]:
        yield from wrong
        return
    require_room((into, sum(size for name, size in archive.sizes.items() if _is_written(name))))
    kept: dict[str, bytes] = {}
    is_altered = False
    for entry in archive.entries():
        found.bytes += entry.size
        try:
            text = _taken(entry, into)
        except BadArchive as error:
            is_altered = True
            yield str(error)
        else:
            kept |= {entry.name: text} if text is not None else {}
    if is_altered:
        return
    if RECORD not in kept:
        raise BadArchive(f"it has no {RECORD}")
    found.record = archive_record.read(kept[RECORD])
    found.not_compared = derived.not_compared(found.record, archive.digests)
    for name, digest in archive.digests.items():
        if name.startswith(f"{ARTIFACTS}/") and name.split("/")[1] != digest:
            yield f"{name}: another content than the SHA-256 in its name"
    run_faults = list(_run_faults(found.record, into, archive.digests, words))
    yield from run_faults
    if not run_faults:
        runs = [RunDirectory(into / RUNS / run.run_id) for run in found.record.runs]
        there = {name: text for name, text in kept.items() if derived.is_derived(name)}
        yield from derived.differences(there, runs, found.record, archive.digests)


def _is_written(name: str) -> bool:
    return name.startswith((f"{RUNS}/", f"{INPUTS}/"))


def _taken(entry: Entry, into: Path) -> bytes | None:
    """The content of an entry, where that is asked for. Runs and inputs are written below `into`."""
    if _is_written(entry.name):
        path = into / entry.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.writelines(entry.content)
        return None
    is_asked = entry.name == RECORD or derived.is_derived(entry.name)
    pieces = [piece for piece in entry.content if is_asked]
    return b"".join(pieces) if is_asked else None


def _run_faults(record: ArchiveRecord, into: Path, digests: Mapping[str, str], words: Vocabulary) -> Iterator[str]:
    """Faults of runs: those that the record does not name, or names with another root, and faults of `verify`."""
    named = {run.run_id: run for run in record.runs}
    there = {name.split("/")[1] for name in digests if name.startswith(f"{RUNS}/")}
    for run_id in sorted(there - named.keys()):
        yield f"{RUNS}/{run_id}: a run that {RECORD} does not name"
    for run_id, archived in named.items():
        if run_id not in there:
            yield f"{RUNS}/{run_id}: {RECORD} names it, and it is not there"
            continue
        yield from _of_run(archived, RunDirectory(into / RUNS / run_id), digests, words, record.left_out)


def _of_run(
    archived: ArchivedRun, run: RunDirectory, digests: Mapping[str, str], words: Vocabulary, left_out: Collection[str]
) -> Iterator[str]:
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
    yield from _of_workloads(archived.run_id, run, digests, left_out)


def _of_workloads(
    run_id: str, run: RunDirectory, digests: Mapping[str, str], left_out: Collection[str]
) -> Iterator[str]:
    """Files of workloads that the run does not name, or names otherwise; and files that it names and are not there."""
    before = f"{INPUTS}/{run_id}/"
    there = {name.removeprefix(before): digest for name, digest in digests.items() if name.startswith(before)}
    wanted: dict[str, str] = {}
    unsaid: set[str] = set()
    for path in run.record_files():
        if isinstance(workload := run.record(path.stem), WorkloadRecord):
            of_workload = {place_of(file): digest for file, digest in (workload.files or {}).items()}
            wanted |= of_workload
            absent = of_workload.keys() - there.keys()
            if f"inputs of run {run_id}: {lacking_text(workload, len(absent))}" not in left_out:
                unsaid |= absent
    for name in sorted(unsaid):
        yield f"{before}{name}: not there, and run {run_id} ran it; {RECORD} does not say so"
    for name, digest in sorted(there.items()):
        if wanted.get(name, digest) != digest:
            yield f"{before}{name}: another workload than run {run_id} ran"
        elif name not in wanted and is_of_workloads(name):
            yield f"{before}{name}: run {run_id} had no such workload"
