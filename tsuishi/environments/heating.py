"""Heating: devices that were idle are kept at work for a while, all at once, before the first trial of a session.

A cold device is faster than a warm one, and its first trials would be those of another machine. The work is that of
suites/workloads/experiments/heat.py: products of matrices.
"""

import time
from collections.abc import Sequence

from tsuishi.base import threads
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Say
from tsuishi.environments.entry import Ready
from tsuishi.environments.probe import ask
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.suite import TimingSettings

# What the start of a framework may take beside the heating itself.
_START_S = 300.0


def heat(
    ready: Ready, checkout: Checkout, accelerator: Accelerator, gpus: Sequence[Gpu], heat_s: float, say: Say
) -> float:
    """Let all these devices multiply matrices for `heat_s` seconds. Returns the seconds that it took; 0: it failed.

    A device that cannot be heated gives a message, and no error: a report says whether the machine was steady.
    """
    name = ready.environment.name
    say(f"heating by {name}: {heat_s:g} s of matrix products (tsuishi.heat_s)")
    timing = TimingSettings(warm_up_steps=1, warm_up_s=0.0, measure_s=heat_s, max_s=heat_s, min_blocks=1)
    argument = {"case": {}, "accelerator": accelerator, "settings": timing.model_dump()}
    begun = time.monotonic()
    shares: list[tuple[Gpu, ...]] = [(gpu,) for gpu in gpus] or [()]

    def work(share: tuple[Gpu, ...]) -> str:
        return ask(ready.starter, ready.built, checkout, "heat", argument, heat_s + _START_S, share)[1]

    for why_not in filter(None, threads.each(shares, work, len(shares))):
        say(f"not heated: {why_not}")
        return 0.0
    return time.monotonic() - begun
