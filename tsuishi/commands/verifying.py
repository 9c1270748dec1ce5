"""`invoke verify`: whether runs are what their runners wrote, and archives what was put into them."""

from pathlib import Path

from tsuishi.base import units
from tsuishi.base.errors import EXIT_USER_ERROR, UserError
from tsuishi.base.home import expanded
from tsuishi.commands.chain import Chain
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.results.verification import verify


def verify_all(chain: Chain) -> None:
    """Verify the named runs and archives, else the latest run; a line for each fault.

    The chain gets an exit code for any fault, and for an archive that nobody signed whom `--signer` names.
    """
    options = chain.options
    archives = options.paths("archive")
    if options.has("signer") and not archives:
        raise UserError("--signer goes with --archive: runs by themselves are not signed")
    runs = options.paths("run") or (() if archives else ("",))
    session = chain.session
    found = [_verify_run(session, name) for name in runs]
    found += [_verify_archive(session, Path(name), options.text("signer")) for name in archives]
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
        session.screen.say(f"run {found.run_id} is what its runner wrote: {size}{removed}; digest {found.root}")
    else:
        session.screen.say(f"run {found.run_id} is NOT verified: {size}; faults: {len(found.faults)}")
    return found.is_verified


def _verify_archive(session: Session, path: Path, known: str) -> bool:
    """known: a public key, or a file of allowed signers."""
    from tsuishi.archives.archive_check import verify_archive

    found = verify_archive(path, session.words)
    for fault in found.faults:
        session.screen.say(fault)
    if not found.is_verified or found.record is None:
        session.screen.say(f"archive {path} is NOT verified; faults: {len(found.faults)}")
        return False
    runs = ", ".join(f"{run.run_id} ({run.trials} trials)" for run in found.record.runs)
    scrubbed = f"scrubbed: {len(found.record.scrubbed_files)} files are not as their runner wrote them"
    state = scrubbed if found.record.scrubbed else "its runs are what their runners wrote"
    size = units.megabytes(found.bytes)
    session.screen.say(f"archive {path} is as its manifest says, {state}: {runs}, {size}; root {found.root}")
    session.screen.say(f"compared with its runs: all but what only a signature covers: {found.not_compared}")
    return _is_signed_by(session, path, found.root, known)


def _is_signed_by(session: Session, path: Path, root: str, known: str) -> bool:
    """Say who signed an archive; whether somebody did whom `known` names, if that is given."""
    from tsuishi.archives import signature

    file = expanded(known) if known else None
    try:
        everybody = signature.signers(path, root)
        trusted = signature.signers(path, root, file) if file else []
    except UserError as error:
        session.screen.say(str(error))
        return False
    for signer in trusted:
        session.screen.say(f"signed by {signer.name}, with the key {signer.key}")
    strangers = [signer.key for signer in everybody if signer.key not in {signer.key for signer in trusted}]
    if strangers:
        whose = f"{known} does not name them" if known else "--signer says whose they are"
        session.screen.say(f"signed with keys that may be of anybody: {', '.join(strangers)} ({whose})")
    if not everybody:
        session.screen.say(f"NOT signed: {signature.file_of(path)} is not there; anybody may have made this archive")
    return bool(trusted) or not known
