"""The measurements of a suite in one environment; a case is named by how it differs from the suite's base case."""

from collections.abc import Iterable, Mapping
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.report.parts.wording import digits, status_text, unit_of
from tsuishi.results.frames import named_rows, ok_rows
from tsuishi.verdicts.evidence import Evidence

# Medians within a fifth of each other are called the same: trials on a busy machine scatter by that much.
SAME = 1.2

# One session run of a graph of constants: what the experiment is about, whatever its sizes.
PLAIN: dict[str, Any] = {
    "protocol": "literal",
    "implementation": "framework",
    "strategy": "towers",
    "feed": "constant",
    "graph_optimizers": "default",
}
# What an image, its filter, and the number of images are.
SIZES = ("images", "height", "width", "channels", "filter_size")
# How other cases differ from the base case; None: an axis they do not have.
STEADY: dict[str, Any] = {"protocol": "steady", "data": "random", "feed": "resident"}
SCIPY: dict[str, Any] = {"implementation": "scipy", "strategy": None, "feed": None, "graph_optimizers": None}
SCIPY_ALL_CORES: dict[str, Any] = {**SCIPY, "implementation": "scipy_all_cores"}
_ONES = "ones"


def base_case(cases: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The axes of the case that all others of a suite are compared with, on one device.

    It is plain, of the sizes of most numbers of devices; of sizes that have as many, those with the fewest channels,
    the smallest filter and the most images. Its images are full of ones where any are, so that towers are alike.
    """
    every = [axes for axes in cases if "search" not in axes]
    plain = [axes for axes in every if PLAIN.items() <= axes.items()]
    devices: dict[tuple[Any, ...], set[int]] = {}
    for axes in plain or every:
        devices.setdefault(tuple(axes.get(axis, 0) for axis in SIZES), set()).add(axes.get("devices", 1))

    def order(sizes: tuple[Any, ...]) -> tuple[int, ...]:
        of = dict(zip(SIZES, sizes, strict=True))
        return -len(devices[sizes]), of["channels"], of["filter_size"], -of["images"]

    sizes = min(devices, key=order, default=(0,) * len(SIZES))
    data = {axes.get("data", _ONES) for axes in plain}
    first = _ONES if _ONES in data or not data else min(data)
    return {**PLAIN, "data": first, "devices": 1, **dict(zip(SIZES, sizes, strict=True))}


class NotTested(str):
    """Why there is nothing to say."""

    __slots__ = ()


class Observations:
    """Estimates of one suite in one environment. Axes given to its methods are differences from the base case."""

    def __init__(self, evidence: Evidence, suite: str, environment: str) -> None:
        self.environment = environment
        self.base = base_case(axes for axes in evidence.axes.values() if axes["suite"] == suite)
        # Whether a source published numbers of this suite: only then there is something that a source did.
        self.published = any(number.axes["suite"] == suite for number in evidence.numbers)
        cases, outcomes, trials = (
            frame[(frame["suite"] == suite) & (frame["column"] == environment)]
            for frame in (evidence.cases, evidence.outcomes, evidence.results.trials)
        )
        self._rows = {(_key(evidence.axes[row.case_id]), row.quantity): row for row in named_rows(cases)}
        self._towers = sorted({dict(key).get("devices", 0) for key, _ in self._rows})
        self.most_trials = max((int(row.n) for row in self._rows.values()), default=0)
        self._outcomes = outcomes
        # SciPy's trials ran on the CPU whatever the others did.
        framework = ok_rows(trials[trials["implementation"] == PLAIN["implementation"]])
        self.on_gpu = bool((framework["device"] != "cpu").any())
        self.simulated = bool(framework["simulated"].fillna(False).any())
        self.other_sizes = self._other_sizes(evidence.axes[case_id] for case_id in outcomes["case_id"])

    def _other_sizes(self, cases: Iterable[Mapping[str, Any]]) -> list[dict[str, int]]:
        """Sizes of other cases, as differences from the base case; fewest channels first, then smallest filter."""
        every = [{axis: axes.get(axis, 0) for axis in SIZES} for axes in cases if "search" not in axes]
        every.sort(key=lambda sizes: (sizes["channels"], sizes["filter_size"], -sizes["images"]))
        changes = [{axis: size for axis, size in sizes.items() if size != self.base[axis]} for sizes in every]
        return [change for number, change in enumerate(changes) if change and change not in changes[:number]]

    def value(self, quantity: str, **axes: Any) -> float | None:
        """The estimate of a case, in the quantity's unit; None where it was not measured."""
        row = self._rows.get((_key({**self.base, **axes}), quantity))
        return None if row is None else float(row.estimate)

    def spread(self, quantity: str, **axes: Any) -> tuple[float, float] | None:
        """Smallest and largest trial, or the quartiles of the only one; None for a single number or none."""
        row = self._rows.get((_key({**self.base, **axes}), quantity))
        return (float(row.low), float(row.high)) if row is not None and row.spread_kind else None

    def by_towers(self, quantity: str, **axes: Any) -> dict[int, float]:
        """The estimates by number of towers, for those that were measured, in order."""
        values = {count: self.value(quantity, **{**axes, "devices": count}) for count in self._towers}
        return {count: value for count, value in values.items() if value is not None}

    def search(self, quantity: str) -> float | None:
        """The result of the search for the folding edge, on images as the base case's; of several, with the most."""
        image = {axis: self.base[axis] for axis in SIZES if axis != "images"}
        results = [
            (axes["images"], float(row.estimate))
            for (key, name), row in self._rows.items()
            if name == quantity
            and (axes := dict(key)).get("search") == "folding_edge"
            and image.items() <= axes.items()
        ]
        return max(results)[1] if results else None

    def why_not(self, **axes: Any) -> "NotTested":
        """What became of the cases with these differences, whatever their number of devices and images."""
        wanted = {**self.base, "search": None, **axes}
        compared = [axis for axis in wanted if axis not in ("devices", "images")]
        reasons = {
            f"{status_text(row.status)}: {t(row.reason)}".removesuffix(": ").replace("Unsupported: ", "")
            for row in named_rows(self._outcomes.drop(ok_rows(self._outcomes).index))
            if all(row.axes.get(axis) == wanted[axis] for axis in compared)
        }
        return NotTested("; ".join(sorted(reasons)) or t("no such case was planned"))


def _key(axes: dict[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset((axis, value) for axis, value in axes.items() if value is not None and axis != "suite")


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
