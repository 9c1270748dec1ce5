"""How steps are timed. Needs no framework.

A step is a callable without arguments, whose result is ignored. synchronise() returns when the device has finished all
its work.

No timed block decides how long steps are timed: a trial that ends once its blocks agree ends before a rare stall, and
is 1 to 3 % too fast where stalls take a tenth of the time. A literal training may stop early (settings["stop_at"] above
0) by the means of its epochs, for a total that is predicted anyway. The standard error that it looks at gives no
confidence interval: in simulation, intervals of 95 % at a stop at 1 % contained the true mean in 37-90 % of trials.
"""

import math
import statistics
import time

from common.events import START, Skipped

SHORTEST_STEP_S = 1e-6  # so that a step shorter than the clock's resolution does not give endless blocks
LEAST_BLOCKS = 3  # that a median needs
SETTLED = 0.01  # a device is steady where the step times of LAST_WINDOWS windows differ by no more than this share
UNEVEN = 0.03  # where they still differ by more than this at the end of the warm-up, max_s is measured
LAST_WINDOWS, MOST_WINDOWS = 5, 15
WITHOUT_END_S = 1e9


class Budget:
    """The seconds that a workload may take from its start, imports included; None for no limit."""

    def __init__(self, budget_s, clock=time.monotonic, start=START):
        self.budget_s = budget_s
        self._clock = clock
        self._start = start

    def require(self, seconds, what):
        """Raises Skipped unless `seconds` more fit. what: which work takes them, and at which pace, in words."""
        elapsed_s = self._clock() - self._start
        if self.budget_s is not None and elapsed_s + seconds > self.budget_s:
            raise Skipped(
                "{} would take {:.3g} s, after {:.3g} s so far; its budget is {:g} s: allow more with --timeout, or "
                "take --profile quick".format(what, seconds, elapsed_s, self.budget_s)
            )


UNLIMITED = Budget(None)


def first_and_later(events, run, later_runs, images, budget=None):
    """Times a cold run in phase first_run, then `later_runs` runs in phase later_runs. run() must end synchronised.

    images: that a run handles. Returns the results of the first and the last run, so that the caller can check them
    outside the clock. Raises Skipped after the third run, where all others at its pace do not fit the budget.
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
    """(the result of run(), the seconds that it took)."""
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
    """Times warm steps in blocks: a sample for each block, in `phase`. Devices are synchronised at block ends only.

    images: that a step handles. settings (s, or counts): warm_up_steps, warm_up_s, block_s, min_blocks, measure_s,
    max_s; settle_s: the longest time that the warm-up goes on until the device is steady (see _settle), 0 for not at
    all. A device whose steps still differ by then is measured for max_s: so no timed block decides how long is
    measured. Both are of phase measure alone: another phase follows a phase that has warmed the device. Steps 1 and 2
    contain compilation, autotuning and allocation, and have their own samples, in phases first_step and second_step
    (with "<phase>_" before the name unless the phase is measure). announce(steps) is called before every block, outside
    the clock. Raises Skipped after the third step, where the least work left at its pace does not fit the budget.
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
        if settings.get("settle_s") and phase == "measure":
            step_s, spread = _settle(events, block, step_s, settings["settle_s"], clock)
            if spread > UNEVEN:
                settings = dict(settings, measure_s=settings["max_s"])
    with events.phase(phase):
        _measure(events, block, _steps_of_block(step_s, settings), images, settings, phase, clock)


def asked_for(parts, settings):
    """Those of a trainer's parts, each (name of a phase, callable), that settings["parts"] names, with commas."""
    names = settings["parts"].split(",")
    return [(phase, part) for phase, part in parts if phase in names]


def one_by_one(settings):
    """Settings by which `steady` times each step on its own: `readings` steps, after a tenth as many that do not count.

    At least three do not count.
    """
    count = settings["readings"]
    short = dict.fromkeys(("block_s", "measure_s", "settle_s"), 0.0)
    long = dict.fromkeys(("warm_up_s", "max_s"), WITHOUT_END_S)
    return dict(settings, warm_up_steps=count // 10, min_blocks=count, **short, **long)


def _warm_up(block, settings, clock, budget):
    """The median seconds of a step: of step 3 and those after it, until warm_up_steps or warm_up_s is reached.

    The time counts from step 3, as a long compilation is no warm-up.
    """
    begin = clock()
    seconds = [block(1)]
    budget.require(*_least_to_come(seconds[0], settings))
    while 2 + len(seconds) < settings["warm_up_steps"] and clock() - begin < settings["warm_up_s"]:
        seconds.append(block(1))
    return statistics.median(seconds)


def _settle(events, block, step_s, settle_s, clock):
    """Steps on until the device is steady, for settle_s seconds at most.

    A GPU that reaches its limit of power lowers its clocks after a second or more, and stays there in a long training.
    Emits settled_s, the seconds that it took, and settled_spread, the share by which its last windows differ. Returns
    the last window's seconds of a step, and that share; where there was time for fewer windows, that of these.
    """
    begin, windows = clock(), []
    steps = max(1, round(settle_s / MOST_WINDOWS / max(step_s, SHORTEST_STEP_S)))
    spread = math.inf
    while (len(windows) < LAST_WINDOWS or spread > SETTLED) and clock() - begin < settle_s:
        windows.append(block(steps) / steps)
        last = windows[-LAST_WINDOWS:]
        spread = max(last) / max(min(last), SHORTEST_STEP_S) - 1
    events.metric("settled_s", clock() - begin, "s")
    if len(windows) >= LAST_WINDOWS:
        events.metric("settled_spread", spread, "1")
    return windows[-1], spread


def _steps_of_block(step_s, settings):
    return max(1, round(settings["block_s"] / max(step_s, SHORTEST_STEP_S)))


def _least_to_come(step_s, settings):
    """(seconds, description) of the least work after step 3, if all steps take step_s.

    That is the rest of the warm-up, then the blocks that _enough asks for at least.
    """
    step_s = max(step_s, SHORTEST_STEP_S)
    by_time = math.ceil(settings["warm_up_s"] / step_s) - 1
    warm_up = max(0, min(settings["warm_up_steps"] - 3, by_time))
    steps = _steps_of_block(step_s, settings)
    block_s = steps * step_s
    wanted = max(settings["min_blocks"], math.ceil(settings["measure_s"] / block_s))
    over_time = max(LEAST_BLOCKS, math.floor(settings["max_s"] / block_s) + 1)
    blocks = min(wanted, over_time)
    what = "{} more steps of warm-up and {} blocks of {} at {:.3g} s a step (the third)".format(
        warm_up, blocks, steps, step_s
    )
    settle_s = settings.get("settle_s", 0.0) * LAST_WINDOWS / MOST_WINDOWS
    return (warm_up + blocks * steps) * step_s + settle_s, what


def _measure(events, block, steps, images, settings, phase, clock):
    begin = clock()
    seconds = []
    while not _enough(seconds, clock() - begin, settings):
        seconds.append(block(steps))
        events.sample(phase, len(seconds) - 1, steps, steps * images, seconds[-1])


def _enough(seconds, elapsed_s, settings):
    """Whether there are enough blocks and enough time, or LEAST_BLOCKS and more than max_s."""
    blocks = len(seconds)
    over_time = blocks >= LEAST_BLOCKS and elapsed_s > settings["max_s"]
    return over_time or (blocks >= settings["min_blocks"] and elapsed_s >= settings["measure_s"])


def _mean_is_known(seconds, stop_at):
    """Whether the relative standard error of the mean is at most `stop_at`; never for stop_at 0 or a single value."""
    if not stop_at or len(seconds) < 2:
        return False
    return statistics.stdev(seconds) / math.sqrt(len(seconds)) <= stop_at * statistics.mean(seconds)


class EpochProbe:
    """Checks the budget after the third step of a training in epochs, for all the steps left.

    Call step_ended after every step. It synchronises after steps 1 to 3, to time steps 2 and 3, and returns at once
    after later steps. steps: of the whole training (at least). synchronise: None where a step ends synchronised.
    """

    def __init__(self, budget, steps, synchronise=None, clock=time.perf_counter):
        self._budget = budget
        self._steps = steps
        self._synchronise = synchronise
        self._clock = clock
        self._ends = []

    def step_ended(self):
        """Raises Skipped after step 3 where the steps left, at the pace of steps 2 and 3, do not fit the budget."""
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
    """The least epochs of a literal training: all, or 1 + min_epochs where it may stop early."""
    return min(settings["epochs"], 1 + settings["min_epochs"]) if settings["stop_at"] else settings["epochs"]


def timed_epochs(emitter, settings, images, epoch):
    """Time epochs of so many images until the settings have enough of them. Returns the total of the last.

    epoch: runs an epoch, waits for the devices, and returns (total, steps).
    """
    epochs_s = []
    while len(epochs_s) < settings.positive("epochs"):
        with emitter.phase("epoch"):
            (total, steps), seconds = timed(epoch)
        emitter.sample("epoch", len(epochs_s), steps, images, seconds)
        epochs_s.append(seconds)
        if epochs_enough(epochs_s, settings):
            break
    return total


def epochs_enough(seconds_per_epoch, settings):
    """Whether a literal training may stop early. seconds_per_epoch: of all epochs so far, the first included.

    It may stop once at least min_epochs epochs after the first have a mean that is known to settings["stop_at"]. It
    never stops early where stop_at is 0.
    """
    later = seconds_per_epoch[1:]
    return len(later) >= settings["min_epochs"] and _mean_is_known(later, settings["stop_at"])
