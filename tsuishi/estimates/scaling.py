"""Scaling: the speed-up of several devices over one, at the same global batch or the same batch per device."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.specs.case import ALONE, BATCH_SIZE, DEVICES, STRATEGY

# A case and its baseline may differ in these axes only.
_FREE = (DEVICES, STRATEGY, BATCH_SIZE)


class SpeedPoint(NamedTuple):
    """A case of a series (an environment, or published hardware): its axes and images/s.

    `term`: of the logarithms of images/s; published numbers have none.
    """

    series: str
    axes: Mapping[str, Any]
    images_per_s: float
    simulated: bool
    term: Term | None = None


class Scaling(NamedTuple):
    """A case on several devices, compared with its baseline on one device.

    `kind`: "strong" where the baseline has the same global batch, so that devices share the work of a step; "weak"
    where it has the same batch per device, so that work grows with the devices. `speedup`: images/s over the
    baseline's; `logarithm`: of the speed-up, None for published numbers. Simulated devices share one device: their
    speed-up says nothing about GPUs.
    """

    kind: Literal["strong", "weak"]
    series: str
    axes: Mapping[str, Any]
    baseline_batch_size: int
    speedup: float
    simulated: bool
    logarithm: Contrast | None = None

    @property
    def efficiency(self) -> float:
        """Speed-up over the number of devices: 1 is perfect (Gustafson, CACM 31(5), 1988, for the weak kind)."""
        return self.speedup / float(self.axes[DEVICES])


def scalings(points: Iterable[SpeedPoint]) -> Iterator[Scaling]:
    """Every case on two devices or more that has a baseline: 1 device, strategy none, all other axes equal.

    Strong scalings come first, each kind in the order of `points`. Weak scaling needs a batch that the devices share
    evenly.
    """
    cases = [point for point in points if {*_FREE} <= set(point.axes)]
    baselines = {
        (case.series, _fixed(case.axes), case.axes[BATCH_SIZE]): case
        for case in cases
        if case.axes[DEVICES] == 1 and case.axes[STRATEGY] == ALONE
    }
    kinds: tuple[Literal["strong", "weak"], ...] = ("strong", "weak")
    for kind in kinds:
        for case in cases:
            devices, batch_size = case.axes[DEVICES], case.axes[BATCH_SIZE]
            if devices > 1 and (kind == "strong" or batch_size % devices == 0):
                batch_size = batch_size if kind == "strong" else batch_size // devices
                baseline = baselines.get((case.series, _fixed(case.axes), batch_size))
                if baseline:
                    speedup = case.images_per_s / baseline.images_per_s
                    logarithm = ratio(case.term, baseline.term) if case.term and baseline.term else None
                    yield Scaling(kind, case.series, case.axes, batch_size, speedup, case.simulated, logarithm)


def _fixed(axes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((axis, value) for axis, value in axes.items() if axis not in _FREE))
