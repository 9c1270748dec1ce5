"""The suites of the kit, as the TOML of suites/: cases that exist, timed for as long as a kit of minutes allows.

On a GPU, sizes are those of a large card; with --dry the CPU runs the same cases, small.
"""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from tsuishi.base.checkout import Checkout

Axes = Mapping[str, Any]


def _common_axes(suite: str) -> dict[str, Any]:
    """The axes that all cases of a suite of the checkout have in common."""
    return dict(tomllib.loads((Checkout().suites / f"{suite}.toml").read_text(encoding="utf-8"))["axes"])


TRAINING = _common_axes("parity")
CONVOLUTION = {**_common_axes("conv2d"), "protocol": "steady", "data": "random", "feed": "resident"}
LIMITS = _common_axes("device_limits")
# Seconds and counts of suites/workloads/common/timing.py.
SHORT = {"warm_up_steps": 10, "warm_up_s": 0.5, "block_s": 0.1, "min_blocks": 8, "measure_s": 1.0, "max_s": 5.0}
STEADY = {"warm_up_steps": 10, "warm_up_s": 1.0, "block_s": 0.4, "min_blocks": 6, "measure_s": 3.0, "max_s": 8.0}
BRIEF = {"warm_up_steps": 3, "warm_up_s": 0.1, "block_s": 0.02, "min_blocks": 3, "measure_s": 0.1, "max_s": 3.0}
# Three steps and three blocks of one: whether it runs at all.
ONCE = {"warm_up_steps": 3, "warm_up_s": 0.01, "block_s": 0.001, "min_blocks": 1, "measure_s": 0.01, "max_s": 1.0}


def suite(title: str, workload: str, common: Axes, groups: Sequence[Axes], settings: Axes) -> str:
    """A suite as TOML, with a trial a case. groups: the axes of each that differ from `common`."""
    lines = [f'title = "{title}"', f'workload = "{workload}"', "[profiles.quick]"]
    lines += ["repetitions = { cpu = 1, cuda = 1 }", f"settings = {_toml(settings)}"]
    lines += ["[axes]", *(f"{axis} = {_toml(value)}" for axis, value in common.items())]
    for axes in groups:
        lines += ["[[groups]]", f"axes = {_toml(axes)}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)
