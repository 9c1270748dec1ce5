"""The verification of a run: every file is read, and compared with its digest.

Impossible content of unaltered files is reported, too: times outside of their trial, rows out of order, findings
repeated. The rows of samples and metrics are checked at the door to all estimates (admission.py), by reports too.
"""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.results import manifest, trial_folders
from tsuishi.results.admission import SUPERSEDED, exclude
from tsuishi.results.assurance import compared_files, listed_files
from tsuishi.results.directory import GATHERED, RunDirectory
from tsuishi.results.frames import Results, read_runs
from tsuishi.results.manifest import ANEW, ONCE, Digests
from tsuishi.results.records import AnyRecord, EnvironmentRecord, TrialRecord, other_versions
from tsuishi.results.run_record import RunRecord
from tsuishi.results.run_tables import TRIAL
from tsuishi.specs.statuses import EXCLUDED, FAILED, OK, is_finding
from tsuishi.specs.vocabulary import Vocabulary

# Times are rounded to 1 ms, and phases to 1 µs.
_ROUNDING_S = 0.002


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
        yield from self._compared(dict(sorted({**self.known.once, **self.known.anew}.items())))
        added = listed_files(self._run, folders, records) - self.known.once.keys() - self.known.anew.keys()
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
                yield from self._compared({f"trials/{folder.name}/{name}": about.sha256})
            elif listed != about.sha256:
                yield f"{folder / name}: the manifest has another digest of it than its trial.json"
        for why in self._implausible(trial):
            yield f"{folder}: {why}"

    def _implausible(self, trial: TrialRecord) -> Iterator[str]:
        """What a trial.json says and cannot be."""
        record = self._records.get(trial.environment_record or "")
        yield from _wrong_times(trial)
        yield from _wrong_end(trial)
        if isinstance(record, EnvironmentRecord):
            yield from _wrong_versions(trial, record)

    def _compared(self, digests: Mapping[str, str]) -> Iterator[str]:
        """A line for each file that is not what it was, or is a record that cannot be read."""
        for name, size, why in compared_files(self._run, digests):
            self.bytes += size
            if why := why or self._unreadable.get(name, ""):
                yield why

    def _contents(self, words: Vocabulary) -> Iterator[str]:
        """Gathered tables that are not those of the trials, and trials with rows that cannot be right."""
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
            for check in (_wrong_rows, _repeated_findings):
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


def _wrong_times(trial: TrialRecord) -> Iterator[str]:
    """Times in a trial.json that cannot be: a line each."""
    last = trial.duration_s
    if last is not None and (trial.startup_s or 0.0) > last + _ROUNDING_S:
        yield f"its first event came after {trial.startup_s} s, and it lasted {last} s"
    before = 0.0
    for phase in trial.phases or []:
        if phase.begin_s < before:
            yield f"its phase {phase.name} begins before the phase in front of it"
        if phase.end_s is not None and phase.end_s < phase.begin_s:
            yield f"its phase {phase.name} ends before it begins"
        if last is not None and max(phase.begin_s, phase.end_s or 0.0) > last + _ROUNDING_S:
            yield f"its phase {phase.name} is not within its {last} s"
        before = phase.begin_s


def _wrong_end(trial: TrialRecord) -> Iterator[str]:
    """What a trial that ended well cannot have: a line each."""
    if trial.status == OK and trial.exit_code:
        yield f"it is ok, and its exit code is {trial.exit_code}"
    if trial.status == OK and trial.events_missing:
        yield f"it is ok, and {trial.events_missing} of its events are missing"


def _wrong_versions(trial: TrialRecord, environment: EnvironmentRecord) -> Iterator[str]:
    """Versions that a trial saw and its environment does not have: a line each. A trial may have failed by them."""
    if trial.reported and trial.status != FAILED:
        for name, (seen, recorded) in other_versions(environment, trial.reported).items():
            yield f"it saw {name} {seen}, and {trial.environment} has {recorded}"


def _wrong_rows(results: Results) -> Iterator[tuple[str, str]]:
    """Rows of trials that are out of order or outside of their trial: a trial's id, and a line."""
    telemetry, trials = results.telemetry, results.trials
    of, elapsed = telemetry[TRIAL].to_numpy(np.int64), telemetry["elapsed_s"].to_numpy("float64", na_value=np.nan)
    back = (of[1:] == of[:-1]) & (elapsed[1:] < elapsed[:-1])
    for trial in np.unique(of[1:][back]).tolist():
        yield str(trials.at[trial, "trial_id"]), "telemetry.csv: a row is of a time before the row in front of it"
    ends = trials["duration_s"].to_numpy("float64", na_value=np.nan)
    for trial in np.unique(of[elapsed > ends[of] + _ROUNDING_S]).tolist():
        yield str(trials.at[trial, "trial_id"]), f"telemetry.csv: a row is of a time after its {ends[trial]} s"
    pairs = results.samples[[TRIAL, "phase"]].drop_duplicates()
    for trial, phase in zip(pairs[TRIAL].tolist(), pairs["phase"].tolist(), strict=True):
        known = {each.name for each in results.details[trial].phases}
        # Where the runner was killed, the phases were not noted.
        if trials.at[trial, "status"] == OK and known and phase not in known:
            yield str(trials.at[trial, "trial_id"]), f"samples.csv: it had no phase {phase}"


def _repeated_findings(results: Results) -> Iterator[tuple[str, str]]:
    """Trials that were measured again though they had a final finding: a trial's id, and a line.

    A trial that ended well is measured again only where its rows cannot be right.
    """
    trials = results.trials
    planned = trials["trial_id"].str.replace(r"\.a[0-9]+$", "", regex=True)
    last = trials["attempt"].groupby(planned).transform("max")
    earlier = trials["attempt"] < last
    superseded = earlier & trials["reason"].eq(SUPERSEDED) & trials["status"].eq(EXCLUDED)
    for trial in trials.index[earlier & ~superseded].tolist():
        status = str(trials.at[trial, "status"])
        if is_finding(status):
            yield str(trials.at[trial, "trial_id"]), f"it is {status}, which is final, and was measured again"
    for attempt in sorted(set(trials.loc[superseded, "attempt"].tolist())):
        again = superseded & trials["attempt"].eq(attempt)
        excluded = _excluded_then(results, again, trials["attempt"].gt(attempt) & planned.isin(planned[again]))
        for trial_id in trials.loc[again, "trial_id"].tolist():
            if trial_id not in excluded:
                yield trial_id, "it is ok, which is final, and was measured again"


def _excluded_then(results: Results, again: "pd.Series[bool]", later: "pd.Series[bool]") -> set[str]:
    """The ids of the trials that a report excluded before their later attempts were made."""
    then = results.trials.copy()
    then["status"] = then["status"].mask(again, OK).mask(later, FAILED)
    then["attempt"] = then["attempt"].mask(later, 0)
    tables = {"samples": results.samples, "metrics": results.metrics, "telemetry": results.telemetry}
    return {exclusion.trial_id for exclusion in exclude(then, tables, results.words)}
