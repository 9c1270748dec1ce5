"""Step 6: the large network's best mode in tsuishi and in the training loops of timm and of torchbench, in turns.

Each is a fresh process; a round runs each once, and a comparison is of the medians over rounds.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import cases
from benchmarks.gpu.findings import Finding, judged, unsupported, within
from benchmarks.gpu.inside import run_inside
from benchmarks.gpu.kit import Kit

ROUNDS = 2
# tsuishi should be so many times as fast as the better of both loops.
LEAST_RATIO = 1.1
_LOOPS = Path(__file__).parent / "training_loops.py"
OURS = "tsuishi"


def raced(execution: str) -> Callable[[Kit], Iterator[Finding]]:
    """The part of one way to run the step: its work on a kit."""

    def race(kit: Kit) -> Iterator[Finding]:
        if kit.dry and execution == "cuda_graph":
            yield from raced("native")(kit)
            return
        speeds: dict[str, list[float]] = {}
        for number in range(1 if kit.dry else ROUNDS):
            trial = _our_trial(kit, execution, number)
            if trial["status"] == "unsupported":
                yield unsupported(f"best mode, {execution}", trial["reason"])
                return
            for name in (OURS, "timm", "torchbench"):
                speed, why_not = _ours(trial) if name == OURS else _theirs(kit, execution, name)
                if speed is None:
                    yield judged(f"loop of {name}, {execution}", False, f"{why_not}; expected images/s")
                else:
                    speeds.setdefault(name, []).append(speed)
        yield compared(execution, speeds)

    return race


def _mode(kit: Kit, execution: str) -> dict[str, Any]:
    model, batch_size = ("mlp", 64) if kit.dry else ("wrn28_10", 256)
    return {"model": model, "batch_size": batch_size, "execution": execution}


def _our_trial(kit: Kit, execution: str, number: int) -> Mapping[str, Any]:
    """tsuishi's own trial of the mode."""
    axes = {**_mode(kit, execution), "precision": "amp_bf16", "layout": "channels_last"}
    timing = cases.ONCE if kit.dry else cases.STEADY
    name = f"kit_best_{execution}_{number + 1}"
    return kit.measure_one(name, cases.suite("the best mode", "training", cases.TRAINING, [axes], timing))


def _ours(trial: Mapping[str, Any]) -> tuple[float | None, str]:
    """Images/s of a trial; or None, and why."""
    speed = trial["values"].get("throughput_images_per_s")
    return (speed, "") if speed and math.isfinite(speed) else (None, f"{trial['status']}: {trial['reason']}")


def _theirs(kit: Kit, execution: str, loop: str) -> tuple[float | None, str]:
    """Images/s of another suite's loop in the mode. timm's has no CUDA graph: it runs natively then."""
    seconds = 0.2 if kit.dry else cases.STEADY["measure_s"]
    execution = "native" if loop == "timm" and execution == "cuda_graph" else execution
    asked = {**_mode(kit, execution), "loop": loop, "device": kit.accelerator, "seconds": seconds}
    answer, why_not = run_inside(kit, _LOOPS, asked, timeout_s=240.0)
    if answer is None:
        return None, why_not
    kit.journal.say(f"    {loop}, {execution}: {answer['images_per_s']:.4g} images/s, {answer['by']}")
    return answer["images_per_s"], ""


def compared(execution: str, speeds: Mapping[str, Sequence[float]]) -> Finding:
    """tsuishi's images/s over those of the better loop. speeds: of each round, by name."""
    what = f"best mode, {execution}, over the better of timm's and torchbench's loops"
    middle = {name: statistics.median(values) for name, values in speeds.items()}
    rivals = {name: speed for name, speed in middle.items() if name != OURS}
    if OURS not in middle or not rivals:
        return judged(what, False, f"{', '.join(middle) or 'none'} ran; expected {OURS} and a rival")
    better = max(rivals, key=lambda name: rivals[name])
    both = ", ".join(f"{name} {speed:.4g}" for name, speed in middle.items())
    return within(what, middle[OURS] / middle[better], LEAST_RATIO, more=f"images/s: {both}", of_speed=True)
