"""The way of a run on one page: choose, build, ask, measure, gather. Its report follows (commands/report_runs.py).

- choose: plan/planning.py names the questions that fit into the time, with the cases and environments that they need;
- build: environments/batch.py makes these environments ready;
- ask: each environment says what it cannot run; the questions are chosen again, and recorded by ledger.py;
- measure: measuring.py heats the machine and opens the rounds; rounds.py chooses each next trial, by the results that
  tally.py counts; runner.py orders an attempt at it, executor.py starts it, and trial.py is the trial: from an order to
  a folder with trial.json;
- gather: runner.py puts the tables of all trials together, also after an error.

resume.py goes on with a run, replay.py and release_run.py measure other plans: by the same steps.
"""

from collections.abc import Mapping
from dataclasses import replace

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.environments.entry import Ready
from tsuishi.environments.self_check import SelfCheckFailed
from tsuishi.plan.lines import print_changes
from tsuishi.plan.planning import Plan, outline_run, plan_run
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.results.run_record import OriginalRun
from tsuishi.run.executor import LOCAL, Executor, executor_of
from tsuishi.run.ledger import create
from tsuishi.run.measuring import Measuring, count_from_first_job, prepared
from tsuishi.specs.trial_id import is_name


def run_suite(session: Session, name: str = "", plan: Plan | None = None) -> RunDirectory:
    """Make a new run with `name` in its id, from this plan or from a plan made now.

    An environment that fails its self-check is left out, unless it was named. Raises UserError for a name that no run
    can have.
    """
    require_name(name)
    count_from_first_job(session)
    plan = plan or plan_run(session)
    ready = session.build(plan.environments)
    while True:
        outlined = outline_run(session, plan.environments, ready)
        print_changes(session.screen, outlined, plan.outlined.asked, plan.left_out)
        plan = replace(plan, outlined=outlined)
        try:
            return run_of_plan(session, name, plan, ready, executor_of(session.settings))
        except SelfCheckFailed as failed:
            plan = _without(session, plan, failed)
            ready = {each.name: ready[each.name] for each in plan.environments}


def _without(session: Session, plan: Plan, failed: SelfCheckFailed) -> Plan:
    """The plan without an environment that failed its self-check. Raises `failed` if it was named, or is the last."""
    others = tuple(each for each in plan.environments if each.name != failed.environment)
    if session.choice.environments or not others:
        raise failed
    session.screen.say(f"left out: {failed}")
    return replace(plan, environments=others, left_out={**plan.left_out, failed.environment: str(failed)})


def require_name(name: str) -> None:
    """Raise UserError for a name that no run can have; an empty name is none."""
    if name and not is_name(name):
        raise UserError(f"--name takes letters, digits, '.', '_' and '-'; given: {name}")
    if why := files.unfit(name):
        raise UserError(f"--name: {why}")


def run_of_plan(
    session: Session,
    name: str,
    plan: Plan,
    ready: Mapping[str, Ready],
    executor: Executor = LOCAL,
    original: OriginalRun | None = None,
) -> RunDirectory:
    """Make a new run of a plan. ready: its environments, by name. original: the run that it replays."""
    outlined = plan.outlined
    with prepared(executor, session, ready, outlined.trials) as checked:
        run = create(session, name, plan, checked, original)
        measuring = Measuring(session, run, ready, plan.expected_s, executor=executor)
        with run.alone():
            if session.is_limited:
                measuring.deepen(outlined.matrix, outlined.asked, outlined.others)
            else:
                measuring.finish(outlined.trials, outlined.trials)
    return run
