"""`invoke replay`: the cases of an archive or a run, measured on this machine, and a report of both side by side."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tsuishi.base.errors import EXIT_TRIAL_FAILED, UserError
from tsuishi.commands.chain import Chain
from tsuishi.commands.report_runs import report_of, unpacked
from tsuishi.commands.restoration import restore
from tsuishi.environments.entry import Ready
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.results.attempts import has_failed
from tsuishi.results.directory import RunDirectory
from tsuishi.results.verification import verify
from tsuishi.run import replay as replays
from tsuishi.run.executor import RunStopped
from tsuishi.run.new_run import require_name
from tsuishi.run.replay import Replay


def replay(chain: Chain, original: str) -> None:
    """Replay the runs of an archive, or a run by its id or path. The chain gets an exit code if a trial failed.

    Raises UserError where the original is not verified, or was measured with other workloads or environments than this
    checkout has.
    """
    session, options = chain.session, chain.options
    require_name(options.text("name"))
    with tempfile.TemporaryDirectory(prefix="tsuishi-archive-") as folder:
        archive = path if (path := Path(original).expanduser()).is_file() else None
        runs, roots = _from(session, archive, Path(folder) / "0") if archive else _own(session, original)
        planned = [replays.plan_replay(session, run, root) for run, root in zip(runs, roots, strict=True)]
        for each in planned:
            replays.say(each)
        if chain.only_plans:
            return
        made = []
        for run, each in zip(runs, planned, strict=True):
            made.append(_measured(chain, each, _environments(each, run, archive), options.text("name")))
        report_of(chain, [*runs, *made])


def _from(session: Session, archive: Path, into: Path) -> tuple[Sequence[RunDirectory], Sequence[str]]:
    """The runs of an archive, and their roots."""
    found = unpacked(session, archive, into)
    return found.runs, found.roots


def _own(session: Session, name: str) -> tuple[Sequence[RunDirectory], Sequence[str]]:
    """The verified run by its id or path, and its root."""
    run = directory.open_run(session.settings.results, name)
    found = verify(run, session.words)
    if not found.is_verified:
        raise UserError(f"{found.faults[0]}; `invoke verify --run {name}` names every fault")
    return [run], [found.root]


def _environments(planned: Replay, run: RunDirectory, archive: Path | None) -> dict[str, Ready]:
    """The environments of a replay by name, ready to be entered: from the archive what it holds of them."""
    if archive is None:
        return planned.session.build(planned.environments)
    names = {environment.name for environment in planned.environments}
    restored = restore(planned.session, archive, [run], names)
    return {name: found.ready for name, found in restored.items()}


def _measured(chain: Chain, planned: Replay, ready: Mapping[str, Ready], name: str) -> RunDirectory:
    try:
        run = replays.measure(planned, ready, name or "replay")
    except RunStopped as stopped:
        planned.session.screen.say(f"stopped: {stopped}")
        run = stopped.run
        chain.end_with(EXIT_TRIAL_FAILED)
    if has_failed(run):
        chain.end_with(EXIT_TRIAL_FAILED)
    return run
