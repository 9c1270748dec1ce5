"""What durability costs of a run's time: `python -m benchmarks.durability [OPTIONS OF run-suite]`, .venv active.

Makes a run in this process. Printed are, for what makes a run durable, its calls, its seconds, its milliseconds a
trial and its share of the run's time from the first trial to the last table:

- disk: waiting until files and names are on the disk (fsync, syncfs)
- digests: reading the files of trials again for their SHA-256
- chain: writing and checking the chain's lines, without what waits for the disk and reads files
- tables: gathering the tables from all trials, without the same

No pass or fail.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from invoke.main import program

from tsuishi.base import files
from tsuishi.base.settings import read_settings
from tsuishi.results import directory, manifest
from tsuishi.results.directory import RunDirectory
from tsuishi.run.runner import Runner

ROOT = Path(__file__).resolve().parent.parent
SMALL = ["--suite", "device_limits,conv2d", "--env", "torch2-cpu", "--profile", "smoke"]


class Stopwatch:
    """Seconds and calls by name. Time in a call within a call counts for the inner name alone."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._inner = [0.0]

    def watch(self, owner: object, function: str, name: str) -> None:
        """Count every call of a function of a module or a class from now on."""
        setattr(owner, function, self._watched(getattr(owner, function), name))

    def _watched(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def watched(*given: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            begin = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                took = time.perf_counter() - begin
                self.seconds[name] += took - self._inner.pop()  # type: ignore[assignment]  # Counter of floats
                self.calls[name] += 1
                self._inner[-1] += took

        return watched


def main() -> None:
    stopwatch = Stopwatch()
    stopwatch.watch(os, "fsync", "disk")
    stopwatch.watch(files, "sync_all", "disk")
    stopwatch.watch(files, "size_and_sha256", "digests")
    stopwatch.watch(manifest.Manifest, "add", "manifest")
    stopwatch.watch(RunDirectory, "gather", "tables")
    stopwatch.watch(Runner, "run", "all else")
    program.run(["invoke", "--search-root", str(ROOT), "run-suite", *(sys.argv[1:] or SMALL)], exit=False)
    trials = len(directory.open_run(read_settings({}, os.environ, {}).results).finished_folders())
    total = sum(stopwatch.seconds.values())
    print(f"\n{trials} trials in {total:.1f} s\n{'':9} calls seconds  ms a trial  share")
    for name in ("disk", "digests", "chain", "tables"):
        seconds = stopwatch.seconds[name]
        print(
            f"{name:8} {stopwatch.calls[name]:6} {seconds:7.3f} {seconds / trials * 1e3:11.1f} {seconds / total:6.2%}"
        )


if __name__ == "__main__":
    main()
