"""Axes: a case has a value on each. suites/axes.toml and the suites describe them."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tsuishi.base import toml
from tsuishi.base.language import in_language
from tsuishi.specs.case import Value

# Columns of tables of runs and reports that are not axes.
TAKEN = frozenset(
    """
    answer attempt axes b_half_images b_half_images_high b_half_images_low baseline_batch_size baseline_devices
    began_at begin_s best blocks bound case_id cases change_percent changed check claim column command days_now
    days_then decided_by derived device direction_above direction_below duration_s efficiency elapsed_s energy_j
    energy_source environment environment_record environments estimate events_garbled events_missing exit_code family
    family_high family_low field fitted_s flags forced framework geometric_mean hardware high high_percent hindrance
    hold_above hold_below imbalance kind kink lack_of_fit_p largest_fitted largest_residual_percent level low
    low_percent machine machine_record main mean memory_mib n not_in_table note now numbers others_cpu_percent p
    p_against p_direction p_hold package peak_process_memory_mib phases points power_w printed_by published
    pure_error_percent quantity question ratio ratio_high ratio_low reading reason reference released repetition
    residual_percent rounding run_id sentence series session settings simulated sm_clock_mhz smallest_out_of_memory
    source speedup spread_kind started_at startup_s state stated status statuses step_s summing_share synthetic
    t_cost_s t_cost_s_high t_cost_s_low temperature_c text then threshold times_as_fast times_as_fast_high
    times_as_fast_low times_as_long title topic trial trial_id trials unit utilisation_percent v0_images_per_s
    v0_images_per_s_high v0_images_per_s_low value verdict version what workload_record
    """.split()  # noqa: SIM905  as names of their own they would fill two screens
)
# The pattern of an axis' name.
NAME = r"^[a-z][a-z0-9_]{0,59}$"

# A network of a library, which the environment knows or refuses (suites/workloads/common/networks.py).
ZOOS = ("torchvision", "timm", "keras")
_OF_ZOO = re.compile(rf"(?:{'|'.join(ZOOS)}):[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}")

# Where a value can be written: a case's id, a trial's name, words for readers.
Place = Literal["id", "name", "words"]


def _as_tuple(value: Any) -> Any:
    """A single axis value may be written without brackets."""
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values or any(isinstance(item, bool) or not isinstance(item, str | int) for item in values):
        raise ValueError(f"expected a word, a whole number, or a list of these; given: {value!r}")
    return values


Values = Annotated[tuple[Value, ...], BeforeValidator(_as_tuple)]


class InName(toml.Spec):
    """How a trial's name gives an axis: `text` with the value in it. Axes with a low `place` come first."""

    text: str = "{value}"
    place: int = 0


class Axis(toml.Spec):
    """An axis: its values, and how ids, names, texts and charts use it."""

    name: Annotated[str, Field(pattern=NAME)]
    # All values, which are names; or the type of the values.
    values: tuple[str, ...] = ()
    type: Literal["", "name", "whole number"] = ""
    unit: str = ""
    label: toml.Texts
    # A value in words, as a template with {value}; without it, the label, the value and the unit.
    words: toml.Texts | None = None
    # Templates for single values, by value; `words` is for the others.
    words_of: dict[str, toml.Texts] = {}
    # The title of a chart's axis; without it the label and the unit.
    title: toml.Texts | None = None
    # Whether the names of the networks of suites/workloads/networks are values too, behind those that are listed, and
    # those of libraries, as "timm:resnet50".
    networks: bool = False
    # How published tables print it: a pattern of headers in lower case, texts by value, and texts of values that no
    # case has. Texts are letters and digits in lower case.
    headers: str = ""
    printed: dict[str, tuple[str, ...]] = {}
    printed_elsewhere: tuple[str, ...] = ()
    printed_everyday: tuple[str, ...] = ()
    # The usual value. Ids, trials' names and words leave it out, except the places in `kept_in`.
    usual: Value | None = None
    kept_in: tuple[Place, ...] = ()
    in_name: InName | None = None
    # What charts do with the values. "size": they show the best value only. "line": each value has a line. "panel":
    # each value has a chart.
    chart: Literal["size", "line", "panel"] = "panel"
    # Too many lines for a chart are spread over several charts, by the axis with the lowest number here; 0 is last.
    spread: int = 0
    # Whether tables of fitted lines have a column for it.
    in_fits: bool = False
    # Values with which a case computes on the CPU, in every environment.
    on_cpu: tuple[Value, ...] = ()
    # A setting of the process, which workloads do not know: the environment variables that have its value, except the
    # usual value; or the number of CPUs that the process may use.
    variables: tuple[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    is_cpus: bool = False
    # The same: with another value than the usual, the process gets no data set.
    is_data: bool = False
    # The frameworks that read the variables, by the names of suites/workloads/frameworks; empty: all.
    read_by: tuple[str, ...] = ()
    # By value, the first release of each framework that has it: earlier releases are known to refuse it.
    since: dict[str, dict[str, Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]]] = {}
    # Values that charts draw as a level behind the lines of the other values: the text of the level by value.
    levels: dict[str, str] = {}
    # Values that a printed number may have without saying so, in the order in which they are tried.
    unsaid: tuple[Value, ...] = ()
    # The factor by which these values change a number at most; "cpus": the number of CPUs here. 1: not known.
    changes_by: Annotated[float, Field(ge=1, le=1e6)] | Literal["cpus"] = 1.0

    @model_validator(mode="after")
    def _has_values(self) -> "Axis":
        if is_taken(self.name):
            raise ValueError(f"axis '{self.name}': tables have a column of that name; give it another")
        if bool(self.values) == bool(self.type):
            raise ValueError(f"axis '{self.name}': give 'values', a list of names, or 'type'")
        if self.is_cpus and (self.variables or not self.is_number):
            raise ValueError(f"axis '{self.name}': is_cpus: the number of CPUs is a whole number, and no variable")
        named = {"usual": (self.usual,) if self.usual is not None else (), "unsaid": self.unsaid}
        named["since"] = tuple(self.since)
        for key, values in named.items():
            if problem := next(filter(None, map(self.problem, values)), ""):
                raise ValueError(f"axis '{self.name}': {key}: {problem}")
        return self

    @property
    def is_of_process(self) -> bool:
        """Whether it is a setting of the process, which workloads do not know."""
        return self.is_cpus or self.is_data or bool(self.variables)

    @property
    def is_number(self) -> bool:
        return self.type == "whole number"

    @property
    def is_size(self) -> bool:
        return self.chart == "size"

    @property
    def drawn_as(self) -> str:
        """The title of a chart's axis, in the active language."""
        return in_language(self.title) if self.title else ", ".join(filter(None, [self.called, self.unit]))

    @property
    def called(self) -> str:
        """The label, in the active language."""
        return in_language(self.label)

    def problem(self, value: Any) -> str:
        """Why the axis cannot have a value; empty where it can."""
        if self.is_of_process and isinstance(value, str) and "/" in value:
            return f"a record has no path of a machine: give the name of a file, which is looked for; given: {value!r}"
        if self.is_number:
            if isinstance(value, bool) or not isinstance(value, int):
                return f"input should be a valid integer; given: {value!r}"
            return "" if value > 0 else f"input should be greater than 0; given: {value!r}"
        if self.values:
            if value in self.values or (self.networks and isinstance(value, str) and _OF_ZOO.fullmatch(value)):
                return ""
            *others, last = map(repr, self.values)
            known = f"{', '.join(others)} or {last}" if others else last
            more = f", or of a library: {ZOOS[0]}:NAME, {ZOOS[1]}:NAME, {ZOOS[2]}:NAME" if self.networks else ""
            return f"input should be {known}{more}; given: {value!r}"
        return "" if isinstance(value, str) else f"input should be a valid string; given: {value!r}"

    def is_said(self, value: Value, place: Place) -> bool:
        """Whether a place (an id, a trial's name, words) gives this value; usual values may be left out."""
        return value != self.usual or place in self.kept_in

    def worded(self, value: Any, always: bool = False) -> str:
        """A value in words of the active language; empty for the usual value, unless words keep it, or `always`.

        `value` may also be a text that lists several values.
        """
        if not (always or self.is_said(value, "words")):
            return ""
        texts = self.words_of.get(str(value)) or self.words
        if texts is None:
            return " ".join(filter(None, [self.called, str(value), self.unit]))
        return in_language(texts).format(value=value)


def is_taken(name: str) -> bool:
    """Whether tables have, or may have, a column of that name that is not an axis."""
    return name in TAKEN or name.startswith("published_")


def unknown_axis(name: str, type_: Literal["name", "whole number"]) -> Axis:
    """An axis that no file of this checkout describes, as a received run may have it. Its label is its name."""
    return Axis(name=name, type=type_, label={"en": name.replace("_", " ")})
