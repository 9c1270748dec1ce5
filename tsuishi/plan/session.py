"""What one call of Invoke works with: settings, choice, engines and clock; what it would do; environments built."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tsuishi.artifacts import datasets
from tsuishi.artifacts.datasets import DataFile, DataSet
from tsuishi.artifacts.network import Network
from tsuishi.base import screen as console
from tsuishi.base import toml, units
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.environments import possible, provenance
from tsuishi.environments.batch import Building, jobs
from tsuishi.environments.build_plan import PlannedBuild, disk_needed, plan_builds, print_builds
from tsuishi.environments.builder import Builder, Ready
from tsuishi.machine import disk
from tsuishi.machine.busy import shared_with
from tsuishi.machine.gpus import Nvml
from tsuishi.machine.history import History
from tsuishi.plan import lines
from tsuishi.plan.choice import Choice, choose, computing
from tsuishi.plan.outline import Outline, environments_in, outline
from tsuishi.plan.trials import Matrix, Refused
from tsuishi.plan.trials import matrix as matrix_of
from tsuishi.plan.worth import Costs
from tsuishi.specs.environment import Environment, open_refusal, select_environments
from tsuishi.specs.questions import Asked, candidates
from tsuishi.specs.source import read_sources
from tsuishi.specs.suite import select_suites

# Seconds kept back beside the report's: for the tables of a run and the end of the command.
MARGIN_S = 3.0
# What a file system should have left when everything is in place.
_FREE_DISK_MARGIN = 1.1


class Session:
    """What one call of Invoke works with."""

    def __init__(
        self,
        settings: Settings,
        choice: Choice,
        screen: console.Screen,
        rooms: Rooms | None = None,
        data_set: DataSet = datasets.CIFAR10,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self.choice = choice
        self.screen = screen
        self.rooms = rooms or Rooms()
        self.data_set = data_set
        self.builder = Builder(settings, self.rooms)
        self.clock = clock or Clock(choice.within_s)
        # Whether a report follows, for which time is kept.
        self.reports = True
        # Of the latest plan: how long the whole takes, in seconds; the ids of its main questions; what it needs, and
        # what it leaves out and why.
        self.expected_s = 0.0
        self.asked: list[str] = []
        self.needed: tuple[Environment, ...] = ()
        self.left_out: dict[str, str] = {}

    @cached_property
    def data(self) -> DataFile | None:
        """The data set at hand, verified once. Raises UserError where it is not what it should be."""
        return datasets.at_hand(self.settings.data, self.settings.cache, self.data_set)

    @cached_property
    def nvml(self) -> Nvml:
        """The GPUs that may be used. Raises UserError where the setting `gpus` asks for others than there are."""
        return Nvml(self.settings.gpus)

    def fetch_data(self, url: str) -> Path:
        """Fetch the data set: from the URL given, else from the configured places, else from its publishers.

        Raises UserError where it cannot be had; offline, where it is not in the cache.
        """
        if self.settings.offline and datasets.at_hand(None, self.settings.cache, self.data_set) is None:
            raise UserError(
                f"offline, and {self.data_set.file} is not in the cache: carry {datasets.folder(self.settings.cache)} "
                "over from where `invoke fetch-data` got it, or give --data"
            )
        asked = [url] if url else datasets.places(self.settings.data_urls, self.data_set)
        with self.screen.fetching(self.data_set.file) as progress:
            return datasets.fetch(
                self.settings.cache,
                asked,
                progress.say,
                progress.downloaded,
                self.data_set,
                Network(self.settings.ca_bundle),
            )

    @cached_property
    def machine(self) -> str:
        """The id of this machine's record."""
        return f"machine-{toml.digest(provenance.machine_record(self.nvml))}"

    @cached_property
    def history(self) -> History:
        """What things took on this machine."""
        return History(self.settings.cache, self.machine)

    def plan(self, with_trials: bool) -> tuple[Environment, ...]:
        """Print what would be done, and what is left out with the reason; the environments that are to be built."""
        select_suites(self.rooms.suites, self.choice.suites)  # a name that is wrong is said before anything else
        chosen = choose(self.builder, self.rooms, self.choice, self.nvml, to_run=with_trials)
        if any(one.pinned for one in chosen.environments) and (why_not := self.builder.why_no_container_engine()):
            self.screen.say(f"without containers: {why_not}")
        builds = plan_builds(self.builder, chosen.environments, self.history)
        if not with_trials:
            print_builds(self.screen, builds, chosen.left_out)
            self._say_expected(builds, 0.0)
            return chosen.environments
        outlined = self.outline(chosen.environments)
        needed = chosen.environments if self.choice.environments else environments_in(outlined, chosen.environments)
        self.needed, self.asked = needed, [one.id for one in outlined.asked]
        wanted = [build for build in builds if build.environment in needed]
        why = f"no question that needs it fits {units.duration(self.clock.within_s or 0)}"
        later = {build.environment.name: why for build in builds if build.environment not in needed}
        self.left_out = {**chosen.left_out, **later}
        print_builds(self.screen, wanted, self.left_out)
        lines.print_outline(self.screen, outlined, self.clock)
        for line in shared_with(self.nvml):
            self.screen.say(line)
        self.screen.say(
            f"data: {self.data.name}"
            if self.data
            else "data: made up; `invoke fetch-data` gets the real ones "
            f"({units.megabytes(self.data_set.size_bytes)}), or give --data"
        )
        self._say_expected(wanted, outlined.measuring_s + self.report_s)
        return needed

    def matrix(self, environments: Sequence[Environment], ready: Mapping[str, Ready]) -> Matrix:
        """All that could be measured in these environments; those that are `ready` say what they cannot run.

        Raises UserError where there is nothing.
        """
        data = self.data.record if self.data else None

        def planned(refused: Refused) -> Matrix:
            return matrix_of(self.choice, self.rooms, environments, self.nvml, self.history, data, refused)

        everything = planned({})
        if not everything.first:
            raise UserError("nothing to run: the chosen suites have no case for this profile on this machine")
        return planned({name: self._refused(one, everything) for name, one in ready.items()})

    def questions(self, matrix: Matrix) -> list[Asked]:
        """Every question that can be put to what a matrix holds."""
        suites = select_suites(self.rooms.suites, self.choice.suites)
        asked_of = {suite.name: suite.questions for suite in suites}
        return candidates(asked_of, read_sources(self.rooms.published), matrix.possible, len(self.nvml))

    def outline(self, environments: Sequence[Environment], ready: Mapping[str, Ready] | None = None) -> Outline:
        """What to measure in these environments in the time left.

        ready: those that are there; without it, those that were built earlier. Raises UserError where the time is too
        short for any question.
        """
        if ready is None:
            found = {one.name: self.builder.find(one) for one in environments}
            ready = {name: one for name, one in found.items() if one}
        matrix = self.matrix(environments, ready)
        builds = plan_builds(self.builder, environments, self.history)
        build_s = {one.environment.name: 0.0 if one.environment.name in ready else one.expected_s for one in builds}
        outlined = outline(
            self.choice, matrix, self.questions(matrix), build_s, jobs(self.settings), self.left_for_trials_s()
        )
        if not outlined.asked and self.clock.within_s is not None:
            raise UserError(lines.too_short(outlined, self.clock, self.report_s))
        return outlined

    @property
    def report_s(self) -> float:
        """Seconds that the report will take; none where there is to be none."""
        return self.history.report_s if self.reports else 0.0

    def left_for_trials_s(self) -> float:
        """Seconds left for building and measuring: what is left but for the report's."""
        return self.clock.left_s - self.report_s - MARGIN_S

    def _refused(self, ready: Ready, everything: Matrix) -> dict[str, str]:
        """Why cases cannot run in an environment that is there, by case id."""
        trials = [trial for cell, trial in everything.first.items() if cell.environment == ready.environment.name]
        if not trials:
            return {}
        questions = [(trial.workload, trial.case, trial.settings) for trial in trials]
        accelerator = trials[0].accelerator
        gpus = self.nvml.gpus if accelerator == "cuda" else ()
        where = (self.rooms, self.settings.cache, self.machine, accelerator, gpus)
        return possible.unsupported(ready, *where, questions, self.screen.say)

    def _say_expected(self, builds: Sequence[PlannedBuild], then_s: float) -> None:
        fetch = sum(build.download_bytes for build in builds)
        unpacked = disk_needed(builds, jobs(self.settings))
        costs = Costs({}, {build.environment.name: build.expected_s for build in builds}, jobs(self.settings))
        spent_s = self.clock.spent_s if self.clock.within_s is not None else 0.0
        expected_s = spent_s + costs.building_s(costs.build_s) + then_s
        of = f" of {units.duration(self.clock.within_s)}" if self.clock.within_s is not None and then_s else ""
        self.screen.say(
            f"expected: {units.duration(expected_s)}{of}, {lines.fetching(fetch, self.history)}, "
            f"{units.megabytes(fetch + unpacked)} of disk"
        )
        self.expected_s = expected_s
        self._check_disk(builds, fetch, unpacked)

    def build(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        """Every environment, ready to be entered. Raises UserError for those that cannot be made, after the others.

        Where time is limited, what they are made of is fetched before, and that does not count.
        """
        building = Building(self.builder, self.settings, self.screen, self.history)
        if self.clock.within_s is not None and not self.settings.offline:
            with self.clock.apart():
                building.download(environments)
        return building.build(environments)

    def fetch(self) -> None:
        """All that the chosen environments are built from, into the cache, whether or not they can be built here."""
        chosen = select_environments(self.rooms.images, self.choice.environments, computing(self.choice, self.nvml))
        for environment in chosen:
            if unknown := open_refusal(environment):
                if self.choice.environments:
                    raise UserError(f"{environment.name}: {unknown}")
                self.screen.say(f"left out: {environment.name}: {unknown}")
        if why_not := self.builder.why_no_container_engine():
            self.screen.say(f"base images are not fetched: {why_not}")
        wanted = [one for one in chosen if one.pinned and not one.open]
        Building(self.builder, self.settings, self.screen, self.history).fetch(wanted)

    def _check_disk(self, builds: Sequence[PlannedBuild], fetch: int, unpacked: int) -> None:
        """Raise UserError where downloads and builds do not fit, on one file system or on two."""
        cache = self.settings.cache
        storages = {self.builder.engine_for(build.environment).storage() for build in builds if not build.built}
        storage = next((place for place in storages if place), cache)
        advice = "choose fewer with --env or --jobs, or move the cache (tsuishi.cache)"
        disk.require([(cache, fetch), (storage, unpacked)], advice, _FREE_DISK_MARGIN)
