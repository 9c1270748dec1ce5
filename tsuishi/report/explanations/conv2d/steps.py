"""Steps in how long runs take over the number of towers, which sharing the work cannot explain; whether folding can."""

from dataclasses import dataclass
from itertools import pairwise

from tsuishi.base.language import t
from tsuishi.report.explanations.conv2d.observations import Observations, amounts, times

# A step from n to m towers saves at least so many times what sharing the same work over m instead of n would save.
# Where nothing but the number of towers changes, single runs of a quiet machine differ by up to a third.
STEP = 1.5
# Below this a run is mostly the overhead of starting one (1-4 ms on two cores), and no difference means anything.
LEAST_STEP_S = 0.005


@dataclass(frozen=True)
class Step:
    """From `below` towers, with which a run takes `slow` s, to the next number `above`, with `fast` s."""

    quantity: str
    below: int
    above: int
    slow: float
    fast: float

    @property
    def excess(self) -> float:
        """How many times more it saves than sharing the work would."""
        return self.slow / self.fast / (self.above / self.below)

    def __str__(self) -> str:
        return t(
            "from {below} to {above} towers, {seconds}: {ratio}",
            below=self.below,
            above=self.above,
            seconds=amounts([self.slow, self.fast], self.quantity),
            ratio=times(self.slow / self.fast),
        )


def find_step(measured: Observations, quantity: str, **axes: str) -> Step | None:
    """The largest step that is one, see STEP. It parts two levels: no run below it is as fast as any above.

    Nor may the quartiles (or trials) of its two sides meet.
    """
    taken, found = measured.by_towers(quantity, **axes), []
    for (below, slow), (above, fast) in pairwise(taken.items()):
        step = Step(quantity, below, above, slow, fast)
        slow_side, fast_side = (measured.spread(quantity, **{**axes, "devices": count}) for count in (below, above))
        apart = slow_side is None or fast_side is None or slow_side[0] > fast_side[1]
        slowest = max(seconds for count, seconds in taken.items() if count >= above)
        parted = all(seconds > slowest for count, seconds in taken.items() if count <= below)
        if step.excess >= STEP and slow - fast >= LEAST_STEP_S and apart and parted:
            found.append(step)
    return max(found, key=lambda step: step.excess, default=None)


def the_step(measured: Observations) -> Step | None:
    """Of later runs, where it is sharpest; else of first runs, which is what the source timed."""
    return find_step(measured, "later_run_s") or find_step(measured, "first_run_s")


def folded(measured: Observations, **axes: str) -> dict[int, bool]:
    """By number of towers, whether no convolution was left in the graph that ran."""
    left = measured.by_towers("convolutions_left_in_graph", **axes)
    return {count: value == 0 for count, value in left.items()}


def folded_only_above(measured: Observations, step: Step) -> bool | None:
    """Whether the graph that ran was folded on the fast side of the step and not on the slow one; None: not known."""
    known = folded(measured)
    if step.below not in known or step.above not in known:
        return None
    return known[step.above] and not known[step.below]


def gone_without_folding(measured: Observations, step: Step) -> bool | None:
    """Whether with folding off the fast side is as slow as the slow one, but for sharing the work; None: not known."""
    slow = measured.value(step.quantity, devices=step.above, graph_optimizers="no_folding")
    return None if slow is None else Step(step.quantity, step.below, step.above, step.slow, slow).excess < STEP
