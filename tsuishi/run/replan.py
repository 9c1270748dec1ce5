"""The plan of an earlier run, made again from the suites and environments here.

What run.json says of a trial chooses it and is compared; what is run is what this machine's own files say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from tsuishi.base import toml
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import UserError
from tsuishi.machine.accelerators import misfit
from tsuishi.machine.gpus import Nvml
from tsuishi.machine.history import History
from tsuishi.plan import trials
from tsuishi.plan.choice import Choice
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results.run_files import PlanEntry, RunFile
from tsuishi.specs.environment import Accelerator, Environment
from tsuishi.specs.suite import Profile, select_suites


class Arguments(toml.Spec):
    """What is taken over from a run's own arguments."""

    model_config = ConfigDict(extra="ignore")

    profile: Profile
    suite: Annotated[str, Field(pattern=r"^[a-z0-9._,-]*$")] = ""
    accelerator: Literal["auto", "cpu", "cuda"] = "auto"
    timeout: float | None = None
    force: bool = False
    engine: str = "auto"
    gpus: str = "all"


@dataclass(frozen=True)
class Places:
    """What trials are made from."""

    rooms: Rooms
    nvml: Nvml
    history: History
    data: Mapping[str, str] | None


def arguments(path: Path, run: RunFile) -> Arguments:
    """Of a run at that path. Raises UserError where they are none that run-suite writes."""
    try:
        return Arguments.model_validate({**run.arguments, "profile": run.profile})
    except ValidationError as error:
        raise UserError(f"{path / 'run.json'}: {toml.explain(error, Arguments)}; start a new run") from error


def planned_again(
    path: Path, run: RunFile, environments: Mapping[str, Environment], choice: Choice, here: Places
) -> list[PlannedTrial]:
    """The trials of a run's plan. Raises UserError for a trial that the suites here do not make."""

    @cache
    def first(environment: str, accelerator: Accelerator) -> dict[str, PlannedTrial]:
        return {one.case.id: one for one in _first_trials(environments[environment], accelerator, choice, here)}

    def made(entry: PlanEntry) -> PlannedTrial:
        environment = environments.get(entry.environment)
        if environment is None or entry.accelerator not in ("cpu", *environment.accelerators):
            raise UserError(f"{path}: trial {entry.trial} is for no environment that is here: start a new run")
        trial = first(entry.environment, entry.accelerator).get(entry.case_id)
        if trial is None:
            raise UserError(
                f"{path}: trial {entry.trial} is none that the suites here make: put suites/ back as it was, or "
                "start a new run"
            )
        trial = trials.repeated(trial, entry.repetition)
        here_and_there = (
            (str(trial.id), entry.trial, "name"),
            (trial.case.axes, entry.case, "case"),
            (trial.workload, entry.workload, "workload"),
            (trial.settings, entry.settings, "settings"),
        )
        for ours, theirs, what in here_and_there:
            if ours != theirs:
                raise UserError(
                    f"{path}: trial {entry.trial} has another {what} than suites/{trial.case.suite}.toml gives it: "
                    "put the suite back as it was, or start a new run"
                )
        # In the words of the environment when it was asked; nothing is started for such a trial.
        return replace(trial, unsupported=entry.unsupported, expected_s=0.0 if entry.unsupported else trial.expected_s)

    return [made(entry) for entry in run.plan]


def _first_trials(
    environment: Environment, accelerator: Accelerator, choice: Choice, here: Places
) -> Iterator[PlannedTrial]:
    """The first trial of every case, however many GPUs there are: the plan says which of them it had."""
    unfit = misfit(environment, here.nvml, here.rooms.images) if accelerator == "cuda" and choice.force else None
    for suite in select_suites(here.rooms.suites, choice.suites):
        for trial in trials.first_trials(suite, environment, accelerator, choice, None):
            name, kinds = trials.history_name(trial, here.data), trials.history_kinds(trial)
            expected_s = here.history.expected_s(name, trial.guess_s, kinds)
            yield replace(trial, expected_s=expected_s, forced=unfit.reason if unfit else "")
