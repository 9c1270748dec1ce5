"""The plan of an earlier run, made again from the suites and environments of this machine.

A trial in run.json only chooses among the trials that this machine's own files make, and is compared with the chosen
trial. So a received run.json cannot run anything else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.plan import trials
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.environment import Accelerator, Environment, named_environments, read_environment
from tsuishi.specs.suite import Profile, select_suites
from tsuishi.specs.trial_spec import Trial


class Arguments(toml.Spec):
    """The arguments of a run that its resumption takes over."""

    model_config = ConfigDict(extra="ignore")

    profile: Profile
    suite: Annotated[str, Field(pattern=r"^[a-z0-9._,-]*$")] = ""
    accelerator: Literal["auto", "cpu", "cuda"] = "auto"
    timeout: float | None = None
    force: bool = False
    engine: str = "auto"
    executor: str = "auto"
    nodes: Annotated[int, Field(ge=1)] = 1
    gpus: str = "all"


def arguments(path: Path, run: RunRecord) -> Arguments:
    """The arguments of the run at that path. Raises UserError for arguments that run-suite does not write."""
    try:
        return Arguments.model_validate({**run.arguments, "profile": run.profile})
    except ValidationError as error:
        raise UserError(f"{path / 'run.json'}: {toml.explain(error, Arguments)}; start a new run") from error


def session_of_plan(session: Session, path: Path, recorded: RunRecord, changed: Mapping[str, str]) -> Session:
    """The session that measures the plan of a run; changed: settings in place of this machine's.

    This machine's settings decide where images and files come from. A run that began without data has none again.
    Raises UserError where run.json has settings that no run can have.
    """
    then = arguments(path, recorded)
    try:
        settings = Settings.model_validate({**session.settings.model_dump(), **changed})
    except ValidationError as error:
        raise UserError(f"{path / 'run.json'}: {toml.explain(error, Settings)}; start a new run") from error
    choice = replace(
        session.choice,
        suites=tuple(filter(None, then.suite.split(","))),
        profile=then.profile,
        accelerator=then.accelerator,
        timeout_s=session.choice.timeout_s or then.timeout,
        force=then.force,
        nodes=then.nodes,
    )
    return replace(session, settings=settings, choice=choice, data_set=session.data_set if recorded.data else None)


def environments_of_plan(session: Session, recorded: RunRecord) -> dict[str, Environment]:
    """The environments of a run's plan, by name. Raises UserError for an environment that is not on this machine."""
    names = sorted({entry.environment for entry in recorded.plan})
    files = named_environments(session.checkout.images, tuple(names))
    return {name: read_environment(path) for name, path in files.items()}


def planned_again(
    session: Session, path: Path, run: RunRecord, environments: Mapping[str, Environment]
) -> list[PlannedTrial]:
    """The trials of a run's plan, in its environments, by name.

    Raises UserError for a trial that this machine's suites do not make.
    """

    @cache
    def first(environment: str, accelerator: Accelerator) -> dict[str, PlannedTrial]:
        return {trial.case_id: trial for trial in _first_trials(session, environments[environment], accelerator)}

    def made(entry: Trial) -> PlannedTrial:
        environment = environments.get(entry.environment)
        if environment is None or entry.accelerator not in ("cpu", *environment.accelerators):
            raise UserError(f"{path}: trial {entry.trial_id} is for no environment that is here: start a new run")
        trial = first(entry.environment, entry.accelerator).get(entry.case_id)
        if trial is None:
            raise UserError(
                f"{path}: trial {entry.trial_id} is none that the suites here make: put suites/ back as it was, or "
                "start a new run"
            )
        trial = trial.renamed(trial.id.repeated(entry.repetition))
        here_and_there = (
            (trial.trial_id, entry.trial_id, "name"),
            (trial.axes, entry.axes, "case"),
            (trial.workload, entry.workload, "workload"),
            (trial.settings, entry.settings, "settings"),
        )
        for ours, theirs, what in here_and_there:
            if ours != theirs:
                raise UserError(
                    f"{path}: trial {entry.trial_id} has another {what} than suites/{trial.case.suite}.toml gives it: "
                    "put the suite back as it was, or start a new run"
                )
        # The reason is the environment's answer at that time; nothing is started for an unsupported trial.
        expected_s = 0.0 if entry.unsupported else trial.expected_s
        return trial.model_copy(update={"unsupported": entry.unsupported, "expected_s": expected_s})

    return [made(entry) for entry in run.plan]


def _first_trials(session: Session, environment: Environment, accelerator: Accelerator) -> Iterator[PlannedTrial]:
    """The first trial of every case, for any number of GPUs and nodes: the plan decides which of them the run has."""
    on_gpus = (environment, accelerator, session.nvml, session.checkout.images)
    forced = trials.why_checked(*on_gpus, force=session.choice.force)
    suites = session.checkout.suites
    for suite in select_suites(suites, session.choice.suites):
        for trial in trials.first_trials(suite, environment, accelerator, session.choice, None, None, suites):
            name, kinds = trials.history_name(trial, session.data_record), trials.history_kinds(trial)
            expected_s = session.history.expected_s(name, trial.guess_s, kinds)
            yield trial.model_copy(update={"expected_s": expected_s, "forced": forced})
