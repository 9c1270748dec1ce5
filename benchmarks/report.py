"""The cost of a report: `python -m benchmarks.report [RUN]...` from the root, with .venv active. No pass or fail.

A line is a report: of made-up runs (tests/large_run.py) with TELEMETRY_ROWS rows of telemetry a trial, by default each
twice as large as the run before; then of the given runs, by id or directory. Every report is made in a new process.

- first: wall seconds with an empty cache, start of the interpreter included
- again: wall seconds with the cache of the first report
- MiB: largest resident memory of that process
- page: size of index.html, in MB
- doubled: the ratios of `again` and of MiB to those of the run in the line before; of twice as many trials, 2 is linear

Machines differ by more than programs do: the last line is the time of `import pandas` alone on this machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from tests.large_run import write_large_run
from tsuishi.base.settings import read_settings
from tsuishi.results.directory import open_run

ROOT = Path(__file__).resolve().parent.parent
TRIALS = (1_250, 2_500, 5_000, 10_000)
TELEMETRY_ROWS = 100
MAKE = """
import sys
from pathlib import Path
from tsuishi.report.output.vega import Drawings
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.vocabulary import vocabulary
run, out, cache = map(Path, sys.argv[1:])
with Drawings(cache, at_once=not cache.exists()) as drawings:
    from tsuishi.report.output.folder import make_report
    words = vocabulary(Path("suites"))
    make_report([RunDirectory(run)], Path("reports/published"), words, Path("templates"), out, drawings)
"""


class Cost(NamedTuple):
    """The cost of a report: wall seconds without and with a cache, largest resident memory, size of the page."""

    first_s: float
    again_s: float
    memory_mib: float
    page_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="id or directory of a run")
    parser.add_argument("--trials", default=",".join(map(str, TRIALS)), help="of made-up runs, separated by commas")
    given = parser.parse_args()
    print("run                           first s  again s     MiB  page MB   doubled: s  MiB")
    with tempfile.TemporaryDirectory() as folder:
        before = None
        for trials in map(int, given.trials.split(",")):
            run = write_large_run(Path(folder) / f"{trials}-trials", trials, TELEMETRY_ROWS)
            cost = cost_of(run.path, Path(folder) / f"{trials}-report")
            print(line(f"{trials} trials", cost, before), flush=True)
            before = cost
        for name in given.runs:
            run = open_run(read_settings({}, os.environ, {}).results, name)
            print(line(run.id, cost_of(run.path, Path(folder) / "real" / run.id), None), flush=True)
    print(f"import pandas: {min(timed('import pandas')[0] for _ in range(3)):.2f} s")


def line(name: str, cost: Cost, half: Cost | None) -> str:
    text = f"{name:28} {cost.first_s:8.2f} {cost.again_s:8.2f} {cost.memory_mib:7.0f} {cost.page_mb:8.2f}"
    doubled = f"{cost.again_s / half.again_s:13.2f} {cost.memory_mib / half.memory_mib:4.2f}" if half else ""
    return text + doubled


def cost_of(run: Path, folder: Path) -> Cost:
    """The cost of the report of a run, which is made twice into a fresh folder."""
    first_s, _ = make(run, folder)
    again_s, memory_mib = make(run, folder)
    return Cost(first_s, again_s, memory_mib, (folder / "report" / "index.html").stat().st_size / 1e6)


def make(run: Path, folder: Path) -> tuple[float, float]:
    """Wall seconds and MiB of a process that makes the report."""
    return timed(MAKE, *map(str, (run.resolve(), folder / "report", folder / "cache")))


def timed(program: str, *arguments: str) -> tuple[float, float]:
    """Wall seconds and MiB of a process that runs a program."""
    return timed_command([sys.executable, "-c", program, *arguments], ROOT, os.environ)


def timed_command(
    command: Sequence[str], folder: Path, variables: Mapping[str, str], printed: IO[str] | None = None
) -> tuple[float, float]:
    """Wall seconds and MiB of a process in a folder. `printed` receives its output."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=variables, stdout=printed)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise SystemExit(f"it failed: {' '.join(command)}")
    return seconds, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
