"""What the files of a run hold, typed. A run may come from anybody: whatever is read of it is held to this first.

Keys that nobody knows are kept and ignored: a later tsuishi may write more.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, model_validator

from tsuishi.base.statuses import RECORDED
from tsuishi.specs.environment import Accelerator
from tsuishi.base.errors import UserError
from tsuishi.specs.questions import Asked
from tsuishi.specs.trial_id import Name, TrialId
from tsuishi.results.records import (
    MOST,
    REMEDY,
    Amount,
    CaseAxes,
    Count,
    Ordinal,
    Recorded,
    Scalar,
    check_case,
    wrong,
)

_MOST_ATTEMPTS = 10_000

Read = Callable[[Path | str], dict[str, Any]]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]


def _status(text: str) -> str:
    if text not in RECORDED:
        raise ValueError(f"no status; known: {', '.join(RECORDED)}")
    return text


class Data(Recorded):
    """A data set, by its file's name and content."""

    file: str
    sha256: str


class Phase(Recorded):
    """A part of a trial, in seconds since it started."""

    name: str
    begin_s: Amount
    end_s: Amount | None


class Timing(Recorded):
    """How long a trial was timed, as far as it is read again."""

    epochs: Count = 0
    train_images: Count = 0
    stop_at: Amount = 0.0


class Reported(Recorded):
    """What a workload said of its environment, as far as it is read again."""

    flags: dict[str, Any] | None = None


class TrialFile(Recorded):
    """trial.json."""

    trial_id: Name
    case_id: Hash
    case_record: Annotated[str, Field(pattern=r"^case-[0-9a-f]{12}$")]
    environment: Name
    environment_record: Annotated[str, Field(pattern=r"^(environment-[0-9a-f]{12})?$")] | None = None
    machine_record: Annotated[str, Field(pattern=r"^(machine-[0-9a-f]{12})?$")] | None = None
    workload_record: Annotated[str, Field(pattern=r"^(workload-[0-9a-f]{12})?$")] | None = None
    framework: str | None = None
    device: str | None = None
    repetition: Ordinal
    attempt: Annotated[int, Field(ge=1, le=_MOST_ATTEMPTS)]
    status: Annotated[str, AfterValidator(_status)]
    reason: str | None = None
    exit_code: Annotated[int, Field(ge=-MOST, le=MOST)] | None = None
    simulated: bool | None = None
    synthetic: bool | None = None
    forced: str | None = None
    started_at: str | None = None
    duration_s: Amount | None = None
    startup_s: Amount | None = None
    energy_j: Amount | None = None
    energy_source: str | None = None
    peak_process_memory_mib: Amount | None = None
    events_garbled: Count | None = None
    events_missing: Count | None = None
    phases: list[Phase] | None = None
    reported: Reported | None = None
    settings: Timing | None = None
    data: Data | None = None
    tables: dict[str, str] | None = None
    command: list[str] | None = None


class PlanEntry(Recorded):
    """A trial of the plan. What says how it is run may be lacking where nobody will run it."""

    trial: Name
    case_id: Hash
    case: CaseAxes
    environment: Name
    repetition: Ordinal
    accelerator: Accelerator | None = None
    workload: str | None = None
    settings: dict[str, Scalar] | None = None
    unsupported: str = ""


class LeftOut(Recorded):
    """An environment that was not used, and why."""

    environment: str
    reason: str


class More(Asked):
    """A question that more time would bring nearer to an answer."""

    seconds: Amount


class Git(Recorded):
    commit: str | None = None
    dirty: bool | None = None


class RunFile(Recorded):
    """run.json."""

    run_id: Name
    tsuishi_version: str | None = None
    git: Git | None = None
    created_at: str | None = None
    profile: str
    seed: Annotated[int, Field(ge=-MOST, le=MOST)]
    engine: str
    arguments: dict[str, Scalar | tuple[Scalar, ...]]
    data: Data | None = None
    plan: tuple[PlanEntry, ...]
    questions: tuple[Asked, ...] = ()
    more: tuple[More, ...] = ()
    sessions: tuple[dict[str, Scalar], ...] = ()
    self_checks: dict[str, dict[str, Scalar]] = {}
    left_out: tuple[LeftOut, ...] = ()

    @model_validator(mode="after")
    def _plans_a_trial_once(self) -> "RunFile":
        cases: dict[str, dict[str, Any]] = {}
        for entry in self.plan:
            if cases.setdefault(entry.case_id, entry.case) != entry.case:
                raise ValueError(f"two cases are planned as {entry.case_id}")
            if not entry.trial.endswith(_ending(entry.case_id, entry.environment, entry.repetition)):
                raise ValueError(f"trial '{entry.trial}' has not the name of its case, environment and repetition")
        if len({(one.case_id, one.environment, one.repetition) for one in self.plan}) < len(self.plan):
            raise ValueError("a trial is planned twice")
        for case_id, case in cases.items():
            check_case(case_id, case)
        return self


def check_run(path: Path | str, run: Mapping[str, Any]) -> RunFile:
    """The content of a run.json. Raises UserError where it is none."""
    try:
        # As JSON: what is a tuple here is a list there, and one that is too deep is refused.
        return RunFile.model_validate_json(json.dumps(run))
    except (ValidationError, ValueError) as error:
        raise wrong(path, error, RunFile) from error


def read_trials(folders: Iterable[Path], read: Read) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The trial.json of every folder. Raises UserError where one is none, or says to be of another folder."""
    names: dict[tuple[str, str, int], TrialId] = {}
    for folder in folders:
        # Not a Path, which takes as long as reading a small file.
        path = f"{folder}/trial.json"
        trial = read(path)
        try:
            seen = TrialFile.model_validate(trial)
        except ValidationError as error:
            raise wrong(path, error, TrialFile) from error
        ending = _ending(seen.case_id, seen.environment, seen.repetition, seen.attempt)
        if seen.trial_id != folder.name or not seen.trial_id.endswith(ending):
            raise UserError(f"{path}: it is of another trial than its folder; {REMEDY}")
        if seen.case_record != f"case-{seen.case_id}":
            raise UserError(f"{path}: its record is of another case; {REMEDY}")
        name = TrialId.parse(folder.name).planned
        if names.setdefault((seen.case_id, seen.environment, seen.repetition), name) != name:
            raise UserError(f"{path}: the same trial is there under another name; {REMEDY}")
        yield folder, trial


def check_attempts(trials: Path, names: Sequence[str]) -> None:
    """Raise UserError where a folder's name is no trial's, or an attempt is there without those before it."""
    attempts: dict[TrialId, list[int]] = {}
    for name in names:
        trial = attempt_of(name)
        if trial is None:
            raise UserError(f"{trials / name}: it has not the name of a trial; {REMEDY}")
        attempts.setdefault(trial.planned, []).append(trial.attempt)
    for planned, numbers in attempts.items():
        for expected, number in zip(count(1), sorted(numbers), strict=False):
            if number != expected:
                raise UserError(f"{trials}/{planned}.a{number}: there is no attempt {expected} before it; {REMEDY}")


def attempt_of(name: str) -> TrialId | None:
    """The trial that a folder's name is of; None where it names no attempt at one."""
    with suppress(ValueError):
        trial = TrialId.parse(name)
        return trial if trial.attempt else None
    return None


def _ending(case_id: str, environment: str, repetition: int, attempt: int = 0) -> str:
    """How the id of a trial ends; before it stands what a reader knows the case by."""
    return str(TrialId(case_id[:6], environment, repetition, attempt))
