"""`invoke replay`: the cases of an archive or a run, measured on this machine, and a report of both side by side."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded
from tsuishi.commands.chain import Chain
from tsuishi.commands.report_runs import report_of
from tsuishi.commands.run_suite import measured_run
from tsuishi.environments.build_plan import plan_builds
from tsuishi.environments.entry import Ready
from tsuishi.extras.handover import replay as replays
from tsuishi.extras.handover.archives import signature
from tsuishi.extras.handover.archives.archived_code import archived_checkout
from tsuishi.extras.handover.replay import Replay
from tsuishi.extras.handover.restoration import restore
from tsuishi.extras.handover.runs import unpacked
from tsuishi.plan.planning import await_others
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.results.directory import RunDirectory
from tsuishi.results.verification import verify
from tsuishi.run.new_run import require_name

_CONTAINERS = "docker"
_UNPACKED = "archive"


class Original(NamedTuple):
    """A verified run, its root, and the session that replays it."""

    run: RunDirectory
    root: str
    session: Session


def replay(chain: Chain) -> None:
    """Replay the runs of an archive, or a run by its id or path. The chain gets an exit code if a trial failed.

    Raises UserError where the original is not verified, or was measured with other workloads or environments than this
    checkout has. With the option `signer`, an archive's own suites and workloads are run, in containers.
    """
    session, options = chain.session, chain.options
    require_name(options.text("name"))
    original = options.text("original")
    archive = path if (path := expanded(original)).is_file() else None
    with files.private_folder() as folder:
        if archive:
            originals = archived_originals(session, archive, options.text("signer"), folder)
        elif options.has("signer"):
            raise UserError("--signer goes with an archive: runs by themselves are not signed")
        else:
            originals = [_own(session, original)]
        planned = [replays.plan_replay(each.session, each.run, each.root) for each in originals]
        for each in planned:
            if options.has("signer"):
                require_containers(each)
            if not chain.only_plans:
                builds = plan_builds(each.session.builder, each.environments, session.history)
                await_others(each.session, builds, measures=True)
            replays.say(each)
        if chain.only_plans:
            return
        made = []
        for found, each in zip(originals, planned, strict=True):
            ready = _environments(each, found.run, archive)
            made.append(measured_run(chain, partial(replays.measure, each, ready, options.text("name") or "replay")))
        report_of(chain, [*(found.run for found in originals), *made])


def archived_originals(session: Session, archive: Path, signer: str, folder: Path) -> list[Original]:
    """The runs of an archive. signer: a public key or a file of allowed signers; one of them must have signed.

    Raises UserError where none of them did, and where the session names an engine without containers.
    """
    found = unpacked(session, archive, folder / _UNPACKED)
    runs = zip(found.runs, found.roots, strict=True)
    if not signer:
        return [Original(run, root, session) for run, root in runs]
    if not signature.signers(archive, found.root, expanded(signer)):
        raise UserError(f"{archive}: no signer in {signer} has signed it: its code is not run")
    if session.settings.engine not in ("auto", _CONTAINERS):
        raise UserError(f"the code of an archive runs in containers only, not with --engine {session.settings.engine}")
    in_containers = session.settings.model_copy(update={"engine": _CONTAINERS})
    originals = []
    for number, (run, root) in enumerate(runs):
        into = folder / f"code-{number}"
        theirs = archived_checkout(archive, folder / _UNPACKED, run.run().run_id, into, session.checkout)
        originals.append(Original(run, root, replace(session, checkout=theirs, settings=in_containers)))
    session.screen.say(f"{archive}: its own suites and workloads are run, in containers: {signer} names who signed it")
    return originals


def require_containers(planned: Replay) -> None:
    """Raise UserError where an environment of a replay would be entered without a container."""
    engines = planned.session.builder.engines
    for environment in planned.environments:
        if engines.chosen_for(environment).name != _CONTAINERS:
            raise UserError(
                f"the code of an archive runs in containers only, and {environment.name} is not a container"
            )


def _own(session: Session, name: str) -> Original:
    """The verified run by its id or path."""
    run = directory.open_run(session.settings.results, name)
    found = verify(run, session.words)
    if not found.is_verified:
        raise UserError(f"{found.faults[0]}; `invoke verify --run {name}` names every fault")
    return Original(run, found.root, session)


def _environments(planned: Replay, run: RunDirectory, archive: Path | None) -> dict[str, Ready]:
    """The environments of a replay by name, ready to be entered: from the archive, if it holds them."""
    if archive is None:
        return planned.session.build(planned.environments)
    names = {environment.name for environment in planned.environments}
    return restore(planned.session, archive, [run], names)
