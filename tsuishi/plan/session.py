"""The session of a command: its settings, choice, screen, checkout and clock, and what they give."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tsuishi.artifacts import datasets
from tsuishi.artifacts.datasets import DataFile, DataSet
from tsuishi.base import exclusion, toml
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings, of_executor
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.machine.gpus import Gpu, Nvml
from tsuishi.plan.choice import Choice
from tsuishi.results.run_record import RUN_SUITE
from tsuishi.specs.environment import Accelerator, Environment
from tsuishi.specs.vocabulary import Vocabulary, vocabulary

if TYPE_CHECKING:  # a command imports only what it uses
    from tsuishi.environments.batch import Building
    from tsuishi.machine.history import History
    from tsuishi.plan.trials import PlannedTrial

# Seconds that are kept for the tables of a run and the end of the command; the report has its own.
MARGIN_S = 3.0
# A GPU takes about a minute to reach the clocks and temperatures of long work; it may take this share of the time. Each
# trial warms its own device, and the rest of a drift cancels in comparisons, as their sides alternate.
_HEAT_GPU_S, _HEAT_SHARE = 60.0, 0.03
# Seconds from a command to its first trial, where nothing has to be built.
_STARTS_IN_S = 10.0


class Nodes(Protocol):
    """The machines to which an executor of an extra gives trials, as a plan has to know them."""

    @property
    def id(self) -> str:
        """The id of these machines, for the durations of earlier trials there."""

    def nvml(self, accelerator: str, say: Callable[[str], None]) -> Nvml:
        """The GPUs that a trial gets. Raises UserError where nobody says which."""

    def at_once(self) -> int:
        """How many trials run at the same time. Raises UserError where nobody says how many."""

    def expected(self, planned: "Sequence[PlannedTrial]", gpus: Sequence[Gpu]) -> str:
        """The line that says what trials take there. gpus: of each trial."""


@dataclass(frozen=True, eq=False)
class Session:
    """Everything that a command works with. It never changes: a run that is resumed gets a session of its own.

    Engines, GPUs and data are looked for only when they are first needed.
    """

    settings: Settings
    choice: Choice
    screen: Screen
    checkout: Checkout = field(default_factory=Checkout)
    # The data set that training reads if it is at hand; None: training always reads made-up images.
    data_set: DataSet | None = datasets.CIFAR10
    clock: Clock = field(default_factory=Clock)
    # Whether a report follows; time is kept for it.
    with_report: bool = True
    # The task that makes runs, and what it asks of them.
    task: str = RUN_SUITE
    request: Mapping[str, Any] = field(default_factory=dict)
    # Gives the sentences of a report on the questions that a run has decided so far, by the question's id.
    decided: Callable[[Path], Mapping[str, str]] = lambda run: {}
    # Gives the suite whose cases all need one more look, by the trials that a run has so far; empty: no suite does.
    open_suite: Callable[[Path], str] = lambda run: ""

    @property
    def words(self) -> Vocabulary:
        """The axes and quantities that the checkout describes. Raises UserError where a file is wrong."""
        return vocabulary(self.checkout.suites)

    @cached_property
    def builder(self) -> Builder:
        """Finds and makes environments with the engines of this machine."""
        return Builder(self.settings, self.checkout)

    @cached_property
    def data(self) -> DataFile | None:
        """The file of the data set, which is verified once; None where it is not at hand.

        Raises UserError where the file is not that of the data set.
        """
        if self.data_set is None:
            return None
        return datasets.at_hand(self.settings.data, self.settings.cache, self.data_set)

    @property
    def data_record(self) -> dict[str, str] | None:
        """The record of the data set for trial.json and run.json; None where it is not at hand."""
        return self.data.record if self.data else None

    @cached_property
    def nodes(self) -> Nodes | None:
        """The nodes of the executor that the settings name; None: trials run on this machine."""
        if self.settings.runs_here:
            return None
        nodes: Nodes = of_executor("NODES", self.settings)(self.settings)
        return nodes

    @cached_property
    def nvml(self) -> Nvml:
        """The GPUs that may be used: here, or on the nodes of a cluster.

        Raises UserError where the setting `gpus` asks for a GPU that is not here, and as `Nodes.nvml` does.
        """
        if self.nodes:
            return self.nodes.nvml(self.choice.accelerator, self.screen.say)
        return Nvml(self.settings.gpus)

    @cached_property
    def machine(self) -> str:
        """The id of this machine's record; for trials on a cluster, an id of the nodes that were asked for."""
        from tsuishi.machine.description import machine_record

        if self.nodes:
            return self.nodes.id
        return f"machine-{toml.digest(machine_record(self.nvml))}"

    @cached_property
    def history(self) -> "History":
        """The durations of earlier work on this machine."""
        return self._history()

    def _history(self) -> "History":
        from tsuishi.machine.description import machine_record
        from tsuishi.machine.history import History
        from tsuishi.results.records import MachineRecord
        from tsuishi.results.same_machine import is_like

        if self.nodes:
            return History(self.settings.cache, self.machine)
        here = MachineRecord.model_validate(machine_record(self.nvml))
        # What was learnt here before the system was updated counts, too.
        return History(self.settings.cache, self.machine, here.content(), lambda other: is_like(here, other))

    @contextmanager
    def learning(self) -> Iterator["History"]:
        """The history, to add to and keep. The file is read again, because a run may have written to it."""
        history = self._history()
        yield history
        history.keep()

    @property
    def report_s(self) -> float:
        """Expected seconds of the report; 0 where no report follows."""
        return self.history.report_s if self.with_report else 0.0

    @property
    def is_limited(self) -> bool:
        """Whether time or GPU-hours limit what is measured."""
        return self.clock.within_s is not None or self.choice.gpu_hours is not None

    def left_s(self) -> float:
        """Seconds left for building and measuring, without the time of the report."""
        return self.clock.left_s - self.report_s - MARGIN_S

    @property
    def beside_trials_s(self) -> float:
        """Expected seconds of a further call that measures, and reports as this call does, without its trials."""
        return _STARTS_IN_S + self.report_s + MARGIN_S

    def heat_s(self, accelerator: Accelerator) -> float:
        """Seconds for which the devices of trials are kept at work before the first of them."""
        if self.nodes:
            return 0.0
        if self.settings.heat_s is not None:
            return self.settings.heat_s
        if accelerator == "cpu" or self.choice.profile == "smoke":
            return 0.0
        return min(_HEAT_GPU_S, _HEAT_SHARE * (self.clock.within_s or math.inf))

    def left_for_trials_s(self, spent_s: float = 0.0) -> float:
        """Seconds of trials that are left: on a cluster, of all trials that run at the same time.

        spent_s: the seconds of trials on a node that this session has had, which take of its GPU-hours.
        """
        return min(self.left_s() * self.at_once, self._of_gpu_hours_s - spent_s)

    @cached_property
    def at_once(self) -> int:
        """How many trials are run at the same time: one here; on a cluster, as many as nodes and settings allow.

        Raises UserError where the cluster does not say.
        """
        return self.nodes.at_once() if self.nodes else 1

    @cached_property
    def _of_gpu_hours_s(self) -> float:
        """The seconds of trials on a node that the GPU-hours allow. Raises UserError where no trial has a GPU."""
        if self.choice.gpu_hours is None:
            return math.inf
        if not len(self.nvml):
            raise UserError(f"--gpu-hours: no trial has a GPU ({self.nvml.why_not})")
        return self.choice.gpu_hours * 3600 / len(self.nvml)  # a job has all of them, whatever its case uses

    def machine_alone(self) -> AbstractContextManager[None]:
        """Inside the block this process alone measures on this machine. See `exclusion.machine`."""
        return exclusion.machine(self.settings.exclusive_on, self.screen.say if self.settings.wait else None)

    @cached_property
    def building(self) -> "Building":
        """Builds and fetches environments with the settings of this session; what it built is said once."""
        from tsuishi.environments.batch import Building

        return Building(self.builder, self.screen, self.history)

    def build(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        """Every environment, ready to be entered. Raises UserError for failures, after the others are built.

        Where time is limited, their packages are downloaded first; that time does not count.
        """
        if self.clock.within_s is not None and not self.settings.offline:
            with self.clock.apart():
                self.building.download(environments)
        return self.building.build(environments)
