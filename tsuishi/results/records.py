"""The records that trials leave, typed: of the trial, its environment, its machine and its workload.

A run may come from any author: every record is checked against its type when it is read.
"""

from datetime import date
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, RootModel, model_validator

from tsuishi.base import toml
from tsuishi.base.toml import MOST, Record
from tsuishi.results.facts import Facts, Phase, Seconds
from tsuishi.specs.claims import all_reach
from tsuishi.specs.statuses import RECORDED
from tsuishi.specs.trial_spec import Axes, Trial

Count = Annotated[int, Field(ge=0, le=MOST)]
Number = Annotated[int | float, Field(ge=0, le=MOST)]
FileName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9._-]{0,63}$")]


class BaseRecord(Record):
    """The base image of an environment: the image in the spec, and the image that was used."""

    reference: str | None = None
    used: str | None = None
    digest: str | None = None
    image_id: str | None = None


class Image(Record):
    """The image of an environment. `layers`: the digests of its content."""

    id: str | None = None
    tag: str | None = None
    size_bytes: Count | None = None
    layers: list[str] | None = None
    created: str | None = None
    labels: dict[str, str] | None = None


class Substitution(Record):
    """A part that was used in the place of the requested part."""

    asked: str
    used: str


class EnvironmentRecord(Record):
    """records/environment-<id>.json: an environment: its spec, its build, and its report about itself.

    `family`: of the framework's releases, with the day on which this release appeared.
    `sandbox`, `variables` and `folders` are of environments without containers; `image` and `sbom` (CycloneDX) of
    images. `folders`: of the user's variables that name folders, a digest of each value, by the variable's name.
    """

    kind: ClassVar = "environment"

    name: str
    title: str | None = None
    framework: str | None = None
    family: str | None = None
    released: Annotated[date, Field(strict=False)] | None = None
    pinned: bool | None = None
    spec_id: str | None = None
    realised_id: str | None = None
    lock_sha256: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    base: BaseRecord | None = None
    substitutions: list[Substitution] | None = None
    image: Image | None = None
    sandbox: str | None = None
    variables: list[str] | None = None
    folders: dict[str, str] | None = None
    python: str | None = None
    versions: dict[str, str] | None = None
    cuda: str | None = None
    cudnn: str | None = None
    cuda_usable: bool = False
    packages: dict[str, str] | None = None
    sbom: dict[str, Any] | None = None
    command_prefix: list[str] | None = None


def other_versions(recorded: EnvironmentRecord, seen: Facts) -> dict[str, tuple[str, str]]:
    """Each seen version that differs from the recorded version, and the latter, by name; only names in both."""
    expected, actual = _versions(recorded), _versions(seen)
    return {
        name: (actual[name], expected[name])
        for name in sorted(expected.keys() & actual.keys())
        if actual[name] != expected[name]
    }


def _versions(known: EnvironmentRecord | Facts) -> dict[str, str]:
    """The versions of Python, CUDA, cuDNN, modules and packages, by name."""
    alone = {"python": known.python, "cuda": known.cuda, "cudnn": known.cudnn}
    packages = {f"package {name}": version for name, version in (known.packages or {}).items()}
    every = {**(known.versions or {}), **packages, **alone}
    return {name: version for name, version in every.items() if version is not None}


class Processor(Record):
    """The CPU of a machine. `usable`: the logical cores that this process may use. `governor`: of its frequency.

    `max_mhz`: the limit that the governor keeps, which a user may lower; `min_mhz` alike. Of cores that differ, a list
    of all values; an earlier tsuishi asked the first core only. `turbo`: whether the limit may be exceeded.
    """

    model: str | None = None
    logical: Count | None = None
    physical: Count | None = None
    usable: Count | None = None
    governor: str | list[str] | None = None
    max_mhz: Number | list[Number] | None = None
    min_mhz: Number | list[Number] | None = None
    turbo: bool | None = None
    numa_nodes: Count | None = None


class LimitsRecord(Record):
    """What limits the process that orders or runs trials; a limit that it does not have is None.

    `cores`: those that it may use, or fewer by the quota. `affinity`: their numbers, 0-3,8. `processes`: of the cgroup.
    `ulimits`: by name, in bytes, seconds or numbers. Containers have their engine's limits in the place of these.
    """

    cores: Number | None = None
    affinity: str | None = None
    cpu_quota: Number | None = None
    memory_limit_mib: Number | None = None
    processes: Count | None = None
    ulimits: dict[str, Count] | None = None
    nice: Annotated[int, Field(ge=-MOST, le=MOST)] | None = None
    scheduling: str | None = None
    variables: dict[str, str] | None = None


class GpuRecord(Record):
    """A GPU of a machine: see Nvml.describe."""

    index: Count | None = None
    name: str
    uuid: str | None = None
    compute_capability: str | None = None
    memory_mib: Number | None = None
    memory_reserved_mib: Number | None = None
    power_limit_w: Number | None = None
    power_limit_default_w: Number | None = None
    power_reading: str | None = None
    sm_clock_max_mhz: Number | None = None
    memory_clock_max_mhz: Number | None = None
    display_active: bool | None = None
    pcie_generation_max: Count | None = None
    pcie_lanes_max: Count | None = None
    c2c_links: Count | None = None
    persistence_mode: bool | None = None
    compute_mode: str | None = None
    ecc: bool | None = None
    sm_clock_set_mhz: Number | None = None

    @property
    def usable_mib(self) -> float | None:
        """The memory that programs can have: without the memory that driver and firmware reserve, where known."""
        return None if self.memory_mib is None else self.memory_mib - (self.memory_reserved_mib or 0)


class LinkRecord(Record):
    """How two GPUs of a machine reach each other, by index: see Nvml.links."""

    gpus: Annotated[list[Count], Field(min_length=2, max_length=2)]
    peer_to_peer: bool | None = None
    nvlink: bool | None = None
    ancestor: str | None = None

    def __str__(self) -> str:
        more = [name for name, there in (("peer-to-peer", self.peer_to_peer), ("NVLink", self.nvlink)) if there]
        return " ".join(["–".join(map(str, self.gpus)), *more, *([self.ancestor] if self.ancestor else [])])


class MachineRecord(Record):
    """records/machine-<id>.json: a machine, without anything that names it or its user."""

    kind: ClassVar = "machine"

    cpu: Processor | None = None
    memory_mib: Number | None = None
    architecture: str | None = None
    kernel: str | None = None
    os: str | None = None
    driver: str | None = None
    gpus: list[GpuRecord] | None = None
    links: list[LinkRecord] | None = None
    # Of all GPUs, where an earlier tsuishi noted no links.
    peer_to_peer: bool | None = None
    # Why no trial used the GPUs of NVIDIA that are in it.
    gpus_unused: str | None = None
    wsl: bool | None = None
    modules: list[str] | None = None
    huge_pages: str | None = None
    # Whether a program waits for a huge page.
    huge_pages_defrag: str | None = None
    # The libraries of /etc/ld.so.preload, which every program of the host loads: a digest by the name of the file.
    preloaded: dict[str, str] | None = None
    # AC or battery.
    power: str | None = None
    platform_profile: str | None = None
    # An earlier tsuishi recorded none.
    limits: LimitsRecord | None = None

    def reach(self, count: int) -> bool | None:
        """Whether the first `count` GPUs, which are those of a trial, read each other's memory; None if unknown."""
        if self.links is None:
            return self.peer_to_peer
        links = {(*link.gpus,): link.peer_to_peer for link in self.links}
        return all_reach(links, [gpu.index for gpu in (self.gpus or ())[:count]])


class WorkloadRecord(Record):
    """records/workload-<id>.json: the code that a trial ran. `files`: SHA-256 by path. `data`: of a script, alike."""

    kind: ClassVar = "workload"

    workload: str | None = None
    files: dict[str, str] | None = None
    data: dict[str, str] | None = None


class CaseRecord(RootModel[Axes]):
    """records/case-<id>.json: the axes that are the identity of a case."""

    model_config = ConfigDict(frozen=True, strict=True)

    kind: ClassVar = "case"

    def content(self) -> dict[str, str | int]:
        """The record as JSON."""
        return self.root


def _status(text: str) -> str:
    if text not in RECORDED:
        raise ValueError(f"no status; known: {', '.join(RECORDED)}")
    return text


class FileRecord(Record, extra="forbid"):
    """A file at the time of its writing."""

    bytes: Count
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class TrialRecord(Trial, extra="ignore"):
    """trial.json: the specification of a trial, and how it ended: everything that is not in its other files.

    `files`: these, by name. `tables`: the SHA-256 of each table, where an earlier tsuishi noted no more.
    `command` runs the case once more inside its environment.
    """

    attempt: Annotated[int, Field(ge=1, le=10_000)]
    case_record: Annotated[str, Field(pattern=r"^case-[0-9a-f]{12}$")]
    framework: str | None = None
    device: str | None = None
    status: Annotated[str, AfterValidator(_status)]
    reason: str | None = None
    exit_code: Annotated[int, Field(ge=-MOST, le=MOST)] | None = None
    simulated: bool | None = None
    synthetic: bool | None = None
    started_at: str | None = None
    duration_s: Seconds | None = None
    startup_s: Seconds | None = None
    energy_j: Annotated[float, Field(ge=0, le=MOST)] | None = None
    energy_source: str | None = None
    peak_process_memory_mib: Annotated[float, Field(ge=0, le=MOST)] | None = None
    others_cpu_percent: Annotated[float, Field(ge=0, le=MOST)] | None = None
    events_garbled: Count | None = None
    events_missing: Count | None = None
    phases: list[Phase] | None = None
    reported: Facts | None = None
    files: dict[FileName, FileRecord] | None = None
    tables: dict[str, str] | None = None
    command: list[str] | None = None
    # On a cluster: the other jobs that were seen on its node as it began or ended, in words.
    beside: list[str] | None = None

    @model_validator(mode="after")
    def _is_of_its_case(self) -> "TrialRecord":
        if self.case and self.case.id != self.case_id:
            raise ValueError(f"the case {self.case_id} has another content")
        return self

    @property
    def cited(self) -> list[str]:
        """The ids of the records that it names."""
        named = self.case_record, self.environment_record, self.machine_record, self.workload_record
        return [name for name in named if name]

    @property
    def digests(self) -> dict[str, str] | None:
        """The SHA-256 of each table, by the table's name; None where none was noted."""
        if self.files is None:
            return self.tables
        return {name.removesuffix(".csv"): about.sha256 for name, about in self.files.items() if name.endswith(".csv")}


AnyRecord = CaseRecord | EnvironmentRecord | MachineRecord | WorkloadRecord
RECORDS: dict[str, type[AnyRecord]] = {
    record.kind: record for record in (CaseRecord, EnvironmentRecord, MachineRecord, WorkloadRecord)
}


def record_id(record: AnyRecord) -> str:
    """The id of a record, `<kind>-<hash of its content>`: the same content has the same id everywhere."""
    return f"{record.kind}-{toml.digest(record.content())}"
