"""Things that killed calls of tsuishi have left on this machine. `invoke doctor` shows it, and removes it if asked to.

Nothing that belongs to a living process is a stray. Most strays go by themselves: the next run ends programs, and the
next use of a folder removes the temporary folders in it. Locks are never left: they end with their process.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.engines.subprocesses import abandoned_scratch
from tsuishi.environments.engine_choice import Engines
from tsuishi.results import trial_folders
from tsuishi.results.directory import RunDirectory, known_runs

# The names that files.temporary_folder gives.
_TEMPORARY = re.compile(rf"(\..*-|{files.PRIVATE})[0-9a-f]{{8}}")


class Stray(NamedTuple):
    """Something that was left. `remove`: removes it; None where something else has to be done, as `what` says."""

    what: str
    remove: Callable[[], None] | None


def find(engines: Engines, settings: Settings) -> list[Stray]:
    """All strays. Strays of other users that cannot be seen raise no error."""
    programs = [Stray(text, engines.sweep) for text in engines.abandoned()]
    folders = [Stray(f"folder {folder}: of a call that was killed", _removing(folder)) for folder in _folders(settings)]
    return [*programs, *folders, *_trials(settings.results)]


def remove(engines: Engines, settings: Settings) -> Iterator[str]:
    """Remove strays until no removable stray is left; a line for each. A program's end may free a folder."""
    while removable := [stray for stray in find(engines, settings) if stray.remove]:
        for stray in removable:
            assert stray.remove
            stray.remove()
            yield stray.what


def _folders(settings: Settings) -> Iterator[Path]:
    """The temporary folders in every place where tsuishi makes some."""
    inside = (path for path in settings.cache.glob("*") if path.is_dir() and not path.is_symlink())
    places = (settings.results, settings.reports, settings.cache, *inside, Path(tempfile.gettempdir()))
    for place in dict.fromkeys(path.absolute() for path in places):
        with suppress(OSError):
            names = sorted(path for path in place.iterdir() if _TEMPORARY.fullmatch(path.name))
            yield from filter(files.is_abandoned, names)
    yield from abandoned_scratch()


def _trials(results: Path) -> Iterator[Stray]:
    """The folders of trials that no call is writing."""
    for run_id, path in known_runs(results).items():
        run = RunDirectory(path)
        with suppress(UserError):  # the run is being measured, or is damaged
            left = trial_folders.left_behind(run.trials)
            if not left:
                continue
            with run.alone():
                for trial_id, folder in left:
                    again = f"`invoke run-suite --resume {run_id}`"
                    if (folder / "trial.json").exists():
                        yield Stray(
                            f"trial {trial_id} of run {run_id}: whole, without its name; {again} names it", None
                        )
                    else:
                        said = f"trial {trial_id} of run {run_id}: begun by a call that was killed; {again} records it"
                        yield Stray(said, _removing(folder, run.alone))


def _removing(folder: Path, alone: Callable[[], AbstractContextManager[None]] = nullcontext) -> Callable[[], None]:
    """The removal of a folder. alone: keeps others from it meanwhile."""

    def remove() -> None:
        with alone(), suppress(FileNotFoundError):
            shutil.rmtree(folder)

    return remove
