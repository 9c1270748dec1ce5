"""What the records of a run hold, typed: its environments and machines, as far as anything reads them again.

A run may come from anybody: whatever is read of it is held to types first. Keys that nobody knows are kept and ignored.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, ValidationError

from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.specs import axes
from tsuishi.specs.case import PROTOCOL, SUITE, case_id

# The largest whole number that JSON, pandas and JavaScript hold alike; beyond any count, size or time.
MOST = 1 << 53
REMEDY = "copy the run again, or remove what is wrong"
Ordinal = Annotated[int, Field(ge=1, le=MOST)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Amount = Annotated[float, Field(ge=0, le=MOST)]
Scalar = str | bool | Annotated[int, Field(ge=-MOST, le=MOST)] | float | None


class Recorded(BaseModel):
    """Base of what a run holds."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)


class Base(Recorded):
    reference: str | None = None
    used: str | None = None
    digest: str | None = None
    image_id: str | None = None


class Image(Recorded):
    id: str | None = None
    size_bytes: Count | None = None


class Substitution(Recorded):
    asked: str
    used: str


class EnvironmentRecord(Recorded):
    """records/environment-<id>.json."""

    name: str
    title: Scalar = None
    realised_id: str | None = None
    spec_id: Scalar = None
    lock_sha256: Scalar = None
    engine: Scalar = None
    engine_version: Scalar = None
    base: Base | None = None
    image: Image | None = None
    substitutions: list[Substitution] | None = None
    python: Scalar = None
    cuda: Scalar = None
    cudnn: Scalar = None
    versions: dict[str, Scalar] | None = None
    packages: dict[str, Scalar] | None = None
    sandbox: str | None = None
    variables: list[str] | None = None


class Processor(Recorded):
    model: str | None = None
    logical: Count | None = None
    physical: Count | None = None


class GpuRecord(Recorded):
    name: str
    index: Count | None = None
    memory_mib: Amount | None = None


class MachineRecord(Recorded):
    """records/machine-<id>.json."""

    cpu: Processor | None = None
    memory_mib: Amount | None = None
    os: Scalar = None
    kernel: Scalar = None
    driver: Scalar = None
    gpus: list[GpuRecord] | None = None


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
# The axes of a case in canonical order, also such as no file here describes: a run may come from anybody.
CaseAxes = Annotated[dict[_Axis, str | Ordinal], Field(max_length=100), AfterValidator(_of_a_suite)]


class CaseRecord(RootModel[CaseAxes]):
    """records/case-<id>.json."""

    model_config = ConfigDict(frozen=True, strict=True)


_RECORDS: dict[str, type[BaseModel]] = {
    "case": CaseRecord,
    "environment": EnvironmentRecord,
    "machine": MachineRecord,
}


def check_record(path: Path, record: Mapping[str, Any]) -> None:
    """Raise UserError where a record is not what its name says: its kind, and the hash of its content."""
    kind, _, found = path.stem.rpartition("-")
    if not re.fullmatch(r"[a-z]+", kind, re.ASCII) or found != toml.digest(record):
        raise UserError(f"{path}: its content is not that of its name; {REMEDY}")
    try:
        if kind in _RECORDS:
            _RECORDS[kind].model_validate(record)
    except (ValidationError, ValueError) as error:
        raise wrong(path, error, _RECORDS.get(kind, BaseModel)) from error


def check_case(known_as: str, axes: Mapping[str, Any]) -> None:
    """Raise ValueError where a case is not the one of that id."""
    if case_id(axes) != known_as:
        raise ValueError(f"the case {known_as} has another content")


def wrong(path: Path | str, error: ValidationError | ValueError, model: type[BaseModel]) -> UserError:
    """The error for a file of a run that is not what it should be."""
    said = toml.explain(error, model) if isinstance(error, ValidationError) else str(error)
    return UserError(f"{path}: {said}; {REMEDY}")
