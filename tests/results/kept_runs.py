"""Runs of every schema that was ever written, kept as tsuishi of their day archived them."""

import zipfile
from pathlib import Path

from tsuishi.results.directory import RunDirectory

KEPT = sorted(Path(__file__).parent.glob("schema-*.zip"))


def kept_run(archive: Path, into: Path) -> RunDirectory:
    """The run in an archive, in a folder under `into`."""
    with zipfile.ZipFile(archive) as kept:
        kept.extractall(into, [name for name in kept.namelist() if name.startswith("runs/")])
    (path,) = (into / "runs").iterdir()
    return RunDirectory(path)
