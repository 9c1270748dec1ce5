"""Settings that a printed number does not state: other values that it may have, of those that can run here."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tsuishi.extras.explain.design import MOST
from tsuishi.extras.explain.difference import Unsaid
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.machine.process_limits import limits_of_process
from tsuishi.specs.case import Value
from tsuishi.specs.environment import ANY
from tsuishi.specs.suite import every_suite

Settings = Mapping[str, Value]


def unsaid_of(number: CheckableNumber, suites: Path, workload: str, framework: str) -> dict[str, tuple[Value, ...]]:
    """The axes that a number does not state, with the values other than usual that suites/axes.toml names for them.

    Of the axes that its workload has in any suite, and of the settings of the process that its framework reads.
    Programs without a framework compute with NumPy. The axis that may change the number most is the first.
    """
    every = every_suite(suites)
    framework = "numpy" if framework == ANY else framework
    known = {axis for each in every if each.workload == workload for group in each.groups for axis in group.axes}
    # Of a GPU, threads hardly matter.
    cpus = limits_of_process()["cores"] if number.hardware.startswith("CPU") else 1
    found = [
        axis
        for name, axis in every[0].words.axes.items()
        if axis.unsaid
        and (name not in number.axes or name in number.assumed)
        and (name in known or (axis.is_of_process and (not axis.read_by or framework in axis.read_by)))
    ]
    found.sort(key=lambda axis: cpus if axis.changes_by == "cpus" else axis.changes_by, reverse=True)
    return {axis.name: axis.unsaid for axis in found}


def tried(values: Mapping[str, Sequence[Value]]) -> Iterator[Settings]:
    """Nothing but usual values, each value alone, and each two of two axes: what an environment is asked for."""
    yield {}
    single = [(axis, value) for axis, each in values.items() for value in each]
    yield from ({axis: value} for axis, value in single)
    for one, other in itertools.combinations(single, 2):
        if one[0] != other[0]:
            yield dict((one, other))


def chosen(values: Mapping[str, Sequence[Value]], refused: Callable[[Settings], str]) -> Unsaid:
    """Of each axis the first value that can run, also beside those of the axes before it; at most MOST axes.

    refused: why a case with these settings cannot run; empty where it can.
    """
    may_be: dict[str, Value] = {}
    left_out = []
    for axis, each in values.items():
        if len(may_be) == MOST:
            left_out.append(f"{axis}={each[0]} (more than {MOST} settings)")
            continue
        reasons = []
        for value in each:
            beside = [{axis: value}, *({axis: value, other: its} for other, its in may_be.items())]
            why = next(filter(None, map(refused, beside)), "")
            if not why:
                may_be[axis] = value
                break
            reasons.append(f"{axis}={value} ({why})")
        left_out += reasons if axis not in may_be else []
    return Unsaid(
        may_be=may_be,
        combinations=math.prod(1 + len(each) for each in values.values()),
        left_out=tuple(left_out),
    )
