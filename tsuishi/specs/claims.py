"""Claims: sentences of a source that can be checked. They are part of reports/published/<source>.toml.

A claim is a sentence with checks, and all of its checks have to hold. A check compares cases. It has two regions, which
are fixed before anything is measured: `hold` is the published value with its tolerance, `direction` is the region
around it. `why` gives the reason for their size. The kinds of checks, and what each compares:

    ratio      `quantity` of the cases `of`, divided by that of the cases `to` (or by `than`); all else is the same
    order      the same ratio, where the source says which side is larger, but not by how much
    equal      the same ratio, where the source says "about as large": two one-sided tests against a margin
    trend      the slope of log quantity (or of the log ratio) against the log of the axis `along`
    shrinks    the ratio at the smallest value of the axis `along`, against that at the largest: it comes nearer to 1
    presence   the statuses of the cases `of`: each should be `status`
    imbalance  gpu_imbalance of the cases `of`: (largest - smallest) / mean of the GPUs' utilisation
    fit        a parameter of the throughput model over batch sizes: of the lines `of`, divided by that of `to`

Cases that differ only in the axes of `of` and `to` are one comparison. `every` says whether all comparisons have to
hold or some of them. Comparisons that differ only in the axes `over` count once, by their (geometric) mean: differences
of opposite signs cancel there and nowhere else. With `at` and `against`, a ratio, order or equal is of two ratios: that
of the cases `at`, divided by that of the cases `against`; both agree in all axes that neither names. On an axis that a
side does not name it has the cases with the usual value alone, where that goes without saying (selections.py).

A case says nothing of itself: sides that select the same cases are refused, and where sides have some cases in common,
these are not compared with themselves (verdicts/hypotheses.py).

A source's file also has deviations: what our experiments do differently, on purpose or for want of knowledge.
"""

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, FiniteFloat, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import unknown
from tsuishi.specs.axes import Values
from tsuishi.specs.case import Value
from tsuishi.specs.questions import LastLook
from tsuishi.specs.selections import OF_ENVIRONMENTS, Selecting, Selection, Selector
from tsuishi.specs.statuses import OK, STATUSES
from tsuishi.specs.vocabulary import Vocabulary

# The verdicts on a claim.
Verdict = Literal["reproduced", "direction only", "contradicted", "inconclusive", "not tested"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "direction only", "contradicted", "inconclusive", "not tested")
# Those that say something about a claim.
DECIDED: tuple[Verdict, ...] = ("reproduced", "direction only", "contradicted")
Kind = Literal["ratio", "order", "equal", "trend", "shrinks", "presence", "imbalance", "fit"]
_OF_TWO_RATIOS = ("ratio", "order", "equal")
_IMBALANCE = "gpu_imbalance"


def _shows_memory(status: str) -> str:
    known = [name for name, description in STATUSES.items() if description.shows_memory]
    if status not in known:
        raise ValueError(str(unknown("status", status, known)))
    return status


class Bounds(toml.Spec):
    """A region of ratios, differences or slopes. A bound that is None is no limit."""

    above: FiniteFloat | None = None
    below: FiniteFloat | None = None

    @model_validator(mode="after")
    def _something(self) -> "Bounds":
        if self.above is None and self.below is None:
            raise ValueError("a region without bounds holds anything; give 'above', 'below' or both")
        if self.low >= self.high:
            raise ValueError(f"nothing is above {self.above} and below {self.below}; exchange them")
        return self

    @property
    def low(self) -> float:
        return -math.inf if self.above is None else self.above

    @property
    def high(self) -> float:
        return math.inf if self.below is None else self.below


class Check(Selecting):
    """One comparison of a claim; the docstring of this module lists the kinds."""

    kind: Kind
    # The quantity that is compared, and the quantity of the second side where that is another quantity.
    quantity: str = ""
    to_quantity: str = ""
    # Selects the cases of both sides; then those of the first side, and those of the second side.
    case: Selection = {}
    of: Selection = {}
    to: Selection | None = None
    # Selects the cases of the first ratio, and those of the second, where ratios are compared.
    at: Selection = {}
    against: Selection = {}
    # A number in the quantity's unit, in place of the second side.
    than: FiniteFloat | None = None
    along: str = ""
    parameter: Literal["", "v0", "t_cost", "b_half", "residual"] = ""
    # A status that says whether a case fits in memory.
    status: Annotated[str, AfterValidator(_shows_memory)] = OK
    # Values whose scatter grows with them are compared by ratio; values that may be 0 (accuracies) by difference.
    scale: Literal["ratio", "difference"] = "ratio"
    every: Literal["all", "some"] = "all"
    over: Values = ()
    # How many comparisons a verdict needs; and how many values of its axis a line needs, where its kind asks for fewer.
    fewest: Annotated[int, Field(ge=1)] = 1
    along_at_least: Annotated[int, Field(ge=1)] = 1
    hold: Bounds | None = None
    direction: Bounds | None = None
    # The ratio as the source words it ("about 4 times"), where no published numbers give it.
    published: FiniteFloat | None = None
    why: toml.Texts

    @property
    def points(self) -> int:
        """How many values of its axis a line needs, for kinds that compare along an axis; 1 for the others."""
        if self.kind == "trend" or self.parameter == "residual":
            return max(3, self.along_at_least)
        return max(2, self.along_at_least) if self.kind in ("shrinks", "fit") else 1

    @property
    def compared(self) -> tuple[str, str]:
        """The quantities of the first side and of the second."""
        quantity = _IMBALANCE if self.kind == "imbalance" else self.quantity
        return quantity, self.to_quantity or quantity

    @property
    def is_logarithmic(self) -> bool:
        """Whether its regions are of ratios, which are judged as logarithms."""
        return self.kind not in ("trend", "imbalance", "presence") and self.scale == "ratio"

    @property
    def takes_logarithms(self) -> bool:
        """Whether it takes the logarithms of values, and not the values themselves."""
        return self.is_logarithmic or self.kind == "trend"

    def selector(self, side: Selection, partial: bool = False) -> Selector:
        """Selects the cases on a side of the check, `of` or `to`. partial: as for Selector."""
        return Selector(self.case, side, usual=self._usual, free=self._free, partial=partial)

    @property
    def _free(self) -> set[str]:
        """The axes on which any value will do where no selection names them."""
        return {self.along, *map(str, self.over), *self.at, *self.against}

    def unusual(self, axes: Mapping[str, Any]) -> dict[str, Any]:
        """The axes of a case without the values that go without saying, but for axes on which any value will do."""
        unsaid = self._usual.keys() - self._free
        return {axis: value for axis, value in axes.items() if axis not in unsaid or value != self._usual[axis]}

    def selects_ratio(self, axes: Mapping[str, Any], side: Selection) -> bool:
        """Whether a ratio is on a side, `at` or `against`. axes: those that the two cases of the ratio share."""
        return Selector(side, usual=self._usual, free=axes)(axes)

    @model_validator(mode="before")
    @classmethod
    def _shrinks_towards_1(cls, given: Any) -> Any:
        """The near ratio over the far, and their product, are above 1: both, for every line."""
        if isinstance(given, dict) and given.get("kind") == "shrinks":
            if {"every", "hold", "direction"} & set(given):
                raise ValueError(
                    "a check of kind 'shrinks' has no use for 'every', 'hold' and 'direction'; remove them"
                )
            return {**given, "hold": {"above": 1.0}}
        return given

    @model_validator(mode="after")
    def _names_are_known(self, info: ValidationInfo) -> "Check":
        words: Vocabulary | None = info.context
        if words:
            for name in filter(None, (self.quantity, self.to_quantity)):
                words.known_quantity(name)
            for axis in (self.along, *map(str, self.over)):
                if axis and axis not in words.axes:
                    raise ValueError(str(unknown("axis", axis, words.axes)))
            if self.along and not words.axes[self.along].is_number:
                numbers = [name for name, axis in words.axes.items() if axis.is_number]
                raise ValueError(f"along: {unknown('axis of numbers', self.along, numbers)}")
        return self

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> "Check":
        needed = {
            "quantity": self.kind not in ("presence", "imbalance", "fit"),
            "along": self.kind in ("trend", "shrinks"),
            "parameter": self.kind == "fit",
            "hold": self.kind != "presence",
        }
        for name, is_needed in needed.items():
            if bool(getattr(self, name)) != is_needed and not (name == "quantity" and self.kind == "fit"):
                wanted = f"needs '{name}'; add it" if is_needed else f"has no use for '{name}'; remove it"
                raise ValueError(f"a check of kind '{self.kind}' {wanted}")
        if self.kind in ("ratio", "order", "equal", "shrinks") and (self.to is None) == (self.than is None):
            raise ValueError(f"a check of kind '{self.kind}' compares with 'to' or with 'than'; give one of them")
        if bool(self.at) != bool(self.against) or (self.at and (self.kind not in _OF_TWO_RATIOS or self.to is None)):
            raise ValueError(
                "'at' and 'against' compare two ratios of 'of' to 'to'; give all four, or neither of these"
            )
        if wrong := {*self.at, *self.against} & {*OF_ENVIRONMENTS}:
            raise ValueError(f"'at' and 'against' select by axes of cases; remove '{min(wrong)}' from them")  # noqa: S608
        if self.to is not None and self.kind == "presence":
            raise ValueError("a check of kind 'presence' has no use for 'to'; remove it")
        if self.parameter == "residual" and self.to is not None:
            raise ValueError("residuals are distances of points from their own line; remove 'to'")
        if self.kind == "fit" and self.parameter != "residual" and self.to is None:
            raise ValueError(
                f"'{self.parameter}' is compared with that of other lines; add 'to' ({{}} for the same lines)"
            )
        if self.than is not None and self.than <= 0 and self.scale == "ratio":
            raise ValueError(f'no ratio to {self.than:g}; add scale = "difference"')
        return self

    @model_validator(mode="after")
    def _sides_differ(self) -> "Check":
        """Refuses what compares nothing, or a case with itself: its verdict would be certain, whatever was measured."""
        sides = {"of": self.of} if self.to is None else {"of": self.of, "to": self.to}
        chosen = {name: self._chosen(side) for name, side in sides.items()}
        for name, values in chosen.items():
            for axis in (axis for axis, some in values.items() if not some):
                raise ValueError(
                    f"'{name}' selects no case, as 'case' has other values of '{axis}'; remove one of them"
                )
        if self.to is not None and len({*self.compared}) == 1 and chosen["of"] == chosen["to"]:
            raise ValueError(
                "'of' and 'to' select the same cases, and a case says nothing of itself; name what differs: an axis, "
                "'framework' or 'environment', or 'to_quantity'"
            )
        if self.at and _sets(self.at) == _sets(self.against):
            raise ValueError("'at' and 'against' select the same ratios; name what differs")
        if self.along and self.to is not None and self.along in {*self.of, *self.to}:
            raise ValueError(f"both sides go along '{self.along}'; name its values in 'case'")
        return self

    def _chosen(self, side: Selection) -> dict[str, frozenset[Value]]:
        """The values that a side selects, by axis: as `selector` does."""
        said = {axis: value for axis, value in self._usual.items() if value is not None}
        usual = {axis: frozenset((value,)) for axis, value in said.items() if axis not in self._free}
        ours, common = _sets(side), _sets(self.case)
        both = {axis: ours[axis] & common[axis] for axis in ours.keys() & common.keys()}
        return {**usual, **common, **ours, **both}

    @model_validator(mode="after")
    def _regions_are_of_its_values(self) -> "Check":
        hold, direction = self.hold, self.direction
        if self.kind == "equal" and direction:
            raise ValueError("a check of kind 'equal' has no direction; remove 'direction'")
        if hold and direction and not (direction.low <= hold.low and hold.high <= direction.high):
            raise ValueError("'hold' is not inside 'direction'; widen 'direction'")
        for name, bounds in (("hold", hold), ("direction", direction)):
            if bounds and self.is_logarithmic and bounds.high <= 0:
                raise ValueError(f'{name}: no ratio is below {bounds.high:g}; add scale = "difference" for differences')
        same = 1.0 if self.scale == "ratio" else 0.0
        if self.kind == "equal" and hold and not hold.low < same < hold.high:
            raise ValueError(f"a check of kind 'equal' holds around {same:g}; move 'hold', or take the kind 'ratio'")
        return self


def _sets(selection: Selection) -> dict[str, frozenset[Value]]:
    return {axis: frozenset(values) for axis, values in selection.items()}


def all_reach(links: Mapping[tuple[int, ...], bool | None], gpus: Collection[int | None]) -> bool | None:
    """Whether these GPUs read each other's memory, from pairs; None where a pair is not known."""
    known = [reach for pair, reach in links.items() if set(pair) <= {*gpus}]
    return None if not known or None in known else all(known)


class Scope(toml.Spec):
    """The hardware on which a claim can be judged. On other hardware, reports only show the numbers side by side."""

    # The memory of every GPU that computed, in GiB.
    gpu_memory_gib: Bounds | None = None
    # Whether all GPUs that computed can reach each other's memory.
    peer_to_peer: bool | None = None

    def includes(self, memory_gib: float | None, peer_to_peer: bool | None) -> bool:
        """Whether a claim can be judged on such GPUs; not where what the scope is about is unknown (None) of them."""
        memory = self.gpu_memory_gib
        fits = memory is None or (memory_gib is not None and memory.low < memory_gib < memory.high)
        return fits and self.peer_to_peer in (None, peer_to_peer)


class Claim(toml.Spec):
    """One claim of a source. `text` is the claim in our words, in one sentence."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    text: toml.Texts
    # What evidence needs: "gpu", a real GPU for each device; "cpu", none; "accuracy", real data. Without these any
    # machine will do.
    about: tuple[Literal["gpu", "cpu", "accuracy"], ...] = ()
    scope: Scope | None = None
    # Why this suite of experiments cannot test the claim, and what a test would need.
    untestable: toml.Texts | None = None
    # Other sources whose numbers the claim is held against too, as if they were of the claim's suite.
    also_by: tuple[str, ...] = ()
    # False where the claim only follows from a sentence of the source.
    stated: bool = True
    last_look: LastLook = 0
    checks: tuple[Check, ...] = ()

    def named(self, axis: str) -> set[str | int]:
        """The values of an axis (or the frameworks, or environments) in the selections of its checks."""
        selections = [
            selection
            for check in self.checks
            for selection in (check.case, check.of, check.to or {}, check.at, check.against)
        ]
        return {value for selection in selections for value in selection.get(axis, ())}

    def selectors(self, partial: bool = False) -> list[Selector]:
        """Of each side of its checks. partial: as for Selector."""
        sides = [(check, side) for check in self.checks for side in (check.of, check.to) if side is not None]
        return [check.selector(side, partial) for check, side in sides]

    @model_validator(mode="after")
    def _testable_or_not(self) -> "Claim":
        if bool(self.checks) == bool(self.untestable):
            raise ValueError(f"claim '{self.id}': give checks, or 'untestable' with the reason why there are none")
        return self


class CodeLine(toml.Spec):
    """A line of code, or a part of a line. `file`: its path in the checkout."""

    file: str
    text: str


class Deviation(toml.Spec):
    """A difference between the cases that `case` selects (every case without it) and the source's experiment."""

    text: toml.Texts
    case: Selection = {}
    code: tuple[CodeLine, ...] = Field(min_length=1)
