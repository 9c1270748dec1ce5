"""GPUs that nobody has: machines with stand-in cards, whose trials take and bring what a made-up truth says.

The times of cnn10 and WRN-28-10 on an RTX 2080 Ti in PyTorch are those that source torch-2080ti prints, by the line
through them; of TensorFlow the source keras-channels-first says how it differs. Everything else is made up. A trial is
timed by the workloads' own code (suites/workloads/common/timing.py) on a clock that only these trials move.
"""

import gzip
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tests.machine.test_compatibility import Machine
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.results import schema, trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.facts import Facts, Phase
from tsuishi.results.records import EnvironmentRecord, TrialRecord
from tsuishi.run.executor import Work
from tsuishi.run.trial import TrialEnd, TrialOrder
from tsuishi.specs.environment import Environment
from tsuishi.specs.trial_id import TrialId

sys.path.insert(0, str(Checkout().workloads))
from common import timing

# Seconds from a trial's order to its first step: of the process with its framework, and of the case in it. (An H100
# with PyTorch 2.11 took 4 to 5 s.) Then those of a first step, in which cuDNN tries its algorithms.
START_S, BUILD_S, FIRST_STEP_S = 4.5, 1.0, 0.5
# A step of anything that is not a network below, and of a run of a convolution.
_OTHER_STEP_S = 0.05
# The scatter of whole trials, and of the blocks of a trial, as standard deviations of logarithms.
_OF_TRIALS, _OF_BLOCKS = 0.01, 0.004
_ENOUGH_TICKS_S = 5.0


@dataclass(frozen=True)
class Card:
    """A card with its memory; `speed`: how many times as fast as an RTX 2080 Ti.

    `desktop_gib`: the memory that a desktop on it uses. `divided`: MIG divides it.
    """

    name: str
    memory_gib: float
    speed: float = 1.0
    driver: str = "550.163.01"
    desktop_gib: float = 0.0
    divided: bool = False

    @property
    def title(self) -> str:
        """The name with what else is said of the card."""
        desktop = f"a desktop uses {self.desktop_gib:g} of {self.memory_gib:g} GiB" if self.desktop_gib else ""
        return ", ".join(filter(None, (self.name, desktop, "divided by MIG" if self.divided else "")))


TURING = Card("GeForce RTX 2080 Ti", 11.0)
ADA = Card("GeForce RTX 4090", 24.0, 2.9, "580.95.05")


class Cards(Machine):
    """A machine with so many of a card, which do not reach each other's memory."""

    def __init__(self, card: Card, count: int) -> None:
        super().__init__(*[card.name] * (0 if card.divided else count), driver=card.driver)
        self.card = card
        for number, known in enumerate(self._cards):
            known |= {"memory_mib": card.memory_gib * 1024, "uuid": f"GPU-{number}"}
            known |= {"display_active": card.desktop_gib > 0}

    def sample(self, devices: Sequence[int] | None = None) -> list[dict[str, Any]]:
        return [each | {"memory_used_mib": 1024 * self.card.desktop_gib} for each in super().sample(devices)]

    def links(self) -> list[dict[str, Any]]:
        pairs = [(one, other) for one in range(len(self)) for other in range(one + 1, len(self))]
        return [{"gpus": [*pair], "peer_to_peer": False, "nvlink": False} for pair in pairs]


class MadeUpClock(Clock):
    """A clock that stands but for `passed_s`."""

    def __init__(self, within_s: float) -> None:
        super().__init__(within_s, began=0.0)
        self.passed_s = 0.0

    @property
    def spent_s(self) -> float:
        return self.passed_s


class Line(NamedTuple):
    """The time of a step over batch sizes: batch / speed + cost."""

    speed: float
    cost_s: float

    def step_s(self, batch_size: int) -> float:
        return batch_size / self.speed + self.cost_s


# By network, framework and devices: of training at channels_last, and PyTorch's own layout.
_TRAINING = {
    ("cnn10", "torch", 1): Line(4807, 0.0091),
    ("cnn10", "torch", 2): Line(8000, 0.0165),
    ("cnn10", "tensorflow", 1): Line(4600, 0.0052),
    ("cnn10", "tensorflow", 2): Line(4300, 0.012),
    ("wrn28_10", "torch", 1): Line(500, 0.026),
    ("wrn28_10", "torch", 2): Line(900, 0.030),
    ("wrn28_10", "tensorflow", 1): Line(488, 0.030),
    ("wrn28_10", "tensorflow", 2): Line(440, 0.060),
    ("resnet50", "torch", 1): Line(300, 0.01),
    ("resnet50", "torch", 2): Line(540, 0.02),
}
_CHANNELS_FIRST = {"cnn10": 0.915, "wrn28_10": 0.957}
# The forward pass beside the whole step: its speed and its cost time. Inference is the forward pass.
_FORWARD = 2.9, 0.27
_HALVES = {"fp16": 0.6, "amp_fp16": 0.6, "amp_bf16": 0.6, "bf16": 0.6, "fp64": 20.0, "tf32": 0.8}
_MLP_S = {"native": 0.0004, "cuda_graph": 0.00015, "compiled": 0.0003}


def step_s(axes: Mapping[str, Any], framework: str, speed: float) -> float:
    """The true seconds of a step of a case."""
    model, devices, batch = axes.get("model"), min(2, axes.get("devices", 1)), axes.get("batch_size", 1)
    execution = axes.get("execution", "native")
    if model == "mlp":
        return _MLP_S[execution]
    known = _TRAINING.get((str(model), framework, devices)) or _TRAINING.get((str(model), "torch", devices))
    line = known or Line(2000, 0.01) if "batch_size" in axes else Line(1e9, _OTHER_STEP_S)
    if axes.get("mode") == "inference":
        line = Line(line.speed * _FORWARD[0], line.cost_s * _FORWARD[1])
    first = framework == "tensorflow" and axes.get("layout") == "channels_first"
    layout = _CHANNELS_FIRST.get(str(model), 0.9) if first else 1.0
    if framework == "torch" and axes.get("layout") == "channels_last":
        layout = 0.85
    executed = 0.6 if execution != "native" else 1.0
    return line.step_s(batch) * layout * executed * _HALVES.get(str(axes.get("precision")), 1.0) / speed


def memory_mib(axes: Mapping[str, Any], framework: str, card: Card) -> float:
    """The memory that a step takes of a card; TensorFlow takes nearly all of it."""
    per_image, weights = {"cnn10": (4.0, 60.0), "wrn28_10": (30.0, 700.0)}.get(str(axes.get("model")), (2.0, 100.0))
    if axes.get("mode") == "inference":
        per_image /= 4
    needed = 600.0 + weights + per_image * axes.get("batch_size", 1) / min(2, axes.get("devices", 1))
    return 0.95 * 1024 * card.memory_gib if framework == "tensorflow" else needed


def fits(axes: Mapping[str, Any], framework: str, card: Card) -> bool:
    """Whether a case fits into memory, as on the sources' cards."""
    devices, batch, model = min(2, axes.get("devices", 1)), axes.get("batch_size", 1), axes.get("model")
    most = {"cnn10": 2048, "wrn28_10": 256}.get(str(model), 1 << 20) * devices * card.memory_gib / 11
    if framework == "tensorflow" and (devices == 1 or axes.get("layout") != "channels_first"):
        most /= 2
    return bool(batch <= most)


@dataclass
class Emitter:
    """Hears what the code that times says."""

    clock: Callable[[], float]
    samples: list[tuple[str, int, int, int, float]] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    metrics: list[tuple[str, float, str]] = field(default_factory=list)

    def phase(self, name: str) -> "Emitter":
        self.phases.append(Phase(name=name, begin_s=self.clock(), end_s=None))
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self.phases[-1] = self.phases[-1].model_copy(update={"end_s": self.clock()})

    def sample(self, *row: Any) -> None:
        self.samples.append(row)

    def metric(self, *metric: Any) -> None:
        self.metrics.append(metric)


@dataclass
class MadeUpTrials:
    """An executor whose trials are made up: they take their time on the clock alone.

    scatter: of trials, as a standard deviation of logarithms.
    """

    card: Card
    clock: MadeUpClock
    frameworks: Mapping[str, str]
    random: random.Random
    scatter: float = _OF_TRIALS
    is_local: bool = True
    began: datetime = datetime(2026, 11, 21, 8, tzinfo=UTC)

    def given(self, run: RunDirectory) -> Mapping[TrialId, TrialOrder]:
        return {}

    def ends(self, work: Work, orders: Iterable[TrialOrder]) -> Iterator[TrialEnd]:
        for order in orders:
            work.begins(order.id)
            yield self._end(order, work.run.trials)

    def _end(self, order: TrialOrder, trials: Path) -> TrialEnd:
        partial = trial_folders.begin(trials, order.id)
        begun = self.began + timedelta(seconds=self.clock.passed_s)
        axes, framework = dict[str, Any](order.given), self.frameworks[order.environment]
        now = [START_S + BUILD_S]
        there = fits(axes, framework, self.card)
        emitter = Emitter(lambda: now[0])
        if there and not order.unsupported:
            self._time(order, framework, emitter, now)
        names = ("phase", "index", "steps", "images", "seconds")
        _write(partial, "samples", [dict(zip(names, sample, strict=True)) for sample in emitter.samples])
        _write(
            partial, "metrics", [dict(zip(("name", "value", "unit"), each, strict=True)) for each in emitter.metrics]
        )
        telemetry = [*self._telemetry(order, framework, emitter.phases)] if there else []
        _write(partial, "telemetry", telemetry)
        with gzip.open(partial / "log.txt.gz", "wt") as log:
            log.write("made up\n")
        took_s = 0.0 if order.unsupported else now[0]
        record = TrialRecord(
            **order.specification,
            framework=f"{framework} 1.0",
            device=self.card.name,
            status="unsupported" if order.unsupported else "ok" if there else "out_of_memory",
            reason=order.unsupported,
            exit_code=0,
            simulated=axes.get("devices", 1) > max(1, len(order.gpus)),
            synthetic=True,
            started_at=begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
            duration_s=round(took_s, 3),
            startup_s=START_S,
            others_cpu_percent=0.0,
            events_garbled=0,
            events_missing=0,
            phases=emitter.phases,
            reported=Facts.reported({"framework": framework, "versions": {framework: "1.0"}}),
            command=["python"],
        )
        trial_folders.commit(partial, record)
        self.clock.passed_s += took_s + 0.3
        return TrialEnd(record, took_s, None)

    def _time(self, order: TrialOrder, framework: str, emitter: Emitter, now: list[float]) -> None:
        axes, settings = order.given, dict[str, Any](order.settings or {})
        level = math.exp(self.random.gauss(0, self.scatter))
        true_s = step_s(axes, framework, self.card.speed) * level
        waiting = [0]

        def timed(of_step_s: float, phase: str) -> None:
            def step() -> None:
                waiting[0] += 1

            def synchronise() -> None:
                block = math.exp(self.random.gauss(0, min(_OF_BLOCKS, self.scatter)))
                now[0] += waiting[0] * of_step_s * block
                waiting[0] = 0

            timing.steady(emitter, step, synchronise, axes.get("batch_size", 1), settings, phase, clock=lambda: now[0])

        if axes["protocol"] == "literal":
            for phase, count in (("first_run", 1), ("later_runs", int(settings["later_runs"]))):
                with emitter.phase(phase):
                    now[0] += count * true_s
                for index in range(count):
                    emitter.sample(phase, index, 1, axes.get("images", 1), true_s)
            return
        now[0] += FIRST_STEP_S
        timed(true_s, "measure")
        if settings["parts"] and axes.get("mode") == "training" and "model" in axes:
            forward = step_s({**axes, "mode": "inference"}, framework, self.card.speed) * level
            timed(forward, "forward")
            timed(0.9 * true_s, "forward_backward")

    def _telemetry(self, order: TrialOrder, framework: str, phases: Sequence[Phase]) -> Iterator[dict[str, Any]]:
        """As the sampler writes it: a row each 0.1 s in the first seconds of a phase, then each second."""
        load = 40.0 if order.given.get("model") == "mlp" else 97.0
        loads = [load] * len(order.gpus)
        if framework == "tensorflow" and len(loads) > 1:
            loads = [load, 0.6 * load]
        memory = memory_mib(order.given, framework, self.card)
        for phase in phases:
            at, end = phase.begin_s, phase.end_s
            while at <= (end or at):
                for gpu, of_gpu in zip(order.gpus, loads, strict=True):
                    yield {
                        "elapsed_s": round(at, 3),
                        "phase": phase.name,
                        "device": f"gpu{gpu.index}",
                        "utilisation_percent": min(100.0, of_gpu * math.exp(self.random.gauss(0, 0.01))),
                        "memory_used_mib": memory,
                        "power_w": 2.5 * of_gpu,
                        "sm_clock_mhz": 1800,
                    }
                at += 0.1 if at - phase.begin_s < _ENOUGH_TICKS_S else 1.0


def _write(partial: Path, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    with (partial / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
        schema.csv_writer(table, file).writerows(rows)


def record_of(environment: Environment, framework: str) -> EnvironmentRecord:
    """The record of an environment that was never built."""
    version = environment.promises.get(framework, "1.0")
    return EnvironmentRecord(
        name=environment.name,
        framework=framework,
        versions={framework: "1.0"},
        title=f"{framework} {version}",
        cuda_usable=True,
        spec_id="a" * 16,
        realised_id=environment.name.ljust(16, "0"),
        engine="host",
    )
