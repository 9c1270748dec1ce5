"""Real trials of equal programs: `python -m benchmarks.equal_programs [--reports N] [--neighbour]` from the root.

Two environments that differ in nothing but their names are compared by three questions: a loop of Python, a matrix
product, and a copy within memory, each in a fresh process for each trial, in turns, looked at after three trials. Their
times are judged as those of a report are, so every word that they differ is false. `--neighbour`: beside them a program
takes all cores for 30 s of every minute, of which the judgement hears nothing. Prints the number of reports with a
false word, with its interval of 95 % (Clopper and Pearson 1934); the exit code is 1 where its lower end is above 2.5 %.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from scipy import stats

from benchmarks.known_truths import terms_of
from benchmarks.unusual_truths import SIDES, said
from tsuishi.specs.questions import LOOKS, MAIN

PROGRAMS = {
    "loop": "sum(i * i for i in range(40_000))",
    "product": "a @ a",
    "copy": "b.copy()",
}
_TRIAL = """
import sys, time
import numpy
a, b = numpy.ones((256, 256), "float32"), numpy.ones(1 << 21)
step = compile(sys.argv[1], "step", "eval")
def block(steps):
    begin = time.perf_counter()
    for _ in range(steps):
        eval(step)
    return time.perf_counter() - begin
block(5)
steps = max(1, round(0.02 / (block(5) / 5)))
print(sum(block(steps) for _ in range(8)) / 8 / steps)
"""
_NEIGHBOUR = """
import time
while True:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        pass
    time.sleep(30)
"""


def trial(program: str) -> float:
    """The mean seconds of a step, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _TRIAL, program], stdout=subprocess.PIPE, check=True, text=True)
    return float(done.stdout)


def is_wrong() -> bool:
    """Whether a report of equal environments says that some differ."""
    values: dict[str, dict[str, list[float]]] = {side: {name: [] for name in PROGRAMS} for side in SIDES}
    for name, program in PROGRAMS.items():
        for _ in range(LOOKS[0]):
            for side in random.sample(SIDES, len(SIDES)):
                values[side][name].append(trial(program))
    return said(terms_of(values), LOOKS[0])


@contextmanager
def neighbour(cores: int) -> Iterator[None]:
    """A program on each of so many cores for 30 s of every minute."""
    processes = [subprocess.Popen([sys.executable, "-c", _NEIGHBOUR]) for _ in range(cores)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of reports with a false word. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--reports", type=int, default=72, help="72 without a false word show that 5 % have one at most"
    )
    parser.add_argument("--neighbour", type=int, nargs="?", const=2, default=0, metavar="CORES", help="on and off")
    given = parser.parse_args(arguments)
    begin = time.monotonic()
    with neighbour(given.neighbour):
        wrong = sum(is_wrong() for _ in range(given.reports))
    interval = stats.binomtest(wrong, given.reports).proportion_ci()
    print(
        f"{wrong} of {given.reports} reports have a false word "
        f"({100 * interval.low:.1f} to {100 * interval.high:.1f} %), in {time.monotonic() - begin:.0f} s"
    )
    return int(interval.low > MAIN)


if __name__ == "__main__":
    sys.exit(main())
