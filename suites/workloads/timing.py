"""How steps are timed. Nothing here knows a framework.

A step is a callable without arguments; what it returns is not looked at. synchronise() returns when the device has done
all it was given.
"""

import statistics
import time

SHORTEST_STEP_S = 1e-6  # so that a step below the clock's resolution does not ask for endless blocks


def first_and_later(events, run, later_runs, images):
    """Times one cold run, phase first_run, then `later_runs` more, phase later_runs. run() must end synchronised.

    images: what one run handles. Returns what the first and the last run returned, to be checked outside the clock.
    """
    with events.phase("first_run"):
        first, seconds = timed(run)
    events.sample("first_run", 0, 1, images, seconds)
    last = first
    with events.phase("later_runs"):
        for index in range(later_runs):
            last, seconds = timed(run)
            events.sample("later_runs", index, 1, images, seconds)
    return first, last


def timed(run):
    """(what run() returns, seconds it took)."""
    begin = time.perf_counter()
    result = run()
    return result, time.perf_counter() - begin


def steady(events, step, synchronise, images, settings, phase="measure", clock=time.perf_counter):
    """Times warm steps in blocks: one sample per block, in `phase`, synchronised at block ends only.

    images: what one step handles. settings (s, or counts): warm_up_steps, warm_up_s, block_s, min_blocks, measure_s,
    max_s. Steps 1 and 2 hold compilation, autotuning and allocation, and are samples of their own: phases first_step
    and second_step, with "<phase>_" before them unless the phase is measure.
    """
    prefix = "" if phase == "measure" else phase + "_"
    for name in (prefix + "first_step", prefix + "second_step"):
        with events.phase(name):
            seconds = _block(step, synchronise, 1, clock)
        events.sample(name, 0, 1, images, seconds)
    with events.phase(prefix + "warm_up"):
        step_s = _warm_up(step, synchronise, settings, clock)
    steps = max(1, round(settings["block_s"] / max(step_s, SHORTEST_STEP_S)))
    with events.phase(phase):
        _measure(events, step, synchronise, steps, images, settings, phase, clock)


def _block(step, synchronise, steps, clock):
    begin = clock()
    for _ in range(steps):
        step()
    synchronise()
    return clock() - begin


def _warm_up(step, synchronise, settings, clock):
    """The median step in seconds, from steps 3 up to warm_up_steps or warm_up_s, whichever is first; at least step 3.

    The time counts from step 3: a long compilation is no warm-up.
    """
    begin = clock()
    seconds = [_block(step, synchronise, 1, clock)]
    while 2 + len(seconds) < settings["warm_up_steps"] and clock() - begin < settings["warm_up_s"]:
        seconds.append(_block(step, synchronise, 1, clock))
    return statistics.median(seconds)


def _measure(events, step, synchronise, steps, images, settings, phase, clock):
    begin = clock()
    blocks = 0
    while not _enough(blocks, clock() - begin, settings):
        seconds = _block(step, synchronise, steps, clock)
        events.sample(phase, blocks, steps, steps * images, seconds)
        blocks += 1


def _enough(blocks, elapsed_s, settings):
    """Enough blocks and time; or over time, once there are the three blocks a median needs."""
    wanted = blocks >= settings["min_blocks"] and elapsed_s >= settings["measure_s"]
    over_time = blocks >= 3 and elapsed_s > settings["max_s"]
    return wanted or over_time
