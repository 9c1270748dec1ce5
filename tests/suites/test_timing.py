"""The steady protocol against a clock that only steps move."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import timing

SETTINGS = {"warm_up_steps": 5, "warm_up_s": 100, "block_s": 1, "min_blocks": 8, "measure_s": 0, "max_s": 1000}


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


class Recorder:
    def __init__(self):
        self.samples = []
        self.phases = []

    @contextlib.contextmanager
    def phase(self, phase):
        self.phases.append("+" + phase)
        yield
        self.phases.append("-" + phase)

    def sample(self, phase, index, steps, images, seconds):
        self.samples.append((phase, index, steps, images, seconds))

    def blocks(self, phase="measure"):
        return [sample for sample in self.samples if sample[0] == phase]


def run(machine, images=16, phase="measure", **settings):
    recorder = Recorder()
    timing.steady(recorder, machine.step, machine.synchronise, images, dict(SETTINGS, **settings), phase, machine.clock)
    return recorder


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
