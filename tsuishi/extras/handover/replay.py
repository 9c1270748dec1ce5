"""The replay of a run on this machine: the trials of its plan, in the same environments, as a new run.

Nothing of the original run is executed: its plan chooses among the trials that this checkout makes (resume.py), and
workloads and specifications here must be those that it was measured with.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.files import sha256_of
from tsuishi.base.units import counted, duration
from tsuishi.environments import provenance
from tsuishi.environments.entry import Ready
from tsuishi.plan.choice import why_not_run
from tsuishi.plan.outline import Outline
from tsuishi.plan.planning import Plan, measurable
from tsuishi.plan.session import Session
from tsuishi.plan.trials import Matrix, PlannedTrial
from tsuishi.plan.worth import Costs
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import AnyRecord, EnvironmentRecord, WorkloadRecord
from tsuishi.results.run_record import OriginalRun, RunRecord
from tsuishi.run.measuring import as_built
from tsuishi.run.new_run import run_of_outline
from tsuishi.run.resume import environments_of_plan, planned_again, refuse_other_data, session_of_plan
from tsuishi.specs.environment import Environment, find_environment
from tsuishi.specs.questions import PlannedQuestion
from tsuishi.specs.trial_spec import Trial

_SHOWN = 5


@dataclass(frozen=True)
class Replay:
    """The replayed part of a run: `trials` in `environments`. `left_out`: why environments are not used, by name.

    `session`: with the choice of the original run. `original`: as run.json of the replay names it.
    """

    session: Session
    original: OriginalRun
    recorded: RunRecord
    environments: tuple[Environment, ...]
    trials: tuple[PlannedTrial, ...]
    left_out: Mapping[str, str]

    @property
    def expected_s(self) -> float:
        return sum(trial.expected_s for trial in self.trials)


def plan_replay(given: Session, run: RunDirectory, root: str) -> Replay:
    """The replay of a verified run, with its root. Raises UserError where this checkout differs from the run's.

    Trials are left out that need another accelerator or more GPUs than this machine has.
    """
    recorded = run.run()
    records = [run.record(path.stem) for path in run.record_files()]
    if different := [*_differences(records, given.checkout)]:
        others = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
        raise UserError(
            f"run {run.id} was measured with files that differ here: {'; '.join(different[:_SHOWN])}{others}: "
            f"use the checkout of the run ({_commit(recorded)}), or only compare by `invoke report`"
        )
    if not recorded.plan:
        raise UserError(f"run {run.id} was stopped before it planned a trial: there is nothing to replay")
    session = session_of_plan(given, run.path, recorded, _engine(given, records))
    refuse_other_data(session, run, recorded)
    environments = environments_of_plan(session, recorded)
    left_out = dict(_unusable(session, environments, recorded.plan))
    entries = tuple(entry for entry in recorded.plan if entry.environment not in left_out)
    planned = planned_again(session, run.path, recorded.model_copy(update={"plan": entries}), environments)
    trials = tuple(trial for trial in planned if _fits(session, trial))
    if len(trials) < len(planned):
        few = f"{counted(len(planned) - len(trials), 'trial')} that need more GPUs than this machine has"
        session.screen.say(f"left out: {few}")
    if not trials:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UserError(f"no trial of run {run.id} can be run here{': ' if why else ''}{why}")
    used = {trial.environment for trial in trials}
    choice = replace(session.choice, environments=tuple(name for name in environments if name in used))
    return Replay(
        replace(session, choice=choice),
        OriginalRun(run_id=recorded.run_id, root=root),
        recorded,
        tuple(environment for name, environment in environments.items() if name in used),
        trials,
        left_out,
    )


def say(replay: Replay) -> None:
    """Print what a replay measures."""
    session, names = replay.session, [environment.name for environment in replay.environments]
    for name, reason in replay.left_out.items():
        session.screen.say(f"left out: {name}: {reason}")
    within_s = session.clock.within_s
    how_long = f"about {duration(replay.expected_s)}" if within_s is None else f"at most {duration(within_s)}"
    trials = counted(len(replay.trials), "trial")
    session.screen.say(f"replay of run {replay.original.run_id}: {trials} in {', '.join(names)}, {how_long}")


def measure(replay: Replay, ready: Mapping[str, Ready], name: str) -> RunDirectory:
    """Measure a replay as a new run with `name` in its id. ready: its environments, by name.

    Without a time, every trial is measured once; within a time, the questions of the original run get as many trials
    as there is time for.
    """
    session, recorded = replay.session, replay.recorded
    asked = tuple(question for question in recorded.questions if {*question.environments} <= {*ready})
    plan = Plan(replay.environments, replay.expected_s, tuple(each.id for each in asked), replay.left_out)
    return run_of_outline(session, name, plan, ready, _outline(replay, ready, asked), original=replay.original)


def _outline(replay: Replay, ready: Mapping[str, Ready], asked: tuple[PlannedQuestion, ...]) -> Outline:
    if replay.session.clock.within_s is None:
        return Outline(Matrix({}, {}, ()), asked, (), replay.trials, Costs({}, {}, 1))
    matrix = measurable(replay.session, [as_built(environment) for environment in ready.values()], ready)
    return Outline(matrix, asked, (), (), Costs({}, {}, 1))


def _differences(records: Iterable[AnyRecord | None], checkout: Checkout) -> Iterator[str]:
    """The files of workloads, and the environments, whose records in a run differ from this checkout."""
    changed: dict[str, None] = {}

    @cache  # the records of all workloads name the same files
    def digest_here(path: Path) -> str:
        return sha256_of(path) if path.is_file() else ""

    for record in records:
        if isinstance(record, WorkloadRecord):
            for file, digest in (record.files or {}).items():
                if digest_here(checkout.workloads / file) != digest:
                    changed[f"workloads/{file}"] = None
        elif isinstance(record, EnvironmentRecord):
            here = find_environment(checkout.images, record.name)
            if here is None or not provenance.is_asked(record, here, checkout):
                changed[f"the specification or lock of {record.name}"] = None
    yield from changed


def _commit(recorded: RunRecord) -> str:
    commit = recorded.git and recorded.git.commit
    changed = " with uncommitted changes" if recorded.git and recorded.git.dirty else ""
    return f"commit {commit}{changed}" if commit else "its commit is not recorded"


def _engine(given: Session, records: Iterable[AnyRecord | None]) -> dict[str, str]:
    """The engine of the original run, unless the user names an engine, or the run has several."""
    engines = {record.engine for record in records if isinstance(record, EnvironmentRecord) and record.engine}
    return {"engine": engines.pop()} if given.settings.engine == "auto" and len(engines) == 1 else {}


def _unusable(
    session: Session, environments: Mapping[str, Environment], plan: Sequence[Trial]
) -> Iterator[tuple[str, str]]:
    """The environments that this machine cannot make or use as the plan does, each with the reason."""
    for name, environment in environments.items():
        refusal = session.builder.engines.refusal(environment)
        for accelerator in {entry.accelerator for entry in plan if entry.environment == name}:
            as_then = replace(session.choice, accelerator=accelerator or session.choice.accelerator)
            refusal = refusal or why_not_run(session.builder, session.checkout, as_then, session.nvml, environment)
        if refusal:
            yield name, refusal


def _fits(session: Session, trial: PlannedTrial) -> bool:
    return trial.accelerator != "cuda" or (trial.case.devices or 1) <= len(session.nvml)
