"""Every command on every state that a killed or full run leaves: `python -m benchmarks.left_states`, as root.

A run of three trials, its resumption, an archive and a report are started as a user starts them, in a checkout of their
own. Before the k-th change of the disk (see crash_points) the process is killed, or all room of its disk is taken away,
for every k; the disk is a file system in memory. Each state that is left, once, is given to every command that reads
runs, on a disk with room, and one that has findings to each on a disk without room. The faults counted are:

- traceback: a command ends in a traceback, or by a signal
- code: an exit code that no command has, or one of a mistake without a line that says which
- no path: a full disk, and the line does not name what could not be written
- whole: `verify` finds a run whole that has other rows than trials, or an archive holds such a run
- not whole: `--resume` ends well, and `verify` finds faults afterwards

Exit code 1 unless all are 0. `--every N` takes every N-th change only.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from invoke import main as invoke

from benchmarks.crash_points import Changes
from tests.bench import REAL, make_checkout
from tsuishi.base.checkout import Checkout
from tsuishi.results import directory, manifest

FAULTS = ("traceback", "code", "no path", "whole", "not whole")
_CODES = {0, 1, 3, 4, 5, 130}
_MEASURE = ("run-suite", "--env", "host", "--within", "none")
_RESUME = ("run-suite", "--resume", "latest")
_ARCHIVE = ("archive", "--to", "{folder}/archives")
_ANONYMOUS = ("archive", "--anonymous", "--to", "{folder}/archives")
# What is killed, or has no room: its name, and whether it finds a whole run.
STARTED: dict[str, tuple[tuple[str, ...], bool]] = {
    "run": (_MEASURE, False),
    "resumption": (_RESUME, False),
    "archive": (_ANONYMOUS, True),
    "report": (("report",), True),
}
# `--resume` is the last: it changes the state.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("doctor",),
    ("verify",),
    ("report",),
    ("report", "--history"),
    ("report", "--baseline", "latest"),
    ("report", "--run", "{whole}", "--baseline", "latest", "--fail-on", "slower"),
    ("replay", "latest", "--plan"),
    _ARCHIVE,
    _ANONYMOUS,
    _RESUME,
)
_ROOM = "64m"


class Ended(NamedTuple):
    """A command that has ended. `code`: negative for a signal."""

    code: int
    text: str


class Bench:
    """A checkout with a suite of three trials, and a whole run of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Whether the command that was started last came to its change.
        self.is_hit = False
        make_checkout(root, "ok", "unsupported", "out_of_memory")
        for name in ("tasks.py", "invoke.yaml"):
            shutil.copy(REAL.root / name, root)
        self.disk = root / "disk"
        self.disk.mkdir()
        self.empty, self.whole, self.partial = (root / name for name in ("empty", "whole", "partial"))
        self.empty.mkdir()
        assert self.run(self.whole, _MEASURE).code == 0
        self.run_of(self.whole).rename(root / "reference")
        assert self.run(self.whole, _MEASURE).code == 0
        shutil.copytree(self.whole, self.partial)
        _undo(self.run_of(self.partial))

    def run(self, folder: Path, words: Iterable[str], at: int = 0, full: bool = False) -> Ended:
        """A command on the results in a folder. at: kill it before that change; full: take all room away instead."""
        words = [word.format(folder=folder, whole=self.root / "reference") for word in words]
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile() as output:
            if not (child := os.fork()):
                for descriptor in (1, 2):
                    os.dup2(output.fileno(), descriptor)
                self._started(folder, words, at, full)
            _, status = os.waitpid(child, 0)
            output.seek(0)
            return Ended(os.waitstatus_to_exitcode(status), output.read().decode(errors="replace"))

    def _started(self, folder: Path, words: list[str], at: int, full: bool) -> None:
        sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", encoding="utf-8", closefd=False) for descriptor in (1, 2))
        os.chdir(self.root)
        for name in ("results", "cache", "reports"):
            os.environ[f"INVOKE_TSUISHI_{name.upper()}"] = str(folder / name)
        tempfile.tempdir = str(folder / "temporary")
        Path(tempfile.tempdir).mkdir(exist_ok=True)
        os.environ["INVOKE_TSUISHI_HOST_PYTHON"] = sys.executable
        os.environ["INVOKE_TSUISHI_EXCLUSIVE_ON"] = f"left states {os.getppid()}"
        Checkout.__init__.__defaults__ = (self.root,)
        code = 70
        try:
            if at:
                Changes(folder, at, (lambda: fill(folder)) if full else None)
            invoke.program.run(["invoke", *words])
            code = 0
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)

    def run_of(self, folder: Path) -> Path:
        return directory.open_run(folder / "results").path

    def state(self, name: str, point: int, full: bool) -> tuple[str, Path, Ended]:
        """What a kill before that change leaves: in words, its folder (used again), and how the command ended."""
        words, finds_whole = STARTED[name]
        template = self.whole if finds_whole else self.partial if name == "resumption" else self.empty
        with disk(self.disk):
            shutil.copytree(template, self.disk / "state")
            ended = self.run(self.disk / "state", words, point, full)
            self.is_hit = (self.disk / FILLER).exists() if full else ended.code < 0
            (self.disk / FILLER).unlink(missing_ok=True)
            left = self.root / "left"
            shutil.rmtree(left, ignore_errors=True)
            shutil.copytree(self.disk / "state", left, symlinks=True)
        return f"{name} {'full' if full else 'killed'} at change {point}", left, ended

    def states(self, name: str, every: int, full: bool) -> Iterator[tuple[str, Path, Ended]]:
        """The state for each change, up to a command that ended before its change."""
        for point in range(1, 100_000, every):
            what, left, ended = self.state(name, point, full)
            yield what, left, ended
            if not self.is_hit:
                return


FILLER = "filler"


def fill(folder: Path) -> None:
    """Take all room away from the disk of a folder."""
    with suppress(OSError), (folder.parent / FILLER).open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass


@contextmanager
def disk(place: Path) -> Iterator[None]:
    """A small empty disk at a place."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "tmpfs", str(place)], check=True)  # noqa: S607
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # noqa: S607


def _undo(run: Path) -> None:
    """Make a run one whose runner was killed in its second trial, after the tables of an earlier session."""
    _, second, third = sorted((run / "trials").iterdir())
    (second / "trial.json").unlink()
    second.rename(second.with_name(f".partial-{second.name}"))
    shutil.rmtree(third)
    listed = run / manifest.ONCE
    lines = listed.read_text(encoding="utf-8").splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if f"{second.name}/" in line or f"{third.name}/" in line)
    listed.write_text("".join(lines[:place]), encoding="utf-8")


def signature(folder: Path) -> tuple[object, ...]:
    """What tells states apart: the names of all files without what is drawn, and how many lines each has."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = re.sub(r"[0-9]{8}-[0-9]{6}|(?<=[-.~])[0-9a-f]{8,64}\b", "X", str(path.relative_to(folder)))
        if path.is_file() and not name.startswith("cache/"):
            text = path.read_bytes()
            found.append((name, text.count(b"\n") if b"\0" not in text else bool(text), text[-1:] == b"\n"))
        elif path.is_dir():
            found.append((name, 0, False))
    return tuple(found)


def faults_of(ended: Ended, full: bool = False) -> Iterator[str]:
    """The faults of how a command ended. full: it had no room."""
    if "Traceback (most recent call last)" in ended.text or ended.code < 0:
        yield "traceback"
    elif ended.code not in _CODES:
        yield "code"
    if ended.code == 1 and "error: " not in ended.text and "NOT verified" not in ended.text:
        yield "code"
    for line in ended.text.splitlines() if full else ():
        if "No space left" in line and "/" not in line.replace("images/s", ""):
            yield "no path"


def looked_at(bench: Bench, state: Path, commands: Iterable[tuple[str, ...]] = COMMANDS) -> Iterator[tuple[str, str]]:
    """Give a state to every command. The faults, with the command and its last words."""
    for words in commands:
        ended = bench.run(state, words)
        found = list(faults_of(ended))
        if words == ("verify",) and ended.code == 0 and not rows_are_trials(bench.run_of(state)):
            found.append("whole")
        if words == _RESUME and ended.code == 0 and bench.run(state, ("verify",)).code:
            found.append("not whole")
        for fault in found:
            yield fault, f"{' '.join(words)}: exit code {ended.code}: {last_words(ended)}"


def rows_are_trials(run: Path) -> bool:
    """Whether the gathered table has a row for each trial, where it is there."""
    table = run / "trials.csv"
    if not table.exists():
        return True
    with table.open(encoding="utf-8", newline="") as file:
        names = [row["trial_id"] for row in csv.DictReader(file)]
    return names == sorted(path.name for path in (run / "trials").iterdir() if not path.name.startswith("."))


def last_words(ended: Ended) -> str:
    return " | ".join(ended.text.splitlines()[-3:])[-600:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="only every N-th change")
    parser.add_argument("--only", default="", help="run, resumption, archive or report")
    parser.add_argument("--how", default="", help="killed or full; both without it")
    given = parser.parse_args()
    total: Counter[str] = Counter()
    print(f"{'state':18} changes  states commands " + " ".join(f"{fault:>10}" for fault in FAULTS), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "checkout")
        for name in STARTED:
            for full in (False, True):
                how = "full" if full else "killed"
                if given.only in ("", name) and given.how in ("", how):
                    total += sweep(bench, name, given.every, full)
    sys.exit(any(total.values()))


def sweep(bench: Bench, name: str, every: int, full: bool) -> Counter[str]:
    """All states of a command that is killed, or has no room."""
    seen: set[tuple[object, ...]] = set()
    changes = commands = 0
    faults: Counter[str] = Counter()
    printed: set[str] = set()
    began = time.monotonic()
    for what, state, ended in bench.states(name, every, full):
        changes += 1
        found = [(fault, f"itself: exit code {ended.code}: {last_words(ended)}") for fault in faults_of(ended, full)]
        found = found if full else []
        if (key := signature(state)) not in seen:
            seen.add(key)
            commands += len(COMMANDS)
            found += looked_at(bench, state)
        for fault, why in found:
            faults[fault] += 1
            if why not in printed:
                print(f"{what}: {fault}: {why}", file=sys.stderr, flush=True)
            printed.add(why)
    row = " ".join(f"{faults[fault]:10}" for fault in FAULTS)
    counts = f"{name + (' full' if full else ' killed'):18} {changes:7} {len(seen):7} {commands:8}"
    print(f"{counts} {row}  {time.monotonic() - began:.0f} s", flush=True)
    return faults


if __name__ == "__main__":
    main()
