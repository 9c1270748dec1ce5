"""What tsuishi itself costs: `python -m benchmarks.overhead` from the root, with .venv active.

Ratios and medians, no pass or fail.

- start: `invoke --list` against `python -c "import invoke"`, `invoke list`, and a build with nothing to do
- harness: CPU-seconds of this process per second of trial, with telemetry at 1 Hz, and in the first seconds of a phase,
  where it is at 10 Hz; then the duration of a loop with telemetry over the duration without it, and A/A pairs without
  telemetry, which show the noise
- events: microseconds to read an event
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tsuishi.machine.gpus import Nvml
from tsuishi.run.sampler import CLOSE_S, Sampler
from tsuishi.stream.events import EventParser

ROOT = Path(__file__).resolve().parent.parent
PAIRS = 6
# The trial that the harness must not disturb: seconds of pure arithmetic in another process.
LOOP = "import time\nbegin = time.perf_counter()\nfor i in range(25_000_000): pass\nprint(time.perf_counter() - begin)"


def main() -> None:
    report_start()
    report_harness("telemetry at 1 Hz", "", 20.0)
    report_harness("a phase begins", "measure", CLOSE_S)
    report_pairs()
    report_events()


def report_start() -> None:
    bare = median_s([sys.executable, "-c", "import invoke"], 15)
    listing = median_s([sys.executable, "-m", "invoke", "--list"], 15)
    wrapped = median_s([str(ROOT / "invoke"), "--list"], 15)
    print(f"import invoke            {bare * 1e3:6.0f} ms")
    over = listing - 1.5 * bare
    print(f"invoke --list            {listing * 1e3:6.0f} ms = 1.5 x {bare * 1e3:.0f} {over * 1e3:+.0f} ms")
    print(f"./invoke adds            {(wrapped - listing) * 1e3:6.1f} ms")
    print(f"list                     {median_s([str(ROOT / 'invoke'), 'list'], 10) * 1e3:6.0f} ms")
    print(f"build, nothing to do     {median_s([str(ROOT / 'invoke'), 'build'], 5) * 1e3:6.0f} ms")


def report_harness(name: str, phase: str, seconds: float) -> None:
    """Print the CPU time of this process while it only samples a trial, of which it hears that the phase begins."""
    trial = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "telemetry.csv"
        before, begin = time.process_time(), time.monotonic()
        with Sampler(path, 1.0, lambda: [trial.pid], Nvml()) as sampler:
            sampler.phase = phase
            trial.wait()
        spent, lasted = time.process_time() - before, time.monotonic() - begin
        rows = len(path.read_text(encoding="utf-8").splitlines()) - 1
    print(f"{name:<24} {spent / lasted:8.3%} of a core, {spent / rows * 1e3:.2f} ms a row")


def report_pairs() -> None:
    """Print ratios of durations: the loop with telemetry over the loop without, and without telemetry over without."""
    bare = [loop_s() for _ in range(2 * PAIRS)]
    same = [bare[i] / bare[i + 1] for i in range(0, len(bare), 2)]
    watched = [loop_s(watched=True) / loop_s() for _ in range(PAIRS)]
    for name, ratios in (("A/A", same), ("with/without", watched)):
        print(f"{name:<24} median {statistics.median(ratios):.4f}, {min(ratios):.4f} to {max(ratios):.4f}")


def loop_s(watched: bool = False) -> float:
    trial = subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, text=True)
    if not watched:
        return float(trial.communicate()[0])
    with tempfile.TemporaryDirectory() as folder, Sampler(Path(folder) / "t.csv", 1.0, lambda: [trial.pid], Nvml()):
        return float(trial.communicate()[0])


def report_events() -> None:
    count = 100_000
    begin = {"event": "phase_begin", "seq": 0, "t": 0.5, "rank": 0, "phase": "measure"}
    sample = {**begin, "event": "sample", "steps": 1, "images": 1, "seconds": 0.1}
    events = [begin, *({**sample, "seq": i + 1, "index": i} for i in range(count - 1))]
    text = b"".join(b"\x1e" + json.dumps(event).encode() + b"\n" for event in events)
    parser = EventParser()
    taken = timed(lambda: [list(parser.feed(text[i : i + 65536])) for i in range(0, len(text), 65536)])
    assert parser.received == count
    print(f"one event                {taken / count * 1e6:6.1f} us")


def median_s(command: list[str], times: int) -> float:
    """The median wall time of a command in seconds, without its first run."""

    def run() -> None:
        subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, check=True)

    run()
    return statistics.median(timed(run) for _ in range(times))


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
