"""The kit for a GPU: `python -m benchmarks.gpu [--minutes 10] [--steps 1,9] [--dry]`; docs/gpu.md says what to carry.

On a bare machine: a Python with PyTorch for CUDA and the packages of requirements.lock; no engine, no network. Every
line ends as `pass`, as `FAIL` with both figures, or as `not here` with the reason. The folder it leaves is fit to be
committed under reports/. Exit codes: 0 no line is FAIL, 3 some are, 130 interrupted.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

from benchmarks.gpu import images, parts
from benchmarks.gpu.findings import FAIL
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit import Kit
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import EXIT_INTERRUPTED, EXIT_TRIAL_FAILED, EXIT_USER_ERROR
from tsuishi.machine.gpus import Nvml


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; the exit code."""
    given = parser().parse_args(arguments)
    if given.folder.exists():
        print(f"error: {given.folder} exists; give another --folder", file=sys.stderr)
        return EXIT_USER_ERROR
    if not given.dry and not (nvml := Nvml()):
        print(f"error: no GPU here: {nvml.why_not}; --dry lets the CPU stand for it", file=sys.stderr)
        return EXIT_USER_ERROR
    if given.images and given.steps:
        print("error: --steps is of the first kit, and --images is the second", file=sys.stderr)
        return EXIT_USER_ERROR
    signal.signal(signal.SIGTERM, _interrupt)
    if given.images:
        return images.main(given.folder.absolute(), "cpu" if given.dry else "cuda")
    kit = Kit(given.host_python, "cpu" if given.dry else "cuda", Journal(given.folder.absolute()), given.minutes)
    try:
        parts.done(kit, *parts.of_steps(given.steps))
    except KeyboardInterrupt:
        kit.journal.say("interrupted")
        kit.pack()
        return EXIT_INTERRUPTED
    finally:
        kit.journal.say(f"{kit.journal.counts()}; {given.folder}")
        kit.journal.close()
    failed = any(finding.outcome == FAIL for _, finding in kit.journal.findings)
    return EXIT_TRIAL_FAILED if failed else 0


def _interrupt(number: int, frame: object) -> None:
    """Handle SIGTERM like Ctrl-C: what was done is kept."""
    raise KeyboardInterrupt


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    known = sorted({part.step for part in (*parts.PARTS, parts.WHOLE)})
    if unknown := sorted({*numbers} - {*known}):
        raise argparse.ArgumentTypeError(f"there are steps {known[0]} to {known[-1]}; given: {unknown[0]}")
    return numbers


def parser() -> argparse.ArgumentParser:
    """The command line. Another kit than the first is another option of it, and a module beside parts.py."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--minutes", type=float, default=10.0, help="how long the kit may take (default: 10)")
    made.add_argument("--steps", type=_numbers, default=(), help="only these steps, as 1,9 (default: all that fit)")
    made.add_argument("--dry", action="store_true", help="the CPU stands for the GPU, with small sizes")
    made.add_argument("--images", action="store_true", help="the second kit: locks and images, by network and engine")
    made.add_argument("--host-python", default=sys.executable, help="the Python with PyTorch (default: this one)")
    named = f"gpu-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    folder = Checkout().root / "reports" / "out" / named
    made.add_argument("--folder", type=Path, default=folder, help="where the kit writes (default: reports/out/gpu-…)")
    return made


if __name__ == "__main__":
    sys.exit(main())
