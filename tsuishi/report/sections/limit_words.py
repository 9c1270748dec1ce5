"""Notes for readers of fractions of limits."""

from collections.abc import Mapping, Sequence

from tsuishi.base.language import t
from tsuishi.estimates.roofline import Device, DeviceLimits
from tsuishi.report.parts.wording import digits


def notes(values: Sequence[float | None], limits: Mapping[Device, DeviceLimits]) -> list[str]:
    """The notes below these fractions; a fraction is None where its limit was not measured."""
    known = [value for value in values if value is not None]
    texts = {
        t(
            "Fraction of the limit: the least time that a step's arithmetic or its memory traffic takes, whichever is "
            "longer, at the best rates of a matrix product and of a copy on the same machine, over the time it took "
            "(roofline model). Arithmetic and memory traffic: what a step has to compute and to move at least, over "
            "its time."
        ): True,
        t("The best rates: {rates}.", rates="; ".join(sorted({_text(*item) for item in limits.items()}))): bool(limits),
        t(
            "Above 1: done with fewer operations than counted (another algorithm, as Winograd's; work left out; "
            "constants folded), or from caches, or the limit itself was not reached when it was measured."
        ): max(known, default=0) > 1,
        t(
            "Not measured: these runs have no limit of that machine, device and precision. Add a suite that measures "
            "operations matmul and memory_copy."
        ): len(known) < len(values),
    }
    return [text for text, holds in texts.items() if holds]


def _text(device: Device, limits: DeviceLimits) -> str:
    rates = [
        t("{rate} in {precision}", rate=f"{digits(rate, 'FLOP/s')}FLOP/s", precision=precision)
        for precision, rate in sorted(limits.flops_per_s.items())
    ]
    rates += [f"{digits(limits.bytes_per_s, 'B/s')}B/s" if limits.bytes_per_s else t("memory not measured")]
    return f"{device.name}: {', '.join(rates)}"
