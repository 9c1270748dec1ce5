"""The specification of a trial: one type in the plan, in run.json, in orders to nodes, and in trial.json."""

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, GetPydanticSchema
from pydantic_core import CoreSchema, core_schema

from tsuishi.base.toml import MOST, Record
from tsuishi.specs import axes
from tsuishi.specs.case import PROTOCOL, SUITE, Case
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.trial_id import Name, TrialId

Ordinal = Annotated[int, Field(ge=1, le=MOST)]
Value = str | bool | Annotated[int, Field(ge=-MOST, le=MOST)] | float | None
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]


def _lengths_are_numbers(settings: dict[str, Value]) -> dict[str, Value]:
    for name in ("epochs", "train_images", "stop_at"):
        value = settings.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ValueError(f"{name} is not a number of 0 or more")
    return settings


# How a workload times a case, by the names of specs/suite.py; a report compares these lengths with those of a source.
Lengths = Annotated[dict[str, Value], AfterValidator(_lengths_are_numbers)]


def _axis(name: str) -> str:
    if axes.is_taken(name):
        raise ValueError(f"'{name}' cannot be an axis: tables have a column of that name")
    return name


def _of_a_suite(case: dict[str, str | int]) -> dict[str, str | int]:
    for name in (SUITE, PROTOCOL):
        if not isinstance(case.get(name), str):
            raise ValueError(f"a case without {name}")
    return case


_Axis = Annotated[str, Field(pattern=axes.NAME), AfterValidator(_axis)]
# The axes of a case in canonical order, also axes that no file here describes: a run may come from any author.
Axes = Annotated[dict[_Axis, str | Ordinal], Field(max_length=100), AfterValidator(_of_a_suite)]


def _from_axes(given: Any, checked: Callable[[Any], dict[str, str | int]]) -> Case:
    return given if isinstance(given, Case) else Case(tuple(checked(given).items()))


def _as_axes(case: type[Case], schema_of: Callable[[Any], CoreSchema]) -> CoreSchema:
    written = core_schema.plain_serializer_function_ser_schema(lambda case: case.axes)
    return core_schema.no_info_wrap_validator_function(_from_axes, schema_of(Axes), serialization=written)


# A case in a file: the axes that are its identity.
CaseAxes = Annotated[Case, GetPydanticSchema(_as_axes)]


class DataRecord(Record):
    """A data set, by its file's name and content."""

    file: str
    sha256: str


class Trial(Record):
    """What a trial is and how it is run, as data. A plan, an order and a record add what they alone know.

    `attempt`: 0 while the trial is only planned. `case`: an earlier tsuishi left it to the case's record in trial.json.
    Fields on how it is run may be missing where it will not be run. `unsupported`: why the environment cannot run the
    case, from its answer to the command `asked`; then nothing is started. `forced`: why the environment's code is not
    native to the GPUs. The ids of records and the data are known when the trial is ordered.
    """

    trial_id: Name
    case_id: Hash
    case: CaseAxes | None = None
    environment: Name
    accelerator: Accelerator | None = None
    repetition: Ordinal
    attempt: Annotated[int, Field(ge=0, le=10_000)] = 0
    workload: str | None = None
    settings: Lengths | None = None
    timeout_s: Value = None
    unsupported: str = ""
    asked: tuple[str, ...] | None = None
    forced: str | None = None
    case_record: Annotated[str, Field(pattern=r"^case-[0-9a-f]{12}$")] | None = None
    environment_record: Annotated[str, Field(pattern=r"^(environment-[0-9a-f]{12})?$")] | None = None
    machine_record: Annotated[str, Field(pattern=r"^(machine-[0-9a-f]{12})?$")] | None = None
    workload_record: Annotated[str, Field(pattern=r"^(workload-[0-9a-f]{12})?$")] | None = None
    data: DataRecord | None = None

    @property
    def id(self) -> TrialId:
        """The id of the trial; its parts are exact, as the environment's name is known here."""
        ending = str(TrialId("", self.environment, self.repetition, self.attempt))
        return TrialId(self.trial_id.removesuffix(ending), self.environment, self.repetition, self.attempt)

    @property
    def axes(self) -> dict[str, Any]:
        """The axes that identify its case, in canonical order; empty where only the case's record has them."""
        return self.case.axes if self.case else {}

    @property
    def cell(self) -> MatrixCell:
        """The cell that the trial measures."""
        return MatrixCell(self.case_id, self.environment)

    @property
    def specification(self) -> dict[str, Any]:
        """The fields of the specification that are known: what a plan, an order and a record have in common."""
        return {name: value for name in Trial.model_fields if (value := getattr(self, name)) is not None}

    def renamed(self, trial_id: TrialId) -> Self:
        """The same trial as another repetition or attempt."""
        names = {"trial_id": str(trial_id), "repetition": trial_id.repetition, "attempt": trial_id.attempt}
        return self.model_copy(update=names)
