"""`invoke clean`: removes what tsuishi made, and nothing else."""

import shutil

from tsuishi import extras
from tsuishi.artifacts import datasets
from tsuishi.environments import inventory
from tsuishi.plan.session import Session
from tsuishi.results import directory


def clean(session: Session, images: bool, cache: bool, results: bool) -> None:
    """Remove reports; images, cache and results only if chosen. Prints each removal."""
    settings = session.settings
    folders = [path.parent for path in settings.reports.glob("*/report.md") if (path.parent / "index.html").exists()]
    if images or cache:
        inventory.remove(session.builder, session.screen)
    if cache:
        kept = ("artifacts", "bases", "report", *extras.given("images", "CACHED"))
        folders += [*(settings.cache / name for name in kept), datasets.folder(settings.cache)]
    if results:
        folders += directory.known_runs(settings.results).values()
    for folder in folders:
        if folder.exists():
            folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
            session.screen.say(f"removed {folder}")
