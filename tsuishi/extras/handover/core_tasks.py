"""Additions of archives to tasks of the core. Every task of Invoke imports this module, which imports little."""

from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base import units
from tsuishi.base.errors import EXIT_USER_ERROR, UserError
from tsuishi.base.home import expanded

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain
    from tsuishi.plan.session import Session


def verify(chain: "Chain") -> bool:
    """Verify the named archives; a line for each fault. Returns whether this is all: no run was named too.

    The chain gets an exit code for any fault, and for an archive without a signature by `--signer`.
    """
    options = chain.options
    archives = options.paths("archive")
    if options.has("signer") and not archives:
        raise UserError("--signer goes with --archive: runs by themselves are not signed")
    found = [_verify_archive(chain.session, Path(name), options.text("signer")) for name in archives]
    if not all(found):
        chain.end_with(EXIT_USER_ERROR)
    return bool(archives) and not options.has("run")


def _verify_archive(session: "Session", path: Path, known: str) -> bool:
    """known: a public key, or a file of allowed signers."""
    from tsuishi.extras.handover.archives.archive_check import verify_archive

    found = verify_archive(path, session.words)
    for fault in found.faults:
        session.screen.say(fault)
    if not found.is_verified or found.record is None:
        session.screen.say(f"archive {path} is NOT verified; faults: {len(found.faults)}")
        return False
    runs = ", ".join(f"{run.run_id} ({run.trials} trials)" for run in found.record.runs)
    scrubbed = f"scrubbed: {len(found.record.scrubbed_files)} files were changed after their runner wrote them"
    state = scrubbed if found.record.scrubbed else "its runs are unchanged"
    size = units.megabytes(found.bytes)
    session.screen.say(f"archive {path} agrees with its manifest, {state}: {runs}, {size}; root {found.root}")
    session.screen.say(
        f"compared with its runs: everything, except the parts that only a signature covers: {found.not_compared}"
    )
    return _is_signed_by(session, path, found.root, known)


def _is_signed_by(session: "Session", path: Path, root: str, known: str) -> bool:
    """Say who signed an archive. Returns whether a signer in `known` did; True without `known`."""
    from tsuishi.extras.handover.archives import signature

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
        session.screen.say(f"signed with unknown keys: {', '.join(strangers)} ({whose})")
    if not everybody:
        session.screen.say(
            f"NOT signed: {signature.file_of(path)} does not exist; the maker of this archive is unknown"
        )
    return bool(trusted) or not known
