"""`invoke clean`: removes what tsuishi made, and nothing else."""

import shutil
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from tsuishi import extras
from tsuishi.artifacts import datasets
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.environments import inventory
from tsuishi.plan.session import Session
from tsuishi.results import directory


def clean(session: Session, images: bool, cache: bool, results: bool) -> None:
    """Remove reports; images, cache and results only if chosen. Prints each removal. What another process uses stays.

    Raises UserError where another process measures on this machine, or builds, and images or the cache are chosen.
    """
    settings, screen = session.settings, session.screen
    reports = [path.parent for path in settings.reports.glob("*/report.md") if (path.parent / "index.html").exists()]
    _remove(reports, screen)
    with inventory.nobody_uses(settings) if images or cache else nullcontext():
        if images or cache:
            inventory.remove(session.builder, screen)
        if cache:
            kept = ("artifacts", "bases", "report", *extras.given("images", "CACHED"))
            _remove((*(settings.cache / name for name in kept), datasets.folder(settings.cache)), screen)
    for folder in directory.known_runs(settings.results).values() if results else ():
        try:
            with directory.RunDirectory(folder).alone():
                _remove([folder], screen)
        except UserError as used:
            screen.say(f"left {folder}: {used}")


def _remove(folders: Iterable[Path], screen: Screen) -> None:
    for folder in folders:
        if folder.exists():
            folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
            screen.say(f"removed {folder}")
