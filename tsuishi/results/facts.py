"""Everything that a workload reports, typed once: facts about its environment, samples, metrics and phases.

Events carry it (stream/events.py), tables and trial.json keep it, and whatever reads a run has it in these types.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from tsuishi.base.toml import MOST, Record

Label = Annotated[str, Field(min_length=1, max_length=200)]
Scalar = str | int | float | bool | None
Seconds = Annotated[float, Field(ge=0, le=MOST)]


class ComputeDevice(Record, extra="ignore"):
    """A device that may compute."""

    kind: Literal["cpu", "gpu"]
    name: str


class Facts(Record):
    """Facts about an environment, as the framework in it reports them; a workload may report further facts.

    `simulated`: several devices were asked for, and they are not all distinct GPUs. `synthetic`: the data are made up.
    `remarks`: what is doubtful about the numbers of a trial that ended well, in words.
    """

    framework: str | None = None
    python: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    versions: dict[str, str] = {}
    packages: dict[str, str] = {}
    base_packages: dict[str, str] = {}
    system_packages: dict[str, str] = {}
    os: dict[str, str] = {}
    flags: dict[str, Scalar] = {}
    devices: list[ComputeDevice] = []
    simulated: bool = False
    synthetic: bool = False
    remarks: list[str] = []

    @classmethod
    def reported(cls, values: dict[str, Any]) -> "Facts":
        """Facts that are written in the order in which they were reported; unknown facts come last."""
        facts = cls.model_validate(values)
        # pydantic writes fields in the order of __dict__.
        ordered = sorted(facts.__dict__.items(), key=lambda item: [*values, item[0]].index(item[0]))
        object.__setattr__(facts, "__dict__", dict(ordered))
        return facts

    @property
    def title(self) -> str:
        """The framework and its version; empty where no framework is reported."""
        return f"{self.framework} {self.versions.get(self.framework, '')}".strip() if self.framework else ""

    @property
    def computed_on(self) -> str:
        """The names of the GPUs, or `cpu`; empty where no device is reported."""
        gpus = {device.name for device in self.devices if device.kind == "gpu"}
        return ", ".join(sorted(gpus)) if gpus else ("cpu" if self.devices else "")


class Sample(Record, extra="ignore"):
    """So many steps over so many images took so many seconds. `index`: 0, 1, … within its phase."""

    phase: Label
    index: int = Field(ge=0)
    steps: int = Field(ge=1)
    images: int = Field(ge=0)
    seconds: float = Field(gt=0, lt=1e9)


class Metric(Record, extra="ignore"):
    """A number with its name and unit; unit 1 is a pure number."""

    name: Label
    value: int | float
    unit: Label


class Phase(Record, extra="ignore"):
    """A part of a trial, in seconds since the trial started; without an end where the workload ended in it."""

    name: str
    begin_s: Seconds
    end_s: Seconds | None
