"""Claims: what a source says, made checkable; part of reports/published/<source>.toml.

A claim is one lettered sentence, with one check or several (all have to hold). A check compares cases, and has two
regions fixed before anything is measured: `hold`, which is the published value and its tolerance, and around it
`direction`. `why` gives the reason for their size. What a check compares, by kind:

    ratio      `quantity` of the cases `of`, over that of the cases `to` (or over `than`), which are otherwise alike
    order      the same, where only larger or smaller was claimed, not by how much
    equal      the same, "about as large": two one-sided tests against a margin
    trend      the slope of log quantity (or of the log ratio) against the log of the axis `along`
    presence   the status of the cases `of`: whether each is as `status` says
    imbalance  gpu_imbalance of the cases `of`: (largest - smallest) / mean of the GPUs' utilisation
    fit        a parameter of the throughput model over batch sizes, of the lines `of`, over that of `to`

Cases that differ in no other axis than those named in `of` or `to` are one comparison. Several are taken together as
`every` says: their (geometric) mean, all of them, or some of them.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import unknown
from tsuishi.specs.axes import Values
from tsuishi.specs.environment import framework_problem
from tsuishi.specs.statuses import OK, STATUSES
from tsuishi.specs.vocabulary import Vocabulary

# What may be said of a claim, from what its checks come to.
Verdict = Literal["reproduced", "direction only", "contradicted", "inconclusive", "not tested"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "direction only", "contradicted", "inconclusive", "not tested")
Kind = Literal["ratio", "order", "equal", "trend", "presence", "imbalance", "fit"]
# Selects by the environment, and is no axis of a case.
FRAMEWORK = "framework"


def _as_selection(value: Any, info: ValidationInfo) -> Any:
    """Values of axes that the vocabulary, which is the context, knows."""
    words: Vocabulary | None = info.context
    if not words or not isinstance(value, dict):
        return value
    for name, chosen in value.items():
        if name not in (FRAMEWORK, *words.axes):
            raise ValueError(str(unknown("axis", name, (FRAMEWORK, *words.axes))))
        for one in _as_tuple(chosen):
            if name != FRAMEWORK:
                words.check({name: one})
            elif problem := framework_problem(one):
                raise ValueError(problem)
    return value


def _shows_memory(status: str) -> str:
    known = [name for name, one in STATUSES.items() if one.shows_memory]
    if status not in known:
        raise ValueError(str(unknown("status", status, known)))
    return status


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


# Values by axis; a case is selected that has one of them on every axis given.
Selection = Annotated[dict[str, Values], BeforeValidator(_as_selection)]


def selected(axes: Mapping[str, Any], *selections: Selection) -> bool:
    """Whether a case, its axes and its framework given, has one of the values on every axis that these give."""
    return all(axes.get(axis) in values for one in selections for axis, values in one.items())


class Bounds(toml.Spec):
    """A region of ratios, differences or slopes; a bound left out is none."""

    above: float | None = None
    below: float | None = None

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


class Check(toml.Spec):
    """One comparison of a claim; see above."""

    kind: Kind
    # In it are the values compared; `to_quantity` where the other side has another one.
    quantity: str = ""
    to_quantity: str = ""
    # Of both sides; of one, and of the other, which may be a number in the quantity's unit instead.
    case: Selection = {}
    of: Selection = {}
    to: Selection | None = None
    than: float | None = None
    along: str = ""
    parameter: Literal["", "v0", "t_cost", "b_half", "residual"] = ""
    # One that says whether a case fits in memory.
    status: Annotated[str, AfterValidator(_shows_memory)] = OK
    # Ratios of what scatters in proportion; differences of what may be 0, as shares and accuracies.
    scale: Literal["ratio", "difference"] = "ratio"
    every: Literal["mean", "all", "some"] = "mean"
    # Comparisons without which nothing is said.
    fewest: Annotated[int, Field(ge=1)] = 1
    hold: Bounds | None = None
    direction: Bounds | None = None
    # As the source puts it, where it gives no numbers to reckon it from: "about 4 times".
    published: float | None = None
    why: toml.Texts

    @model_validator(mode="after")
    def _names_are_known(self, info: ValidationInfo) -> "Check":
        words: Vocabulary | None = info.context
        if words:
            for name in (self.quantity, self.to_quantity):
                if name and name not in words.quantities:
                    raise ValueError(str(unknown("quantity", name, words.quantities)))
            if self.along and self.along not in words.axes:
                raise ValueError(str(unknown("axis", self.along, words.axes)))
        return self

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> "Check":
        needed = {
            "quantity": self.kind not in ("presence", "imbalance", "fit"),
            "along": self.kind == "trend",
            "parameter": self.kind == "fit",
            "hold": self.kind != "presence",
        }
        for name, is_needed in needed.items():
            if bool(getattr(self, name)) != is_needed and not (name == "quantity" and self.kind == "fit"):
                wanted = f"needs '{name}'; add it" if is_needed else f"has no use for '{name}'; remove it"
                raise ValueError(f"a check of kind '{self.kind}' {wanted}")
        if self.kind in ("ratio", "order", "equal") and (self.to is None) == (self.than is None):
            raise ValueError(f"a check of kind '{self.kind}' compares with 'to' or with 'than'; give one of them")
        if self.parameter == "residual" and self.to is not None:
            raise ValueError("residuals are what points are off their own line; remove 'to'")
        if self.kind == "fit" and self.parameter != "residual" and self.to is None:
            raise ValueError(
                f"'{self.parameter}' is compared with that of other lines; add 'to' ({{}} for the same ones)"
            )
        if self.than is not None and self.than <= 0 and self.scale == "ratio":
            raise ValueError(f'no ratio to {self.than:g}; add scale = "difference"')
        return self

    @model_validator(mode="after")
    def _regions_are_one_in_the_other(self) -> "Check":
        if self.kind == "equal" and self.direction:
            raise ValueError("a check of kind 'equal' has no direction; remove 'direction'")
        if (
            self.hold
            and self.direction
            and not (self.direction.low <= self.hold.low and self.hold.high <= self.direction.high)
        ):
            raise ValueError("'hold' is not inside 'direction'; widen 'direction'")
        return self


class Scope(toml.Spec):
    """The hardware on which a claim can be judged at all; on other, numbers are only put side by side."""

    # Of every GPU that computed, in GiB.
    gpu_memory_gib: Bounds | None = None


class Claim(toml.Spec):
    """One claim of a source. `text` is ours: what it says, in one sentence."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    text: toml.Texts
    # What evidence has to come from: real GPUs, each of its own; real data; or any machine.
    about: tuple[Literal["gpu", "accuracy"], ...] = ()
    scope: Scope | None = None
    # Why it cannot be tested here at all, and what it would take.
    untestable: toml.Texts | None = None
    # False: no sentence of the source, but what follows from one.
    stated: bool = True
    checks: tuple[Check, ...] = ()

    def named(self, axis: str) -> set[str | int]:
        """The values of an axis, or the frameworks, that its checks select by."""
        selections = [one for check in self.checks for one in (check.case, check.of, check.to or {})]
        return {value for one in selections for value in one.get(axis, ())}

    @model_validator(mode="after")
    def _testable_or_not(self) -> "Claim":
        if bool(self.checks) == bool(self.untestable):
            raise ValueError(f"claim '{self.id}': give checks, or 'untestable' with the reason why there are none")
        return self
