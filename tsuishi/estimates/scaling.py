"""Scaling: the speed-up of several devices over one, or of several nodes over one node with as many devices each.

It is at the same global batch, or at the same batch per device.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.specs.case import ALONE, BATCH_SIZE, DEVICES, NODES, STRATEGY

# A case and its baseline may differ in these axes only.
_FREE = (DEVICES, NODES, STRATEGY, BATCH_SIZE)
# The axes that every case needs here: the usual number of nodes is 1.
_NEEDED = frozenset({DEVICES, STRATEGY, BATCH_SIZE})
# Gradients are summed in float32.
_GRADIENT_BYTES = 4


class SpeedPoint(NamedTuple):
    """A case of a series (an environment, or published hardware): its axes and images/s.

    `term`: of the logarithms of images/s; published numbers have none. `summing_share`: `summing_s` over the time of a
    step; None where no all-reduce was measured.
    """

    series: str
    axes: Mapping[str, Any]
    images_per_s: float
    simulated: bool
    term: Term | None = None
    summing_share: float | None = None


class Scaling(NamedTuple):
    """A case on several devices, compared with its baseline on one device; on several nodes, with one node's devices.

    `kind`: "strong" where the baseline has the same global batch, so that devices share the work of a step; "weak"
    where it has the same batch per device, so that work grows with the devices. `baseline_devices`: of the baseline.
    `speedup`: images/s over the baseline's; `logarithm`: of the speed-up, None for published numbers. Simulated devices
    share one device: their speed-up says nothing about GPUs. `summing_share`: of the case.
    """

    kind: Literal["strong", "weak"]
    series: str
    axes: Mapping[str, Any]
    baseline_devices: int
    baseline_batch_size: int
    speedup: float
    simulated: bool
    logarithm: Contrast | None = None
    summing_share: float | None = None

    @property
    def nodes(self) -> int:
        """The number of nodes of the case."""
        return int(self.axes.get(NODES, 1))

    @property
    def efficiency(self) -> float:
        """Speed-up over how many times as many devices: 1 is perfect (Gustafson, CACM 31(5), 1988, for weak)."""
        return self.speedup * self.baseline_devices / float(self.axes[DEVICES])


def scalings(points: Iterable[SpeedPoint]) -> Iterator[Scaling]:
    """Every case on two devices or more that has a baseline, in which all other axes are equal.

    The baseline of a node has 1 device and strategy none. That of several nodes has one node and as many devices as
    each of them has. Strong scalings come first, each kind in the order of `points`. Weak scaling needs a batch that
    the devices share evenly.
    """
    cases = [point for point in points if set(point.axes) >= _NEEDED]
    baselines = {
        _place(case, case.axes[DEVICES], case.axes[STRATEGY], case.axes[BATCH_SIZE]): case
        for case in cases
        if _nodes(case) == 1
    }
    kinds: tuple[Literal["strong", "weak"], ...] = ("strong", "weak")
    for kind in kinds:
        for case in cases:
            devices, batch_size = case.axes[DEVICES], case.axes[BATCH_SIZE]
            alone = devices // _nodes(case) if _nodes(case) > 1 else 1
            times = devices // alone
            if devices > 1 and (kind == "strong" or batch_size % times == 0):
                batch_size = batch_size if kind == "strong" else batch_size // times
                strategy = ALONE if alone == 1 else case.axes[STRATEGY]
                baseline = baselines.get(_place(case, alone, strategy, batch_size))
                if baseline:
                    speedup = case.images_per_s / baseline.images_per_s
                    logarithm = ratio(case.term, baseline.term) if case.term and baseline.term else None
                    compared = alone, batch_size, speedup, case.simulated, logarithm, case.summing_share
                    yield Scaling(kind, case.series, case.axes, *compared)


def summing_s(parameters: float, devices: int, bytes_per_s: float) -> float:
    """The seconds in which devices sum the gradients of a step, at the bus bandwidth that an all-reduce reached there.

    Each of n devices sends at least 2 (n - 1) / n of them (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
    """
    return 2 * (devices - 1) / devices * parameters * _GRADIENT_BYTES / bytes_per_s


def _nodes(case: SpeedPoint) -> int:
    return int(case.axes.get(NODES, 1))


def _place(case: SpeedPoint, devices: int, strategy: str, batch_size: int) -> tuple[Any, ...]:
    """The place of a baseline for a case."""
    return case.series, _fixed(case.axes), devices, strategy, batch_size


def _fixed(axes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((axis, value) for axis, value in axes.items() if axis not in _FREE))
