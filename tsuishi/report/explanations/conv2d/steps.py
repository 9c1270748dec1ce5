"""Steps in how long runs take over the number of towers, which sharing the work cannot explain; whether folding can."""

from dataclasses import dataclass
from itertools import pairwise

from tsuishi.base.language import prose, t
from tsuishi.report.explanations.conv2d.observations import Observations, amounts, times, towers

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
    taken, steps = measured.by_towers(quantity, **axes), []
    for (below, slow), (above, fast) in pairwise(taken.items()):
        step = Step(quantity, below, above, slow, fast)
        slow_side, fast_side = (measured.spread(quantity, **{**axes, "devices": count}) for count in (below, above))
        apart = slow_side is None or fast_side is None or slow_side[0] > fast_side[1]
        slowest = max(seconds for count, seconds in taken.items() if count >= above)
        parted = all(seconds > slowest for count, seconds in taken.items() if count <= below)
        if step.excess >= STEP and slow - fast >= LEAST_STEP_S and apart and parted:
            steps.append(step)
    return max(steps, key=lambda step: step.excess, default=None)


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


def about_step(measured: Observations) -> str:
    """How long runs take with each number of towers, and their steps."""
    first, later = measured.by_towers("first_run_s"), measured.by_towers("later_run_s")
    if not first:
        return measured.why_not()
    taken = {"towers": towers(first), "first": amounts(first.values(), "first_run_s")}
    if later:
        times_taken = t(
            "With {towers} a first run takes {first}; a later one of the same session {later}.",
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
                "There is no step in {runs}: none that parts slow ones from fast ones and saves {factor} times what "
                "sharing the work would.",
                runs=none,
                factor=STEP,
            )
        )
    if of_first is None and of_later is not None:
        below, above = of_later.below, of_later.above
        beside = Step("first_run_s", below, above, first[below], first[above])
        sentences.append(t("First runs change {step}.", step=beside))
    return sentences
