"""The runs of archives, for a report. Every report imports this module, which imports little without an archive."""

from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded
from tsuishi.commands.chain import Chain
from tsuishi.extras.handover.archives.member_names import SUFFIX
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory


def further_runs(chain: Chain, folder: Path) -> list[RunDirectory]:
    """The runs of the archives that `--archive` names, unpacked into `folder`.

    Raises UserError where an archive is not verified.
    """
    archives = [path for name in chain.options.paths("archive") for path in _archives(expanded(name))]
    return [run for number, path in enumerate(archives) for run in runs_of(chain.session, path, folder / str(number))]


def runs_of(session: Session, path: Path, into: Path) -> list[RunDirectory]:
    """The runs of an archive, unpacked into a new folder. Raises UserError where it is not verified."""
    from tsuishi.extras.handover.archives.archive_check import unpacked_runs

    return unpacked_runs(session, path, into).runs


def _archives(path: Path) -> list[Path]:
    """The archive at a path, or all archives in a folder. Raises UserError for a folder without any."""
    if not path.is_dir():
        return [path]
    if found := sorted(path.glob(f"*{SUFFIX}")):
        return found
    raise UserError(f"{path}: there is no *{SUFFIX} in this folder")
