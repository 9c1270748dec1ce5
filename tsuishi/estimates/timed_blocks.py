"""Estimates of the quantities of one trial, from its timed blocks and its metrics (docs/method.md). Pure arithmetic."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tsuishi.specs.quantities import MEASURED, Take
from tsuishi.specs.source import Epochs
from tsuishi.specs.vocabulary import Vocabulary

_TAKEN: dict[Take, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "smallest": min,
    "largest": max,
}
# The metrics that are the work of a step, and the rates that they give; in the first of these phases that a trial has.
_WORK = {"flops": "flops_per_s", "bytes": "bytes_per_s", "tokens": "throughput_tokens_per_s"}
_WORKING = ("measure", "compute", "later_runs", "step", "epoch")


class TimedBlock(NamedTuple):
    """A timed block: its steps and images (whole numbers), and its wall time in seconds."""

    steps: int
    images: int
    seconds: float

    @property
    def step_s(self) -> float:
        """Mean seconds per step."""
        return self.seconds / max(1, self.steps)


class Estimate(NamedTuple):
    """A quantity of a trial. `low` and `high` are the quartiles of its blocks; None for a single block.

    The quartiles say how steady a process was; they are no interval for the case. `derived`: no block measured it.
    """

    quantity: str
    value: float
    low: float | None
    high: float | None
    blocks: int
    derived: bool = False


def mean_step_s(blocks: Sequence[TimedBlock]) -> float:
    """The total time of blocks over their steps, in seconds: a median would not see stalls, which take time too.

    >>> mean_step_s([TimedBlock(1, 8, 0.25), TimedBlock(3, 24, 1.25)])
    0.375
    """
    return sum(block.seconds for block in blocks) / max(1, sum(block.steps for block in blocks))


class Described:
    """The quantities that are made of samples and metrics of a workload, as the vocabulary describes them."""

    def __init__(self, words: Vocabulary, suite: str) -> None:
        self._of: dict[tuple[str, str], list[tuple[str, Take]]] = {}
        for quantity in words.made_of(suite):
            if origin := quantity.made_of:
                self._of.setdefault((origin.kind, origin.name), []).append((quantity.name, origin.take))

    def of_phase(self, phase: str, blocks: Sequence[TimedBlock]) -> Iterator[Estimate]:
        """Estimates of the seconds per step of a phase; their mean where no quantity is described."""
        steps_s = [block.step_s for block in blocks]
        for quantity, take in self._of.get(("phase", phase)) or [(f"{phase}_s", "mean")]:
            value = mean_step_s(blocks) if take == "mean" else _TAKEN[take](steps_s)
            yield _median_over(quantity, blocks, lambda block: block.step_s)._replace(value=value)

    def of_metric(self, name: str, values: Sequence[float]) -> dict[str, float]:
        """The values of a metric's quantities; the last value under the metric's name where none is described."""
        taken = self._of.get(("metric", name)) or [(name, "last")]
        return {quantity: _TAKEN[take](values) for quantity, take in taken}


def phase_estimates(
    phases: dict[str, list[TimedBlock]],
    batch_size: int | None,
    whole: Epochs | None,
    described: Described,
    from_steps: bool = True,
) -> Iterator[Estimate]:
    """The estimates of a trial from its blocks by phase. Times are in seconds, throughput in images/s.

    For each phase the described quantities, or the mean over blocks of the seconds per step (docs/method.md, "From
    blocks to intervals"). `whole`: the whole training, of which the trial may be a part; without it epochs stay as
    they were run. `from_steps`: whether epochs may be derived from steps.
    """
    for phase, blocks in phases.items():
        if phase == "epoch":
            yield from _timed_epochs(blocks, batch_size, whole)
        else:
            yield from described.of_phase(phase, blocks)
        if phase in ("measure", "step", "epoch"):
            later = blocks[1:] or blocks if phase == "epoch" else blocks
            yield from _rate("throughput_images_per_s", later, lambda block: block.images)
    if whole and from_steps and batch_size and "measure" in phases:
        yield from _derived_epochs(phases, whole.whole_steps(batch_size))


def _median_over(
    quantity: str, blocks: Sequence[TimedBlock], value_of: Callable[[TimedBlock], float], derived: bool = False
) -> Estimate:
    """The median over blocks of `value_of` a block, with the quartiles where there are two blocks or more."""
    values = [value_of(block) for block in blocks]
    if len(values) == 1:
        return Estimate(quantity, values[0], None, None, 1, derived)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Estimate(quantity, median, low, high, len(values), derived)


def _rate(
    quantity: str,
    blocks: list[TimedBlock],
    work_of: Callable[[TimedBlock], float],
    factor: float = 1.0,
    derived: bool = False,
) -> Iterator[Estimate]:
    """`factor` times the total work over the total time: an average of rates gives slow blocks too little weight.

    No estimate where the work or the time of a block is not above 0.
    """
    work, seconds = factor * sum(map(work_of, blocks)), sum(block.seconds for block in blocks)
    if work > 0 and all(block.seconds > 0 for block in blocks):
        spread = _median_over(quantity, blocks, lambda block: factor * work_of(block) / block.seconds, derived)
        yield spread._replace(value=work / seconds)


def work_estimates(
    phases: dict[str, list[TimedBlock]], metrics: dict[str, float], batch_size: int | None
) -> Iterator[Estimate]:
    """Rates from the work that a workload reports for a step, with the spread of the blocks. All are derived.

    - flops_per_s, bytes_per_s: the analytic work of a step (metrics `flops`, `bytes`) over its time. An epoch counts
      images / batch steps, a fraction, as its last batch may be smaller.
    - throughput_tokens_per_s: the tokens of a step (metric `tokens`) over its time.
    - distinct_images_per_s: throughput times distinct_images_per_step / examples_per_step; an image that several
      devices get in a step counts once (docs/method.md, "Same images").
    """
    phase = next((name for name in _WORKING if name in phases), None)
    if phase is None:
        return
    blocks = phases[phase][1:] or phases[phase] if phase == "epoch" else phases[phase]

    def steps(block: TimedBlock) -> float:
        return block.images / batch_size if phase == "epoch" and batch_size else block.steps

    for metric, quantity in _WORK.items():
        yield from _rate(quantity, blocks, steps, metrics.get(metric, 0.0), derived=True)
    if metrics.get("examples_per_step"):
        share = metrics.get("distinct_images_per_step", 0.0) / metrics["examples_per_step"]
        yield from _rate("distinct_images_per_s", blocks, lambda block: block.images, share, derived=True)


def _timed_epochs(epochs: list[TimedBlock], batch_size: int | None, whole: Epochs | None) -> Iterator[Estimate]:
    """Epochs that a trial ran. A shortened epoch is extended to the whole by its later steps, and marked derived.

    The total of n epochs is the first + (n - 1) x the mean of the later epochs (docs/method.md, "Steady protocol" 4).
    """
    first, later = epochs[0], epochs[1:]

    def full_steps(epoch: TimedBlock) -> float:
        if whole is None or epoch.images >= whole.images or not epoch.images:
            return epoch.steps
        return whole.steps(batch_size) if batch_size else epoch.steps * whole.images / epoch.images

    derived = any(full_steps(epoch) != epoch.steps for epoch in epochs)
    step_s = mean_step_s(later or epochs)
    first_s = first.seconds + (full_steps(first) - first.steps) * step_s
    yield Estimate("first_epoch_s", first_s, None, None, 1, derived)
    if later:
        yield _median_over("median_epoch_s", later, lambda epoch: epoch.step_s * full_steps(epoch), derived)
    if later and whole and whole.count:
        total_s = first_s + (whole.count - 1) * statistics.fmean(epoch.step_s * full_steps(epoch) for epoch in later)
        yield Estimate("total_s", total_s, None, None, len(epochs), derived or len(epochs) != whole.count)


def _derived_epochs(phases: dict[str, list[TimedBlock]], steps: float) -> Iterator[Estimate]:
    """Epochs that were not run: so many mean steps; the first epoch has the trial's first two steps.

    A last batch that is smaller counts by its images: as a whole step it would make an epoch 2.4 % longer at batch
    2,048. The constant part of its time is lost; a single case does not know it.
    """
    epoch = _median_over("median_epoch_s", phases["measure"], lambda block: block.step_s * steps, derived=True)
    epoch = epoch._replace(value=mean_step_s(phases["measure"]) * steps)
    if "first_step" in phases and "second_step" in phases and steps >= 2:
        start_s = phases["first_step"][0].step_s + phases["second_step"][0].step_s
        first_s = start_s + (steps - 2) * epoch.value / steps
        yield Estimate("first_epoch_s", first_s, None, None, epoch.blocks, derived=True)
    yield epoch


def energy_estimates(phases: dict[str, list[TimedBlock]], energy_j: float) -> Iterator[Estimate]:
    """Energy per image in J. `energy_j`: that of the measured phases; NaN where no GPU counts it."""
    images = sum(block.images for phase in MEASURED for block in phases.get(phase, ()))
    if images and not math.isnan(energy_j):
        yield Estimate("energy_per_image_j", energy_j / images, None, None, 1)
