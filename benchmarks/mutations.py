"""Damaged runs: `python -m benchmarks.mutations [--count N] [--seed S] [--run PATH] [--keep]`, with .venv active.

The runs are two small runs (the first really measured), or the run at PATH. A mutation alters a file of a run in a way
below. Then the run is listed, reported and resumed, in a process with limits on memory and time, which draws and
measures nothing. A table shows the counts; the exit code is 1 where anything ended with a traceback or did not end.

- read: the altered run was read as a run
- refused: a line for the user
- tracebacks: any other error, a message of several lines, or more memory than the limit
- hangs: no answer within the limit
- peak memory: of the process with the most memory; libraries take some 250 MiB of it
"""

import argparse
import copy
import gc
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import psutil

from tests.bench import make_checkout
from tests.run.test_runner import session
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case, steady_samples, training_case
from tests.words import WORDS
from tsuishi.base import toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.commands import listing
from tsuishi.environments.entry import Ready
from tsuishi.plan.planning import plan_builds_only
from tsuishi.plan.session import Session
from tsuishi.report.output.folder import make_report
from tsuishi.results import directory, trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.run.measuring import Measuring
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.run.tally import Tally
from tsuishi.specs.environment import Environment

ENTRIES = ("list", "report", "resume")
LIMIT_S = 60.0
MEMORY = 3 << 30
# The number of items that are altered in each list of a JSON file.
_ITEMS = 2
_DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000

WRONG: dict[str, Any] = {
    "null": None, "true": True, "a huge number": 10**400, "a negative number": -1, "a fraction": 0.5, "": "",
    "a text": "x", "..": "../../x", "control characters": "\x1b[2J\u202e\n\x00", "a list": [], "an object": {},
    "NaN": float("nan"), "infinity": float("inf"), "a deep list": json.loads("[" * 300 + "]" * 300),
}  # fmt: skip
Alter = Callable[[Path], object]


class Mutation(NamedTuple):
    """A change to a file of a run."""

    run: Path
    file: str
    what: str
    alter: Alter


class Answer(NamedTuple):
    """The reaction of an entry to a run. kind: read, refused, traceback or hang."""

    entry: str
    kind: str
    text: str


class NoDrawings:
    """Stands in for Drawings (report.output.vega): every chart is empty."""

    runtime = ""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __enter__(self) -> "NoDrawings":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def begin(self, section: Any) -> None:
        self._names += [chart.name for chart in section.charts]

    def finished(self) -> dict[str, str]:
        return dict.fromkeys(self._names, "<svg></svg>")


class InReady(Session):
    """A session in which all environments are built already."""

    ready: ClassVar[dict[str, Ready]] = {}

    def build(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        return self.ready


def only_read(measuring: Measuring, *_: object) -> None:
    """Read what a call that measures reads before its first trial."""
    Tally(measuring.run, WORDS)
    trial_folders.left_behind(measuring.run.trials)
    measuring.run.gather(WORDS)


def main() -> int:
    given = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="tsuishi-mutations-"))
    try:
        os.environ["XDG_CONFIG_HOME"] = str(folder / "configuration")
        work = prepared(folder)
        runs = [given.run.resolve()] if given.run else [measured(work), made_up(folder / "made-up" / "example")]
        counts, peak_mib = tried(work, chosen(runs, given.count, given.seed), folder / "altered", _tell)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(table(counts, peak_mib))
    return int(any(kind in ("traceback", "hang") for _, kind in counts))


def prepared(folder: Path) -> Session:
    """A new checkout, and a session in it."""
    make_checkout(folder / "checkout", "ok", "unsupported")
    work = session(folder / "checkout")
    work.screen.console.quiet = True
    return work


def measured(work: Session) -> Path:
    """A run of two measured trials."""
    return run_suite(work).path


def made_up(path: Path) -> Path:
    """A run of several suites and environments, with telemetry and made-up numbers."""
    run = SyntheticRun(path)
    ticks = [{"elapsed_s": second, "device": device, "utilisation_percent": 50} for second in range(4)
             for device in ("host", "gpu0")]  # fmt: skip
    phases = [{"name": "measure", "begin_s": 0.0, "end_s": 3.0}]
    for environment in (TF, TORCH):
        for batch_size in (16, 32):
            case, samples = training_case(batch_size), steady_samples(batch_size, [0.1] * 4)
            run.add(case, environment, samples, phases=phases, telemetry=ticks, metrics=[("flops", 1e9, "1")])
    run.add(conv2d_case(), TF, [("first_run", 0, 1, 840, 0.5), ("later_runs", 0, 1, 840, 0.1)])
    run.add(conv2d_case(), TORCH, status="failed", reason="exit code 1: RuntimeError", exit_code=1)
    run.add_plan(conv2d_case(devices=2), TORCH)
    return run.finish().path


def chosen(runs: Sequence[Path], count: int, seed: int) -> list[Mutation]:
    """`count` mutations of these runs, by chance; always the same for a seed."""
    every = [mutation for run in runs for mutation in mutations(run)]
    random.Random(seed).shuffle(every)  # noqa: S311
    return every[:count]


def mutations(run: Path) -> Iterator[Mutation]:
    """Every change to every file and folder of a run."""
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        yield from (Mutation(run, name, what, alter) for what, alter in _OF_ANY.items())
        if path.is_file():
            yield from (Mutation(run, name, what, alter) for what, alter in _OF_FILES.items())
        if path.suffix == ".csv":
            yield from (Mutation(run, name, what, alter) for what, alter in _OF_TABLES.items())
        if path.suffix == ".json" and path.name != "datapackage.json":
            yield from _of_json(run, name)


def tried(
    work: Session, some: Sequence[Mutation], folder: Path, tell: Callable[[Mutation, Answer], object]
) -> tuple[Counter[tuple[str, str]], float]:
    """The number of reactions by entry and kind, and the peak memory in MiB. tell: gets tracebacks and hangs."""
    InReady.ready = work.build(plan_builds_only(work).environments)
    gc.freeze()
    counts: Counter[tuple[str, str]] = Counter()
    peak_mib = 0.0
    for mutation in some:
        altered = folder / mutation.run.name
        shutil.copytree(mutation.run, altered)
        try:
            mutation.alter(altered / mutation.file)
            answers, mib = answered(work, altered, folder.parent / "out")
        finally:
            shutil.rmtree(folder)
        peak_mib = max(peak_mib, mib)
        for answer in answers:
            counts[answer.entry, answer.kind] += 1
            if answer.kind in ("traceback", "hang"):
                tell(mutation, answer)
    return counts, peak_mib


def answered(work: Session, run: Path, out: Path) -> tuple[list[Answer], float]:
    """The reactions of every entry to a run, in a new process, and the peak memory of that process in MiB."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiving)
        _answer(work, run, out, sending)
    os.close(sending)
    text, until = b"", time.monotonic() + LIMIT_S
    while select.select([receiving], [], [], max(0.0, until - time.monotonic()))[0]:
        piece = os.read(receiving, 1 << 16)
        if not piece:
            break
        text += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(receiving)
    _, status, used = os.wait4(child, 0)
    answers = [Answer(*json.loads(line)) for line in text.splitlines()]
    if len(answers) < len(ENTRIES):
        kind = "hang" if os.WIFSIGNALED(status) else "traceback"
        answers.append(Answer(ENTRIES[len(answers)], kind, f"ended with status {status}"))
    return answers, used.ru_maxrss / 1024


def table(counts: Counter[tuple[str, str]], peak_mib: float) -> str:
    kinds = ("read", "refused", "traceback", "hang")
    lines = [f"{'entry':8}" + "".join(f"{name:>12}" for name in ("mutations", *kinds))]
    for entry in ENTRIES:
        numbers = [counts[entry, kind] for kind in kinds]
        lines.append(f"{entry:8}" + "".join(f"{number:12}" for number in (sum(numbers), *numbers)))
    return "\n".join([*lines, f"peak memory: {peak_mib:.0f} MiB"])


def _answer(work: Session, run: Path, out: Path, sending: int) -> None:
    """In the child process: write the answer of every entry to `sending`, and end."""
    used = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(silent, stream)
    with os.fdopen(sending, "w") as file:
        for entry in ENTRIES:
            file.write(json.dumps([entry, *_asked(partial(_enter, entry, work, run, out))]) + "\n")
            file.flush()
    os._exit(0)


def _asked(enter: Callable[[], str]) -> tuple[str, str]:
    try:
        said = enter()
    except UserError as refused:
        said = str(refused)
    except BaseException:
        return "traceback", traceback.format_exc(limit=-4)
    if len(said.splitlines()) > 1:
        return "traceback", f"not one line: {said!r}"
    return ("refused" if said else "read"), said


def _enter(entry: str, work: Session, run: Path, out: Path) -> str:
    """Do what the task `entry` does with a run. Returns the line about a refused run; empty if the run is read."""
    if entry == "list":
        return listing.run_row(run)[-1]
    if entry == "report":
        published, drawings = work.checkout.published, NoDrawings()
        make_report([RunDirectory(run)], published, WORDS, Checkout().templates, out, drawings)  # type: ignore[arg-type]
        return ""
    settings = work.settings.model_copy(update={"results": run.parent})
    Measuring._measure = only_read  # type: ignore[assignment]  # only in this child process
    resume(InReady(settings, work.choice, work.screen, work.checkout, work.data_set), run.name)
    return ""


def _of_json(run: Path, name: str) -> Iterator[Mutation]:
    """Every value of a JSON file is removed, or replaced by a wrong value; seals and record ids are made to fit."""
    content = json.loads((run / name).read_text(encoding="utf-8"))
    for keys in _places(content, ()):
        place = ".".join(map(str, keys))
        for what, value in WRONG.items():
            yield Mutation(run, name, f"{place}: {what}", partial(_change, keys=keys, value=value))
        yield Mutation(run, name, f"{place}: removed", partial(_change, keys=keys, value=_GONE))


_GONE = object()


def _places(value: Any, keys: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:_ITEMS]) if isinstance(value, list) else ()
    for key, child in inner:
        yield (*keys, key)
        yield from _places(child, (*keys, key))


def _change(path: Path, keys: Sequence[str | int], value: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    place = content
    for key in keys[:-1]:
        place = place[key]
    if value is _GONE:
        del place[keys[-1]]
    else:
        place[keys[-1]] = copy.deepcopy(value)
    if path.name == "run.json":
        with suppress(ValueError):
            content = directory.sealed(content)
    path.write_text(json.dumps(content))
    if path.parent.name == "records":
        with suppress(ValueError):
            _rename(path, f"{path.stem.partition('-')[0]}-{toml.digest(content)}")


def _rename(record: Path, record_id: str) -> None:
    """Give a record the name of its new content, in every file that names it."""
    for trial in record.parents[1].glob("trials/*/trial.json"):
        trial.write_text(trial.read_text(encoding="utf-8").replace(record.stem, record_id))
    record.rename(record.with_stem(record_id))


def _replaced(make: Alter) -> Alter:
    """Replaces a file or folder by what `make` makes at its path."""

    def alter(path: Path) -> None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        make(path)

    return alter


def _edited(edit: Callable[[bytes], bytes]) -> Alter:
    return lambda path: path.write_bytes(edit(path.read_bytes()))


def _flipped(text: bytes) -> bytes:
    where = random.Random(len(text)).sample(range(len(text)), min(8, len(text)))  # noqa: S311
    return bytes(byte ^ 0x41 if place in where else byte for place, byte in enumerate(text))


def _linked_outside(path: Path) -> None:
    """Moves a file out of the run, and links to it."""
    outside = Path(tempfile.mkdtemp()) / path.name
    path.rename(outside)
    path.symlink_to(outside)


_OF_ANY: dict[str, Alter] = {
    "removed": _replaced(lambda path: None),
    "a pipe": _replaced(os.mkfifo),
    "/dev/zero": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "a dangling link": _replaced(lambda path: path.symlink_to("nowhere")),
    "a link to itself": _replaced(lambda path: path.symlink_to(path.name)),
    "a link outside": _linked_outside,
    "an empty folder": _replaced(Path.mkdir),
    "an empty file": _replaced(Path.touch),
}
_OF_FILES: dict[str, Alter] = {
    "half of it": _edited(lambda text: text[: len(text) // 2]),
    "flipped bytes": _edited(_flipped),
    "not UTF-8": _edited(lambda text: text[:40] + b"\xff\xfe" + text[40:]),
    "NUL": _edited(lambda text: text[:40] + b"\x00" + text[40:]),
    "ESC": _edited(lambda text: text[:40] + b"\x1b[2J" + text[40:]),
    "twice": _edited(lambda text: text + text),
    "deep": _edited(lambda text: _DEEP),
    "a list": _edited(lambda text: b"[]"),
    "a large hole": lambda path: os.truncate(path, 1 << 33),
    "keys twice": _edited(lambda text: b"".join([text.rstrip()[:-1], b',"status":1,', text.lstrip()[1:]])),
}
_OF_TABLES: dict[str, Alter] = {
    "a row more": _edited(lambda text: text + text.splitlines(keepends=True)[-1]),
    "a row less": _edited(lambda text: b"".join(text.splitlines(keepends=True)[:-1])),
    "no header": _edited(lambda text: b"".join(text.splitlines(keepends=True)[1:])),
    "a short row": _edited(lambda text: text + b"x\n"),
    "a long row": _edited(lambda text: text + b"1," * 99 + b"1\n"),
    "words": _edited(lambda text: text + b"x," * text.splitlines()[0].count(b",") + b"x\n"),
    "negative": _edited(lambda text: text + b"-1," * text.splitlines()[0].count(b",") + b"-1\n"),
    "huge": _edited(lambda text: text + b"9e999," * text.splitlines()[0].count(b",") + b"9e999\n"),
    "nan": _edited(lambda text: text + b"nan," * text.splitlines()[0].count(b",") + b"nan\n"),
    "an open quote": _edited(lambda text: text + b'"' + b"x" * 200_000),
}


def _tell(mutation: Mutation, answer: Answer) -> None:
    print(f"{mutation.run.name}/{mutation.file}: {mutation.what}: {answer.entry}: {answer.kind}", file=sys.stderr)
    print(f"    {answer.text.strip()[-700:]}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What damaged runs do.")
    parser.add_argument("--count", type=int, default=700)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the folder of the runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
