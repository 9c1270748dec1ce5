"""Scaling: how much faster several devices are than one, at the same global batch and at the same batch per device."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

# What a case and its baseline may differ in; all other axes are the same.
_FREE = ("devices", "strategy", "batch_size")


class SpeedPoint(NamedTuple):
    """One case of one series (an environment, or published hardware): its axes, and images/s."""

    series: str
    axes: Mapping[str, Any]
    images_per_s: float
    simulated: bool


class Scaling(NamedTuple):
    """A case on several devices against its baseline on one.

    strong: the baseline has the same global batch, so the work of a step is shared. weak: it has the same batch per
    device, so the work grows with the devices. speedup: images/s over the baseline's. Simulated devices share what one
    device has: theirs says nothing about GPUs.
    """

    kind: Literal["strong", "weak"]
    series: str
    axes: Mapping[str, Any]
    baseline_batch_size: int
    speedup: float
    simulated: bool

    @property
    def efficiency(self) -> float:
        """Speed-up over the number of devices: 1 is perfect (Gustafson, CACM 31(5), 1988, for the weak kind)."""
        return self.speedup / float(self.axes["devices"])


def scalings(measured: Iterable[SpeedPoint]) -> Iterator[Scaling]:
    """Every case on two devices or more with a baseline: 1 device, strategy none, all other axes equal.

    Strong ones first; in the order given. A weak one needs a batch that the devices share evenly.
    """
    cases = [one for one in measured if {*_FREE} <= set(one.axes)]
    baselines = {
        (one.series, _fixed(one.axes), one.axes["batch_size"]): one.images_per_s
        for one in cases
        if one.axes["devices"] == 1 and one.axes["strategy"] == "none"
    }
    kinds: tuple[Literal["strong", "weak"], ...] = ("strong", "weak")
    for kind in kinds:
        for one in cases:
            devices, batch_size = one.axes["devices"], one.axes["batch_size"]
            if devices > 1 and (kind == "strong" or batch_size % devices == 0):
                batch_size = batch_size if kind == "strong" else batch_size // devices
                baseline = baselines.get((one.series, _fixed(one.axes), batch_size))
                if baseline:
                    speedup = one.images_per_s / baseline
                    yield Scaling(kind, one.series, one.axes, batch_size, speedup, one.simulated)


def _fixed(axes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((axis, value) for axis, value in axes.items() if axis not in _FREE))
