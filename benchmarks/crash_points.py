"""Kills at every change of the disk, and at random moments: `python -m benchmarks.crash_points`, .venv active.

The three scenarios are a run of three trials, its resumption, and a report. A process is killed (SIGKILL) before its
k-th rename, swap, fsync, mkdir, rmdir, unlink, link, truncation or open for writing; for every k. `--random N` kills
N more in each scenario at moments that are drawn from all of its time, so in the middle of a write or of a trial too.
Another process then does the same without a kill: it resumes the run, if there is a run, or makes the report. The
faults counted are:

- lost: trials with a complete trial.json at the kill, in any folder, that are gone or changed in the end
- repeated: such trials that had a finding, and were measured again
- unreadable: an incomplete report, a run that cannot be read, or a run that is incomplete in the end
- orphaned: processes of the scenario that are alive in the end
- left over: files and folders that a process leaves only after a kill

Exit code 1 unless all but the last are 0.
"""

import argparse
import io
import itertools
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import psutil

from tests.bench import REAL, make_checkout
from tests.synthetic_run import TORCH, SyntheticRun, steady_samples, training_case
from tests.words import WORDS
from tsuishi.base import files
from tsuishi.base.files import read_json
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.report.output.folder import make_report
from tsuishi.report.output.vega import Drawings
from tsuishi.results import directory, manifest
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.specs.statuses import is_finding
from tsuishi.specs.trial_id import TrialId

FAULTS = ("lost", "repeated", "unreadable", "orphaned", "left over")
_CHANGES = {"os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link", "os.symlink", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

Contents = dict[str, bytes]


def main() -> None:
    given = parse()
    generator = np.random.default_rng(given.seed)
    print(f"{'scenario':10}  kills " + " ".join(f"{fault:>10}" for fault in FAULTS))
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for scenario in SCENARIOS:
            name = scenario.__name__.lower()
            if given.only in ("", name):
                kills, faults = scenario(Path(folder) / name).kill(given.every, given.random, generator)
                print(f"{name:10} {kills:6} " + " ".join(f"{faults[fault]:10}" for fault in FAULTS), flush=True)
                total += faults
    sys.exit(any(total[fault] for fault in FAULTS[:-1]))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="only every N-th change; 0: none")
    parser.add_argument("--random", type=int, default=0, help="kills at random moments, in each scenario")
    parser.add_argument("--seed", type=int, default=1)
    names = ["", *(scenario.__name__.lower() for scenario in SCENARIOS)]
    parser.add_argument("--only", default="", choices=names, help="run, resumption or report")
    return parser.parse_args()


class Scenario:
    """An action that changes the disk, in a fresh copy of the folder `template` each time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.template = root / "template"
        self.template.mkdir(parents=True)

    def act(self, folder: Path) -> None:
        """The action that is killed, and then repeated."""
        raise NotImplementedError

    def faults(self, killed: Path, again: Path) -> Iterator[str]:
        """The faults. killed: the folder at the kill. again: the folder after the action was repeated."""
        raise NotImplementedError

    def kill(self, every: int, random: int, generator: np.random.Generator) -> tuple[int, Counter[str]]:
        """The number of kills, and the number of faults of each kind. See the options of the same names."""
        self.whole = shutil.copytree(self.template, self.root / "whole")
        begin = time.monotonic()
        count = forked(lambda: self.act(self.whole), self.whole)
        took_s = time.monotonic() - begin
        assert count, "it fails without being killed: see above"
        kills, faults = 0, Counter[str]()
        for point in range(1, count + 1, every) if every else ():
            faults.update(self._kill(f"change {point}", at=point))
            kills += 1
        while random:
            moment = generator.uniform(0, took_s)
            found = self._kill(f"{moment:.3f} s", after_s=moment)
            if found is not None:
                faults.update(found)
                kills, random = kills + 1, random - 1
        return kills, faults

    def _kill(self, when: str, at: int = 0, after_s: float | None = None) -> list[str] | None:
        """The faults after a kill; None where the process had ended before the moment."""
        folder, killed = (shutil.copytree(self.template, self.root / name) for name in ("again", "killed"))
        ended = forked(lambda: self.act(folder), folder, at, after_s)
        shutil.rmtree(killed)
        shutil.copytree(folder, killed, symlinks=True)
        done = forked(lambda: self.act(folder), folder)
        faults = ["left over"] * len(hidden(folder) - hidden(self.whole)) + ["orphaned"] * len(processes_of(self.root))
        try:
            faults += [*([] if done else ["unreadable"]), *self.faults(killed, folder)]
        except Exception:
            traceback.print_exc()
            faults.append("unreadable")
        if faults:
            print(f"killed at {when}: {', '.join(faults)}", file=sys.stderr)
        shutil.rmtree(folder)
        shutil.rmtree(killed)
        return None if ended else faults


class Run(Scenario):
    """A new run of three trials, with real processes that measure nothing; one starts a daemon, which has to end."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.checkout = make_checkout(root, "leaves_a_daemon", "unsupported", "out_of_memory")
        # In this process, so that every forked process has the modules imported.
        with redirect_stdout(io.StringIO()):
            self.act(self.template)
        self.begin()

    def begin(self) -> None:
        """Change the template to the folder in which processes start."""
        shutil.rmtree(self.template / "results")

    def act(self, folder: Path) -> None:
        """Make a run, or resume the run in the folder."""
        settings = Settings(
            cache=folder / "cache",
            results=folder / "results",
            host_python=sys.executable,
            exclusive_on=f"crash points {os.getppid()}",  # nothing is measured: a run beside it may have the machine
        )
        session = Session(settings, Choice(environments=("host",)), Screen(), self.checkout)
        if directory.known_runs(folder / "results"):
            resume(session)
        else:
            run_suite(session)

    def faults(self, killed: Path, again: Path) -> Iterator[str]:
        read_runs([RunDirectory(path) for path in directory.known_runs(killed / "results").values()], WORDS)
        before = {str(read_json(path)["trial_id"]): path.parent for path in killed.rglob("trial.json")}
        run = the_run(again)
        trials = {trial.trial_id: trial for _, trial in run.finished()}
        for name, folder in before.items():
            if is_finding(read_json(folder / "trial.json")["status"]) and next_attempt(name) in trials:
                yield "repeated"
            elif name not in trials or contents(run.trials / name) != contents(folder):
                yield "lost"
        if summary(run) != summary(the_run(self.whole)) or len(list((again / "results").iterdir())) > 1:
            yield "unreadable"


class Resumption(Run):
    """The resumption of such a run: a trial lacks its name, another is unfinished, the third has not begun."""

    def begin(self) -> None:
        unnamed, measured, not_begun = the_run(self.template).finished_folders()
        (measured / "trial.json").unlink()
        for folder in (unnamed, measured):
            folder.rename(folder.with_name(f".partial-{folder.name}"))
        shutil.rmtree(not_begun)
        path = the_run(self.template).path / manifest.ONCE
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(itertools.takewhile(lambda line: "trials/" not in line, lines)), encoding="utf-8")


class Report(Scenario):
    """A report that replaces an older report."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for name, step_s in (("old", 0.1), ("new", 0.2)):
            run = SyntheticRun(self.template / name)
            run.add(training_case(16), TORCH, steady_samples(16, [step_s] * 4))
            run.finish()
        self._report(self.template, "old")

    def act(self, folder: Path) -> None:
        self._report(folder, "new")

    def faults(self, killed: Path, again: Path) -> Iterator[str]:
        old, new = contents(self.template / "out"), contents(self.whole / "out")
        if contents(killed / "out") not in (old, new) or contents(again / "out") != new:
            yield "unreadable"

    def _report(self, folder: Path, name: str) -> None:
        with Drawings(self.root / "drawings") as drawings:
            make_report([RunDirectory(folder / name)], REAL.published, WORDS, REAL.templates, folder / "out", drawings)


SCENARIOS = (Run, Resumption, Report)


def the_run(folder: Path) -> RunDirectory:
    return directory.open_run(folder / "results")


def next_attempt(trial_id: str) -> str:
    return str(TrialId.parse(trial_id).next_attempt)


def summary(run: RunDirectory) -> list[tuple[Any, ...]]:
    """Every trial that has a finding: its name, its status, and the numbers of its rows in the run's tables."""
    read_runs([run], WORDS)
    rows = [(run.path / f"{table}.csv").read_text(encoding="utf-8").splitlines() for table in ("trials", "samples")]
    counts = [Counter(row.partition(",")[0] for row in table) for table in rows]
    return [
        (str(trial.id.planned), trial.status, *(count[trial.trial_id] for count in counts))
        for _, trial in run.finished()
        if is_finding(trial.status)
    ]


def contents(folder: Path) -> Contents:
    """The content of every file below a folder, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def hidden(folder: Path) -> set[str]:
    """The names below a folder that begin with a dot."""
    return {path.name for path in folder.rglob(".*")}


def processes_of(folder: Path) -> list[int]:
    """The ids of the processes whose command names something below a folder."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE and str(folder) in " ".join(process.info["cmdline"] or ())
    ]


def forked(work: Callable[[], object], folder: Path, kill_at: int = 0, kill_after_s: float | None = None) -> int:
    """Do some work in a process that is killed before its change number `kill_at` below a folder (0: never).

    kill_after_s: kill it then. Returns the number of its changes; 0 where the process did not end by itself. Shows its
    output where it fails.
    """
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as output:
        if not (child := os.fork()):
            for descriptor in (1, 2):
                os.dup2(output.fileno(), descriptor)
            _work(work, folder, kill_at, writer)
        os.close(writer)
        with suppress(ProcessLookupError), os.fdopen(os.pidfd_open(child), "rb") as ending:
            if kill_after_s is not None and not select.select([ending], [], [], kill_after_s)[0]:
                signal.pidfd_send_signal(ending.fileno(), signal.SIGKILL)
        with os.fdopen(reader, "rb") as answer:
            count = int(answer.read() or 0)
        _, status = os.waitpid(child, 0)
        if not count and os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            output.seek(0)
            print(output.read().decode(errors="replace"), file=sys.stderr)
    return count


def _work(work: Callable[[], object], folder: Path, kill_at: int, answer: int) -> NoReturn:
    """In the forked process: do the work, write the number of changes to `answer`, and end."""
    with suppress(BaseException):
        try:
            changes = Changes(folder, kill_at)
            work()
            os.write(answer, b"%d" % changes.count)
        except BaseException:
            traceback.print_exc()
    os._exit(0)


class Changes:
    """Counts this process' changes of the disk below a folder, and kills it before change number `kill_at`.

    instead: what is done then in place of the kill.
    """

    def __init__(self, folder: Path, kill_at: int, instead: Callable[[], None] | None = None) -> None:
        self.count = 0
        self._act = instead or (lambda: os.kill(os.getpid(), signal.SIGKILL))
        self._folder = str(folder)
        self._kill_at = kill_at
        sys.addaudithook(self._hear)
        # Changes without an audit event.
        os.fsync = self._counted(os.fsync)
        files.exchange = self._counted(files.exchange)
        files.sync_all = self._counted(files.sync_all)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        changes = event in _CHANGES or (event == "open" and given[2] & _WRITING)
        # The removal of a folder gives names without a path.
        if changes and isinstance(given[0], (str, bytes)):
            path = os.fsdecode(given[0])
            if path.startswith(self._folder) or not path.startswith("/"):
                self._change()

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            self._change()
            return function(*given)

        return counted

    def _change(self) -> None:
        self.count += 1
        if self.count == self._kill_at:
            self._act()


if __name__ == "__main__":
    main()
