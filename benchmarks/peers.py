"""A report beside those of other tools: `python -m benchmarks.peers [RESULTS]...` from the root, with .venv active.

The same results (a trial of a case in an environment, with its timed blocks, made up by tests/large_run.py) are stored
as each tool stores its own. Then every tool makes its report of them from the command line, in turns, ROUNDS times, or
once where that takes longer than LONG_S. tsuishi has the cache of an earlier report, and hardly any telemetry, as the
others have none. No pass or fail. Columns:

- s: wall seconds of a report, start of the program included: median [least, most]
- MiB: largest resident memory of a process: median
- ours/theirs: the ratios of our medians to the tool's

Tools come from benchmarks/peers.lock, into a virtual environment in the cache (`--venv`: another environment with
them). SuperBench is not compared: the Python package index has no package of it. A report is not the same thing in each
tool; the lines below the table say what each does.
"""

import argparse
import csv
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peer_stores import Result, store_asv, store_benchopt, store_reframe, variables
from benchmarks.report import make, timed_command
from tests.large_run import write_large_run
from tsuishi.base.files import sha256_of
from tsuishi.base.settings import read_settings

ROUNDS = 5
LONG_S = 60.0
RESULTS = (100, 1_000, 10_000)
PRINTED = "printed.txt"
LOCK = Path(__file__).with_name("peers.lock")
# Of the blocks of a trial; the steps before them are slow.
_TIMED = ("measure", "compute", "epoch", "later_runs")
_OURS = "tsuishi"


class Peer(NamedTuple):
    """A tool. `store` stores results in a folder with the tool's programs, and returns the command of the report."""

    store: Callable[[Sequence[Result], Path, Path], list[str]]
    does: str


PEERS = {
    "reframe": Peer(store_reframe, "prints a table: means and their difference; no charts, no verdicts"),
    "asv": Peer(store_asv, "writes what a browser draws over commits; finds steps and regressions; no verdicts"),
    "benchopt": Peer(store_benchopt, "writes a page that a browser draws bars and curves from; no verdicts"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=int, help="how many results are stored: one table for each number")
    parser.add_argument("--venv", type=Path, help="a virtual environment with the tools")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # pip compiled the tools; ours is compiled by its first report
    programs = (given.venv or installed()).absolute() / "bin"
    print(f"{'results tool':22}{'s [least, most]':>24}{'MiB':>7}   ours/theirs: s   MiB")
    for count in given.results or RESULTS:
        with tempfile.TemporaryDirectory() as folder:
            for line in compare(count, Path(folder), programs):
                print(line, flush=True)
    print(f"{_OURS}: draws charts as files, puts intervals to numbers, and judges the claims of published sources")
    for name, peer in PEERS.items():
        print(f"{name}: {peer.does}")


def compare(count: int, folder: Path, programs: Path) -> Iterator[str]:
    """Lines on reports of so many results: ours, then each tool's. Raises SystemExit where a tool fails."""
    run = write_large_run(folder / "run", count, telemetry_rows=0)
    make(run.path, folder / _OURS)
    results, commands = read_results(run.path), {}
    for name, peer in PEERS.items():
        (folder / name).mkdir()
        commands[name] = peer.store(results, folder / name, programs)
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in (_OURS, *PEERS)}
    for _ in range(ROUNDS):
        costs[_OURS].append(make(run.path, folder / _OURS))
        for name, command in commands.items():
            if costs[name] and costs[name][0][0] > LONG_S:
                continue
            with (folder / name / PRINTED).open("w") as printed:
                costs[name].append(timed_command(command, folder / name, variables(folder / name, programs), printed))
    ours_s, ours_mib = (statistics.median(column) for column in zip(*costs[_OURS], strict=True))
    for name, cost in costs.items():
        seconds, memory = zip(*cost, strict=True)
        median_s, mib = statistics.median(seconds), statistics.median(memory)
        spread = f"{median_s:.2f} [{min(seconds):.2f}, {max(seconds):.2f}]"
        ratios = "" if name == _OURS else f"{ours_s / median_s:18.2f} {ours_mib / mib:5.2f}"
        yield f"{count:<8}{name:14}{spread:>24}{mib:7.0f}{ratios}"


def read_results(run: Path) -> list[Result]:
    """The results of a run, in its order."""
    steps: dict[str, list[float]] = {}
    for row in _rows(run / "samples.csv"):
        if row["phase"] in _TIMED:
            steps.setdefault(row["trial_id"], []).append(float(row["seconds"]) / int(row["steps"]))
    return [
        Result(
            row["suite"], row["case_id"], row["environment"], row["framework"].split()[0],
            "cpu" if row["device"] == "cpu" else "cuda", int(row["repetition"]), steps.get(row["trial_id"], []),
        )
        for row in _rows(run / "trials.csv")
    ]  # fmt: skip


def installed() -> Path:
    """The virtual environment with the tools; made where there is none for this lock and Python."""
    version = "{}.{}".format(*sys.version_info[:2])
    venv = read_settings({}, os.environ, {}).cache / "benchmarks" / f"peers-{version}-{sha256_of(LOCK)[:16]}"
    mark = venv / LOCK.name
    if not mark.exists():  # it is written last: programs of a virtual environment hold its path
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "--requirement", str(LOCK)], check=True)
        shutil.copy(LOCK, mark)
    return venv


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
