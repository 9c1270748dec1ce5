"""A new run: built, recorded with its questions and arguments, and measured."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tsuishi import __version__
from tsuishi.base import files
from tsuishi.base.checkout import git_state
from tsuishi.base.errors import UserError
from tsuishi.environments.entry import Ready
from tsuishi.environments.self_check import SelfCheckFailed
from tsuishi.plan.lines import print_questions
from tsuishi.plan.outline import Outline
from tsuishi.plan.planning import Plan, outline_run, plan_run
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory, new_run_id
from tsuishi.results.run_record import CheckoutState, LeftOut, OriginalRun, RunRecord
from tsuishi.run.executor import LOCAL, Executor
from tsuishi.run.measuring import Measuring, as_built, count_from_first_job, prepared
from tsuishi.specs.trial_id import is_name
from tsuishi.specs.trial_spec import DataRecord, Value

# The options that find has too, beside --within.
_OF_FIND = ("suite", "profile", "seed", "accelerator", "engine", "mirrors")


def run_suite(session: Session, name: str = "", plan: Plan | None = None, executor: Executor = LOCAL) -> RunDirectory:
    """Make a new run with `name` in its id, from this plan or from a plan made now.

    An environment that fails its self-check is left out, unless it was named. Raises UserError for a name that no run
    can have.
    """
    require_name(name)
    count_from_first_job(executor, session)
    plan = plan or plan_run(session)
    ready = session.build(plan.environments)
    while True:
        try:
            return _measured_as_built(session, name, plan, ready, executor)
        except SelfCheckFailed as failed:
            plan = _without(session, plan, failed)
            ready = {each.name: ready[each.name] for each in plan.environments}


def _without(session: Session, plan: Plan, failed: SelfCheckFailed) -> Plan:
    """The plan without an environment that failed its self-check. Raises it where it was named, or is the last."""
    others = tuple(each for each in plan.environments if each.name != failed.environment)
    if session.choice.environments or not others:
        raise failed
    session.screen.say(f"left out: {failed}")
    return replace(plan, environments=others, left_out={**plan.left_out, failed.environment: str(failed)})


def _measured_as_built(
    session: Session, name: str, plan: Plan, ready: Mapping[str, Ready], executor: Executor
) -> RunDirectory:
    """Make a new run of what can be measured in these environments, now that they are there."""
    outlined = outline_run(session, [as_built(environment) for environment in ready.values()], ready)
    if tuple(question.id for question in outlined.asked) != plan.questions:
        session.screen.say("now that the environments are there and say what they can run:")
        print_questions(session.screen, outlined)
    return measured(session, name, plan, ready, outlined, executor)


def require_name(name: str) -> None:
    """Raise UserError for a name that no run can have; an empty name is none."""
    if name and not is_name(name):
        raise UserError(f"--name takes letters, digits, '.', '_' and '-'; given: {name}")
    if why := files.unfit(name):
        raise UserError(f"--name: {why}")


def measured(
    session: Session,
    name: str,
    plan: Plan,
    ready: Mapping[str, Ready],
    outlined: Outline,
    executor: Executor = LOCAL,
    original: OriginalRun | None = None,
) -> RunDirectory:
    """Make a new run of an outline. ready: the environments of the plan, by name. original: the run that it replays."""
    with prepared(executor, session, ready, outlined.trials) as checked:
        run = create(session, name, plan, outlined, checked, original)
        measuring = Measuring(session, run, ready, plan.expected_s, executor=executor)
        with run.alone():
            if not session.is_limited:
                measuring.finish(outlined.trials, outlined.trials)
            else:
                measuring.deepen(outlined.matrix, outlined.asked, outlined.others)
    return run


def create(
    session: Session,
    name: str,
    plan: Plan,
    outlined: Outline,
    checked: Mapping[str, Mapping[str, float]],
    original: OriginalRun | None = None,
    search: Mapping[str, Value] | None = None,
) -> RunDirectory:
    """The directory of a new run, with its record. checked: the errors of self-checks, by environment.

    search: the options that only `find` has.
    """
    now, choice = time.gmtime(), session.choice
    run_id = new_run_id(session.settings.results, now, name or choice.profile)
    everything = not session.is_limited
    return RunDirectory.create(
        session.settings.results / run_id,
        RunRecord(
            run_id=run_id,
            tsuishi_version=__version__,
            git=CheckoutState.model_validate(git_state()),
            created_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
            profile=choice.profile,
            seed=choice.seed,
            drawn=secrets.token_hex(8),
            engine=session.settings.engine,
            arguments=_arguments(session, search),
            data=DataRecord.model_validate(session.data_record) if session.data_record else None,
            # Named before anything is measured.
            questions=tuple(outlined.asked),
            plan=outlined.trials if everything else (),
            cases_left_out=outlined.left_out,
            more=(),
            sessions=(),
            self_checks={name: dict(errors) for name, errors in checked.items()},
            left_out=tuple(LeftOut(environment=name, reason=reason) for name, reason in plan.left_out.items()),
            replays=original,
        ),
    )


def _arguments(session: Session, search: Mapping[str, Value] | None) -> dict[str, Value | tuple[Value, ...]]:
    """The options of run-suite, or of find, that repeat this run."""
    choice, settings, within_s = session.choice, session.settings, session.clock.within_s
    given: dict[str, Value | tuple[Value, ...]] = {
        "env": ",".join(choice.environments),
        "suite": ",".join(choice.suites),
        "within": "none" if within_s is None else f"{within_s:g}s",
        "profile": choice.profile,
        "repetitions": choice.repetitions,
        "timeout": choice.timeout_s,
        "seed": choice.seed,
        "accelerator": choice.accelerator,
        "force": choice.force,
        "engine": settings.engine,
        "executor": settings.executor,
        "nodes": choice.nodes,
        "gpu_hours": choice.gpu_hours,
        "gpus": settings.gpus,
        "busy_gpu": settings.busy_gpu,
        "mirrors": ",".join(f"{asked}={used}" for asked, used in sorted(settings.base_mirrors.items())),
        "host_python": Path(settings.host_python).name,
        "telemetry_interval": settings.telemetry_interval,
        "data": session.data.name if settings.data and session.data else "",
    }
    if search is None:
        return given
    within = "" if within_s is None else given["within"]
    return {**search, **{name: given[name] for name in _OF_FIND}, "within": within}
