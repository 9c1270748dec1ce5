"""Axes: what a case is a point of, as suites/axes.toml and the suites describe them."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tsuishi.base import toml
from tsuishi.base.language import in_language
from tsuishi.specs.case import Value

# Columns that tables of runs and reports have for something else.
TAKEN = frozenset(
    """
    answer attempt axes b_half_images b_half_images_high b_half_images_low baseline_batch_size begin_s best blocks
    bound case_id cases check claim column command derived device direction_above direction_below duration_s
    efficiency elapsed_s energy_j energy_source environment environment_record environments estimate events_garbled
    events_missing exit_code field fitted_s forced framework geometric_mean hardware high hindrance hold_above
    hold_below imbalance kind kink largest_fitted largest_loss_difference largest_residual_percent low
    machine_record main mean memory_mib more_devices n not_in_table note p_against p_direction p_hold package
    peak_process_memory_mib points power_w published quantity question ratio ratio_high ratio_low reason reference
    repetition residual_percent run_id sentence series simulated sm_clock_mhz smallest_out_of_memory source speedup
    spread_kind started_at startup_s state stated status statuses step_s synthetic t_cost_s t_cost_s_high
    t_cost_s_low temperature_c text times_as_fast times_as_fast_high times_as_fast_low title topic trial trial_id
    trials unit utilisation_percent v0_images_per_s v0_images_per_s_high v0_images_per_s_low value verdict version
    what workload_record
    """.split()  # noqa: SIM905  as names of their own they would fill two screens
)
# What an axis may be called.
NAME = r"^[a-z][a-z0-9_]{0,59}$"

# Places where a usual value is said all the same: see `usual`.
Place = Literal["id", "name", "words"]


def _as_tuple(value: Any) -> Any:
    """A single axis value may be written without brackets."""
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values or any(isinstance(one, bool) or not isinstance(one, str | int) for one in values):
        raise ValueError(f"expected a word, a whole number, or a list of these; given: {value!r}")
    return values


Values = Annotated[tuple[Value, ...], BeforeValidator(_as_tuple)]


class InName(toml.Spec):
    """How a trial's name says an axis: `text` with the value in it; by `place`, the lowest first."""

    text: str = "{value}"
    place: int = 0


class Axis(toml.Spec):
    """One axis: its values, and all that is said of it anywhere."""

    name: Annotated[str, Field(pattern=NAME)]
    # Names, or the type of all values.
    values: tuple[str, ...] = ()
    type: Literal["", "name", "whole number"] = ""
    unit: str = ""
    label: toml.Texts
    # A value in words; without it, the label, the value and the unit.
    words: toml.Texts | None = None
    # Values that are worded otherwise: by value.
    words_of: dict[str, toml.Texts] = {}
    # Over a chart's axis; without it the label.
    title: toml.Texts | None = None
    # The value that goes without saying: left out of ids, of trials' names and of words, but for those in `kept_in`.
    usual: Value | None = None
    kept_in: tuple[Place, ...] = ()
    in_name: InName | None = None
    # In charts: a size, of which the best is enough; a line beside others; or, by each value, a chart of its own.
    chart: Literal["size", "line", "panel"] = "panel"
    # Too many lines are spread over several charts by the axis that has the lowest number of those that differ.
    spread: int = 0
    # Whether tables of fitted lines have a column for it.
    in_fits: bool = False
    # Values with which a case computes on the CPU, whatever its environment has.
    on_cpu: tuple[Value, ...] = ()
    # Values that stand as a level behind the lines of the others, by what a chart calls each.
    levels: dict[str, str] = {}

    @model_validator(mode="after")
    def _has_values(self) -> "Axis":
        if is_taken(self.name):
            raise ValueError(f"axis '{self.name}': tables have a column of that name; give it another")
        if bool(self.values) == bool(self.type):
            raise ValueError(f"axis '{self.name}': give 'values', a list of names, or 'type'")
        if self.usual is not None and (problem := self.problem(self.usual)):
            raise ValueError(f"axis '{self.name}': usual: {problem}")
        return self

    @property
    def is_number(self) -> bool:
        return self.type == "whole number"

    @property
    def is_size(self) -> bool:
        return self.chart == "size"

    @property
    def drawn_as(self) -> str:
        """What stands over a chart's axis, in the active language."""
        return in_language(self.title) if self.title else ", ".join(filter(None, [self.called, self.unit]))

    @property
    def called(self) -> str:
        """The axis in the active language's words."""
        return in_language(self.label)

    def problem(self, value: Any) -> str:
        """What is wrong with a value; empty where nothing is."""
        if self.is_number:
            if isinstance(value, bool) or not isinstance(value, int):
                return f"input should be a valid integer; given: {value!r}"
            return "" if value > 0 else f"input should be greater than 0; given: {value!r}"
        if self.values:
            *others, last = map(repr, self.values)
            known = f"{', '.join(others)} or {last}" if others else last
            return "" if value in self.values else f"input should be {known}; given: {value!r}"
        return "" if isinstance(value, str) else f"input should be a valid string; given: {value!r}"

    def is_said(self, value: Value, place: Place) -> bool:
        """Whether a value is said in an id, a trial's name or words."""
        return value != self.usual or place in self.kept_in

    def worded(self, value: Any) -> str:
        """A value, or several that are written as one, in words of the active language; usual ones are left out."""
        if not self.is_said(value, "words"):
            return ""
        texts = self.words_of.get(str(value)) or self.words
        if texts is None:
            return " ".join(filter(None, [in_language(self.label), str(value), self.unit]))
        return in_language(texts).format(value=value)


def is_taken(name: str) -> bool:
    """Whether tables have a column of that name, or may have, for something else than an axis."""
    return name in TAKEN or name.startswith("published_")


def unknown_axis(name: str, type_: Literal["name", "whole number"]) -> Axis:
    """An axis that nothing here describes, as a run of others may have: it is called by its name."""
    return Axis(name=name, type=type_, label={"en": name.replace("_", " ")})
