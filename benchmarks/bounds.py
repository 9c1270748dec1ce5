"""Rows of a benchmark that counts wrong results: each has a bound, which is held, and which a planted fault breaks.

A bound is broken where the lower 99.9 % limit of the counted share (Clopper and Pearson 1934) is above it. A bound that
no fault breaks says nothing: a fault that stays below its bound counts too.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scipy import stats


class Row(NamedTuple):
    """A truth that is drawn. `draw`: whether the result is wrong. `bound`: the largest share of wrong results."""

    name: str
    bound: float
    draw: Callable[[np.random.Generator], bool]


class Fault(NamedTuple):
    """A fault planted into the code of a report, and the row whose bound it breaks.

    `patches`: dotted names, as the code of a report calls them, and what stands there instead.
    """

    name: str
    row: Row
    patches: tuple[tuple[str, Any], ...]


class Counted(NamedTuple):
    """The number of wrong results, the lower 99.9 % limit of their share, and the seconds that it took."""

    wrong: int
    limit: float
    seconds: float


def broken(rows: Iterable[Row], faults: Iterable[Fault], draws: int, fault_draws: int, processes: int = 1) -> int:
    """Print claimed against found. Returns the number of bounds that are broken, and of faults that break none.

    draws, fault_draws: of each row, and of each fault. Rows and faults of several processes can be pickled.
    """
    rows, faults, count = list(rows), list(faults), 0
    print(f"{'wrong at most':>14}  {'wrong':>8}  {'s':>5}  truth ({draws:,} draws each)")
    with ExitStack() as at_end:
        each: Callable[..., Iterable[Counted]] = map
        if processes > 1:
            each = at_end.enter_context(ProcessPoolExecutor(processes, get_context("spawn"))).map
        for row, found in zip(rows, each(partial(counted, draws=draws), rows, range(len(rows))), strict=True):
            count += _printed(row.bound, found, draws, row.name, "" if found.limit <= row.bound else "  BROKEN")
        for fault, found in zip(faults, each(partial(planted, draws=fault_draws), faults), strict=True):
            verdict = "" if found.limit > fault.row.bound else "  NOT SHOWN"
            count += _printed(fault.row.bound, found, fault_draws, f"planted: {fault.name}", verdict)
    return count


def counted(row: Row, seed: int, draws: int) -> Counted:
    """What is wrong of so many draws of a row."""
    begun, random = time.monotonic(), np.random.default_rng([seed, draws])
    wrong = sum(row.draw(random) for _ in range(draws))
    limit = float(stats.beta.ppf(0.001, wrong, draws - wrong + 1)) if wrong else 0.0
    return Counted(wrong, limit, time.monotonic() - begun)


def planted(fault: Fault, draws: int) -> Counted:
    """What is wrong of so many draws of a fault's row, while the fault is there."""
    with ExitStack() as patched:
        for target, value in fault.patches:
            patched.enter_context(mock.patch(target, value))
        return counted(fault.row, 0, draws)


def _printed(bound: float, found: Counted, draws: int, name: str, verdict: str) -> bool:
    """Print a line; returns whether it has a verdict."""
    print(f"{bound:14.2%}  {found.wrong / draws:8.2%}  {found.seconds:5.0f}  {name}{verdict}", flush=True)
    return bool(verdict)
