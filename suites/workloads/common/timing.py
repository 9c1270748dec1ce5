"""How steps are timed. Nothing here knows a framework.

A step is a callable without arguments; what it returns is not looked at. synchronise() returns when the device has done
all it was given.

Early stopping (settings["stop_at"] above 0) looks at the means of blocks or epochs and decides only how long a trial
runs. What it looked at is no interval: stopping at 1 % covered 37-90 % in simulation, where 95 % was meant.
"""

import math
import statistics
import time

from common.events import START, Skipped

SHORTEST_STEP_S = 1e-6  # so that a step below the clock's resolution does not ask for endless blocks
LEAST_BLOCKS = 3  # a median needs


class Budget:
    """The seconds a workload has from its start, imports and all; None for as long as it takes."""

    def __init__(self, budget_s, clock=time.monotonic, start=START):
        self.budget_s = budget_s
        self._clock = clock
        self._start = start

    def require(self, seconds, what):
        """Skipped unless `seconds` more fit. what: the work meant and the pace of the probe, in words."""
        elapsed_s = self._clock() - self._start
        if self.budget_s is not None and elapsed_s + seconds > self.budget_s:
            raise Skipped(
                "{} would take {:.3g} s, after {:.3g} s so far; its budget is {:g} s: allow more with --timeout, or "
                "take --profile quick".format(what, seconds, elapsed_s, self.budget_s)
            )


UNLIMITED = Budget(None)


def first_and_later(events, run, later_runs, images, budget=None):
    """Times one cold run, phase first_run, then `later_runs` more, phase later_runs. run() must end synchronised.

    images: what one run handles. Returns what the first and the last run returned, to be checked outside the clock.
    Raises Skipped after the third run in all, where the others at its pace do not fit the budget.
    """
    budget = budget or UNLIMITED
    with events.phase("first_run"):
        first, seconds = timed(run)
    events.sample("first_run", 0, 1, images, seconds)
    last = first
    with events.phase("later_runs"):
        for index in range(later_runs):
            last, seconds = timed(run)
            events.sample("later_runs", index, 1, images, seconds)
            if index == 1:
                left = later_runs - 2
                budget.require(left * seconds, "{} more runs at {:.3g} s a run (the third)".format(left, seconds))
    return first, last


def timed(run):
    """(what run() returns, seconds it took)."""
    begin = time.perf_counter()
    result = run()
    return result, time.perf_counter() - begin


def steady(
    events,
    step,
    synchronise,
    images,
    settings,
    phase="measure",
    clock=time.perf_counter,
    budget=None,
    announce=None,
):
    """Times warm steps in blocks: one sample per block, in `phase`, synchronised at block ends only.

    images: what one step handles. settings (s, or counts): warm_up_steps, warm_up_s, block_s, min_blocks, measure_s,
    max_s; stop_at: relative standard error of the mean over blocks at which it stops early, 0 for never. Steps 1 and 2
    hold compilation, autotuning and allocation, and are samples of their own: phases first_step and second_step, with
    "<phase>_" before them unless the phase is measure. announce(steps) is called before every block, outside its clock.
    Raises Skipped after the third step, where the least that is to come at its pace does not fit the budget.
    """

    def block(steps):
        if announce is not None:
            announce(steps)
        begin = clock()
        for _ in range(steps):
            step()
        synchronise()
        return clock() - begin

    prefix = "" if phase == "measure" else phase + "_"
    for name in (prefix + "first_step", prefix + "second_step"):
        with events.phase(name):
            seconds = block(1)
        events.sample(name, 0, 1, images, seconds)
    with events.phase(prefix + "warm_up"):
        step_s = _warm_up(block, settings, clock, budget or UNLIMITED)
    with events.phase(phase):
        _measure(events, block, _steps_of_block(step_s, settings), images, settings, phase, clock)


def _warm_up(block, settings, clock, budget):
    """The median step in seconds, from steps 3 up to warm_up_steps or warm_up_s, whichever is first; at least step 3.

    The time counts from step 3: a long compilation is no warm-up.
    """
    begin = clock()
    seconds = [block(1)]
    budget.require(*_least_to_come(seconds[0], settings))
    while 2 + len(seconds) < settings["warm_up_steps"] and clock() - begin < settings["warm_up_s"]:
        seconds.append(block(1))
    return statistics.median(seconds)


def _steps_of_block(step_s, settings):
    return max(1, round(settings["block_s"] / max(step_s, SHORTEST_STEP_S)))


def _least_to_come(step_s, settings):
    """(seconds, in words) of the least that follows step 3, if all steps take as long as it did.

    That is the rest of the warm-up, then blocks until _enough would say so (or might, where it may stop early).
    """
    step_s = max(step_s, SHORTEST_STEP_S)
    by_time = math.ceil(settings["warm_up_s"] / step_s) - 1
    warm_up = max(0, min(settings["warm_up_steps"] - 3, by_time))
    steps = _steps_of_block(step_s, settings)
    block_s = steps * step_s
    wanted = settings["min_blocks"]
    if not settings["stop_at"]:
        wanted = max(wanted, math.ceil(settings["measure_s"] / block_s))
    over_time = max(LEAST_BLOCKS, math.floor(settings["max_s"] / block_s) + 1)
    blocks = min(wanted, over_time)
    what = "{} more steps of warm-up and {} blocks of {} at {:.3g} s a step (the third)".format(
        warm_up, blocks, steps, step_s
    )
    return (warm_up + blocks * steps) * step_s, what


def _measure(events, block, steps, images, settings, phase, clock):
    begin = clock()
    seconds = []
    while not _enough(seconds, clock() - begin, settings):
        seconds.append(block(steps))
        events.sample(phase, len(seconds) - 1, steps, steps * images, seconds[-1])


def _enough(seconds, elapsed_s, settings):
    """Enough blocks, and time or certainty; or over time, once there are the three blocks a median needs."""
    blocks = len(seconds)
    over_time = blocks >= LEAST_BLOCKS and elapsed_s > settings["max_s"]
    known = elapsed_s >= settings["measure_s"] or _mean_is_known(seconds, settings["stop_at"])
    return over_time or (blocks >= settings["min_blocks"] and known)


def _mean_is_known(seconds, stop_at):
    """Whether the relative standard error of the mean is at most `stop_at`; never for stop_at 0 or a single value."""
    if not stop_at or len(seconds) < 2:
        return False
    return statistics.stdev(seconds) / math.sqrt(len(seconds)) <= stop_at * statistics.mean(seconds)


class EpochProbe:
    """Asks the budget once, after the third step of a training in epochs, for all that is to come.

    Tell it the end of every step. Steps 1 to 3 it synchronises, to know what 2 and 3 took; the others cost nothing.
    steps: of the whole training (at least). synchronise: None where a step returns when it is done.
    """

    def __init__(self, budget, steps, synchronise=None, clock=time.perf_counter):
        self._budget = budget
        self._steps = steps
        self._synchronise = synchronise
        self._clock = clock
        self._ends = []

    def step_ended(self):
        """Skipped after the third step, where the steps left, at the pace of steps 2 and 3, do not fit the budget."""
        if len(self._ends) == 3:
            return
        if self._synchronise is not None:
            self._synchronise()
        self._ends.append(self._clock())
        if len(self._ends) == 3:
            step_s = (self._ends[2] - self._ends[0]) / 2
            left = self._steps - 3
            self._budget.require(
                left * step_s, "{} more steps at {:.3g} s a step (the second and third)".format(left, step_s)
            )


def least_epochs(settings):
    """How many epochs a literal training runs at least: all, or the first and min_epochs where it may stop early."""
    return min(settings["epochs"], 1 + settings["min_epochs"]) if settings["stop_at"] else settings["epochs"]


def epochs_enough(seconds_per_epoch, settings):
    """Whether a literal training may stop early, by the seconds of all its epochs so far, the first included.

    It may from min_epochs later ones on, once their mean is known to settings["stop_at"]; never where that is 0.
    """
    later = seconds_per_epoch[1:]
    return len(later) >= settings["min_epochs"] and _mean_is_known(later, settings["stop_at"])
