"""Steps: drops in the time of runs, with more towers, that division of the work cannot explain, and folding may."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from tsuishi.base.language import prose, t
from tsuishi.estimates.intervals import CONFIDENCE, Contrast, Region
from tsuishi.report.parts.two_sides import Timed, how_sure, times
from tsuishi.specs.questions import look_at

from .observations import Observations, amounts, towers

# From n to m towers, division of the work saves a factor of m / n. A step saves at least so many times that factor.
# Where nothing but the number of towers changes, single runs of a quiet machine differ by up to a third.
STEP = 1.5
# A shorter difference means nothing: the overhead of starting a run is 1-4 ms on two cores.
LEAST_STEP_S = 0.005


@dataclass(frozen=True)
class Step:
    """A step: a run takes `slow` s with `below` towers, and `fast` s with the next larger number `above`.

    `sure`: what the trials show of the ratio, in words; empty for too few trials.
    """

    quantity: str
    below: int
    above: int
    slow: float
    fast: float
    sure: str = ""

    @property
    def excess(self) -> float:
        """The factor that the step saves, divided by the factor that division of the work saves."""
        return self.slow / self.fast / (self.above / self.below)

    def __str__(self) -> str:
        return t(
            "from {below} to {above} towers, {seconds}: {ratio}",
            below=self.below,
            above=self.above,
            seconds=amounts([self.slow, self.fast], self.quantity),
            ratio=f"{times(self.slow / self.fast)} {self.sure}".rstrip(),
        )


def find_step(measured: Observations, quantity: str, **axes: Any) -> Step | None:
    """The largest step, see STEP; None without a step.

    It separates two levels: every run with fewer towers is slower than every run with more, and the quartiles (or
    trials) of its two sides do not meet.
    """
    taken, steps = measured.by_towers(quantity, **axes), []
    for (below, slow), (above, fast) in pairwise(taken.items()):
        of_below, of_above = (measured.timed(quantity, **{**axes, "devices": count}) for count in (below, above))
        step = Step(quantity, below, above, slow, fast, how_sure(of_below, of_above))
        slow_side, fast_side = (measured.spread(quantity, **{**axes, "devices": count}) for count in (below, above))
        apart = slow_side is None or fast_side is None or slow_side[0] > fast_side[1]
        slowest = max(seconds for count, seconds in taken.items() if count >= above)
        parted = all(seconds > slowest for count, seconds in taken.items() if count <= below)
        if step.excess >= STEP and slow - fast >= LEAST_STEP_S and apart and parted:
            steps.append(step)
    return max(steps, key=lambda step: step.excess, default=None)


# By the intervals that decide; by intervals of 95 %, each for itself alone; by the values, without intervals.
Proof = Literal["certain", "alone", "seen"]


class Deciding(NamedTuple):
    """The intervals by which words on a step are certain: their confidence, and the first trials that they take."""

    confidence: float
    look: int


# Intervals of 95 %, each for itself alone, by all trials.
ALONE = Deciding(CONFIDENCE, 0)

# The quantities in which a step is sought, the sharpest first.
QUANTITIES = ("later_run_s", "first_run_s")


def the_step(measured: Observations) -> Step | None:
    """The step of later runs, where it is sharpest; else the step of first runs, which the source timed."""
    return next(filter(None, (find_step(measured, quantity) for quantity in QUANTITIES)), None)


def sides(measured: Observations, step: Step, look: int = 0) -> tuple[Timed | None, Timed | None]:
    """The times below and above the step, of the first so many trials; of all for 0."""
    slow, fast = (measured.timed(step.quantity, first=look, devices=count) for count in (step.below, step.above))
    return slow, fast


def deciding(measured: Observations, step: Step, level: float) -> Deciding:
    """The intervals that decide on a step. level: of all steps among which it was chosen, together (Bonferroni)."""
    look = look_at(min((side.term.trials for side in sides(measured, step) if side and side.term), default=0))
    several = sum(max(0, len(measured.by_towers(quantity)) - 1) for quantity in QUANTITIES)
    return Deciding(1 - level / max(1, several), look)


def folded(measured: Observations, **axes: str) -> dict[int, bool]:
    """Whether no convolution was left in the graph that ran, by number of towers."""
    left = measured.by_towers("convolutions_left_in_graph", **axes)
    return {count: value == 0 for count, value in left.items()}


def folded_only_above(measured: Observations, step: Step) -> bool | None:
    """Whether the graph that ran was folded on the fast side of the step and not on its slow side; None: not known."""
    known = folded(measured)
    if step.below not in known or step.above not in known:
        return None
    return known[step.above] and not known[step.below]


def _over_unfolded(measured: Observations, step: Step, look: int) -> Contrast | None:
    """The logarithm of the time below the step over the time above it with folding switched off, if both are there."""
    slow, _ = sides(measured, step, look)
    unfolded = measured.timed(step.quantity, first=look, devices=step.above, graph_optimizers="no_folding")
    return slow.over(unfolded) if slow and unfolded else None


def gone_without_folding(measured: Observations, step: Step, decided: Deciding) -> bool | None:
    """Whether the step is gone with folding switched off; None: not known, or its interval does not show it.

    By the values themselves where no interval of them is known.
    """
    logarithm, least = _over_unfolded(measured, step, decided.look), math.log(STEP * step.above / step.below)
    if logarithm is None:
        return None
    interval = logarithm.interval(decided.confidence) or Region(logarithm.value, logarithm.value)
    return None if interval.low < least < interval.high else interval.high <= least


def proof_of_folding(measured: Observations, step: Step, decided: Deciding) -> Proof | None:
    """How far the trials show that the step comes from constant folding, and from nothing else; None: they do not.

    It does where the graph that ran was folded on the fast side alone, and the step is gone with folding switched off.
    """
    if not folded_only_above(measured, step):
        return None
    proofs: tuple[tuple[Proof, Deciding], ...] = (("certain", decided), ("alone", ALONE))
    for proof, by in proofs:
        slow, fast = sides(measured, step, by.look)
        unfolded, gone = _over_unfolded(measured, step, by.look), gone_without_folding(measured, step, by)
        if gone is False or not (slow and fast and unfolded):
            return None
        interval = slow.over(fast).interval(by.confidence)
        if interval is None or unfolded.interval(by.confidence) is None:
            return "seen" if gone else None
        if gone and interval.low > 0:
            return proof
    return None


def about_step(measured: Observations) -> str:
    """The times of runs with each number of towers, and the steps in them."""
    first, later = measured.by_towers("first_run_s"), measured.by_towers("later_run_s")
    if not first:
        return measured.why_not()
    taken = {"towers": towers(first), "first": amounts(first.values(), "first_run_s")}
    if later:
        times_taken = t(
            "With {towers} a first run takes {first}; a later run of the same session {later}.",
            **taken,
            later=amounts(later.values(), "later_run_s"),
        )
    else:
        times_taken = t("With {towers} a first run takes {first}.", **taken)
    return times_taken if len(first) < 2 else prose([times_taken, *_steps(measured, first)])


def _steps(measured: Observations, first: dict[int, float]) -> list[str]:
    """A sentence for each step, and a sentence for the runs that have no step."""
    of_first, of_later = find_step(measured, "first_run_s"), find_step(measured, "later_run_s")
    sentences = [t("First runs step {step}.", step=of_first)] if of_first else []
    sentences += [t("Later runs step {step}.", step=of_later)] if of_later else []
    if of_first is None or of_later is None:
        none = t("first runs") if of_later else t("later runs") if of_first else t("first or later runs")
        sentences.append(
            t(
                "There is no step in {runs}: they nowhere become faster by {factor} times the factor that "
                "sharing the work saves.",
                runs=none,
                factor=STEP,
            )
        )
    if of_first is None and of_later is not None:
        below, above = of_later.below, of_later.above
        beside = Step("first_run_s", below, above, first[below], first[above])
        sentences.append(t("First runs change {step}.", step=beside))
    return sentences
