"""What all parts of the kit work with: the interpreter, the device, the time that is left, and runs through tsuishi."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rich.console import Console

from benchmarks.gpu.findings import Finding, on_a_cpu
from benchmarks.gpu.journal import Journal, Spoken
from tests.bench import link_checkout
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.environments.entry import Ready
from tsuishi.machine.description import machine_record
from tsuishi.machine.gpus import Gpu, Nvml
from tsuishi.plan.choice import Choice, choose
from tsuishi.plan.planning import Plan, outline_run
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory, known_runs
from tsuishi.results.frames import dict_rows
from tsuishi.run.new_run import run_of_plan
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.source import Source
from tsuishi.specs.statuses import INTERRUPTED
from tsuishi.specs.vocabulary import Vocabulary, vocabulary
from tsuishi.verdicts.evidence import Evidence

HOST = "host"


class OutOfTime(KeyboardInterrupt):
    """The time of the kit has run out; as with Ctrl-C, tsuishi records the trial and ends the run."""


@dataclass
class Kit:
    """The kit at work on one device.

    python: the interpreter with PyTorch. minutes: of the whole kit.
    """

    python: str
    accelerator: Accelerator
    journal: Journal
    minutes: float
    began: float = field(default_factory=time.monotonic)
    checkout: Checkout = field(init=False)
    # Facts that one part finds and another needs.
    notes: dict[str, Any] = field(default_factory=dict)
    # When the current part has to end, in seconds of time.monotonic; and whether a run of it was ended by that.
    part_ends: float = math.inf
    cut_off: bool = False

    def __post_init__(self) -> None:
        self.checkout = link_checkout(self.journal.work / "checkout")

    @property
    def dry(self) -> bool:
        """Whether the CPU stands for the GPU, with small sizes."""
        return self.accelerator == "cpu"

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self.began + 60 * self.minutes - time.monotonic()

    @cached_property
    def screen(self) -> Screen:
        """The screen of tsuishi's own work, whose lines go to the log."""
        return Screen(Console(file=Spoken(self.journal), highlight=False, soft_wrap=True, emoji=False, width=200))  # type: ignore[arg-type]

    @cached_property
    def nvml(self) -> Nvml:
        """The GPU that is measured, which is the first; none with --dry."""
        return Nvml("1") if not self.dry else _NoGpu()

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return self.nvml.gpus

    @cached_property
    def gpu(self) -> dict[str, Any]:
        """The GPU as NVML describes it; empty with --dry."""
        return next(iter(self.nvml.describe()), {})

    @cached_property
    def machine(self) -> dict[str, Any]:
        return machine_record(self.nvml)

    @cached_property
    def words(self) -> Vocabulary:
        return vocabulary(self.checkout.suites)

    def settings(self, **changed: Any) -> Settings:
        given: dict[str, Any] = {"engine": "host", "host_python": self.python, "heat_s": 0.0, "offline": True}
        given |= {"cache": self.journal.work / "cache", "results": self.journal.work / "results", "gpu_wait_s": 20.0}
        given |= {} if self.dry else {"gpus": "1"}
        return Settings(**{**given, **changed})

    def session(self, choice: Choice, **changed: Any) -> Session:
        """A session of tsuishi on the device, without a limit of time of its own."""
        screen, settings = self.screen, self.settings(**changed)
        return Session(settings, choice, screen, self.checkout, data_set=None, clock=Clock(None), with_report=False)

    @cached_property
    def ready(self) -> Ready:
        """The interpreter, entered once. Raises UserError where it cannot be."""
        session = self.session(Choice((HOST,), accelerator=self.accelerator))
        chosen = choose(session.builder, session.choice, session.nvml).environments
        return session.build(chosen)[HOST]

    @property
    def part_left_s(self) -> float:
        """Seconds that are left for the current part."""
        return min(self.left_s, self.part_ends - time.monotonic())

    def measure(self, name: str, suite: str, timeout_s: float = 120.0, **changed: Any) -> Evidence:
        """Run a suite, given as TOML, by run-suite's own functions; the run is packed with the others.

        Where the time runs out in it, the evidence is of the trials that ended, and `cut_off` says so.
        """
        (self.checkout.suites / f"{name}.toml").write_text(suite, encoding="utf-8")
        choice = Choice((HOST,), (name,), accelerator=self.accelerator, timeout_s=math.ceil(timeout_s))
        session = self.session(choice, **changed)
        environments = (self.ready.as_built,)
        outlined = outline_run(session, environments, {HOST: self.ready})
        try:
            with self.until_the_end():
                run_of_plan(session, name, Plan(environments, 0.0, outlined), {HOST: self.ready})
        except OutOfTime:
            self.cut_off = True
        self.pack()
        runs = [path for run, path in known_runs(session.settings.results).items() if run.endswith(f"-{name}")]
        if not runs:
            raise OutOfTime
        return self.evidence(RunDirectory(runs[-1]))

    def measure_one(self, name: str, suite: str) -> dict[str, Any]:
        """The only trial of a suite. Raises OutOfTime where it did not end."""
        trials = trials_of(self.measure(name, suite))
        if not trials:
            raise OutOfTime
        return trials[0]

    def evidence(self, run: RunDirectory, sources: tuple[Source, ...] = ()) -> Evidence:
        return Evidence([run], sources, vocabulary(self.checkout.suites))

    def add(self, step: int, finding: Finding) -> None:
        """Print and keep a finding of a step."""
        self.journal.add(step, on_a_cpu(finding) if self.dry else finding)

    def pack(self) -> None:
        """Keep every run that there is, also those that were cut off."""
        results = self.journal.work / "results"
        self.journal.pack(sorted(path for path in results.glob("*") if (path / "run.json").exists()))

    @contextmanager
    def until_the_end(self, grace_s: float = 0.0) -> Iterator[None]:
        """Raise OutOfTime in the block when the time of the current part runs out, or `grace_s` later."""

        def end(number: int, frame: object) -> None:
            raise OutOfTime

        before = signal.signal(signal.SIGALRM, end)
        others_s, every_s = signal.setitimer(signal.ITIMER_REAL, max(0.01, self.part_left_s + grace_s))
        begun = time.monotonic()
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if others_s:
                signal.setitimer(signal.ITIMER_REAL, max(0.01, others_s - (time.monotonic() - begun)), every_s)


class _NoGpu(Nvml):
    """The GPUs of a kit that runs dry: none, whatever this machine has."""

    def __init__(self) -> None:
        self._handles = {}
        self.why_not = "--dry: the CPU stands for the GPU"


def trials_of(evidence: Evidence) -> list[dict[str, Any]]:
    """Every trial that ended, as a row of trials.csv, with `axes` of its case, its `metrics` and `values`.

    metrics: by name, the last of each. values: estimates by quantity.
    """
    results = evidence.results
    metrics: dict[int, dict[str, float]] = {}
    for row in dict_rows(results.metrics):
        metrics.setdefault(row["trial"], {})[row["name"]] = row["value"]
    values: dict[str, dict[str, float]] = {}
    for row in dict_rows(evidence.estimates):
        values.setdefault(row["trial_id"], {})[row["quantity"]] = row["value"]
    counting = results.counting
    return [
        {
            **row,
            "axes": results.axes[row["case_id"]],
            "metrics": metrics.get(place, {}),
            "values": values.get(row["trial_id"], {}),
        }
        for place, row in zip(counting.index, dict_rows(counting), strict=True)
        if row["status"] != INTERRUPTED
    ]
