"""The runs of archives, for a report. Every report imports this module, which imports little without an archive."""

from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded
from tsuishi.commands.chain import Chain
from tsuishi.extras.handover.archives.member_names import SUFFIX
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory

if TYPE_CHECKING:
    from tsuishi.extras.handover.archives.archive_check import Unpacked


def further_runs(chain: Chain, folder: Path) -> list[RunDirectory]:
    """The runs of the archives that `--archive` names, unpacked into `folder`.

    Raises UserError where an archive is not verified.
    """
    archives = [path for name in chain.options.paths("archive") for path in _archives(expanded(name))]
    return [
        run for number, path in enumerate(archives) for run in unpacked(chain.session, path, folder / str(number)).runs
    ]


def runs_of(session: Session, path: Path, into: Path) -> list[RunDirectory]:
    """The runs of an archive, unpacked into a new folder. Raises UserError where it is not verified."""
    return [*unpacked(session, path, into).runs]


def unpacked(session: Session, path: Path, into: Path) -> "Unpacked":
    """The content of an archive, unpacked into a new folder; says what it is. Raises UserError as `runs_of` does."""
    from tsuishi.extras.handover.archives.archive_check import unpacked_runs

    into.mkdir()
    found = unpacked_runs(path, session.words, into)
    session.screen.say(found.said)
    return found


def _archives(path: Path) -> list[Path]:
    """The archive at a path, or all archives in a folder. Raises UserError for a folder without any."""
    if not path.is_dir():
        return [path]
    if found := sorted(path.glob(f"*{SUFFIX}")):
        return found
    raise UserError(f"{path}: there is no *{SUFFIX} in this folder")
