"""The parts of the kit, the most worth first, and how they are done within the time that there is."""

import math
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from benchmarks.gpu import convolution, correctness, faults, limits, machine, rivals, sweeps, telemetry, whole
from benchmarks.gpu.findings import Finding, judged, not_here
from benchmarks.gpu.kit import Kit, OutOfTime

# With --dry everything is small.
_MOST_DRY_S = 40.0
# A part is ended after so many times what is expected: it may hang.
_MOST_TIMES = 3.0
# Seconds in which a part that is ended settles, beside what the last part takes.
_SETTLING_S = 3.0


class Part(NamedTuple):
    """A part of a step: its work, and the seconds that it takes on an H100, where each trial begins with some 5 s.

    is_dry: whether it is done with --dry. It is not where an earlier part does the same with other arguments.
    """

    step: int
    title: str
    expected_s: float
    work: Callable[[Kit], Iterator[Finding]]
    is_dry: bool = True


WHOLE = Part(9, "a whole run and its report", 110.0, whole.ran)
# By worth: what everything else rests on; then what is wrong however fast it is; then speed; then what takes long.
PARTS = (
    Part(1, "machine, driver and interpreter", 25.0, machine.seen),
    Part(1, "telemetry and energy", 15.0, lambda kit: telemetry.logged(kit, 4.0 if kit.dry else 8.0)),
    Part(2, "parity: all networks, and one in every mode", 125.0, correctness.usual),
    Part(3, "limits against the data sheet", 65.0, limits.measured),
    Part(8, "a killed runner", 25.0, faults.killed),
    Part(5, "cnn10 over batch sizes", 50.0, sweeps.measured_of("cnn10")),
    Part(4, "conv2d", 30.0, convolution.measured),
    Part(5, "WRN-28-10 over batch sizes", 60.0, sweeps.measured_of("wrn28_10"), is_dry=False),
    Part(7, "out of memory", 60.0, faults.out_of_memory),
    Part(6, "the best mode as a CUDA graph", 75.0, rivals.raced("cuda_graph")),
    Part(2, "parity: the large network in every mode", 110.0, correctness.of_the_large, is_dry=False),
    Part(2, "parity: the other networks in every mode", 110.0, correctness.of_others, is_dry=False),
    Part(6, "the best mode, compiled", 300.0, rivals.raced("compiled"), is_dry=False),
)


def of_steps(steps: Collection[int]) -> tuple[list[Part], Part | None]:
    """The parts of these steps, and the last part where it is among them; all without steps."""
    asked = [part for part in (*PARTS, WHOLE) if not steps or part.step in steps]
    return [part for part in asked if part is not WHOLE], WHOLE if WHOLE in asked else None


def done(kit: Kit, parts: Iterable[Part] = PARTS, last: Part | None = WHOLE) -> None:
    """Do the parts in their order, each if it fits the time that the last one leaves, then the last one."""
    kept_s = _expected_s(kit, last) + _SETTLING_S if last else 0.0
    for part in parts:
        if kit.dry and not part.is_dry:
            continue
        _do(kit, part, kept_s, math.inf if kit.dry else _MOST_TIMES)
    if last:
        _do(kit, last, 0.0, math.inf)


def _expected_s(kit: Kit, part: Part) -> float:
    return min(part.expected_s, _MOST_DRY_S) if kit.dry else part.expected_s


def _do(kit: Kit, part: Part, kept_s: float, most_times: float) -> None:
    """Do a part, for `most_times` as long as expected at most. Whatever goes wrong in it is a FAIL."""
    left_s = kit.left_s - kept_s
    expected_s = _expected_s(kit, part)
    if expected_s > left_s:
        words = f"no time left: it takes some {expected_s:.0f} s, and {max(0.0, left_s):.0f} s are left for it"
        kit.add(part.step, not_here(part.title, words))
        return
    kit.part_ends = time.monotonic() + min(left_s, most_times * expected_s)
    kit.cut_off = False
    kit.journal.say(f"-- step {part.step}: {part.title}, some {expected_s:.0f} s of {kit.left_s:.0f}")
    try:
        for finding in part.work(kit):
            kit.add(part.step, finding)
    except OutOfTime:
        kit.cut_off = True
        kit.pack()
    except Exception as error:
        kit.journal.keep(traceback.format_exc())
        kit.add(part.step, judged(part.title, False, f"{type(error).__name__}: {error}; expected no error"))
    if kit.cut_off:
        kit.add(part.step, not_here(f"{part.title}, the rest", "no time left: its time ran out in it"))
