"""The verification of a run: every file of it is what its runner wrote, nothing is missing, and nothing was added."""

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.results import hash_chain, quick_verification, trial_folders
from tsuishi.results.directory import GATHERED, RunDirectory
from tsuishi.results.hash_chain import Links
from tsuishi.results.quick_verification import FOLDERS, UNCHAINED, Assurance
from tsuishi.results.records import AnyRecord, EnvironmentRecord, FileRecord, TrialRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.vocabulary import Vocabulary


@dataclass(frozen=True)
class Verification:
    """What the verification of a run came to. `faults`: a line each; `root`: see hash_chain.Links.

    `bytes`: the size of the files that were read. `removed`: the trials that were removed before a resumption, whatever
    they had found. A run of an earlier tsuishi has no root.
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
    """Read every file of a run, and compare it with the run's chain. words: describes the axes of its cases.

    No fault raises an error. It needs no engine and no network. A mark of what was found is left for reports, see
    quick_verification.
    """
    state = _state(run)
    reading = _Reading(run)
    faults = tuple(reading.faults(words))
    found = Verification(run.id, reading.trials, reading.bytes, reading.links.root, reading.links.removed, faults)
    if found.root:
        altered = tuple(dict.fromkeys(quick_verification.named_in(run, fault) for fault in faults))
        seen = Assurance("altered", altered=altered) if faults else Assurance("verified", found.root)
        quick_verification.remember(run, state, seen)
    return found


def _state(run: RunDirectory) -> str:
    """The state of all files that a report reads; empty where it could not read them."""
    from tsuishi.results import gathered  # numpy is slow to import

    with suppress(UserError):
        return quick_verification.state_of(run, gathered.file_states(*gathered.read(run)))
    return ""


class _Reading:
    """A run that is being read, and how much of it was."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self.links = Links({}, "")
        # By id; None where nobody knows their kind. And why a record cannot be read, by its file.
        self._records: dict[str, AnyRecord | None] = {}
        self._unreadable: dict[str, str] = {}
        self.trials = self.bytes = 0

    def faults(self, words: Vocabulary) -> Iterator[str]:
        """A line for each fault."""
        try:
            self.links = hash_chain.read(self._run.path)
            recorded = self._run.run()
            folders = self._run.finished_folders()
            records = self._run.record_files()
        except UserError as error:
            yield str(error)
            return
        if not self.links.root:
            yield f"{self._run.path}: made before there was verification: it has no {hash_chain.FILE}"
        found = list(self._files(recorded, folders, records))
        yield from found
        if not found:
            yield from self._contents(words)

    def _files(self, recorded: RunRecord, folders: list[Path], records: list[Path]) -> Iterator[str]:
        """Faults of files: of those in the chain, of others, and of those in the folders of trials."""
        for path in records:
            try:
                self._records[path.stem] = self._run.record(path.stem)
            except UserError as error:
                self._unreadable[self._name(path)] = str(error)
        there = {self._name(path) for path in (*records, *(folder / "trial.json" for folder in folders))}
        there |= {name for name, _ in files.entries(self._run.path)} - UNCHAINED - FOLDERS
        is_ours = self._is_ours(recorded)
        for name, about in sorted(self.links.last.items()):
            faults = list(self._compared(name, about))
            # A runner that was killed may have written run.json after its last line; this user's seal shows it too.
            if not (name == "run.json" and is_ours):
                yield from faults
        for name in sorted(there - self.links.last.keys()) if self.links.root else ():
            yield f"{self._run.path / name}: not in the chain: added, or left by a runner that was killed"
        planned = {trial.trial_id for trial in recorded.plan}
        for folder in folders:
            self.trials += 1
            yield from self._trial(folder, planned)

    def _trial(self, folder: Path, planned: set[str]) -> Iterator[str]:
        try:
            ((_, trial, _),) = trial_folders.read([folder])
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
            yield from self._compared(f"{self._name(folder)}/{name}", about)
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

    def _compared(self, name: str, expected: FileRecord) -> Iterator[str]:
        """A line where a file of the run is not what it was."""
        path = self._run.path / name
        try:
            now = hash_chain.about(path)
            self.bytes += now.bytes
        except UserError as error:
            yield str(error)
            return
        if now != expected:
            what = f"{now.bytes} bytes, and it had {expected.bytes}" if now.bytes != expected.bytes else "other content"
            yield f"{path}: altered: {what}"
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

    def _is_ours(self, recorded: RunRecord) -> bool:
        try:
            return self._run.is_ours(recorded)
        except UserError:
            return False

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
