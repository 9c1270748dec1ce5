"""Suites: what is measured. Cases, how each is timed, and what can be asked of them, from suites/<name>.toml."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, ValidationError, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import UserError, unknown
from tsuishi.specs.case import AXES, Case, Values
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.questions import Question

Profile = Literal["smoke", "quick", "full"]
PROFILES: tuple[Profile, ...] = ("smoke", "quick", "full")


class TimingSettings(toml.Spec):
    """How long and how often; the same names in every workload (see suites/workloads/common/timing.py)."""

    warm_up_steps: PositiveInt = 20
    warm_up_s: float = 5.0
    block_s: float = 1.0
    min_blocks: PositiveInt = 8
    measure_s: float = 10.0
    max_s: float = 60.0
    later_runs: PositiveInt = 10
    epochs: PositiveInt = 100
    train_images: PositiveInt = 50000
    test_images: PositiveInt = 10000
    # Of SGD.
    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    # After the first one: the least an early stop needs.
    min_epochs: PositiveInt = 3
    # Stop measuring once the mean is known this well (relative standard error over blocks or epochs); 0: never.
    stop_at: Annotated[float, Field(ge=0, lt=1)] = 0.0
    # Time forward pass and gradients on their own as well.
    parts: bool = False
    seed: int = 0


class ProfileSettings(toml.Spec):
    """How much of a suite is run under one profile."""

    repetitions: dict[Accelerator, PositiveInt] = {"cpu": 1, "cuda": 3}
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    settings: TimingSettings = TimingSettings()
    # On GPUs, where something else is quick than on CPUs; without it the same.
    settings_on_cuda: TimingSettings | None = None

    def settings_for(self, accelerator: Accelerator) -> TimingSettings:
        """How a case is timed on an accelerator."""
        return (self.settings_on_cuda if accelerator == "cuda" else None) or self.settings


class ExpectedDuration(toml.Spec):
    """The plan's guess at one trial in the fastest environment on two CPU cores, start-up not counted."""

    s: float = 5.0
    # Seconds per image of the batch, for what grows with it; a slower environment takes its slowdown times this.
    s_per_image: float = 0.0


class Group(toml.Spec):
    """A block of cases: the product of its axes, in the profiles and on the accelerator it is for."""

    profiles: tuple[Profile, ...] = PROFILES
    # Where it runs; None means everywhere.
    accelerator: Accelerator | None = None
    # Leave out cases with more devices than the machine has GPUs, instead of sharing or refusing them.
    only_present: bool = False
    axes: dict[str, Values]
    # In a profile, fewer values of some axes.
    narrowed: dict[Profile, dict[str, Values]] = {}
    expect: dict[Profile, ExpectedDuration] = {}

    @model_validator(mode="after")
    def _narrowed_to_some_of_its_values(self) -> "Group":
        for profile, axes in self.narrowed.items():
            for axis, values in axes.items():
                if not set(values) <= set(self.axes.get(axis, ())):
                    known = ", ".join(map(str, self.axes.get(axis, ()))) or "none"
                    raise ValueError(f"narrowed.{profile}.{axis}: not among the group's values; these are: {known}")
        return self

    def axes_in(self, profile: Profile) -> dict[str, Values]:
        """The values of every axis in a profile."""
        return {**self.axes, **self.narrowed.get(profile, {})}

    def expected_s(self, profile: Profile, batch_size: int, slowdown: float) -> float:
        """Seconds one trial is expected to take once its framework is up."""
        expect = self.expect.get(profile, ExpectedDuration())
        return expect.s + expect.s_per_image * batch_size * slowdown


class Suite(toml.Spec):
    """A set of related measurements, as suites/<name>.toml says it."""

    prose = frozenset({"description"})

    name: toml.Name
    title: str
    description: str = ""
    source: str | None = None
    workload: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    profiles: dict[Profile, ProfileSettings] = {}
    # What a run with a budget may be about.
    questions: tuple[Question, ...] = ()
    groups: tuple[Group, ...] = Field(min_length=1)

    def profile(self, name: Profile) -> ProfileSettings:
        """How a profile is timed; one the file does not mention has the defaults."""
        return self.profiles.get(name, ProfileSettings())

    def cases(
        self, profile: Profile, accelerator: Accelerator, gpus: int | None = None
    ) -> Iterator[tuple[Case, Group]]:
        """Every case of a profile on an accelerator, once each, with the group it comes from.

        gpus: how many there are, for the groups that are for those present only; None: as many as they like.
        """
        seen = set()
        for group in self.groups:
            if profile in group.profiles and group.accelerator in (None, accelerator):
                most = gpus if group.only_present and gpus is not None else math.inf
                for case in group_cases(self.name, group.axes_in(profile)):
                    if case.id not in seen and (case.devices or 1) <= most:
                        seen.add(case.id)
                        yield case, group


def group_cases(suite: str, axes: dict[str, Values]) -> Iterator[Case]:
    """The product of a group's axes, the last axis turning fastest."""
    for values in itertools.product(*axes.values()):
        yield Case.model_validate({"suite": suite, **dict(zip(axes, values, strict=True))})


def read_suite(path: Path) -> Suite:
    """The suite of a file. Raises UserError naming file and key; every case is validated here, not when it runs."""
    suite = toml.load(path, Suite, name=path.stem)
    for number, group in enumerate(suite.groups):
        where = f"{path}: groups[{number}].axes"
        for axis in group.axes:
            if axis not in AXES or axis == "suite":
                raise UserError(f"{where}: {unknown('axis', axis, set(AXES) - {'suite'})}")
        try:
            list(group_cases(suite.name, group.axes))
        except ValidationError as error:
            raise UserError(f"{where}: {toml.explain(error, Case)}") from error
    return suite


def known_suites(suites: Path) -> dict[str, Path]:
    """Name and file of every suite, in alphabetical order."""
    return {path.stem: path for path in sorted(suites.glob("*.toml"))}


def select_suites(suites: Path, names: tuple[str, ...]) -> tuple[Suite, ...]:
    """The named suites, or all. Raises UserError for a name that is not there."""
    known = known_suites(suites)
    for name in names:
        if name not in known:
            raise unknown("suite", name, known)
    return tuple(read_suite(known[name]) for name in names or known)


def profile_name(given: str) -> Profile:
    """A profile's name as given by a user. Raises UserError for an unknown one."""
    if given not in PROFILES:
        raise unknown("profile", given, PROFILES)
    return given
