"""Durations as people write them, and a clock that counts from the command."""

import time

import hypothesis
import pytest
from hypothesis import strategies as st

from tsuishi.base import budget
from tsuishi.base.budget import Clock
from tsuishi.base.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90.0),
        ("10m", 600.0),
        ("10 min", 600.0),
        ("2h", 7200.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("NONE", None),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, expected: float | None) -> None:
    assert budget.seconds(text) == expected


@pytest.mark.parametrize("wrong", ["10", "m", "-5m", "0s", "10m!", "ten minutes", "5x", "١٠m", "", "9999999h"])
def test_what_is_no_duration_is_refused_with_what_would_be(wrong: str) -> None:
    with pytest.raises(UserError) as caught:
        budget.seconds(wrong)
    assert str(caught.value) == f"--within takes a duration such as 90s, 10m or 2h, or none; given: {wrong}"


@hypothesis.given(st.integers(0, 99), st.integers(0, 99), st.integers(1, 99))
def test_parts_of_a_duration_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert budget.seconds(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


def test_time_counts_from_when_the_command_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.BEGAN, str(time.time() - 40))
    clock = Clock(100.0)
    assert 39 < clock.spent_s < 45
    assert 55 < clock.left_s < 61
    assert Clock(100.0).spent_s < 1, "a second clock, of a program that this one starts, began when it began"


@pytest.mark.parametrize("given", ["", "soon", "long ago", "later"])
def test_a_variable_that_somebody_inherited_does_not_count(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    moments = {"long ago": str(time.time() - 100_000), "later": str(time.time() + 1000)}
    monkeypatch.setenv(budget.BEGAN, moments.get(given, given))
    assert Clock(100.0).spent_s < 1


def test_what_is_put_apart_does_not_count() -> None:
    clock = Clock(100.0, began=time.monotonic() - 50)
    before = clock.spent_s
    with clock.apart():
        time.sleep(0.3)
    assert clock.spent_s - before < 0.3


def test_without_a_limit_there_is_always_time_left() -> None:
    assert Clock(None, began=0.0).left_s == float("inf")
