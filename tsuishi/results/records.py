"""What the records of a run hold, typed: its environments and machines, as far as anything reads them again.

A run may come from anybody: whatever is read of it is held to types first. Keys that nobody knows are kept and ignored.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tsuishi.base import toml
from tsuishi.specs.case import Case
from tsuishi.base.errors import UserError

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


_RECORDS: dict[str, type[BaseModel]] = {"environment": EnvironmentRecord, "machine": MachineRecord}


def check_record(path: Path, record: Mapping[str, Any]) -> None:
    """Raise UserError where a record is not what its name says: its kind, and the hash of its content."""
    kind, _, found = path.stem.rpartition("-")
    if not re.fullmatch(r"[a-z]+", kind, re.ASCII) or found != toml.digest(record):
        raise UserError(f"{path}: its content is not that of its name; {REMEDY}")
    try:
        if kind == "case":
            check_case(found, record)
        elif kind in _RECORDS:
            _RECORDS[kind].model_validate(record)
    except (ValidationError, ValueError) as error:
        raise wrong(path, error, _RECORDS.get(kind, Case)) from error


def check_case(case_id: str, axes: Mapping[str, Any]) -> None:
    """Raise ValueError where a case is not the one of that id."""
    if Case.model_validate(dict(axes)).id != case_id:
        raise ValueError(f"the case {case_id} has another content")


def wrong(path: Path | str, error: ValidationError | ValueError, model: type[BaseModel]) -> UserError:
    """The error for a file of a run that is not what it should be."""
    said = toml.explain(error, model) if isinstance(error, ValidationError) else str(error)
    return UserError(f"{path}: {said}; {REMEDY}")
