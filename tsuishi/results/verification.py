"""The verification of a run: no file was altered, lost or added since the runner wrote the run.

`verify` reads everything, and reports impossible content too. A report asks for the `assurance` of a run: that compares
run.json, the gathered tables and the names of trials and records; of a run that is not very large, every file.
"""

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.results import manifest, schema, trial_folders
from tsuishi.results.directory import GATHERED, RunDirectory, table_header
from tsuishi.results.manifest import ANEW, ONCE, Digests
from tsuishi.results.records import AnyRecord, EnvironmentRecord, TrialRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.vocabulary import Vocabulary

# Files of a run's folder that are held during a measurement.
OF_ITS_USER = frozenset({".lock", ".jobs"})
UNLISTED = OF_ITS_USER | {ANEW}
_FOLDERS = frozenset({"records", "trials"})
# A report reads all files of a run of up to 64 MiB, which is thousands of trials; a list, which has many runs, of less.
_SMALL, LISTED = 64 << 20, 4 << 20

Level = Literal["verified", "tables verified", "altered", "older than verification", "being measured"]


class Assurance(NamedTuple):
    """How far a run is known to be what its runner wrote.

    `root`: the digest that stands for it (see manifest.py), where it is verified. `altered`: the files that are not
    what its runner wrote, are not there any more, or were added, as paths in the run. `has_tables`: its gathered tables
    are those of the trials that are there.
    """

    level: Level
    root: str = ""
    altered: tuple[str, ...] = ()
    has_tables: bool = False


def assurance(run: RunDirectory, most: int = _SMALL) -> Assurance:
    """How far a run is known to be what its runner wrote. No fault raises an error.

    most: the bytes of a run up to which every file is read; else no trial is opened.
    """
    if run.measured_by():
        return Assurance("being measured")
    try:
        known = manifest.read(run.path)
        if not known.are_there:
            return Assurance("older than verification")
        altered = {*_added_or_lost(run, known), *_differing(run, known.anew)}
        tables = {ONCE, "trials.csv", *(f"{table}.csv" for table in schema.OF_A_TRIAL)}
        is_as_listed = known.anew.keys() >= tables and not any(name in tables or "/" in name for name in altered)
        is_small = _are_within(run, {**known.anew, **known.once}, most)
        altered |= {*_differing(run, known.once)} if is_small else set()
        has_tables = is_as_listed and not any("/" in name for name in altered) and _have_details(run)
        if not altered:
            level: Level = "verified" if is_small else "tables verified"
            return Assurance(level, known.root if is_small else "", has_tables=has_tables)
    except UserError as error:
        altered, has_tables = {named_in(run, str(error))}, False
    return Assurance("altered", altered=tuple(sorted(altered)), has_tables=has_tables)


def _have_details(run: RunDirectory) -> bool:
    """Whether the gathered table of trials has the columns that a report reads."""
    return {column.name for column in (*schema.TRIALS, *schema.DETAILS)} <= {*table_header(run.path / "trials.csv")}


def _there(run: RunDirectory, folders: Sequence[Path], records: Sequence[Path]) -> set[str]:
    """The files of a run that digests name, but the files of trials beside their trial.json."""
    names = {f"trials/{folder.name}/trial.json" for folder in folders} | {f"records/{path.name}" for path in records}
    return names | {name for name, _ in files.entries(run.path)} - UNLISTED - _FOLDERS


def _added_or_lost(run: RunDirectory, known: Digests) -> set[str]:
    """The files by which a run differs from its digests, without a look into the folders of trials."""
    listed = {name for name in known.once if name.startswith("records/") or name.endswith("/trial.json")} | {
        *known.anew
    }
    found = _there(run, run.finished_folders(), run.record_files()) ^ listed
    return found if known.root else {*found, ANEW}


def _are_within(run: RunDirectory, names: Collection[str], most: int) -> bool:
    """Whether files have so many bytes at most, all together."""
    left = most
    for name in names:
        with suppress(OSError):
            left -= os.lstat(f"{run.path}/{name}").st_size
        if left < 0:
            return False
    return bool(most)


def _differing(run: RunDirectory, digests: Mapping[str, str]) -> Iterator[str]:
    """The files that are not there, or have another digest. This user's seal shows run.json, too."""
    for name, digest in digests.items():
        path = f"{run.path}/{name}"
        try:  # no record is longer than a text that is read: its digest is not asked for
            is_record = not name.endswith(".json") or Path(path).stat().st_size <= toml.MOST_TEXT_BYTES
            is_same = is_record and files.size_and_sha256(path)[1] == digest
        except (OSError, UserError):
            is_same = False
        if not is_same and not (name == "run.json" and _is_ours(run)):
            yield name


def _is_ours(run: RunDirectory) -> bool:
    """Whether run.json has this user's seal: a runner that was killed may have written it after its digest."""
    with suppress(UserError):
        return run.is_ours(run.run())
    return False


def refuse_alterations(run: RunDirectory) -> None:
    """Raise UserError where a file that is written once is not what the runner of this run wrote.

    A trial that was removed is none: it is measured again, and counted.
    """
    known = manifest.read(run.path, may_be_cut=True)
    removed = {folder for folder in map(_folder_of, known.once) if not os.path.lexists(run.path / folder)}
    there = {name: digest for name, digest in known.once.items() if _folder_of(name) not in removed}
    if altered := list(_differing(run, there)):
        raise UserError(
            f"run {run.id} was altered since it was measured: {shortened(altered)}: restore what was altered, or "
            f"remove the trial's folder; `invoke verify --run {run.id}` says more"
        )


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def named_in(run: RunDirectory, fault: str) -> str:
    """The file that the line of a fault begins with, as a path in the run."""
    return fault.partition(": ")[0].removeprefix(f"{run.path}/")


def shortened(names: Sequence[str], most: int = 3) -> str:
    """The first names of files, and the number of the others, for a line to the user."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Verification:
    """What the verification of a run came to. `faults`: a line each; `root`: see manifest.py.

    `bytes`: the size of the files that were read. `removed`: the trials that were removed before a resumption, whatever
    they had found.
    """

    run_id: str
    trials: int
    bytes: int
    root: str
    removed: int
    faults: tuple[str, ...]

    @property
    def is_verified(self) -> bool:
        return bool(self.root) and not self.faults


def verify(run: RunDirectory, words: Vocabulary) -> Verification:
    """Read every file of a run, and compare it with the run's digests. words: describes the axes of its cases.

    No fault raises an error. It needs no engine and no network. Raises UserError where the run is being measured.
    """
    if holder := run.measured_by():
        raise UserError(f"run {run.id} is being measured by {holder}: verify it when that has ended")
    reading = _Reading(run)
    faults = tuple(reading.faults(words))
    return Verification(run.id, reading.trials, reading.bytes, reading.known.root, reading.known.removed, faults)


class _Reading:
    """A run that is being read, and how much of it was."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self.known = Digests({}, {})
        # By id; None where their kind is unknown. And why a record cannot be read, by its file.
        self._records: dict[str, AnyRecord | None] = {}
        self._unreadable: dict[str, str] = {}
        self.trials = self.bytes = 0

    def faults(self, words: Vocabulary) -> Iterator[str]:
        """A line for each fault."""
        try:
            self.known = manifest.read(self._run.path)
            recorded = self._run.run()
            folders = self._run.finished_folders()
            records = self._run.record_files()
        except UserError as error:
            yield str(error)
            return
        if not self.known.are_there:
            yield f"{self._run.path}: made before there was verification: it has no {ONCE}"
        elif not self.known.root:
            yield f"{self._run.path / ANEW}: not there: lost, or its runner was killed"
        found = list(self._files(recorded, folders, records))
        yield from found
        if not found:
            yield from self._contents(words)

    def _files(self, recorded: RunRecord, folders: list[Path], records: list[Path]) -> Iterator[str]:
        """Faults of files: of those with a digest, of others, and of those in the folders of trials."""
        for path in records:
            try:
                self._records[path.stem] = self._run.record(path.stem)
            except UserError as error:
                self._unreadable[self._name(path)] = str(error)
        for name, digest in sorted({**self.known.once, **self.known.anew}.items()):
            faults = list(self._compared(name, digest))
            if not (name == "run.json" and _is_ours(self._run)):
                yield from faults
        added = _there(self._run, folders, records) - self.known.once.keys() - self.known.anew.keys()
        for name in sorted(added) if self.known.are_there else ():
            yield f"{self._run.path / name}: not in the manifest: added, or left by a runner that was killed"
        planned = {trial.trial_id for trial in recorded.plan}
        for folder in folders:
            self.trials += 1
            yield from self._trial(folder, planned)

    def _trial(self, folder: Path, planned: set[str]) -> Iterator[str]:
        try:
            ((_, trial),) = trial_folders.read([folder])
            inside = {name for name, _ in files.entries(folder)} - {"trial.json"}
        except UserError as error:
            yield str(error)
            return
        if str(trial.id.planned) not in planned:
            yield f"{folder}: the run did not plan it"
        for name in trial.cited:
            if name not in self._records and f"records/{name}.json" not in self._unreadable:
                yield f"{self._run.records / name}.json: not there, and {folder.name} cites it"
        known = trial.files or {}
        for name in sorted(inside - known.keys()) if trial.files is not None else ():
            yield f"{folder / name}: added"
        for name, about in known.items():
            listed = self.known.once.get(f"trials/{folder.name}/{name}")
            if listed is None:
                yield from self._compared(f"trials/{folder.name}/{name}", about.sha256)
            elif listed != about.sha256:
                yield f"{folder / name}: the manifest has another digest of it than its trial.json"
        for why in self._implausible(trial):
            yield f"{folder}: {why}"

    def _implausible(self, trial: TrialRecord) -> Iterator[str]:
        """What a trial.json says and cannot be."""
        from tsuishi.results import plausibility

        record = self._records.get(trial.environment_record or "")
        yield from plausibility.wrong_times(trial)
        yield from plausibility.wrong_end(trial)
        if isinstance(record, EnvironmentRecord):
            yield from plausibility.wrong_versions(trial, record)

    def _compared(self, name: str, expected: str) -> Iterator[str]:
        """A line where a file of the run is not what it was."""
        path = self._run.path / name
        try:
            size, digest = files.size_and_sha256(path)
            self.bytes += size
        except UserError as error:
            yield str(error)
            return
        if digest != expected:
            yield f"{path}: altered: its {size} bytes are not what the runner wrote"
        elif name in self._unreadable:
            yield self._unreadable[name]

    def _contents(self, words: Vocabulary) -> Iterator[str]:
        """Gathered tables that are not those of the trials, and trials with rows that cannot be right."""
        from tsuishi.results import plausibility  # pandas takes as long as all else
        from tsuishi.results.frames import read_runs

        try:
            with tempfile.TemporaryDirectory() as folder:
                self._run.gather(words, Path(folder), columns_of=self._run.path)
                for name in GATHERED:
                    path = self._run.path / name
                    if path.exists() and _meaning(path) != _meaning(Path(folder) / name):
                        yield f"{path}: not what the trials give: `invoke run-suite --resume {self._run.id}` mends it"
            results = read_runs([self._run], words)
            for exclusion in results.excluded:
                yield f"{self._run.path / exclusion.file}: row {exclusion.row}: {exclusion.in_english}"
            for check in (plausibility.wrong_rows, plausibility.repeated_findings):
                for trial_id, why in check(results):
                    yield f"{self._run.trials / trial_id}: {why}"
        except UserError as error:
            yield str(error)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._run.path).as_posix()


def _meaning(path: Path) -> object:
    """What a gathered file says. What a column means in words may be another text in an earlier tsuishi."""
    if path.suffix != ".json":
        return files.read_bytes(path)
    package = files.read_json(path)
    for table in package.get("resources", ()):
        for column in table["schema"]["fields"]:
            column.pop("description", None)
    return package
