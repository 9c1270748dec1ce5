"""The resumption of a run, with its own engine, GPUs and choice, in the same environments and with the same data.

Its plan is made again from the suites and environments of this machine. A trial in run.json only chooses among the
trials that these files make, and is compared with the chosen trial. So a received run.json cannot run anything else.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.environments.entry import Ready
from tsuishi.machine.gpus import ALL
from tsuishi.plan import trials
from tsuishi.plan.choice import Choice, why_not_run
from tsuishi.plan.planning import measurable, questions
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results import trial_folders
from tsuishi.results.assurance import refuse_alterations, shortened
from tsuishi.results.attempts import last_attempts
from tsuishi.results.directory import RunDirectory, known_runs, open_to_resume
from tsuishi.results.run_record import RunRecord
from tsuishi.run.executor import executor_of
from tsuishi.run.ledger import options_given
from tsuishi.run.measuring import Measuring, count_from_first_job, prepared
from tsuishi.specs.environment import Accelerator, Environment, named_environments
from tsuishi.specs.statuses import is_finding
from tsuishi.specs.suite import Profile
from tsuishi.specs.trial_id import TrialId
from tsuishi.specs.trial_spec import Trial

# The choice that trials on GPUs were planned with.
_ON_GPUS = Choice(accelerator="cuda")


def resume(session: Session, name: str = "") -> RunDirectory:
    """Resume an earlier run (without a name, the latest) in the same environments.

    Without a time, the planned trials are finished; within a time, the run is deepened: more trials for open questions,
    then more questions. Trials that a report excludes are measured again, as failed trials are. Engine, GPUs and
    executor are the run's own, unless given now. Raises UserError where the run is somebody else's or is being
    measured, this machine's suites do not make its trials, or an environment has changed.
    """
    run = open_to_resume(session.settings.results, name, session.task)
    with run.alone():  # from the first look for trials that are left
        _go_on(session, run)
    return run


def interrupted(session: Session) -> RunDirectory | None:
    """The latest run of the session's task, if the same options and request made it, and its last session did not end.

    None where this user did not make it, or the suites here do not make its trials.
    """
    known = (RunDirectory(path) for path in reversed(known_runs(session.settings.results).values()))
    of_task = ((run, record) for run in known for record in [run.run()] if record.task == session.task)
    run, recorded = next(of_task, (None, None))
    if run is None or recorded is None or not recorded.plan or not recorded.sessions or recorded.sessions[-1].ended_at:
        return None
    if not run.is_ours(recorded):
        return None
    now = {"request": session.request, "seed": session.choice.seed, "options": options_given(session)}
    then = {"request": recorded.request, "seed": recorded.seed, "options": recorded.arguments}
    if toml.canonical_json(now) != toml.canonical_json(then):
        return None
    try:
        planned_again(session, run.path, recorded, environments_of_plan(session, recorded))
    except UserError:
        return None
    return run


def resumed_session(session: Session, run: RunDirectory, recorded: RunRecord) -> Session:
    """The session for a resumption, with the run's engine, executor and GPUs where none are given now.

    Raises UserError as `session_of_plan` does.
    """
    then = arguments(run.path, recorded)
    usual = {"engine": "auto", "executor": "auto", "gpus": ALL}
    own = {name: getattr(then, name) for name, value in usual.items() if getattr(session.settings, name) == value}
    return session_of_plan(session, run.path, recorded, own)


def _go_on(given: Session, run: RunDirectory) -> None:
    recorded = own_run(run)
    session = resumed_session(given, run, recorded)
    executor = executor_of(session.settings)
    count_from_first_job(session)
    if not recorded.plan:
        raise UserError(f"run {run.id} was stopped before it planned a trial: start a new run")
    refuse_other_data(session, run, recorded)
    environments = environments_of_plan(session, recorded)
    planned = planned_again(session, run.path, recorded, environments)
    trial_folders.settle(run.trials)
    excluded = _excluded(session, run)
    left = unfinished(run, planned, excluded)  # before anything is built, as it may raise UserError
    ready = session.build(list(environments.values()))
    refuse_other_environments(run, ready)
    refuse_other_gpus(session, ready, left or planned)
    with prepared(executor, session, ready, left or planned):
        measuring = Measuring(session, run, ready, excluded=excluded, executor=executor)
        if not session.is_limited:
            measuring.finish(planned, left)
        else:
            matrix = measurable(session, [environment.as_built for environment in ready.values()], ready)
            known = {question.id for question in recorded.questions}
            others = [question for question in questions(session, matrix) if question.id not in known]
            measuring.deepen(matrix, recorded.questions, others, planned, left)


def unfinished(
    run: RunDirectory, planned: Sequence[PlannedTrial], excluded: Container[TrialId] = ()
) -> list[PlannedTrial]:
    """The trials of the plan that have no finding yet, and those in `excluded`, by their planned ids."""
    done = {trial_id for trial_id, trial in last_attempts(run).items() if is_finding(trial.status)}
    return [trial for trial in planned if trial.id not in done or trial.id in excluded]


def own_run(run: RunDirectory) -> RunRecord:
    """The content of run.json. Raises UserError where this user did not make the run, or its trials were altered."""
    recorded = run.run()
    if not run.is_ours(recorded):
        raise UserError(
            f"run {run.id} cannot be resumed by you: it was received, renamed or changed, or made by an earlier "
            f"tsuishi; report it with `invoke report --run {run.id}`, or start a new run"
        )
    refuse_alterations(run)
    return recorded


def _excluded(session: Session, run: RunDirectory) -> frozenset[TrialId]:
    """The planned ids of the trials that are in no report, as their rows cannot be right. Prints these trials.

    Also prints the altered files of the run.
    """
    from tsuishi.results.frames import read_runs

    try:
        results = read_runs([run], session.words)
    except UserError:  # a report says which file is unreadable; the trials that are left can be measured all the same
        return frozenset()
    for assurance in results.assurances.values():
        if assurance.altered:
            named = shortened(assurance.altered)
            session.screen.say(f"altered, or left by a runner that was killed: {named}; `invoke verify` says more")
    found = results.excluded
    for exclusion in found:
        session.screen.say(
            f"measured again: {exclusion.trial_id}, as {exclusion.file} cannot be right: row {exclusion.row}: "
            f"{exclusion.in_english}"
        )
    names = {exclusion.trial_id for exclusion in found}
    return frozenset(planned for planned, trial in last_attempts(run).items() if trial.trial_id in names)


def refuse_other_data(session: Session, run: RunDirectory, recorded: RunRecord) -> None:
    """Raise UserError where this session does not have the data that the run began with."""
    then = recorded.data
    if then and session.data_record != {"file": then.file, "sha256": then.sha256}:
        raise UserError(
            f"run {run.id} began with {then.file} (sha256 {then.sha256[:12]}…), which is not at hand: "
            "get it with `invoke fetch-data`, give --data, or start a new run"
        )


def refuse_other_environments(run: RunDirectory, ready: Mapping[str, Ready]) -> None:
    """Raise UserError where the run has trials in another build of an environment than the present build."""
    for _, trial in run.finished():
        if trial.environment not in ready:
            raise UserError(f"run {run.id} has trials in {trial.environment} that it did not plan: start a new run")
        now = ready[trial.environment].built.realised_id
        then = run.environment(trial.environment_record or "").realised_id
        if now != then:
            raise UserError(
                f"{trial.environment} is not what run {run.id} began with ({now}, then {then}): "
                "give the same --engine and --host-python, or start a new run"
            )


def refuse_other_gpus(session: Session, ready: Mapping[str, Ready], left: Sequence[PlannedTrial]) -> None:
    """Raise UserError where this machine's GPUs cannot run the trials left for GPUs, forced trials excepted."""
    for name in sorted({trial.environment for trial in left if trial.accelerator == "cuda" and not trial.forced}):
        environment = ready[name].as_built
        if refusal := why_not_run(session.builder, _ON_GPUS, session.nvml, environment):
            raise UserError(f"{name} cannot be used here any more: {refusal}")


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
    """The session that measures the plan of a run, which decides on environments and questions.

    changed: settings in place of this machine's.

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
    return {each.name: each for each in named_environments(session.checkout.images, names)}


def planned_again(
    session: Session, path: Path, run: RunRecord, environments: Mapping[str, Environment]
) -> list[PlannedTrial]:
    """The trials of a run's plan, in its environments, by name: of any number of GPUs and nodes, as the plan says.

    Raises UserError for a trial that this machine's suites do not make.
    """

    @cache
    def first(environment: str, accelerator: Accelerator) -> dict[str, PlannedTrial]:
        given = (session.choice, session.checkout, environments[environment], accelerator)
        known = (session.nvml, session.history, session.data_record)
        return {trial.case_id: trial for trial in trials.first_trials(*given, *known)}

    def made(entry: Trial) -> PlannedTrial:
        environment = environments.get(entry.environment)
        if environment is None or entry.accelerator not in ("cpu", *environment.accelerators):
            raise UserError(f"{path}: trial {entry.trial_id} is for an environment that is not here: start a new run")
        trial = first(entry.environment, entry.accelerator).get(entry.case_id)
        if trial is None:
            raise UserError(
                f"{path}: trial {entry.trial_id} is not made by the suites here: restore suites/, or start a new run"
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
                    f"{path}: trial {entry.trial_id} has a different {what} in suites/{trial.case.suite}.toml: "
                    "restore the suite, or start a new run"
                )
        # The reason is the environment's answer at that time; nothing is started for an unsupported trial.
        expected_s = 0.0 if entry.unsupported else trial.expected_s
        return trial.model_copy(update={"unsupported": entry.unsupported, "expected_s": expected_s})

    return [made(entry) for entry in run.plan]
