"""`invoke replay`: the cases of an archive or a run, measured on this machine, and a report of both side by side."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tsuishi.base.errors import EXIT_TRIAL_FAILED, UserError
from tsuishi.commands.chain import Chain
from tsuishi.commands.report_runs import report_of, runs_of
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.results.attempts import has_failed
from tsuishi.results.directory import RunDirectory
from tsuishi.results.verification import verify
from tsuishi.run import replay as replays
from tsuishi.run.new_run import require_name
from tsuishi.run.replay import Replay
from tsuishi.run.runner import RunStopped


def replay(chain: Chain, original: str) -> None:
    """Replay the runs of an archive, or a run by its id or path. The chain gets an exit code if a trial failed.

    Raises UserError where the original is not verified, or was measured with other workloads or environments than this
    checkout has.
    """
    session, options = chain.session, chain.options
    require_name(options.text("name"))
    with tempfile.TemporaryDirectory(prefix="tsuishi-archive-") as folder:
        runs, roots = _originals(session, original, Path(folder))
        planned = [replays.plan_replay(session, run, root) for run, root in zip(runs, roots, strict=True)]
        for each in planned:
            replays.say(each)
        if chain.only_plans:
            return
        made = [_measured(chain, each, options.text("name")) for each in planned]
        report_of(chain, [*runs, *made])


def _originals(session: Session, original: str, folder: Path) -> tuple[Sequence[RunDirectory], Sequence[str]]:
    """The verified runs, and their roots."""
    if (path := Path(original).expanduser()).is_file():
        return runs_of(session, path, folder / "0")
    run = directory.open_run(session.settings.results, original)
    found = verify(run, session.words)
    if not found.is_verified:
        raise UserError(f"{found.faults[0]}; `invoke verify --run {original}` names every fault")
    return [run], [found.root]


def _measured(chain: Chain, planned: Replay, name: str) -> RunDirectory:
    ready = planned.session.build(planned.environments)
    try:
        run = replays.measure(planned, ready, name or "replay")
    except RunStopped as stopped:
        planned.session.screen.say(f"stopped: {stopped}")
        run = stopped.run
        chain.end_with(EXIT_TRIAL_FAILED)
    if has_failed(run):
        chain.end_with(EXIT_TRIAL_FAILED)
    return run
