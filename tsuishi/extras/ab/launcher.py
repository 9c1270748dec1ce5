"""Runs the command of a side in its folder, and prints the numbers of the file that it writes.

`python launcher.py SIDE` is the script of a suite, and runs in the trials of both sides, by any Python from 3.6 on.
sides.json beside it says:

    command   the words of the command
    numbers   the path of the file with numbers, from the folder where the command starts; empty for none
    lines     whether it prints the numbers of the file, and the command's own time, as lines
    private   a file with the `variables` of the call, and by side the `folder`, the words and variables that replace
              these, and the `environment`, whose programs come first

Such a line is the mark, a digest of the name, the value, its unit, and the name as JSON.
"""

import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, List, Tuple

MARK = "tsuishi-ab"
WALL = "whole command"
_LONGEST = 300  # characters of a name for a reader
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# When, how large and which file: a trial's own file differs from that of the trial before.
State = Tuple[int, int, int]


def main(side: str) -> int:
    """Run the command of a side. Returns its exit code."""
    with open("sides.json") as file:
        known = json.load(file)
    with open(known["private"]) as file:
        private = json.load(file)
    of_side = private["sides"][side]
    path = os.path.join(of_side["folder"], known["numbers"]) if known["numbers"] else ""
    variables, command = of_side.get("variables") or private["variables"], of_side.get("command") or known["command"]
    programs = variables.get("PATH", os.defpath)
    if of_side.get("environment"):
        variables = dict(variables, PATH=os.path.dirname(sys.executable) + os.pathsep + programs)
    elif command[0] == "python" and not shutil.which("python", path=programs):
        command = [sys.executable, *command[1:]]
    before, begin = states(path), time.perf_counter()
    code = subprocess.call(command, cwd=of_side["folder"], env=variables)
    took_s = time.perf_counter() - begin
    if code < 0:  # as it ended, so that its signal is the reason
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    if code:
        return code
    numbers = dict(read(path, before) if path else {}, **{WALL: took_s})
    for name, value in numbers.items() if known["lines"] else ():
        # The command's own last line may have no end.
        print("\n{} {} {!r} s {}".format(MARK, digest(name), value, json.dumps(name[:_LONGEST])), flush=True)
    return 0


def digest(name: str) -> str:
    """What stands for a name in patterns: a name may be any text."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:16]


def states(path: str) -> Dict[str, State]:
    """The file with numbers, or the files in the folder of Criterion, as they are now."""
    found = {}
    for file in _criterion(path) if os.path.isdir(path) else [path]:
        try:
            about = os.stat(file)
        except OSError:
            continue
        found[file] = (about.st_mtime_ns, about.st_size, about.st_ino)
    return found


def read(path: str, before: Dict[str, State]) -> Dict[str, float]:
    """The numbers of a file or folder, in seconds, by name. Exits with a line where there is none.

    before: the files before the command ran; only others count, and those that it has changed.
    """
    new = [file for file, state in states(path).items() if before.get(file) != state]
    if not new:
        sys.exit("{}: the command wrote no such file".format(path))
    pairs: List[Tuple[str, float]] = []
    for file in new:
        try:
            with open(file, encoding="utf-8") as opened:
                content = json.load(opened)
        except ValueError as error:
            sys.exit("{}: no JSON: {}".format(file, error))
        pairs += _of_criterion(path, file, content) if os.path.isdir(path) else _of_json(content)
    found = _each_once((name, value) for name, value in pairs if isinstance(value, (int, float)) and value > 0)
    if not found:
        sys.exit("{}: no number of pytest-benchmark, hyperfine, Google Benchmark or Criterion in it".format(path))
    return found


def _each_once(pairs: Iterator[Tuple[str, float]]) -> Dict[str, float]:
    """The value of each name; of several, as repetitions without a summary give them, the median."""
    values: Dict[str, List[float]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    middles = {name: sorted(of)[(len(of) - 1) // 2 : len(of) // 2 + 1] for name, of in values.items()}
    return {name: sum(middle) / len(middle) for name, middle in middles.items()}


def _of_json(content: Any) -> Iterator[Tuple[str, Any]]:
    """Pairs of a name and seconds: the median of the rounds in this process, which are one trial together."""
    results, benchmarks = (_entries(content, key) for key in ("results", "benchmarks"))
    for each in results:  # hyperfine
        if isinstance(each.get("command"), str):
            yield each["command"], each.get("median") or each.get("mean")
    summed = {each.get("run_name") for each in benchmarks if each.get("aggregate_name") == "median"}
    for each in benchmarks:
        stats, name = each.get("stats"), each.get("run_name") or each.get("name")
        if isinstance(stats, dict):  # pytest-benchmark
            yield str(each.get("fullname") or name), stats.get("median")
        elif isinstance(each.get("real_time"), (int, float)) and not each.get("error_occurred"):  # Google Benchmark
            is_summary = each.get("run_type", "iteration") == "aggregate"
            if (each.get("aggregate_name") == "median") if is_summary else (name not in summed):
                yield str(name), each["real_time"] * _SECONDS.get(each.get("time_unit", "ns"), 0)


def _entries(content: Any, key: str) -> List[Dict[str, Any]]:
    """The objects in a list of a JSON object; none where it is of another form."""
    found = content.get(key) if isinstance(content, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _criterion(folder: str) -> List[str]:
    return sorted(glob.glob(os.path.join(glob.escape(folder), "**", "new", "estimates.json"), recursive=True))


def _of_criterion(folder: str, file: str, content: Any) -> Iterator[Tuple[str, Any]]:
    """A benchmark's path and seconds: the slope over samples of several sizes, else the mean."""
    estimates = content if isinstance(content, dict) else {}
    estimate = estimates.get("slope") or estimates.get("mean")
    name = os.path.relpath(os.path.dirname(os.path.dirname(file)), folder).replace(os.sep, "/")
    if isinstance(estimate, dict) and isinstance(estimate.get("point_estimate"), (int, float)):
        yield name, estimate["point_estimate"] * 1e-9


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
