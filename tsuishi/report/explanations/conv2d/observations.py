"""What one environment measured of suite conv2d, asked for by how a case differs from what the source ran."""

from collections.abc import Iterable
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.estimates.samples import unit_of
from tsuishi.report.parts.wording import digits, status_text
from tsuishi.results.frames import named_rows
from tsuishi.verdicts.evidence import Evidence

SUITE = "conv2d"
# Medians within a fifth of each other are called the same: trials on a busy machine scatter by that much.
SAME = 1.2

# What the source ran, on 1 to 8 devices.
SOURCE_CASE: dict[str, Any] = {
    "suite": SUITE,
    "protocol": "literal",
    "implementation": "framework",
    "strategy": "towers",
    "devices": 1,
    "images": 840,
    "height": 100,
    "width": 100,
    "channels": 1,
    "filter_size": 3,
    "data": "ones",
    "feed": "constant",
    "graph_optimizers": "default",
}
# How other cases differ from it; None: an axis they do not have.
STEADY: dict[str, Any] = {"protocol": "steady", "data": "random", "feed": "resident"}
SCIPY: dict[str, Any] = {"implementation": "scipy", "strategy": None, "feed": None, "graph_optimizers": None}
SCIPY_ALL_CORES: dict[str, Any] = {**SCIPY, "implementation": "scipy_all_cores"}


class NotTested(str):
    """Why there is nothing to say."""

    __slots__ = ()


class Measured:
    """Estimates of conv2d in one environment. Axes given to its methods are differences from SOURCE_CASE."""

    def __init__(self, evidence: Evidence, environment: str) -> None:
        self.environment = environment
        cases = evidence.cases[(evidence.cases["suite"] == SUITE) & (evidence.cases["column"] == environment)]
        self._rows = {(_key(evidence.axes[row.case_id]), row.quantity): row for row in named_rows(cases)}
        self._towers = sorted({dict(key).get("devices", 0) for key, _ in self._rows})
        self.most_trials = max((int(row.n) for row in self._rows.values()), default=0)
        outcomes = evidence.outcomes
        self._outcomes = outcomes[(outcomes["suite"] == SUITE) & (outcomes["column"] == environment)]
        trials = evidence.results.trials
        mine = trials[(trials["suite"] == SUITE) & (trials["column"] == environment) & (trials["status"] == "ok")]
        # SciPy's trials ran on the CPU whatever the others did.
        framework = mine[mine["implementation"] == "framework"]
        self.on_gpu = bool((framework["device"] != "cpu").any())
        self.simulated = bool(framework["simulated"].fillna(False).any())

    def value(self, quantity: str, **axes: Any) -> float | None:
        """The estimate of a case, in the quantity's unit; None where it was not measured."""
        row = self._rows.get((_key({**SOURCE_CASE, **axes}), quantity))
        return None if row is None else float(row.estimate)

    def spread(self, quantity: str, **axes: Any) -> tuple[float, float] | None:
        """Smallest and largest trial, or the quartiles of the only one; None for a single number or none."""
        row = self._rows.get((_key({**SOURCE_CASE, **axes}), quantity))
        return (float(row.low), float(row.high)) if row is not None and row.spread_kind else None

    def by_towers(self, quantity: str, **axes: Any) -> dict[int, float]:
        """The estimates by number of towers, for those that were measured, in order."""
        found = {count: self.value(quantity, **{**axes, "devices": count}) for count in self._towers}
        return {count: value for count, value in found.items() if value is not None}

    def search(self, quantity: str) -> float | None:
        """What the search for the folding edge found, with the most images if there were several."""
        found = [
            (dict(key)["images"], float(row.estimate))
            for (key, name), row in self._rows.items()
            if name == quantity and dict(key).get("search") == "folding_edge"
        ]
        return max(found)[1] if found else None

    def why_not(self, **axes: Any) -> "NotTested":
        """What became of the cases with these differences, whatever their number of devices and images."""
        wanted = {**SOURCE_CASE, "search": None, **axes}
        reasons = {
            f"{status_text(row.status)}: {t(row.reason)}".removesuffix(": ").replace("Unsupported: ", "")
            for row in named_rows(self._outcomes)
            if row.status != "ok" and all(row.axes.get(axis) == wanted[axis] for axis in _BUT_SIZE)
        }
        return NotTested("; ".join(sorted(reasons)) or t("no such case was planned"))


_BUT_SIZE = [axis for axis in (*SOURCE_CASE, "search") if axis not in ("devices", "images")]


def _key(axes: dict[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset((axis, value) for axis, value in axes.items() if value is not None)


def towers(counts: Iterable[int]) -> str:
    """ "1 tower", "3 and 4 towers", "1 to 4 towers"."""
    ordered = sorted(counts)
    if ordered == [1]:
        return t("1 tower")
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return t("{first} to {last} towers", first=ordered[0], last=ordered[-1])
    return t("{counts} towers", counts=in_words(ordered))


def amounts(values: Iterable[float], quantity: str) -> str:
    """Values of a quantity as in the tables, then its unit."""
    unit = unit_of(quantity)
    return f"{in_words(digits(value, unit) for value in values)} {unit}".removesuffix(" 1")


def times(ratio: float) -> str:
    """A ratio, always said as at least 1 by whoever calls: "3.2 times"."""
    return t("{ratio} times", ratio=f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:#.2g}".removesuffix("."))


def per_cent(part: float) -> str:
    return f"{100 * part:.0f} %" if part < 0.995 or part == 1 else f"{100 * part:.1f} %"
