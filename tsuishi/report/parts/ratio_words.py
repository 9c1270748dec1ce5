"""How ratios are worded: with their intervals, and no false digits."""

from tsuishi.estimates.intervals import Contrast
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.report.parts.wording import Cell


def ratio_cell(found: Contrast, notes: tuple[str, ...], best: bool = False) -> Cell:
    ratio = as_ratio(found)
    return Cell(ratio_text(ratio), ratio.value, notes, "number", best=best)


def ratio_text(ratio: Ratio) -> str:
    """A ratio with its interval, where it has one: 1.23 [1.10, 1.37]."""
    if ratio.low is None or ratio.high is None:
        return short(ratio.value)
    return f"{short(ratio.value)} [{short(ratio.low)}, {short(ratio.high)}]"


def short(ratio: float) -> str:
    """A ratio with three digits, or all of those before the point."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:#.3g}"
