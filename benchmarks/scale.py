"""What gathering a run costs at 100, 10,000 and 100,000 trials: `python -m benchmarks.scale`, .venv active.

Runs are made up on disk, as nodes leave them: a folder for each trial, no tables. A process of its own then does what
the login node does while trials come, and after the last of them:

- list: a look at the folder of trials for new ones, in seconds
- manifest: reading a trial and adding it to the manifest, in milliseconds for each of some trials
- tables: gathering all tables, in seconds
- reading: all tables as a report reads them, in seconds
- memory: the largest resident memory of that process, in MiB
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.large_run import write_large_run
from tests.words import WORDS
from tsuishi.base.files import entries
from tsuishi.results import manifest, run_tables, trial_folders
from tsuishi.results.directory import RunDirectory

SIZES = (100, 10_000, 100_000)
# Trials whose listing is timed, and rows of telemetry for each trial.
_LISTED, _TELEMETRY_ROWS = 100, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of trials, separated by commas")
    sizes = [int(text) for text in parser.parse_args().sizes.split(",")]
    table = Table("trials", "list, s", "manifest, ms a trial", "tables, s", "reading, s", "memory, MiB", box=None)
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            path = write_large_run(Path(folder) / "run", size, _TELEMETRY_ROWS).path
            for file in (*path.glob("*.csv"), *path.glob("*.txt")):
                file.unlink()
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                table.add_row(f"{size:,}", *pool.apply(measured, (path,)))
    Console(width=100).print(table)


def measured(path: Path) -> list[str]:
    """The cells of a run's row."""
    run = RunDirectory(path)
    list_s = seconds(lambda: entries(run.trials))
    folders = run.finished_folders()[:_LISTED]
    listed = manifest.Manifest(path)

    def list_some() -> None:
        for _, trial in trial_folders.read(folders):
            listed.add(trial)

    listed_ms = seconds(list_some) * 1000 / len(folders)
    tables_s = seconds(lambda: run.gather(WORDS))
    reading_s = seconds(lambda: run_tables.read(path, path))
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [f"{list_s:.3f}", f"{listed_ms:.1f}", f"{tables_s:.1f}", f"{reading_s:.1f}", f"{memory_mib:.0f}"]


def seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


if __name__ == "__main__":
    main()
