"""The worst texts for every regular expression, and 33 MiB of each: `python -m benchmarks.long_texts`, .venv active.

The first part makes texts at random from what is near to what expressions look for, repeats them, and looks how the
time of each expression grows between a short text and one of four times the length. The second part gives 33 MiB of
the worst text of each expression, and of some texts that are named here, to the commands: a run whose log is that text
is reported, verified, archived, archived as anonymous, and published. And it is sent as events of a trial.

Times are CPU time. Exit code 1 where an expression is not linear, or a command takes more than 60 s.
"""

import argparse
import gzip
import importlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.synthetic_run import TORCH, SyntheticRun, listed, steady_samples, training_case
from tsuishi.base.checkout import Checkout
from tsuishi.stream.events import MAX_EVENT_BYTES, parse_event

BYTES = 33 << 20
MOST_S = 60.0
# Of expressions: the characters of a short and of a long text, the most growth of the time between them, and the times
# of a long text that are not looked at, and of a short text that end the search.
_SHORT, _LONG, _MOST_GROWTH, _LEAST_S, _SLOW_S = 4_000, 16_000, 8.0, 0.002, 0.05
_TRIES = 150
# Pieces that are near to what is looked for.
PIECES = (
    *("a", "A", "1", ".", "-", "_", " ", "\n", "\t", "/", ":", "=", "@", "+", "'", '"', ",", ";", "{", "[", "#", "é"),
    *("a.", "a-", "a@", "://", "://a:", "eyJ", "eyJaaaaaaaa.", "eyJaaaaaaaa-", "ghp_", "-----BEGIN ", "-----END "),
    *("-----BEGIN PRIVATE KEY-----", "authorization:", "authorization=", "bearer ", "token=", "token='", "password "),
    *("/home/", "a.lan", "GPU-00000000-0000-0000-", "\u2028", "\x1b["),
)
# Modules that look for expressions in the texts of others.
SEARCHING = (
    *(
        "tsuishi.extras.handover.archives.anonymity",
        "tsuishi.extras.handover.archives.secret_search",
        "tsuishi.extras.handover.archives.archive_check",
    ),
    *("tsuishi.base.redaction", "tsuishi.results.record_files"),
    *("tsuishi.report.output.csv_files", "tsuishi.report.output.typesetting"),
)
PUBLISHED = "a-long-text"
NAMED = {"base64": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0", "a log": "INFO step 12 loss=0.25 images/s 130.0\n"}
COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "--run", "{run}"),
    "verify": ("verify", "--run", "{run}"),
    "archive": ("archive", "--run", "{run}", "--to", "{folder}/raw.tsuishi.zip"),
    "anonymous": ("archive", "--run", "{run}", "--to", "{folder}/scrubbed.tsuishi.zip", "--anonymous"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("expressions", "commands"))
    given = parser.parse_args()
    is_bad = False
    texts = dict(NAMED)
    for name, pattern in expressions():
        worst, growth, took_s = worst_of(pattern, random.Random(f"{given.seed} {name}"))  # noqa: S311
        is_slow = growth > _MOST_GROWTH
        is_bad |= is_slow
        if given.only != "commands":
            print(f"{name:50} {1e3 * took_s:8.2f} ms x {growth:4.1f} {'NOT LINEAR ' * is_slow}{worst!r}", flush=True)
        texts.setdefault(repr(worst), worst)
    if given.only != "expressions":
        is_bad |= any(list(map(is_too_slow, texts.values())))
    return int(is_bad)


def expressions() -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    """Every expression of these modules, with its name."""
    for module in SEARCHING:
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, re.Pattern):
                yield f"{module}.{name}", value


def worst_of(pattern: "re.Pattern[Any]", chance: random.Random) -> tuple[str, float, float]:
    """The piece of the text for which an expression takes longest, its growth, and the seconds of the longer text."""
    tried = {"".join(chance.choices(PIECES, k=chance.choice((1, 1, 2, 2, 3)))) for _ in range(_TRIES)} | {*PIECES}
    took = {}
    for piece in tried:
        took[piece] = took_s(pattern, piece, _SHORT)
        if took[piece] > _SLOW_S:
            break
    slowest = sorted(took, key=took.__getitem__)[-10:]
    worst = max(slowest[-1:] if took[slowest[-1]] > _SLOW_S else slowest, key=lambda each: took_s(pattern, each, _LONG))
    longer_s = min(took_s(pattern, worst, _LONG) for _ in range(3))
    shorter_s = min(took_s(pattern, worst, _SHORT) for _ in range(3))
    return worst, longer_s / shorter_s if longer_s > _LEAST_S else 1.0, longer_s


def took_s(pattern: "re.Pattern[Any]", piece: str, length: int) -> float:
    """The seconds to find everything in a text of a repeated piece, with and without a beginning and an end."""
    text: Any = repeated(piece, length)
    both = [text, f"x{text}!"] if isinstance(pattern.pattern, str) else [text.encode()]
    begun = time.process_time()
    for each in both:
        for _ in pattern.finditer(each):
            pass
    return time.process_time() - begun


def repeated(piece: str, length: int) -> str:
    return piece * (length // len(piece))


def is_too_slow(piece: str) -> bool:
    """Give a run with 33 MiB of a text in its log to every command; whether one takes too long, or ends badly."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = made_run(folder / "results" / "20261121-080000-long", repeated(piece, BYTES).encode()[:BYTES])
        took = {command: command_s(folder, run, *words) for command, words in COMMANDS.items()}
        for path in sorted(folder.glob("*.tsuishi.zip"))[:1]:
            took["publish"] = command_s(folder, run, "publish", str(path), "--name", PUBLISHED)
            (Checkout().published / f"{PUBLISHED}.toml").unlink(missing_ok=True)
        took["events"] = cpu_s(lambda: heard(piece))
    row = "  ".join(f"{command} {seconds:5.1f} s" for command, seconds in took.items())
    print(f"{piece!r:36} {row}", flush=True)
    return max(took.values()) > MOST_S


def made_run(path: Path, log: bytes) -> Path:
    run = SyntheticRun(path)
    trial = run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4))
    (run.directory.trials / trial / "log.txt.gz").write_bytes(gzip.compress(log, 1))
    return listed(run.finish()).path


def command_s(folder: Path, run: Path, *words: str) -> float:
    """The CPU seconds of a command and its processes."""
    given = {"RESULTS": folder / "results", "REPORTS": folder / "reports", "CACHE": folder / "cache"}
    environ = {**os.environ, **{f"INVOKE_TSUISHI_{name}": str(value) for name, value in given.items()}}
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "invoke", *(word.format(run=run, folder=folder) for word in words)]
    done = subprocess.run(command, cwd=Checkout().root, env=environ, capture_output=True, text=True, check=False)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    if "Traceback" in done.stderr:
        print(done.stderr, file=sys.stderr)
    return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime


def heard(piece: str) -> None:
    """Hear 33 MiB of a text as events, each as long as one may be."""
    text = repeated(piece, (MAX_EVENT_BYTES - 200) // len(piece.encode()) * len(piece))
    event = json_event(text)
    for _ in range(BYTES // len(event)):
        parse_event(event)


def json_event(text: str) -> bytes:
    values = {"event": "failed", "seq": 1, "t": 0.1, "rank": 0, "kind": "error", "type": "Error", "text": text}
    return json.dumps(values, ensure_ascii=False).encode()


def cpu_s(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    sys.exit(main())
