"""The trials that a run can measure, and their order."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainSerializer

from tsuishi.artifacts import datasets
from tsuishi.base import toml
from tsuishi.base.checkout import Checkout
from tsuishi.machine.compatibility import accelerator_for, by_ptx, misfit, read_table
from tsuishi.machine.gpus import Gpu, Nvml
from tsuishi.machine.history import History
from tsuishi.plan.candidates import RunnableCases
from tsuishi.plan.choice import Choice
from tsuishi.specs.case import PROTOCOL, Case
from tsuishi.specs.environment import Accelerator, Environment
from tsuishi.specs.experiment import ScriptOrder
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.suite import Group, Suite, select_suites
from tsuishi.specs.trial_id import TrialId
from tsuishi.specs.trial_spec import CaseAxes, Lengths, Trial
from tsuishi.specs.vocabulary import Vocabulary

# What no name of a trial has (specs/trial_id.py).
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+|[.](?=[.])")
# Seconds of a plan, which are written with one decimal.
_Expected = Annotated[float, PlainSerializer(lambda seconds: round(seconds, 1))]


class PlannedTrial(Trial):
    """A trial to come, with the plan's expectations. Its id has no attempt yet: that is known only when it runs.

    `guess_s`: the guess of the specs, which was measured on another machine. `script`: the program of a suite that runs
    a program; a run never records its place. `forced`: --force uses the environment's code, or it is PTX: a self-check
    comes first.
    """

    case: CaseAxes
    accelerator: Accelerator
    workload: str
    settings: Lengths
    timeout_s: float
    forced: str = ""
    expected_s: _Expected
    guess_s: _Expected = 0.0
    script: Annotated[ScriptOrder | None, Field(exclude=True)] = None


@dataclass(frozen=True)
class Matrix:
    """Everything that could be measured: the first trial of every cell, and the number of its repetitions."""

    first: dict[MatrixCell, PlannedTrial]
    repetitions: dict[MatrixCell, int]
    possible: tuple[RunnableCases, ...]


# The answers of environments why cases cannot run, by environment and case id.
Refused = Mapping[str, Mapping[str, str]]


def why_checked(environment: Environment, accelerator: Accelerator, nvml: Nvml, images: Path, *, force: bool) -> str:
    """Why the GPUs here compute with an environment only after a numerical self-check; empty where they need none.

    force: whether GPUs may be used for which it holds no code.
    """
    if accelerator == "cpu":
        return ""
    gpus, table = nvml.describe(), read_table(images)
    unfit = misfit(environment, gpus, nvml.driver(), table) if force else None
    return unfit.reason if unfit else by_ptx(environment, gpus, table)


def matrix(
    choice: Choice,
    checkout: Checkout,
    environments: Sequence[Environment],
    nvml: Nvml,
    history: History,
    data: Mapping[str, str] | None = None,
    refused: Refused | None = None,
) -> Matrix:
    """Every case of the chosen suites and profile in every environment.

    `data`: the record of the data set at hand. `refused`: the cases that environments cannot run. Raises UserError for
    an unknown suite.
    """
    profiles = {suite.name: suite.profile(choice.profile) for suite in select_suites(checkout.suites, choice.suites)}
    first, repetitions, possible = {}, {}, []
    for environment in environments:
        accelerator = accelerator_for(environment, nvml, choice.accelerator)
        cases, reasons = {}, (refused or {}).get(environment.name, {})
        given = (choice, checkout, environment, accelerator, nvml, history, data)
        for trial in first_trials(*given, gpus=len(nvml), nodes=choice.nodes):
            why_not, profile = reasons.get(trial.case_id, ""), profiles[trial.case.suite]
            known = {"expected_s": 0.0 if why_not else trial.expected_s, "unsupported": why_not}
            first[trial.cell] = trial.model_copy(update=known)
            repetitions[trial.cell] = choice.repetitions or profile.repetitions.get(accelerator, 1)
            cases[trial.case_id] = trial.case
        possible.append(RunnableCases(environment, accelerator, cases, reasons))
    return Matrix(first, repetitions, tuple(possible))


def too_early(words: Vocabulary, environments: Iterable[Environment], everything: Matrix) -> Refused:
    """The cases that environments are known to refuse before they are built, as their releases are too early."""
    releases = {each.name: (each.framework, each.release) for each in environments}
    refused: dict[str, dict[str, str]] = {name: {} for name in releases}
    for cell, trial in everything.first.items():
        known = releases.get(cell.environment)
        if known and (why := words.not_yet(trial.case.values, *known)):
            refused[cell.environment][cell.case_id] = why
    return refused


def plan_trials(planned: Matrix, seed: int) -> list[PlannedTrial]:
    """Every trial in the order of the run: repetition by repetition, each in the order of `in_turn`.

    Because cases and environments alternate, a drift of the machine does not look like a difference between them.
    A case that an environment cannot run has only its first trial.
    """
    trials = []
    for repetition in range(1, max(planned.repetitions.values(), default=0) + 1):
        here = [
            cell
            for cell, trial in planned.first.items()
            if repetition <= planned.repetitions[cell] and (repetition == 1 or not trial.unsupported)
        ]
        first = map(planned.first.__getitem__, in_turn(here, seed, repetition))
        trials += [trial.renamed(trial.id.repeated(repetition)) for trial in first]
    return trials


def in_turn(cells: Iterable[MatrixCell], seed: int, repetition: int) -> list[MatrixCell]:
    """The cells of a repetition in the order of their trials.

    The seed shuffles those of an odd repetition; the next has the reverse order. So each cell runs before each other
    cell as often as after it, and what comes from the order cancels: a slow first process, a drift within a repetition.
    """
    pair = (repetition + 1) // 2
    order = sorted(cells, key=lambda cell: random.Random(f"{seed} {pair} {cell}").random())  # noqa: S311
    return order if repetition % 2 else order[::-1]


def history_name(trial: PlannedTrial, data: Mapping[str, str] | None) -> str:
    """The name under which the history keeps durations of equal trials."""
    how = toml.digest([trial.settings, data["sha256"] if data else None])
    return f"trial {trial.case_id} {trial.environment} {trial.accelerator} {how}"


def history_kinds(trial: PlannedTrial) -> tuple[str, ...]:
    """The kinds of work in the history that a trial belongs to, the narrowest first."""
    on = trial.accelerator
    return f"trial {trial.environment} {on} {trial.case.suite}", f"trial {trial.environment} {on}", f"trial {on}"


def expected_by(history: History, trial: PlannedTrial, data: Mapping[str, str] | None) -> float:
    """The expected seconds of a trial here. The guess of a trial on GPUs is no matter of the CPU."""
    name, scales = history_name(trial, data), trial.accelerator == "cpu"
    return history.expected_s(name, trial.guess_s, history_kinds(trial), scales=scales)


def scatter_name(environment: str, accelerator: str, suite: str, protocol: str, quantity: str) -> str:
    """The name under which the history keeps how trials of a suite scatter in an environment."""
    return f"{environment} {accelerator} {suite} {protocol} {quantity}"


def trial_slug(case: Case, words: Vocabulary) -> str:
    """A readable, unique name of a case: values of some axes, and the beginning of its id."""
    parts = [
        (axis.in_name.place, axis.in_name.text.format(value=_NOT_IN_NAMES.sub("-", str(value))))
        for axis, value in ((words.axis(name), value) for name, value in case.items)
        if axis.in_name and axis.is_said(value, "name")
    ]
    texts = [text for _, text in sorted(parts, key=itemgetter(0))]
    return "-".join([case.suite, case.protocol, *texts, case.id[:6]])


def with_its_data(script: ScriptOrder, cache: Path) -> ScriptOrder:
    """The order of a script with the places of its data here. Raises UserError as `datasets.linked` does."""
    return script.located(partial(datasets.linked, cache))


def gpus_for(trial: PlannedTrial, present: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs for a trial on a node: as many as its case has devices there, or all that are present if fewer."""
    if trial.accelerator != "cuda":
        return ()
    return tuple(present[: (trial.case.devices or 1) // trial.case.nodes])


def first_trials(
    choice: Choice,
    checkout: Checkout,
    environment: Environment,
    accelerator: Accelerator,
    nvml: Nvml,
    history: History,
    data: Mapping[str, str] | None,
    gpus: int | None = None,
    nodes: int | None = None,
) -> Iterator[PlannedTrial]:
    """The first trial of every case of the chosen suites in an environment.

    gpus: the number of GPUs of a node. nodes: the most nodes of a case. None: there is no limit, as the plan of an
    earlier run decides. Raises UserError for an unknown suite.
    """
    forced = why_checked(environment, accelerator, nvml, checkout.images, force=choice.force)
    for suite in select_suites(checkout.suites, choice.suites):
        for case, group in suite.cases(choice.profile, accelerator, gpus, nodes):
            trial = _first(choice, environment, accelerator, suite, case, group, checkout.suites)
            expected_s = expected_by(history, trial, data)
            yield trial.model_copy(update={"expected_s": expected_s, "forced": forced})


def _first(
    choice: Choice,
    environment: Environment,
    accelerator: Accelerator,
    suite: Suite,
    case: Case,
    group: Group,
    suites: Path,
) -> PlannedTrial:
    """The first trial of a case, with the guess of the specs. suites: the folder of the suite's file."""
    profile, expect = suite.profile(choice.profile), environment.expect
    settings = profile.settings_for(accelerator, group.settings.get(choice.profile))
    if accelerator == "cuda":
        guess_s = group.expected_on_cuda_s(choice.profile, case.values[PROTOCOL], settings)
    else:
        guess_s = expect.startup_s + group.expected_s(choice.profile, case.batch_size or 0, expect.slowdown)
    trial_id = TrialId(trial_slug(case, suite.words), environment.name, repetition=1)
    return PlannedTrial(
        trial_id=str(trial_id),
        case_id=case.id,
        case=case,
        environment=environment.name,
        accelerator=accelerator,
        repetition=trial_id.repetition,
        workload=suite.workload,
        settings=settings.model_dump(),
        timeout_s=choice.timeout_s or profile.timeout_s,
        expected_s=guess_s,
        guess_s=guess_s,
        script=suite.script_order(case, suites),
    )
