"""What would be done, before anything long starts: environments, trials in order, downloads, disk, time."""

import random
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuishi import store
from tsuishi.builder import Builder
from tsuishi.environment import Accelerator, Environment, select_environments
from tsuishi.errors import UserError
from tsuishi.nvml import Nvml
from tsuishi.rooms import Rooms
from tsuishi.suite import Case, Profile, Suite, select_suites

# What a trial's name says of its case, where it is not the usual.
_TELLING_AXES = (
    *("model", "implementation", "mode", "layout", "strategy", "precision", "execution"),
    *("pipeline", "operation", "graph_optimizers", "search"),
)
_USUAL_VALUES = ("framework", "training", "native", "fp32", "default")

# An installed environment takes about this many times its wheels, and a build as much again on the way.
_INSTALLED_PER_DOWNLOADED = 3.5


@dataclass(frozen=True)
class PlannedTrial:
    """One trial to come. `id` lacks the attempt, which is known only when it runs."""

    id: str
    case: Case
    environment: str
    accelerator: Accelerator
    repetition: int
    workload: str
    settings: dict[str, Any]
    timeout_s: float
    expected_s: float


@dataclass(frozen=True)
class PlannedBuild:
    """What is to be done for one environment."""

    environment: Environment
    engine: str
    built: bool
    downloads: int
    download_bytes: int
    disk_bytes: int
    expected_s: float


@dataclass(frozen=True)
class Choice:
    """What a user asked for, names as given; empty means the default."""

    environments: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    profile: Profile = "quick"
    repetitions: int | None = None
    timeout_s: float | None = None
    seed: int = 0
    accelerator: str = "auto"


@dataclass(frozen=True)
class Chosen:
    """The environments that can be made here, and why the others cannot."""

    environments: tuple[Environment, ...]
    left_out: dict[str, str]


def choose(builder: Builder, rooms: Rooms, choice: Choice, nvml: Nvml) -> Chosen:
    """The named environments, or every default one this machine can make and use as asked.

    Raises UserError where a named one cannot be: what was asked for by name is never left out silently.
    """
    chosen, left_out = [], {}
    for environment in select_environments(rooms.images, choice.environments):
        refusal = builder.refusal(environment)
        if not refusal and choice.accelerator == "cuda":
            refusal = gpu_refusal(environment, nvml)
        if refusal and choice.environments:
            raise UserError(f"{environment.name} cannot be used here: {refusal}")
        if refusal:
            left_out[environment.name] = refusal
        else:
            chosen.append(environment)
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UserError(f"no environment can be used here: {reasons or 'images/ marks none as default'}")
    return Chosen(tuple(chosen), left_out)


def plan_builds(builder: Builder, environments: Sequence[Environment]) -> list[PlannedBuild]:
    """What building each environment takes from where things stand now."""
    planned = []
    for environment in environments:
        ready = not environment.pinned or builder.find(environment) is not None
        missing = (
            []
            if ready
            else [pin for pin in environment.pins if builder.cache.find(pin.sha256, environment.python) is None]
        )
        total = sum(pin.size_bytes or 0 for pin in environment.pins)
        planned.append(
            PlannedBuild(
                environment=environment,
                engine=builder.engine_for(environment).name,
                built=ready,
                downloads=len(missing),
                download_bytes=sum(pin.size_bytes or 0 for pin in missing),
                disk_bytes=0 if ready else int(total * _INSTALLED_PER_DOWNLOADED),
                expected_s=0.0 if ready else environment.expect.build_s,
            )
        )
    return planned


def plan_trials(
    choice: Choice,
    rooms: Rooms,
    environments: Sequence[Environment],
    nvml: Nvml,
    history: Mapping[str, float],
    data: Mapping[str, str] | None = None,
) -> list[PlannedTrial]:
    """Every trial of the run in the order it will be run: repetition by repetition, shuffled within by the seed.

    Interleaving over cases and environments keeps a drift of the machine from looking like a difference between them.
    `data` is the record of the data set at hand.
    """
    suites = select_suites(rooms.suites, choice.suites)
    repetitions: dict[int, list[PlannedTrial]] = {}
    for environment in environments:
        accelerator = accelerator_for(environment, nvml, choice.accelerator)
        for suite in suites:
            for trial in _suite_trials(suite, environment, accelerator, choice, history, data, len(nvml)):
                repetitions.setdefault(trial.repetition, []).append(trial)
    order = random.Random(choice.seed)  # noqa: S311
    for trials in repetitions.values():
        order.shuffle(trials)
    return [trial for _, trials in sorted(repetitions.items()) for trial in trials]


def accelerator_for(environment: Environment, nvml: Nvml, asked: str) -> Accelerator:
    """What an environment computes on here: the GPU where there is one that it can use, else the CPU."""
    return "cpu" if asked == "cpu" or gpu_refusal(environment, nvml) else "cuda"


def unfit_gpus(environment: Environment, gpus: Iterable[Mapping[str, Any]]) -> list[str]:
    """GPUs outside the compute capabilities an environment was compiled for, with their capability."""
    if environment.compute_capabilities is None:
        return []
    low, high = (_version(text) for text in environment.compute_capabilities)
    return [
        f"{gpu['name']} is compute capability {gpu['compute_capability']}"
        for gpu in gpus
        if gpu["compute_capability"] and not low <= _version(gpu["compute_capability"]) <= high
    ]


def gpu_refusal(environment: Environment, nvml: Nvml) -> str:
    """Why an environment made for GPUs runs on the CPU here; empty where it does not."""
    if "cuda" not in environment.accelerators:
        return "it is made for the CPU"
    if not len(nvml):
        return f"no GPU here ({nvml.why_not or 'none found'})"
    unfit = unfit_gpus(environment, nvml.describe())
    low, high = environment.compute_capabilities or ("", "")
    return f"{'; '.join(unfit)}; it holds code for {low} to {high}" if unfit else ""


def past_durations(results: Path, machine: str) -> dict[str, float]:
    """Median duration in seconds by trial id (without the attempt and repetition) of earlier trials on this machine."""
    durations: dict[str, list[float]] = {}
    for path in list(store.known_runs(results).values())[-10:]:
        for trial_path in path.glob("trials/[!.]*/trial.json"):
            try:
                trial = store.read_json(trial_path)
                if trial["status"] in store.FINDINGS and trial["machine_record"] == machine:
                    key = history_key(trial["case_id"], trial["environment"], trial["settings"], trial.get("data"))
                    durations.setdefault(key, []).append(float(trial["duration_s"]))
            except (UserError, KeyError, TypeError, ValueError):
                continue  # a damaged trial is no reason not to plan new ones
    return {key: statistics.median(values) for key, values in durations.items()}


def history_key(
    case_id: str, environment: str, settings: Mapping[str, Any], data: Mapping[str, str] | None = None
) -> str:
    """What must be the same for an earlier trial's duration to say something about a later one's."""
    return f"{case_id} {environment} {sorted(settings.items())} {data['sha256'] if data else 'no data set'}"


def trial_slug(case: Case) -> str:
    """A readable, unique name for a case: what varies most, and the beginning of its id."""
    axes = case.axes
    parts = [case.suite, case.protocol]
    parts += [str(axes[name]) for name in _TELLING_AXES if axes.get(name) not in (None, *_USUAL_VALUES)]
    parts += [f"{letter}{axes[name]}" for name, letter in (("devices", "d"), ("batch_size", "b")) if name in axes]
    return "-".join([*parts, case.id[:6]])


def describe_plan(planned: Sequence[PlannedTrial]) -> list[dict[str, Any]]:
    """The plan as run.json keeps it: enough to go on from."""
    return [
        {
            "trial": trial.id,
            "case_id": trial.case.id,
            "case": trial.case.axes,
            "environment": trial.environment,
            "accelerator": trial.accelerator,
            "repetition": trial.repetition,
            "workload": trial.workload,
            "settings": trial.settings,
            "timeout_s": trial.timeout_s,
            "expected_s": round(trial.expected_s, 1),
        }
        for trial in planned
    ]


def planned_again(run: Mapping[str, Any], environments: Collection[str]) -> list[PlannedTrial]:
    """The plan of a run.json, for those environments that are at hand."""
    return [
        PlannedTrial(
            id=entry["trial"],
            case=Case.model_validate(entry["case"]),
            environment=entry["environment"],
            accelerator=entry["accelerator"],
            repetition=entry["repetition"],
            workload=entry["workload"],
            settings=entry["settings"],
            timeout_s=entry["timeout_s"],
            expected_s=entry["expected_s"],
        )
        for entry in run["plan"]
        if entry["environment"] in environments
    ]


def gpu_indices(trial: PlannedTrial, present: Sequence[int]) -> tuple[str, ...]:
    """The GPUs a trial gets, of those present: as many as its case has devices, or all where there are fewer."""
    if trial.accelerator != "cuda":
        return ()
    return tuple(str(index) for index in present[: trial.case.devices or 1])


def _suite_trials(
    suite: Suite,
    environment: Environment,
    accelerator: Accelerator,
    choice: Choice,
    history: Mapping[str, float],
    data: Mapping[str, str] | None,
    gpus: int,
) -> Iterable[PlannedTrial]:
    profile = suite.profile(choice.profile)
    settings = profile.settings_for(accelerator).model_dump()
    for case, group in suite.cases(choice.profile, accelerator, gpus):
        past = history.get(history_key(case.id, environment.name, settings, data))
        guess = environment.expect.startup_s + group.expected_s(
            choice.profile, case.batch_size or 0, environment.expect.slowdown
        )
        for repetition in range(1, (choice.repetitions or profile.repetitions.get(accelerator, 1)) + 1):
            yield PlannedTrial(
                id=f"{trial_slug(case)}.{environment.name}.r{repetition}",
                case=case,
                environment=environment.name,
                accelerator=accelerator,
                repetition=repetition,
                workload=suite.workload,
                settings=settings,
                timeout_s=choice.timeout_s or profile.timeout_s,
                expected_s=past if past is not None else guess,
            )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
