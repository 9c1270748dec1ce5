"""`invoke verify`: whether runs are what their runners wrote."""

from tsuishi.base import units
from tsuishi.base.errors import EXIT_USER_ERROR
from tsuishi.commands.chain import Chain
from tsuishi.results import directory
from tsuishi.results.verification import verify


def verify_runs(chain: Chain) -> None:
    """Verify the named runs, or the latest; a line for each fault. The chain gets an exit code for any fault."""
    session = chain.session
    for name in chain.options.names("run") or ("",):
        run = directory.open_run(session.settings.results, name)
        found = verify(run, session.words)
        for fault in found.faults:
            session.screen.say(fault)
        size = f"{units.counted(found.trials, 'trial')}, {units.megabytes(found.bytes)}"
        if found.is_verified:
            removed = f"; removed before it was resumed: {found.removed}" if found.removed else ""
            session.screen.say(f"run {found.run_id} is what its runner wrote: {size}{removed}; digest {found.root}")
        else:
            session.screen.say(f"run {found.run_id} is NOT verified: {size}; faults: {len(found.faults)}")
            chain.end_with(EXIT_USER_ERROR)
