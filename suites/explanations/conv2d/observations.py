"""The measurements of a suite in an environment; a case is given by its differences from the suite's base case."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.report.parts.two_sides import Timed
from tsuishi.report.parts.wording import digits, shown_in, status_text
from tsuishi.results.frames import named_rows, ok_rows
from tsuishi.verdicts.evidence import Evidence

# The subject of the experiment, at any size: session runs of a graph of constants.
PLAIN: dict[str, Any] = {
    "protocol": "literal",
    "implementation": "framework",
    "strategy": "towers",
    "feed": "constant",
    "graph_optimizers": "default",
}
# The sizes of a case: the number of images, an image, its filter.
SIZES = ("images", "height", "width", "channels", "filter_size")
# The differences of other cases from the base case. None: they do not have the axis.
STEADY: dict[str, Any] = {"protocol": "steady", "data": "random", "feed": "resident"}
SCIPY: dict[str, Any] = {"implementation": "scipy", "strategy": None, "feed": None, "graph_optimizers": None}
SCIPY_ALL_CORES: dict[str, Any] = {**SCIPY, "implementation": "scipy_all_cores"}
KERAS: dict[str, Any] = {**SCIPY, "implementation": "keras"}
_ONES = "ones"


def base_case(cases: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The axes of the case, on a single device, with which all other cases of a suite are compared.

    It has the axes PLAIN, and the sizes that were planned for the most numbers of devices; among equals, the fewest
    channels, then the smallest filter, then the most cases, then the most images. Its data is "ones" if a plain case
    has such data, since towers are then alike.
    """
    every = [axes for axes in cases if "search" not in axes]
    plain = [axes for axes in every if PLAIN.items() <= axes.items()]
    devices: dict[tuple[Any, ...], set[int]] = {}
    for axes in plain or every:
        devices.setdefault(_sizes(axes), set()).add(axes.get("devices", 1))
    cases_of = Counter(map(_sizes, every))

    def order(sizes: tuple[Any, ...]) -> tuple[int, ...]:
        of = dict(zip(SIZES, sizes, strict=True))
        return -len(devices[sizes]), of["channels"], of["filter_size"], -cases_of[sizes], -of["images"]

    sizes = min(devices, key=order, default=(0,) * len(SIZES))
    data = {axes.get("data", _ONES) for axes in plain}
    first = _ONES if _ONES in data or not data else min(data)
    return {**PLAIN, "data": first, "devices": 1, **dict(zip(SIZES, sizes, strict=True))}


def _sizes(axes: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(axes.get(axis, 0) for axis in SIZES)


class NotTested(str):
    """Why a topic was not tested, in words."""

    __slots__ = ()


class Observations:
    """Estimates of a suite in an environment. Axes given to its methods are differences from the base case."""

    def __init__(self, evidence: Evidence, suite: str, environment: str) -> None:
        self.environment = environment
        self.base = base_case(axes for axes in evidence.axes.values() if axes["suite"] == suite)
        # Whether a source published numbers of this suite, so that sentences may compare with the source.
        self.published = any(number.axes["suite"] == suite for number in evidence.numbers)
        cases, outcomes, trials = (
            frame[(frame["suite"] == suite) & (frame["column"] == environment)]
            for frame in (evidence.cases, evidence.outcomes, evidence.results.trials)
        )
        self._axes = evidence.words.axes
        self._rows = {(self._key(evidence.axes[row.case_id]), row.quantity): row for row in named_rows(cases)}
        self._towers = sorted({dict(key).get("devices", 0) for key, _ in self._rows})
        self.most_trials = max((int(row.n) for row in self._rows.values()), default=0)
        self._outcomes = outcomes
        self._evidence = evidence
        # Without SciPy's trials, which always run on the CPU.
        framework = ok_rows(trials[trials["implementation"] == PLAIN["implementation"]])
        self.on_gpu = bool((framework["device"] != "cpu").any())
        self.simulated = bool(framework["simulated"].fillna(False).any())
        machines = (evidence.machine_records.get(record) for record in set(framework["machine"]))
        # The memory of the smallest GPU of the machines; None where it is not known.
        self.gpu_mib = min(
            (gpu.memory_mib for machine in machines if machine for gpu in machine.gpus or () if gpu.memory_mib),
            default=None,
        )
        self.other_sizes = self._other_sizes(evidence.axes[case_id] for case_id in dict.fromkeys(outcomes["case_id"]))

    def _other_sizes(self, cases: Iterable[Mapping[str, Any]]) -> list[dict[str, int]]:
        """The sizes of other cases, as differences from the base case: fewest channels first, then smallest filter."""
        every = [{axis: axes.get(axis, 0) for axis in SIZES} for axes in cases if "search" not in axes]
        every.sort(key=lambda sizes: (sizes["channels"], sizes["filter_size"], -sizes["images"]))
        changes = [{axis: size for axis, size in sizes.items() if size != self.base[axis]} for sizes in every]
        return [change for number, change in enumerate(changes) if change and change not in changes[:number]]

    def value(self, quantity: str, **axes: Any) -> float | None:
        """The estimate of a case, in the quantity's unit; None where it was not measured."""
        row = self._rows.get((self._key({**self.base, **axes}), quantity))
        return None if row is None else float(row.estimate)

    def timed(self, quantity: str, *, first: int = 0, **axes: Any) -> Timed | None:
        """The estimate of a case with its term, of its first so many trials, or of all; None: it was not measured."""
        row = self._rows.get((self._key({**self.base, **axes}), quantity))
        if row is None:
            return None
        terms = self._evidence.terms_of_first(first) if first else self._evidence.terms
        return Timed(float(row.estimate), terms.get((row.case_id, row.column, quantity)))

    def spread(self, quantity: str, **axes: Any) -> tuple[float, float] | None:
        """The smallest and the largest trial, or the quartiles of a single trial; None without a spread."""
        row = self._rows.get((self._key({**self.base, **axes}), quantity))
        return (float(row.low), float(row.high)) if row is not None and row.spread_kind else None

    def by_towers(self, quantity: str, **axes: Any) -> dict[int, float]:
        """The estimates by number of towers, in ascending order, for the numbers that were measured."""
        values = {count: self.value(quantity, **{**axes, "devices": count}) for count in self._towers}
        return {count: value for count, value in values.items() if value is not None}

    def values_of(self, axis: str) -> list[Any]:
        """The values of an axis, ascending, in the cases that were measured; without its usual value."""
        return sorted({value for key, _ in self._rows for name, value in key if name == axis})

    def search(self, quantity: str) -> float | None:
        """The result of the search for the folding edge with the most images, for images of the base case's size."""
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
        """The statuses and reasons of the cases with these differences, for any number of devices and images."""
        wanted = self._key({**self.base, **axes}, without=("devices", "images"))
        reasons = {
            f"{status_text(row.status)}: {t(row.reason)}".removesuffix(": ").replace("Unsupported: ", "")
            for row in named_rows(self._outcomes.drop(ok_rows(self._outcomes).index))
            if self._key(row.axes, without=("devices", "images")) == wanted
        }
        return NotTested("; ".join(sorted(reasons)) or t("no such case was planned"))

    def _key(self, axes: Mapping[str, Any], without: Iterable[str] = ("suite",)) -> frozenset[tuple[str, Any]]:
        """The axes that distinguish a case, without usual values that ids leave out, and without those `without`."""
        said = {axis: value for axis, value in axes.items() if value is not None and axis not in (*without, "suite")}
        known = self._axes
        return frozenset(item for item in said.items() if item[0] not in known or known[item[0]].is_said(item[1], "id"))


def observations(evidence: Evidence, suite: str) -> dict[str, Observations]:
    """The observations by environment, for environments with measurements of the suite."""
    columns = set(evidence.cases.loc[evidence.cases["suite"] == suite, "column"])
    return {name: Observations(evidence, suite, name) for name in evidence.environments if name in columns}


def towers(counts: Iterable[int]) -> str:
    """Numbers of towers in words: "1 tower", "3 and 4 towers", "1 to 4 towers"."""
    ordered = sorted(counts)
    if ordered == [1]:
        return t("1 tower")
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return t("{first} to {last} towers", first=ordered[0], last=ordered[-1])
    return t("{counts} towers", counts=in_words(ordered))


def amounts(values: Iterable[float], quantity: str) -> str:
    """Values of a quantity, worded as in tables, with the unit."""
    known = [*values]
    unit = shown_in(quantity, known)
    return f"{in_words(digits(value, unit) for value in known)} {unit.name}".removesuffix(" 1")


def per_cent(part: float) -> str:
    return f"{100 * part:.0f} %" if part < 0.995 or part == 1 else f"{100 * part:.1f} %"
