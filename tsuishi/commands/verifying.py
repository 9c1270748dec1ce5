"""`invoke verify`: whether runs have changed since their runners wrote them."""

from tsuishi.base import units
from tsuishi.base.errors import EXIT_USER_ERROR
from tsuishi.commands.chain import Chain
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.results.verification import verify


def verify_all(chain: Chain) -> None:
    """Verify the named runs, else the latest run; a line for each fault, for which the chain gets an exit code."""
    found = [_verify_run(chain.session, name) for name in chain.options.paths("run") or ("",)]
    if not all(found):
        chain.end_with(EXIT_USER_ERROR)


def _verify_run(session: Session, name: str) -> bool:
    run = directory.open_run(session.settings.results, name)
    found = verify(run, session.words)
    for fault in found.faults:
        session.screen.say(fault)
    size = f"{units.counted(found.trials, 'trial')}, {units.megabytes(found.bytes)}"
    if found.is_verified:
        removed = f"; removed before it was resumed: {found.removed}" if found.removed else ""
        session.screen.say(f"run {found.run_id} is verified: {size}{removed}; digest {found.root}")
    else:
        session.screen.say(f"run {found.run_id} is NOT verified: {size}; faults: {len(found.faults)}")
    return found.is_verified
