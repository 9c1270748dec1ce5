"""The main job: build, run-suite, report, each on what the one before it made."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tsuishi import __version__, console, datasets, disk, plan, provenance, runner, spec, store
from tsuishi.builder import Builder, Ready
from tsuishi.building import Building, jobs
from tsuishi.datasets import DataFile, DataSet
from tsuishi.environment import Environment, open_refusal, read_environment, select_environments
from tsuishi.errors import UserError
from tsuishi.fetching.network import Network
from tsuishi.gpus.busy import await_idle, shared_with
from tsuishi.gpus.nvml import ALL, Nvml
from tsuishi.plan import Choice, PlannedBuild, PlannedTrial
from tsuishi.rooms import Rooms
from tsuishi.self_check import self_check
from tsuishi.settings import Settings
from tsuishi.store import RunDirectory
from tsuishi.suite import select_suites

# What trials on GPUs were planned with.
_ON_GPUS = Choice(accelerator="cuda")
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
    ) -> None:
        self.settings = settings
        self.choice = choice
        self.screen = screen
        self.rooms = rooms or Rooms()
        self.data_set = data_set
        self.builder = Builder(settings, self.rooms)

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

    def plan(self, with_trials: bool) -> tuple[Environment, ...]:
        """Print what would be done, and what is left out with the reason; the environments that can be used."""
        select_suites(self.rooms.suites, self.choice.suites)  # a name that is wrong is said before anything else
        chosen = plan.choose(self.builder, self.rooms, self.choice, self.nvml, to_run=with_trials)
        if any(one.pinned for one in chosen.environments) and (why_not := self.builder.why_no_container_engine()):
            self.screen.say(f"without containers: {why_not}")
        builds = plan.plan_builds(self.builder, chosen.environments)
        console.print_builds(self.screen, builds, chosen.left_out)
        expected = sum(build.expected_s for build in builds)
        if with_trials:
            trials = self.plan_trials(chosen.environments)
            console.print_trials(self.screen, trials)
            for line in shared_with(self.nvml):
                self.screen.say(line)
            self.screen.say(
                f"data: {self.data.name}"
                if self.data
                else "data: made up; `invoke fetch-data` gets the real ones "
                f"({console.megabytes(self.data_set.size_bytes)}), or give --data"
            )
            expected += sum(trial.expected_s for trial in trials)
        fetch = sum(build.download_bytes for build in builds)
        unpacked = plan.disk_needed(builds, jobs(self.settings))
        self.screen.say(
            f"expected: {console.duration(expected)}, {console.megabytes(fetch)} to fetch, "
            f"{console.megabytes(fetch + unpacked)} of disk"
        )
        self._check_disk(builds, fetch, unpacked)
        return chosen.environments

    def plan_trials(self, environments: Sequence[Environment]) -> list[PlannedTrial]:
        """The trials of this call, with what earlier runs on this machine say about their time."""
        machine = f"machine-{spec.digest(provenance.machine_record(self.nvml))}"
        history = plan.past_durations(self.settings.results, machine)
        data = self.data.record if self.data else None
        return plan.plan_trials(self.choice, self.rooms, environments, self.nvml, history, data)

    def build(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        """Every environment, ready to be entered. Raises UserError for those that cannot be made, after the others."""
        return Building(self.builder, self.settings, self.screen).build(environments)

    def fetch(self) -> None:
        """All that the chosen environments are built from, into the cache, whether or not they can be built here."""
        computing = plan.computing(self.choice, self.nvml)
        chosen = select_environments(self.rooms.images, self.choice.environments, computing)
        for environment in chosen:
            if unknown := open_refusal(environment):
                if self.choice.environments:
                    raise UserError(f"{environment.name}: {unknown}")
                self.screen.say(f"left out: {environment.name}: {unknown}")
        if why_not := self.builder.why_no_container_engine():
            self.screen.say(f"base images are not fetched: {why_not}")
        wanted = [one for one in chosen if one.pinned and not one.open]
        Building(self.builder, self.settings, self.screen).fetch(wanted)

    def run_suite(self, name: str) -> RunDirectory:
        """A new run of everything chosen, with `name` in its id. Raises UserError for a name that is none."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*|", name):
            raise UserError(f"--name takes letters, digits, '.', '_' and '-'; given: {name}")
        chosen = plan.choose(self.builder, self.rooms, self.choice, self.nvml)
        ready = self.build(chosen.environments)
        planned = self.plan_trials([as_found(one) for one in ready.values()])
        if not planned:
            raise UserError("nothing to run: the chosen suites have no case for this profile on this machine")
        with self._measuring():
            self._await_gpus(planned)
            checked = self._self_check(ready, planned)
            run = self._create_run(name, planned, chosen.left_out, checked)
            self._run(run, ready, planned)
        return run

    def resume(self, name: str) -> RunDirectory:
        """An earlier run (the latest, where no name is given), taken up where it stopped, in the same environments.

        Engine, mirror map and GPUs are the run's own where none are given now. Raises UserError where an environment is
        not what it was.
        """
        run = store.open_run(self.settings.results, name)
        recorded = run.run()
        self._as_in(recorded)
        names = {entry["environment"] for entry in recorded["plan"]}
        ready = self.build([read_environment(self.rooms.images / f"{name}.toml") for name in sorted(names)])
        _refuse_other_environments(run, ready)
        planned = plan.planned_again(recorded, names)
        self._refuse_other_data(run, recorded)
        if self.choice.timeout_s is not None:
            planned = [replace(trial, timeout_s=self.choice.timeout_s) for trial in planned]
        left = runner.unfinished(run, planned)
        self._refuse_other_gpus(ready, left)
        with self._measuring():
            self._await_gpus(left)
            self._self_check(ready, left)
            self._run(run, ready, planned)
        return run

    def _refuse_other_gpus(self, ready: Mapping[str, Ready], left: Sequence[PlannedTrial]) -> None:
        """Raise UserError where the GPUs here cannot run what is left to run on GPUs, unless it was forced then."""
        for name in sorted({trial.environment for trial in left if trial.accelerator == "cuda" and not trial.forced}):
            environment = as_found(ready[name])
            if refusal := plan.why_not_run(self.builder, self.rooms, _ON_GPUS, self.nvml, environment):
                raise UserError(f"{name} cannot be used here any more: {refusal}")

    def _await_gpus(self, planned: Sequence[PlannedTrial]) -> None:
        """Before anything is recorded: wait for the GPUs the trials need. Raises UserError where they stay in use."""
        needed = {gpu.index: gpu for trial in planned for gpu in plan.gpus_for(trial, self.nvml.gpus)}
        await_idle(self.nvml, needed.values(), self.settings.busy_gpu, self.settings.gpu_wait_s, self.screen.say)

    def _self_check(self, ready: Mapping[str, Ready], planned: Sequence[PlannedTrial]) -> dict[str, dict[str, float]]:
        """What --force asks for first: the errors found, by environment, on every GPU that its trials get.

        Raises UserError where one does not pass.
        """
        errors = {}
        for name, reason in {trial.environment: trial.forced for trial in planned if trial.forced}.items():
            self.screen.say(f"{name}: forced: {reason}")
            trials = [trial for trial in planned if trial.environment == name]
            gpus = dict.fromkeys(gpu for trial in trials for gpu in plan.gpus_for(trial, self.nvml.gpus))
            errors[name] = self_check(ready[name], self.rooms, "cuda", tuple(gpus), self.screen.say)
        return errors

    def _refuse_other_data(self, run: RunDirectory, recorded: Mapping[str, Any]) -> None:
        """Go on with the data a run began with: raise UserError where they are not at hand; none stay none."""
        then = recorded.get("data")
        if then is None:
            self.data = None
        elif self.data is None or self.data.record != then:
            raise UserError(
                f"run {run.id} began with {then['file']} (sha256 {then['sha256'][:12]}…), which is not at hand: "
                "get it with `invoke fetch-data`, give --data, or start a new run"
            )

    def _as_in(self, recorded: Mapping[str, Any]) -> None:
        """Take over what decides which environments are found from a run's own arguments."""
        arguments = {name: recorded["arguments"].get(name) for name in ("engine", "mirrors", "gpus")}
        open_now = {
            "engine": self.settings.engine == "auto",
            "mirrors": not self.settings.base_mirrors,
            "gpus": self.settings.gpus == ALL,
        }
        taken = {name: value for name, value in arguments.items() if value and open_now[name]}
        if "mirrors" in taken:
            pairs = (pair.split("=", 1) for pair in taken["mirrors"].split(","))
            taken["mirrors"] = {**self.settings.mirrors, **dict(pairs)}
        self.settings = Settings.model_validate({**self.settings.model_dump(), **taken})
        self.builder = Builder(self.settings, self.rooms)

    def _measuring(self) -> AbstractContextManager[None]:
        """Only one run at a time measures, wherever its results go."""
        return store.exclusive(self.settings.cache / "measuring.lock", "measuring on this machine")

    def _create_run(
        self,
        name: str,
        planned: Sequence[PlannedTrial],
        left_out: Mapping[str, str],
        checked: Mapping[str, Mapping[str, float]],
    ) -> RunDirectory:
        now = time.gmtime()
        run_id = console.run_id(now, self.choice.profile, name)
        return RunDirectory.create(
            self.settings.results / run_id,
            {
                "run_id": run_id,
                "tsuishi_version": __version__,
                "git": provenance.git_state(),
                "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
                "profile": self.choice.profile,
                "seed": self.choice.seed,
                "engine": self.settings.engine,
                "arguments": self._arguments(),
                "data": self.data.record if self.data else None,
                "plan": plan.describe_plan(planned),
                "self_checks": checked,
                "left_out": [{"environment": name, "reason": reason} for name, reason in left_out.items()],
            },
        )

    def _arguments(self) -> dict[str, Any]:
        """What was asked for, as the options of run-suite that ask for it again."""
        choice, settings = self.choice, self.settings
        return {
            "env": ",".join(choice.environments),
            "suite": ",".join(choice.suites),
            "profile": choice.profile,
            "repetitions": choice.repetitions,
            "timeout": choice.timeout_s,
            "seed": choice.seed,
            "accelerator": choice.accelerator,
            "force": choice.force,
            "engine": settings.engine,
            "gpus": settings.gpus,
            "busy_gpu": settings.busy_gpu,
            "mirrors": ",".join(f"{asked}={used}" for asked, used in sorted(settings.base_mirrors.items())),
            "host_python": Path(settings.host_python).name,
            "telemetry_interval": settings.telemetry_interval,
            "data": self.data.name if settings.data and self.data else "",
        }

    def _run(self, run: RunDirectory, ready: Mapping[str, Ready], planned: Sequence[PlannedTrial]) -> None:
        left = runner.unfinished(run, planned)
        expected = sum(trial.expected_s for trial in left)
        self.screen.say(f"run {run.id}: {len(left)} trials, about {console.duration(expected)}, in {run.path}")
        begun = time.monotonic()
        with self.screen.running(left, len(planned)) as audience:
            work = runner.Runner(run, ready, self.settings, self.rooms, self.nvml, audience, self.data)
            counts = work.run(planned)
        said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        self.screen.say(
            f"run {run.id}: {said}; took {console.duration(time.monotonic() - begun)}, "
            f"the plan said {console.duration(expected)}"
        )

    def _check_disk(self, builds: Sequence[PlannedBuild], fetch: int, unpacked: int) -> None:
        """Raise UserError where downloads and builds do not fit, on one file system or on two."""
        cache = self.settings.cache
        storages = {self.builder.engine_for(build.environment).storage() for build in builds if not build.built}
        storage = next((place for place in storages if place), cache)
        advice = "choose fewer with --env or --jobs, or move the cache (tsuishi.cache)"
        disk.require([(cache, fetch), (storage, unpacked)], advice, _FREE_DISK_MARGIN)


def as_found(ready: Ready) -> Environment:
    """An environment as it turned out to be: a host interpreter may have no use for the GPU that is there."""
    if ready.record["cuda_usable"] or ready.environment.pinned:
        return ready.environment
    return ready.environment.model_copy(update={"accelerators": ("cpu",)})


def _refuse_other_environments(run: RunDirectory, ready: Mapping[str, Ready]) -> None:
    """Raise UserError where trials were run in something else than what is at hand now."""
    for _, trial in run.finished():
        now = ready[trial["environment"]].built.realised_id
        then = run.record(trial["environment_record"])["realised_id"]
        if now != then:
            raise UserError(
                f"{trial['environment']} is not what run {run.id} began with ({now}, then {then}): "
                "give the same --engine and --host-python, or start a new run"
            )


def failed(run: RunDirectory) -> bool:
    """Whether some trial's last attempt failed, timed out, or never came to an end."""
    return any(trial["status"] in store.UNFINISHED for trial in runner.last_attempts(run).values())


def output_folder(settings: Settings, runs: Sequence[RunDirectory], name: str) -> Path:
    """Where a report goes: under the name given, or that of the run."""
    return settings.reports / (name or "+".join(run.id for run in runs))
