"""`invoke run-suite`: a new run, or an earlier run that is resumed."""

from collections.abc import Callable
from functools import partial

from tsuishi.base.errors import EXIT_TRIAL_FAILED, UserError
from tsuishi.base.option_table import options_of
from tsuishi.commands.chain import Chain
from tsuishi.plan.planning import plan_run
from tsuishi.results.attempts import last_attempts
from tsuishi.results.directory import RunDirectory
from tsuishi.run import new_run
from tsuishi.run.executor import RunStopped
from tsuishi.run.resume import resume
from tsuishi.specs.statuses import is_finding


def make_or_resume(chain: Chain) -> None:
    """Make a run, or resume an earlier run. The chain gets its id, and an exit code if a trial failed."""
    session, options = chain.session, chain.options
    changed = [row.flag for row in options_of(("run-suite",)) if row.plans and options.has(row.parameter)]
    if options.has("resume") and changed:
        raise UserError(f"--resume keeps the plan of a run: leave out {changed[0]}, or start a new run")
    if "build" not in chain.tasks and not options.has("resume"):
        chain.plan = plan_run(session, only=chain.only_plans)
    if chain.only_plans:
        return
    chain.run_id = measured_run(chain, partial(_measured, chain)).id


def measured_run(chain: Chain, measure: Callable[[], RunDirectory]) -> RunDirectory:
    """The run that `measure` makes. The chain gets an exit code if a trial failed, or the run had to stop."""
    chain.makes_run = True
    try:
        run = measure()
    except RunStopped as stopped:
        chain.session.screen.say(f"stopped: {stopped}")
        chain.end_with(EXIT_TRIAL_FAILED)
        return stopped.run
    if not all(is_finding(trial.status) for trial in last_attempts(run).values()):
        chain.end_with(EXIT_TRIAL_FAILED)
    return run


def _measured(chain: Chain) -> RunDirectory:
    if name := chain.options.text("resume"):
        return resume(chain.session, name)
    return new_run.run_suite(chain.session, chain.options.text("name"), chain.plan)
