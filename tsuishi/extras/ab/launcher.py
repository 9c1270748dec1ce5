"""Runs the command of a side in its folder, and prints the numbers of the file that it writes.

`python launcher.py SIDE` is the script of a suite, and runs in the trials of both sides, by any Python from 3.6 on.
sides.json beside it says:

    command   the words of the command
    numbers   the path of the file with numbers, from the folder where the command starts; empty for none
    lines     whether it prints the numbers of the file, and the command's own time, as lines
    private   a file with the `variables` of the call, and by side the `folder`, the words and variables that replace
              these, and the `environment`, whose programs come first

Such a line is the mark, the name as JSON, the value, and its unit.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, Tuple

MARK = "tsuishi-ab"
WALL = "whole command"
_CLOCK_S = 0.02  # by which the time of a file may be behind
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def main(side: str) -> int:
    """Run the command of a side. Returns its exit code."""
    with open("sides.json") as file:
        known = json.load(file)
    with open(known["private"]) as file:
        private = json.load(file)
    of_side = private["sides"][side]
    path = os.path.join(of_side["folder"], known["numbers"]) if known["numbers"] else ""
    variables, command = of_side.get("variables") or private["variables"], of_side.get("command") or known["command"]
    path_of_programs = variables.get("PATH", os.defpath)
    if of_side.get("environment"):
        variables = dict(variables, PATH=os.path.dirname(sys.executable) + os.pathsep + path_of_programs)
    elif command[0] == "python" and not shutil.which("python", path=path_of_programs):
        command = [sys.executable, *command[1:]]
    since, begin = time.time() - _CLOCK_S, time.perf_counter()
    code = subprocess.call(command, cwd=of_side["folder"], env=variables)
    took_s = time.perf_counter() - begin
    if code < 0:  # as it ended, so that its signal is the reason
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    if code:
        return code
    numbers = dict(read(path, since) if path else {}, **{WALL: took_s})
    for name, value in numbers.items() if known["lines"] else ():
        print(f"{MARK} {json.dumps(name)} {value!r} s", flush=True)
    return 0


def read(path: str, since: float) -> Dict[str, float]:
    """The numbers of a file or folder, in seconds, by name. Exits with a line where there is none.

    since: the time before which no file was written that counts, in seconds since the epoch.
    """
    if os.path.isdir(path):
        found = dict(_criterion(path, since))
    elif not os.path.exists(path) or os.path.getmtime(path) < since:
        sys.exit(f"{path}: the command wrote no such file")
    else:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        except ValueError as error:
            sys.exit(f"{path}: no JSON: {error}")
        found = dict(_of_json(content))
    found = {name: value for name, value in found.items() if value and value > 0}
    if not found:
        sys.exit(f"{path}: no number of pytest-benchmark, hyperfine, Google Benchmark or Criterion in it")
    return found


def _of_json(content: Any) -> Iterator[Tuple[str, float]]:
    """Pairs of a name and seconds: the median of the rounds in this process, which are one trial together."""
    if not isinstance(content, dict):
        return
    for each in content.get("results", ()):  # hyperfine
        yield each["command"], each.get("median", each["mean"])
    for each in content.get("benchmarks", ()):
        if "stats" in each:  # pytest-benchmark
            yield each.get("fullname") or each["name"], each["stats"]["median"]
        elif "real_time" in each and not each.get("error_occurred"):  # Google Benchmark
            if each.get("run_type", "iteration") == "aggregate" and each.get("aggregate_name") != "median":
                continue
            yield each.get("run_name") or each["name"], each["real_time"] * _SECONDS[each.get("time_unit", "ns")]


def _criterion(folder: str, since: float) -> Iterator[Tuple[str, float]]:
    """Pairs of a benchmark's path and seconds: the slope over samples of several sizes, else the mean."""
    pattern = os.path.join(folder, "**", "new", "estimates.json")
    for path in sorted(glob.glob(pattern, recursive=True)):
        if os.path.getmtime(path) < since:
            continue
        with open(path, encoding="utf-8") as file:
            estimates = json.load(file)
        estimate = estimates.get("slope") or estimates["mean"]
        name = os.path.relpath(os.path.dirname(os.path.dirname(path)), folder)
        yield name.replace(os.sep, "/"), estimate["point_estimate"] * 1e-9


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
