"""What would be done, before anything long starts: environments, trials in order, downloads, disk, time."""

import random
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsuishi import store
from tsuishi.builder import Builder
from tsuishi.environment import Accelerator, Environment, select_environments
from tsuishi.errors import UserError
from tsuishi.gpus.accelerators import accelerator_for, gpu_refusal, misfit
from tsuishi.gpus.nvml import Gpu, Nvml
from tsuishi.rooms import Rooms
from tsuishi.suite import Case, Profile, Suite, select_suites

# What a trial's name says of its case, where it is not the usual.
_TELLING_AXES = (
    *("model", "implementation", "mode", "layout", "strategy", "precision", "execution"),
    *("pipeline", "operation", "graph_optimizers", "search"),
)
_USUAL_VALUES = ("framework", "training", "native", "fp32", "default")

# An image is made in two stages, and until then the engine has its packages twice beside.
_STAGES = 2


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
    # Why the environment would be refused on this machine's GPU, where --force uses it all the same.
    forced: str = ""


@dataclass(frozen=True)
class PlannedBuild:
    """What is to be done for one environment."""

    environment: Environment
    engine: str
    built: bool
    downloads: int
    download_bytes: int
    # What it takes once it is there, and what building it takes, this included.
    size_bytes: int
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
    # Use environments on GPUs newer than their code, after a numerical self-check.
    force: bool = False


@dataclass(frozen=True)
class Chosen:
    """The environments that can be made here, and why the others cannot."""

    environments: tuple[Environment, ...]
    left_out: dict[str, str]


def choose(builder: Builder, rooms: Rooms, choice: Choice, nvml: Nvml, to_run: bool = True) -> Chosen:
    """The named environments, or every default one this machine can make and, if they are `to_run`, use as asked.

    Raises UserError where a named one cannot be: what was asked for by name is never left out silently.
    """
    chosen, left_out = [], {}
    for environment in select_environments(rooms.images, choice.environments, computing(choice, nvml)):
        refusal = builder.refusal(environment)
        if to_run and not refusal:
            refusal = why_not_run(builder, rooms, choice, nvml, environment)
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


def why_not_run(builder: Builder, rooms: Rooms, choice: Choice, nvml: Nvml, environment: Environment) -> str:
    """Why an environment that can be made cannot be run on the GPUs here as asked; empty where it can."""
    refusal = gpu_refusal(environment, nvml, rooms.images, choice.accelerator, choice.force)
    if refusal or accelerator_for(environment, nvml, choice.accelerator) == "cpu":
        return refusal
    return builder.engine_for(environment).why_no_gpus(nvml.gpus)


def computing(choice: Choice, nvml: Nvml) -> Accelerator:
    """What this machine is taken to compute on, where environments are not chosen by name."""
    return "cuda" if len(nvml) and choice.accelerator != "cpu" else "cpu"


def plan_builds(builder: Builder, environments: Sequence[Environment]) -> list[PlannedBuild]:
    """What building each environment takes from where things stand now."""
    planned = []
    for environment in environments:
        ready = not environment.pinned or builder.find(environment) is not None
        engine = builder.engine_for(environment).name
        pins = [(one.size_bytes or 0, builder.cache.find(one.sha256, environment.python)) for one in environment.pins]
        debs = [(one.size_bytes or 0, builder.cache.find([one.sha256])) for one in environment.debs]
        missing = [] if ready else [size for size, file in (*pins, *debs) if file is None]
        packed = 0 if ready else sum(size for size, _ in (*pins, *debs))
        size = int(packed * environment.expect.unpacked)
        planned.append(
            PlannedBuild(
                environment=environment,
                engine=engine,
                built=ready,
                downloads=len(missing),
                download_bytes=sum(missing),
                size_bytes=size,
                disk_bytes=_STAGES * (packed + size) if engine == "docker" else size,
                expected_s=0.0 if ready else environment.expect.build_s,
            )
        )
    return planned


def disk_needed(planned: Sequence[PlannedBuild], jobs: int) -> int:
    """Bytes beside the downloads: for what stays, and for the `jobs` largest of the builds while they go on."""
    meanwhile = sorted((build.disk_bytes - build.size_bytes for build in planned), reverse=True)
    return sum(build.size_bytes for build in planned) + sum(meanwhile[:jobs])


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
        unfit = misfit(environment, nvml, rooms.images) if accelerator == "cuda" else None
        for suite in suites:
            for trial in _suite_trials(suite, environment, accelerator, choice, history, data, len(nvml)):
                forced = replace(trial, forced=unfit.reason if unfit else "")
                repetitions.setdefault(trial.repetition, []).append(forced)
    order = random.Random(choice.seed)  # noqa: S311
    for trials in repetitions.values():
        order.shuffle(trials)
    return [trial for _, trials in sorted(repetitions.items()) for trial in trials]


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
            "forced": trial.forced,
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
            forced=entry.get("forced", ""),
        )
        for entry in run["plan"]
        if entry["environment"] in environments
    ]


def gpus_for(trial: PlannedTrial, present: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs a trial gets, of those present: as many as its case has devices, or all where there are fewer."""
    if trial.accelerator != "cuda":
        return ()
    return tuple(present[: trial.case.devices or 1])


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
