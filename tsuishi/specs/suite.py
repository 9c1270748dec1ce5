"""Suites, from suites/<name>.toml: their cases, how these are timed, and the questions about them."""

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import UserError, leave_out, unknown
from tsuishi.specs.axes import Values
from tsuishi.specs.case import SUITE, Case, Value
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.experiment import WORKLOAD, Experiment, Pattern, ScriptOrder, numerals_of
from tsuishi.specs.questions import Question
from tsuishi.specs.vocabulary import AXES_FILE, QUANTITIES_FILE, Vocabulary, vocabulary

Profile = Literal["smoke", "quick", "full"]
PROFILES: tuple[Profile, ...] = ("smoke", "quick", "full")
# A process that computes on a GPU takes so long until its first steps: 4 to 5 s with PyTorch 2.11 on an H100, and about
# a second for the network and the algorithms of its convolutions.
_CUDA_START_S = 5.5
# A steady device is known to be steady after this share of settle_s (suites/workloads/common/timing.py).
_SETTLED_AFTER = 1 / 3
_PART = "(loading|forward|forward_backward)"


class TimingSettings(toml.Spec):
    """Durations and counts of a measurement. Workloads use the same names (suites/workloads/common/timing.py)."""

    warm_up_steps: toml.Count = 20
    warm_up_s: toml.Seconds = 5.0
    # A warm-up goes on until the device is steady, for so long at most. Where its steps then still differ, max_s is
    # measured in place of measure_s: that is known before the first timed block.
    settle_s: toml.Seconds = 0.0
    block_s: toml.Seconds = 1.0
    min_blocks: toml.Count = 8
    measure_s: toml.Seconds = 10.0
    max_s: toml.Seconds = 60.0
    later_runs: toml.Count = 10
    # Literal training and inference: so many passes, each timed on its own; 0: epochs, or a source's package.
    readings: Annotated[int, Field(ge=0, le=10_000)] = 0
    # Steps that are timed one by one go on for so long in all, so that the load of GPUs can be read.
    load_s: toml.Seconds = 10.0
    epochs: toml.Count = 100
    train_images: toml.Count = 50000
    test_images: toml.Count = 10000
    # Parameters of SGD.
    learning_rate: Annotated[float, Field(gt=0, le=1e9)] = 0.01
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    # An early stop of a literal training needs so many epochs, without the first.
    min_epochs: toml.Count = 3
    # It stops early when the relative standard error of the mean over epochs is this small; 0: never.
    stop_at: Annotated[float, Field(ge=0, lt=1)] = 0.0
    # The parts of a step that are also timed on their own, with commas: loading, forward, forward_backward.
    parts: Annotated[str, Field(pattern=rf"^({_PART}(,{_PART})*)?$")] = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    @property
    def steady_s(self) -> float:
        """The seconds of steady timing of a case whose steps are short: warm-up, blocks, and the same of each part."""
        phases = 1 + len([name for name in self.parts.split(",") if name])
        return phases * (self.warm_up_s + _SETTLED_AFTER * self.settle_s + self.measure_s)


class ProfileSettings(toml.Spec):
    """How often and how long the trials of a suite run in a profile."""

    repetitions: dict[Accelerator, Annotated[int, Field(ge=1, le=10_000)]] = {"cpu": 1, "cuda": 3}
    timeout_s: toml.Above0Seconds = 600.0
    settings: TimingSettings = TimingSettings()
    # The settings on GPUs, where they differ from those on CPUs.
    settings_on_cuda: TimingSettings | None = None

    def settings_for(self, accelerator: Accelerator, of_group: TimingSettings | None = None) -> TimingSettings:
        """How a case is timed on an accelerator. of_group: the settings that its group gives."""
        settings = (self.settings_on_cuda if accelerator == "cuda" else None) or self.settings
        return settings.model_copy(update=of_group.model_dump(exclude_unset=True)) if of_group else settings


class ExpectedDuration(toml.Spec):
    """A guess of the duration of a trial in the fastest environment on two CPU cores, without the framework's start.

    On GPUs `s` alone counts, and for steady cases the time that their settings give, where that is longer.
    """

    s: toml.Seconds = 5.0
    # More seconds for each image of the batch. They are multiplied by the slowdown of the environment.
    s_per_image: toml.Seconds = 0.0


class Group(toml.Spec):
    """A group of cases: the product of its axes, in its profiles and on its accelerator.

    It has the axes of the suite, except those in `without`. `axes` replaces their values, and adds axes at their end.
    """

    profiles: tuple[Profile, ...] = PROFILES
    # None means every accelerator.
    accelerator: Accelerator | None = None
    # Whether cases with more devices than the machine has GPUs are left out, instead of sharing or refusing GPUs.
    only_present: bool = False
    axes: dict[str, Values] = {}
    without: tuple[str, ...] = ()
    # Fewer values of some axes, by profile.
    narrowed: dict[Profile, dict[str, Values]] = {}
    # The timing of its cases, where it is not that of the profile, by profile.
    settings: dict[Profile, TimingSettings] = {}
    expect: dict[Profile, ExpectedDuration] = {}

    def of(self, common: dict[str, Values]) -> "Group":
        """The group with the common axes of its suite. Raises ValueError where it leaves out or narrows other axes."""
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
        """The expected seconds of a trial on two CPU cores, after the start of its framework."""
        expect = self.expect.get(profile, ExpectedDuration())
        return expect.s + expect.s_per_image * batch_size * slowdown

    def expected_on_cuda_s(self, profile: Profile, protocol: Value, settings: TimingSettings) -> float:
        """The expected seconds of a trial on GPUs, from the start of its process.

        What a group of all accelerators says of a steady trial is said of CPUs.
        """
        timed_s, said = settings.steady_s, self.expect.get(profile)
        if protocol != "steady":
            timed_s = said.s if said else ExpectedDuration().s
        elif said and self.accelerator == "cuda":
            timed_s = max(timed_s, said.s)
        return _CUDA_START_S + timed_s


class Suite(toml.Spec):
    """A set of related measurements, as suites/<name>.toml describes it. Its groups include the common axes."""

    prose = frozenset({"description"})

    name: toml.Name
    title: str
    description: str = ""
    source: str | None = None
    workload: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    # Whether a run has it that names no suites.
    default: bool = True
    # What a batch is of, where that is not images.
    batch_of: toml.Texts | None = None
    profiles: dict[Profile, ProfileSettings] = {}
    # The questions among which a run with a time limit chooses.
    questions: tuple[Question, ...] = ()
    # Axes and quantities of this suite alone, described as in suites/axes.toml and suites/quantities.toml.
    new_axes: dict[str, Any] = {}
    new_quantities: dict[str, Any] = {}
    # A program that the workload `script` runs, and the patterns of its output.
    experiment: Experiment | None = None
    patterns: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Pattern] = {}
    # The common axes of all groups.
    axes: dict[str, Values] = {}
    groups: tuple[Group, ...] = Field(min_length=1)
    _vocabulary: Vocabulary = PrivateAttr()

    @model_validator(mode="after")
    def _script_has_its_workload(self) -> "Suite":
        if (self.experiment is not None) != (self.workload == WORKLOAD):
            raise ValueError(f'[experiment] and workload = "{WORKLOAD}" go together')
        if self.patterns and self.experiment is None:
            raise ValueError("patterns: they belong to an [experiment]")
        return self

    def model_post_init(self, context: Any) -> None:
        """`context` is the vocabulary of the checkout."""
        self._vocabulary = context

    @property
    def words(self) -> Vocabulary:
        """The vocabulary of the checkout that has the suite."""
        return self._vocabulary

    def profile(self, name: Profile) -> ProfileSettings:
        """The settings of a profile; the defaults where the file does not mention the profile."""
        return self.profiles.get(name, ProfileSettings())

    def cases(
        self, profile: Profile, accelerator: Accelerator, gpus: int | None = None, nodes: int | None = 1
    ) -> Iterator[tuple[Case, Group]]:
        """Every case of a profile on an accelerator, without repetition, with the group that gives it.

        gpus: the number of GPUs of a node, which limits the groups with `only_present`. nodes: the most nodes of a
        case. None: there is no limit.
        """
        seen = set()
        for group in self.groups:
            if profile in group.profiles and group.accelerator in (None, accelerator):
                most = gpus if group.only_present and gpus is not None else math.inf
                for case in self.group_cases(group.axes_in(profile)):
                    fits = (case.devices or 1) <= most * case.nodes and case.nodes <= (nodes or math.inf)
                    if case.id not in seen and fits:
                        seen.add(case.id)
                        yield case, group

    def script_order(self, case: Case, folder: Path) -> ScriptOrder | None:
        """The order to run the suite's script for a case; None without a script. folder: of the suite's file.

        Raises ValueError for a group of a pattern that no quantity is made of.
        """
        if self.experiment is None:
            return None
        experiment, values = self.experiment, case.values
        return ScriptOrder(
            folder=folder,
            files=experiment.every_file,
            command=tuple(experiment.filled(word, values) for word in experiment.command),
            variables={name: experiment.filled(text, values) for name, text in experiment.variables.items()},
            patterns=tuple(pattern.described(name, self._unit_of) for name, pattern in self.patterns.items()),
            numerals=numerals_of(self.patterns, self._unit_of),
            data=experiment.data,
        )

    def _unit_of(self, metric: str) -> str:
        """The unit of a metric's quantity. Raises ValueError where no quantity is made of this metric."""
        for quantity in self._vocabulary.made_of(self.name):
            if quantity.origin == f"metric:{metric}":
                return quantity.unit
        raise ValueError(
            f"patterns: no quantity is made of the group '{metric}': describe it under [new_quantities.<name>], with "
            f'a label, a unit and from = "metric:{metric}"'
        )

    def group_cases(self, axes: dict[str, Values]) -> Iterator[Case]:
        """The product of the axes; the last axis changes fastest. Raises ValueError for an unknown value."""
        return self._vocabulary.cases({SUITE: (self.name,), **axes})


def read_suite(path: Path, words: Vocabulary) -> Suite:
    """The suite in a file. All its cases are checked now, not when they run. Raises UserError naming file and key."""
    if path in words.wrong:
        raise UserError(words.wrong[path])
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
            cases = list(suite.group_cases(whole.axes))
            if suite.experiment is not None:
                suite.experiment.check_axes(
                    {axis: each for axis, each in whole.axes.items() if not words.axes[axis].is_of_process}
                )
                suite.script_order(cases[0], path.parent)
        except ValueError as error:
            raise UserError(f"{path}: groups[{number}].axes: {error}") from error
        groups.append(whole)
    if suite.experiment is not None:
        try:
            suite.experiment.check_files(path.parent)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from error
    return suite.model_copy(update={"groups": tuple(groups)})


# A plan asks for every suite several times. An altered file makes another vocabulary.
_read_once = lru_cache(maxsize=64)(read_suite)


def known_suites(suites: Path) -> dict[str, Path]:
    """Name and file of every suite, in alphabetical order."""
    descriptions = (AXES_FILE, QUANTITIES_FILE)
    return {path.stem: path for path in sorted(suites.glob("[!.]*.toml")) if path.name not in descriptions}


def every_suite(suites: Path) -> tuple[Suite, ...]:
    """All suites, in alphabetical order. Those whose file is wrong are named, and left out."""
    words, found = vocabulary(suites), []
    for path in known_suites(suites).values():
        try:
            found.append(_read_once(path, words))
        except UserError as error:
            leave_out(str(error))
    return tuple(found)


def select_suites(suites: Path, names: tuple[str, ...]) -> tuple[Suite, ...]:
    """The named suites; without names, those that are run by default. Raises UserError for an unknown name."""
    if not names:
        return tuple(suite for suite in every_suite(suites) if suite.default)
    known = known_suites(suites)
    for name in names:
        if name not in known:
            raise unknown("suite", name, known)
    return tuple(_read_once(known[name], vocabulary(suites)) for name in names)


def profile_name(given: str) -> Profile:
    """The profile that a user named. Raises UserError for an unknown name."""
    if given not in PROFILES:
        raise unknown("profile", given, PROFILES)
    return given
