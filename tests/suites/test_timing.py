"""The steady protocol against a clock that only steps move."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import timing
from common.events import Skipped
from tests.suites.inside.recorder import Recorder as AnyRecorder

SETTINGS = {
    "warm_up_steps": 5,
    "warm_up_s": 100,
    "block_s": 1,
    "min_blocks": 8,
    "measure_s": 0,
    "max_s": 1000,
    "stop_at": 0,
}


class Machine:
    """A device whose steps take `durations` seconds, the last one for ever; work is done when synchronised."""

    def __init__(self, *durations):
        self.now = 0.0
        self.durations = list(durations)
        self.queued = 0.0
        self.steps = 0
        self.synchronised_after = []

    def step(self):
        self.queued += self.durations.pop(0) if len(self.durations) > 1 else self.durations[0]
        self.steps += 1

    def synchronise(self):
        self.now += self.queued
        self.queued = 0.0
        self.synchronised_after.append(self.steps)

    def clock(self):
        return self.now


class Recorder(AnyRecorder):
    def blocks(self, phase="measure"):
        return [sample for sample in self.samples if sample[0] == phase]


def run(machine, images=16, phase="measure", budget=None, announce=None, **settings):
    recorder = Recorder()
    timing.steady(
        recorder,
        machine.step,
        machine.synchronise,
        images,
        dict(SETTINGS, **settings),
        phase,
        machine.clock,
        budget,
        announce,
    )
    return recorder


def budget_of(machine, budget_s):
    """A budget on the machine's own clock."""
    return timing.Budget(budget_s, machine.clock, 0.0)


def throttling(after_s, most=0.4):
    """A device whose step takes 10 ms; once it has worked for so long, 2 % more with each tenth of a second."""

    class Throttling(Machine):
        def step(self):
            self.queued += 0.01 * (1 + min(most, max(0.0, 0.2 * (self.now + self.queued - after_s))))
            self.steps += 1

    return Throttling()


QUICK = {"warm_up_steps": 10, "warm_up_s": 0.5, "block_s": 0.1, "measure_s": 1.0, "max_s": 5.0}


def test_a_device_that_lowers_its_clocks_under_load_is_measured_once_it_is_steady():
    """At full power for less than a second, a GPU does more than in any training that lasts."""

    def mean_ms(settle_s):
        blocks = run(throttling(1.0), settle_s=settle_s, **QUICK).blocks()
        return 1e3 * sum(block[4] for block in blocks) / sum(block[2] for block in blocks)

    assert mean_ms(0.0) < 11
    assert mean_ms(15.0) == pytest.approx(14.0, abs=0.01)


@pytest.mark.parametrize(
    ("device", "settled_s", "spread"),
    [
        (Machine(0.01), pytest.approx(5.0, abs=0.1), 0.0),
        (throttling(1.0), pytest.approx(9.5, abs=1.0), 0.0),
        (throttling(1.0, most=100.0), pytest.approx(16.0, abs=4.0), pytest.approx(1.5, abs=1.0)),
    ],
)
def test_the_warm_up_goes_on_until_the_device_is_steady_or_for_the_longest_time(device, settled_s, spread):
    found = run(device, settle_s=15.0, **QUICK).metrics
    assert found["settled_s"] == (settled_s, "s")
    assert found["settled_spread"] == (pytest.approx(spread, abs=0.01) if spread == 0.0 else spread, "1")


@pytest.mark.parametrize(
    ("device", "measured_s"),
    [(Machine(0.01), 1.0), (throttling(1.0), 1.0), (throttling(0.5, most=0.025), 1.0), (throttling(1.0, 9.0), 5.0)],
)
def test_a_device_whose_steps_still_change_after_its_warm_up_is_measured_for_the_longest_time(device, measured_s):
    """Before a block is timed: a narrow interval by chance cannot end it."""
    blocks = run(device, settle_s=9.5, **QUICK).blocks()
    assert sum(block[4] for block in blocks) == pytest.approx(measured_s, rel=0.25)


def test_a_phase_after_the_first_needs_no_steady_device():
    """The phase before has warmed it."""
    recorder = run(throttling(1.0, 9.0), phase="forward", settle_s=9.5, **QUICK)
    assert "settled_s" not in recorder.metrics
    assert sum(block[4] for block in recorder.blocks("forward")) == pytest.approx(1.0, rel=0.25)


@pytest.mark.parametrize(("parts", "left"), [("", ""), ("forward", "f"), ("loading,forward_backward", "b")])
def test_the_parts_that_are_timed_are_those_that_the_settings_name_and_the_trainer_has(parts, left):
    found = timing.asked_for((("forward", "f"), ("forward_backward", "b")), {"parts": parts})
    assert "".join(part for _, part in found) == left


@pytest.mark.parametrize(("readings", "before"), [(5, 3), (50, 5)])
def test_steps_that_are_timed_one_by_one_are_as_many_as_the_settings_say(readings, before):
    """However long they take, and however alike they are."""
    settings = timing.one_by_one(dict(SETTINGS, stop_at=0.5, settle_s=9.0, readings=readings))
    for step_s in (0.001, 500.0):
        machine = Machine(step_s)
        blocks = run(machine, **settings).blocks()
        assert blocks == [("measure", index, 1, 16, pytest.approx(step_s)) for index in range(readings)]
        assert machine.steps == before + readings
    machine = Machine(2.0)
    with pytest.raises(Skipped, match=f"{readings} blocks of 1 at 2 s a step"):
        run(machine, budget=budget_of(machine, 3 * 2.0), **settings)


def test_the_first_two_steps_are_samples_of_their_own():
    assert run(Machine(30, 4, 0.5)).samples[:2] == [("first_step", 0, 1, 16, 30), ("second_step", 0, 1, 16, 4)]


def test_phases_follow_one_another_and_all_end():
    expected = ["first_step", "second_step", "warm_up", "measure"]
    assert run(Machine(1)).phases == [sign + phase for phase in expected for sign in "+-"]


def test_a_phase_of_another_name_names_its_preparation_too():
    assert run(Machine(1), phase="compute").phases[::2] == [
        "+compute_first_step",
        "+compute_second_step",
        "+compute_warm_up",
        "+compute",
    ]


def test_blocks_hold_as_many_steps_as_the_median_warm_step_fits_into_a_block():
    recorder = run(Machine(30, 4, 0.25, 0.25, 9, 0.25))
    assert recorder.blocks()[0] == ("measure", 0, 4, 64, 1.0)
    assert [block[1] for block in recorder.blocks()] == list(range(8))


def test_a_step_longer_than_a_block_makes_a_block_of_one():
    assert run(Machine(7.0)).blocks()[0] == ("measure", 0, 1, 16, 7.0)


def test_blocks_are_synchronised_at_their_ends_only():
    machine = Machine(0.25)
    run(machine, min_blocks=3)
    assert machine.synchronised_after == [1, 2, 3, 4, 5, 9, 13, 17]


@pytest.mark.parametrize(
    ("warm_up_steps", "warm_up_s", "steps"),
    [
        (20, 1000, 20),  # steps run out first; the first two count
        (20, 5, 7),  # seconds run out first; the first two steps do not count
        (20, 0, 3),  # never without one warm step
        (1, 1000, 3),
    ],
)
def test_warm_up_ends_with_its_steps_or_seconds_whichever_is_first(warm_up_steps, warm_up_s, steps):
    machine = Machine(50, 50, 1)
    run(machine, warm_up_steps=warm_up_steps, warm_up_s=warm_up_s, min_blocks=3)
    assert machine.steps == steps + 3


@pytest.mark.parametrize(
    ("settings", "blocks"),
    [
        ({"min_blocks": 8, "measure_s": 0}, 8),
        ({"min_blocks": 3, "measure_s": 10}, 10),
        ({"min_blocks": 8, "measure_s": 0, "max_s": 4}, 5),  # more than max_s passed
        ({"min_blocks": 8, "measure_s": 0, "max_s": 0}, 3),  # three blocks are the least
        ({"min_blocks": 2, "measure_s": 0, "max_s": 0}, 2),  # unless fewer are asked for
        ({"min_blocks": 3, "measure_s": 1000, "max_s": 6}, 7),
    ],
)
def test_measuring_ends_with_enough_blocks_and_time_or_when_over_time(settings, blocks):
    assert len(run(Machine(1.0), **settings).blocks()) == blocks


def test_a_step_below_the_clocks_resolution_still_ends():
    recorder = run(Machine(0.0), block_s=1e-3, min_blocks=3)
    assert [block[2] for block in recorder.blocks()] == [1000] * 3


@given(step_s=st.floats(1e-3, 5), block_s=st.floats(0.01, 5), images=st.integers(1, 512))
def test_images_and_seconds_add_up(step_s, block_s, images):
    for _, _, steps, block_images, seconds in run(Machine(step_s), images, block_s=block_s).blocks():
        assert block_images == steps * images
        assert seconds == pytest.approx(steps * step_s)


def test_first_and_later_times_each_run_and_returns_the_first_and_the_last_result():
    results = iter("abcd")
    recorder = Recorder()
    assert timing.first_and_later(recorder, lambda: next(results), 3, 840) == ("a", "d")
    assert [sample[:4] for sample in recorder.samples] == [
        ("first_run", 0, 1, 840),
        ("later_runs", 0, 1, 840),
        ("later_runs", 1, 1, 840),
        ("later_runs", 2, 1, 840),
    ]
    assert all(sample[4] >= 0 for sample in recorder.samples)


def test_without_later_runs_the_first_result_is_the_last():
    assert timing.first_and_later(Recorder(), lambda: "a", 0, 840) == ("a", "a")


def test_every_block_is_announced_outside_its_clock_with_its_steps():
    machine = Machine(30, 4, 0.25)
    announced = []

    def announce(steps):
        announced.append((machine.steps, steps))
        machine.now += 100  # what a helper takes to hear of it is not measured

    recorder = run(machine, announce=announce, min_blocks=3, max_s=0, warm_up_steps=3)
    assert announced == [(0, 1), (1, 1), (2, 1), (3, 4), (7, 4), (11, 4)]
    assert [sample[4] for sample in recorder.samples] == [30, 4, 1, 1, 1]


class Noise:
    """Steps that take the same seconds over and over, in blocks of one."""

    def __init__(self, *seconds):
        self.seconds = seconds

    def machine(self):
        return Machine(1, 1, 1, *(self.seconds * 100))


@pytest.mark.parametrize("stop_at", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("noise", [Noise(1.0), Noise(0.9, 1.1), Noise(0.5, 1.5)])
def test_no_timed_block_decides_how_long_is_timed(noise, stop_at):
    recorder = run(noise.machine(), stop_at=stop_at, measure_s=20, warm_up_steps=3)
    assert len(recorder.blocks()) == 20
    assert sum(block[4] for block in recorder.blocks()) == pytest.approx(20)


def test_a_trial_never_outlasts_max_s():
    assert len(run(Noise(0.5, 1.5).machine(), measure_s=100, max_s=50, warm_up_steps=3).blocks()) == 51


@pytest.mark.parametrize(
    ("settings", "least_s"),
    [
        ({}, 2 + 8),  # two more steps of warm-up, 8 blocks of one step
        ({"measure_s": 20}, 2 + 20),
        ({"measure_s": 20, "max_s": 4}, 2 + 5),  # over time
        ({"warm_up_s": 2}, 1 + 8),
        ({"warm_up_steps": 3, "min_blocks": 2}, 2),
    ],
)
def test_a_case_is_skipped_after_its_third_step_when_the_least_to_come_does_not_fit(settings, least_s):
    machine = Machine(30, 4, 1)
    run(machine, budget=budget_of(machine, 35 + least_s), **settings)
    machine = Machine(30, 4, 1)
    with pytest.raises(Skipped, match=re.escape(f"; its budget is {34.9 + least_s:g} s")):
        run(machine, budget=budget_of(machine, 34.9 + least_s), **settings)
    assert machine.steps == 3


def test_what_is_to_come_is_what_comes():
    for step_s in (0.07, 0.31, 1.1, 2.6):
        machine = Machine(step_s)
        run(machine, warm_up_steps=7, warm_up_s=4, block_s=0.9, measure_s=9)
        told, _ = timing._least_to_come(step_s, dict(SETTINGS, warm_up_steps=7, warm_up_s=4, block_s=0.9, measure_s=9))
        assert machine.now - 3 * step_s == pytest.approx(told)


def test_a_skip_names_the_pace_the_time_and_the_remedies():
    machine = Machine(30, 4, 7.5)
    with pytest.raises(Skipped) as skipped:
        run(machine, budget=budget_of(machine, 60))
    assert str(skipped.value) == (
        "2 more steps of warm-up and 8 blocks of 1 at 7.5 s a step (the third) would take 75 s, after 41.5 s so far; "
        "its budget is 60 s: allow more with --timeout, or take --profile quick"
    )


def test_without_a_budget_nothing_is_skipped():
    machine = Machine(1e6)
    assert len(run(machine, budget=timing.Budget(None, machine.clock, 0.0)).blocks()) == 3  # over max_s


def test_the_budget_counts_from_the_start_of_the_workload():
    timing.Budget(10, clock=lambda: 107.0, start=100.0).require(3, "it")
    with pytest.raises(Skipped, match=r"^it would take 3.1 s, after 7 s so far; its budget is 10 s: "):
        timing.Budget(10, clock=lambda: 107.0, start=100.0).require(3.1, "it")


@pytest.mark.parametrize(("budget_s", "runs"), [(1000, 11), (1e-9, 3), (None, 11)])
def test_later_runs_are_skipped_after_the_third_run(budget_s, runs):
    recorder = Recorder()
    budget = timing.Budget(budget_s, start=time.monotonic())
    if runs == 11:
        timing.first_and_later(recorder, lambda: None, 10, 840, budget)
    else:
        with pytest.raises(Skipped, match=r"^8 more runs at \S+ s a run \(the third\) would take "):
            timing.first_and_later(recorder, lambda: None, 10, 840, budget)
    assert len(recorder.samples) == runs


class Epochs:
    """Ends of steps, told to a probe; the device is behind until it is synchronised."""

    def __init__(self, budget_s, steps, *durations):
        self.machine = Machine(*durations)
        self.probe = timing.EpochProbe(
            budget_of(self.machine, budget_s), steps, self.machine.synchronise, self.machine.clock
        )

    def run(self, steps):
        for _ in range(steps):
            self.machine.step()
            self.probe.step_ended()


def test_a_training_that_fits_is_synchronised_three_times():
    epochs = Epochs(30 + 99 * 0.25, 100, 30, 0.2, 0.3, 0.25)
    epochs.run(100)
    assert epochs.machine.synchronised_after == [1, 2, 3]


def test_a_training_that_does_not_fit_is_skipped_after_its_third_step():
    epochs = Epochs(55, 107, 30, 0.2, 0.3, 0.25)
    with pytest.raises(Skipped) as skipped:
        epochs.run(107)
    assert epochs.machine.steps == 3
    told = "104 more steps at 0.25 s a step (the second and third) would take 26 s, after 30.5 s so far; "
    assert str(skipped.value).startswith(told + "its budget is 55 s: ")


EPOCHS = {"epochs": 100, "min_epochs": 3, "stop_at": 0.01}


@pytest.mark.parametrize(
    ("seconds", "settings", "enough"),
    [
        ([9, 1, 1, 1], {}, True),  # the first epoch does not count
        ([9, 1, 1], {}, False),
        ([9, 1, 1, 1, 1], {"min_epochs": 5}, False),
        ([9, 1, 1, 1], {"stop_at": 0}, False),
        ([9, 1.0, 1.1, 1.0], {}, False),
        ([9, 1.0, 1.01, 1.0], {}, True),
        ([9, 1.0], {"min_epochs": 1}, False),  # one epoch has no spread
    ],
)
def test_literal_training_stops_early_only_when_later_epochs_are_known(seconds, settings, enough):
    assert timing.epochs_enough(seconds, dict(EPOCHS, **settings)) is enough


@pytest.mark.parametrize(
    ("settings", "least"), [({}, 4), ({"stop_at": 0}, 100), ({"epochs": 2}, 2), ({"min_epochs": 200}, 100)]
)
def test_the_least_epochs_of_a_literal_training(settings, least):
    assert timing.least_epochs(dict(EPOCHS, **settings)) == least
