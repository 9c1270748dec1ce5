"""Suites: what is measured. Cases, how each is timed, and what can be asked of them, from suites/<name>.toml."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, PrivateAttr

from tsuishi.base import toml
from tsuishi.base.errors import UserError, unknown
from tsuishi.specs.axes import Values
from tsuishi.specs.case import SUITE, Case
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.questions import Question
from tsuishi.specs.vocabulary import AXES_FILE, QUANTITIES_FILE, Vocabulary, vocabulary

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
    """A block of cases: the product of its axes, in the profiles and on the accelerator it is for.

    Its axes are those of the suite, but for those in `without`, with other values where `axes` says so, and with what
    `axes` adds at their end.
    """

    profiles: tuple[Profile, ...] = PROFILES
    # Where it runs; None means everywhere.
    accelerator: Accelerator | None = None
    # Leave out cases with more devices than the machine has GPUs, instead of sharing or refusing them.
    only_present: bool = False
    axes: dict[str, Values] = {}
    without: tuple[str, ...] = ()
    # In a profile, fewer values of some axes.
    narrowed: dict[Profile, dict[str, Values]] = {}
    expect: dict[Profile, ExpectedDuration] = {}

    def of(self, common: dict[str, Values]) -> "Group":
        """The group with the suite's common axes. Raises ValueError for axes that are not there to be changed."""
        for axis in self.without:
            if axis not in common or axis in self.axes:
                raise ValueError(f"without: '{axis}' is not among the suite's axes, or is given here; remove it")
        axes = {axis: values for axis, values in {**common, **self.axes}.items() if axis not in self.without}
        for profile, narrowed in self.narrowed.items():
            for axis, values in narrowed.items():
                if not set(values) <= set(axes.get(axis, ())):
                    known = ", ".join(map(str, axes.get(axis, ()))) or "none"
                    raise ValueError(f"narrowed.{profile}.{axis}: not among the group's values; these are: {known}")
        return self.model_copy(update={"axes": axes})

    def axes_in(self, profile: Profile) -> dict[str, Values]:
        """The values of every axis in a profile."""
        return {**self.axes, **self.narrowed.get(profile, {})}

    def expected_s(self, profile: Profile, batch_size: int, slowdown: float) -> float:
        """Seconds one trial is expected to take once its framework is up."""
        expect = self.expect.get(profile, ExpectedDuration())
        return expect.s + expect.s_per_image * batch_size * slowdown


class Suite(toml.Spec):
    """A set of related measurements, as suites/<name>.toml says it; its groups with the axes that all have."""

    prose = frozenset({"description"})

    name: toml.Name
    title: str
    description: str = ""
    source: str | None = None
    workload: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    profiles: dict[Profile, ProfileSettings] = {}
    # What a run with a budget may be about.
    questions: tuple[Question, ...] = ()
    # What its cases are compared by, side by side: a case by all of the first of these of which it has any.
    compared_by: tuple[tuple[str, ...], ...] = ()
    # What only this suite has, as suites/axes.toml and suites/quantities.toml describe the others': see vocabulary.py.
    new_axes: dict[str, Any] = {}
    new_quantities: dict[str, Any] = {}
    # Of every group, where it says nothing else.
    axes: dict[str, Values] = {}
    groups: tuple[Group, ...] = Field(min_length=1)
    _vocabulary: Vocabulary = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """The context is the vocabulary of the checkout."""
        self._vocabulary = context

    @property
    def words(self) -> Vocabulary:
        """The vocabulary of the checkout that the suite is of."""
        return self._vocabulary

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
                for case in self.group_cases(group.axes_in(profile)):
                    if case.id not in seen and (case.devices or 1) <= most:
                        seen.add(case.id)
                        yield case, group

    def group_cases(self, axes: dict[str, Values]) -> Iterator[Case]:
        """The product of a group's axes, the last axis turning fastest. Raises ValueError for an unknown value."""
        for values in itertools.product(*axes.values()):
            yield self._vocabulary.case({SUITE: self.name, **dict(zip(axes, values, strict=True))})


def read_suite(path: Path, words: Vocabulary) -> Suite:
    """The suite of a file. Raises UserError naming file and key; every case is validated here, not when it runs."""
    suite = toml.load(path, Suite, words, name=path.stem)
    groups = []
    for number, group in enumerate(suite.groups):
        try:
            whole = group.of(suite.axes)
        except ValueError as error:
            raise UserError(f"{path}: key 'groups[{number}]': {error}") from error
        try:
            for axis in whole.axes:
                words.known_axis(axis)
            list(suite.group_cases(whole.axes))
        except ValueError as error:
            raise UserError(f"{path}: groups[{number}].axes: {error}") from error
        groups.append(whole)
    return suite.model_copy(update={"groups": tuple(groups)})


def known_suites(suites: Path) -> dict[str, Path]:
    """Name and file of every suite, in alphabetical order."""
    descriptions = (AXES_FILE, QUANTITIES_FILE)
    return {path.stem: path for path in sorted(suites.glob("*.toml")) if path.name not in descriptions}


def select_suites(suites: Path, names: tuple[str, ...]) -> tuple[Suite, ...]:
    """The named suites, or all. Raises UserError for a name that is not there."""
    known = known_suites(suites)
    for name in names:
        if name not in known:
            raise unknown("suite", name, known)
    return tuple(read_suite(known[name], vocabulary(suites)) for name in names or known)


def profile_name(given: str) -> Profile:
    """A profile's name as given by a user. Raises UserError for an unknown one."""
    if given not in PROFILES:
        raise unknown("profile", given, PROFILES)
    return given
