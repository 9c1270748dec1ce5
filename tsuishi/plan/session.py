"""What one call of Invoke works with: settings, choice, screen, checkout and clock, and what is made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tsuishi.artifacts import datasets
from tsuishi.artifacts.datasets import DataFile, DataSet
from tsuishi.base import toml
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.environments.batch import Building
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.machine.description import machine_record
from tsuishi.machine.gpus import Nvml
from tsuishi.machine.history import History
from tsuishi.plan.choice import Choice
from tsuishi.specs.environment import Environment
from tsuishi.specs.vocabulary import Vocabulary, vocabulary

# Seconds kept back beside the report's: for the tables of a run and the end of the command.
MARGIN_S = 3.0


@dataclass(frozen=True, eq=False)
class Session:
    """What one call of Invoke works with. It never changes: a run that is resumed gets a session of its own.

    What needs the machine (engines, GPUs, data) is looked for when it is first asked for.
    """

    settings: Settings
    choice: Choice
    screen: Screen
    checkout: Checkout = field(default_factory=Checkout)
    # What training reads where it is at hand; None: made-up images, whatever is at hand.
    data_set: DataSet | None = datasets.CIFAR10
    clock: Clock = field(default_factory=Clock)
    # Whether a report follows, for which time is kept.
    with_report: bool = True

    @property
    def words(self) -> Vocabulary:
        """The axes and quantities that the checkout describes. Raises UserError where a file is wrong."""
        return vocabulary(self.checkout.suites)

    @cached_property
    def builder(self) -> Builder:
        """The engines of this machine, and what has been built with them."""
        return Builder(self.settings, self.checkout)

    @cached_property
    def data(self) -> DataFile | None:
        """The data set at hand, verified once. Raises UserError where it is not what it should be."""
        if self.data_set is None:
            return None
        return datasets.at_hand(self.settings.data, self.settings.cache, self.data_set)

    @property
    def data_record(self) -> dict[str, str] | None:
        """The data set at hand, as trial.json and run.json keep it."""
        return self.data.record if self.data else None

    @cached_property
    def nvml(self) -> Nvml:
        """The GPUs that may be used. Raises UserError where the setting `gpus` asks for others than there are."""
        return Nvml(self.settings.gpus)

    @cached_property
    def machine(self) -> str:
        """The id of this machine's record."""
        return f"machine-{toml.digest(machine_record(self.nvml))}"

    @cached_property
    def history(self) -> History:
        """What things took on this machine."""
        return History(self.settings.cache, self.machine)

    def learn(self, name: str, took_s: float) -> None:
        """Remember how long something took. The history is read again: a resumed run, say, wrote to it meanwhile."""
        history = History(self.settings.cache, self.machine)
        history.learn(name, took_s)
        history.keep()

    @property
    def report_s(self) -> float:
        """Seconds that the report will take; none where there is to be none."""
        return self.history.report_s if self.with_report else 0.0

    def left_for_trials_s(self) -> float:
        """Seconds left for building and measuring: what is left but for the report's."""
        return self.clock.left_s - self.report_s - MARGIN_S

    def building(self) -> Building:
        """Builds and fetches environments, as this session is set."""
        return Building(self.builder, self.screen, self.history)

    def build(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        """Every environment, ready to be entered. Raises UserError for those that cannot be made, after the others.

        Where time is limited, what they are made of is fetched before, and that does not count.
        """
        building = self.building()
        if self.clock.within_s is not None and not self.settings.offline:
            with self.clock.apart():
                building.download(environments)
        return building.build(environments)
