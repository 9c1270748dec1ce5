"""Ids of trials: what is put together is taken apart again, and nothing else is an id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.specs.trial_id import TrialId, is_name

PLANNED = TrialId("conv2d-literal-d2-a1b2c3", "tf1.13-cpu", 2)
SLUGS = st.from_regex(r"\A[a-z0-9]{1,9}(-[a-z0-9_]{1,6}){0,3}-[0-9a-f]{6}\Z")
ENVIRONMENTS = st.from_regex(r"\A[a-z][a-z0-9]{0,6}([.-][a-z0-9]{1,4}){0,3}\Z")


def test_an_id_is_written_as_folders_have_it() -> None:
    assert str(PLANNED) == "conv2d-literal-d2-a1b2c3.tf1.13-cpu.r2"
    assert str(PLANNED.next_attempt) == "conv2d-literal-d2-a1b2c3.tf1.13-cpu.r2.a1"
    assert str(PLANNED.next_attempt.next_attempt.repeated(3)) == "conv2d-literal-d2-a1b2c3.tf1.13-cpu.r3"


@given(SLUGS, ENVIRONMENTS, st.integers(1, 10**6), st.integers(0, 9999))
def test_an_id_that_is_written_is_read_again(slug: str, environment: str, repetition: int, attempt: int) -> None:
    trial = TrialId(slug, environment, repetition, attempt)
    assert TrialId.parse(str(trial)) == trial
    assert trial.is_of(slug[-6:] + "012345", environment)


def test_an_environment_may_have_a_date_in_its_name() -> None:
    trial = TrialId("s-a1b2c3", "nightly-202611.1-cpu", 1, 1)
    assert TrialId.parse(str(trial)) == trial


@pytest.mark.parametrize(
    "text",
    [
        *("", "s-a1b2c3", "s-a1b2c3.host", "s-a1b2c3.host.r0", "s-a1b2c3.host.r01", "s-a1b2c3.host.r1.a0"),
        *("s-a1b2c3.host.r1.a10000", "s-a1b2c3.host.r1.a1.a2", "s-zzzzzz.host.r1", "../s-a1b2c3.host.r1"),
        *("s-a1b2c3..host.r1", "s-a1b2c3.host.r1\n", f"{'s' * 250}-a1b2c3.host.r1"),
    ],
)
def test_no_other_text_is_an_id(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not the name of a trial$"):
        TrialId.parse(text)


def test_ids_are_ordered_by_number() -> None:
    ids = [
        TrialId("s-a1b2c3", "host", repetition, attempt) for repetition, attempt in ((10, 1), (2, 2), (2, 1), (2, 0))
    ]
    assert [str(trial)[-5:] for trial in sorted(ids)] == ["st.r2", "r2.a1", "r2.a2", "10.a1"]


def test_an_id_is_of_one_case_and_environment() -> None:
    assert PLANNED.is_of("a1b2c3d4e5f6", "tf1.13-cpu")
    assert not PLANNED.is_of("a1b2c4d4e5f6", "tf1.13-cpu")
    assert not PLANNED.is_of("a1b2c3d4e5f6", "tf2-cpu")


@pytest.mark.parametrize("text", ["a", "A.b-c_d", "20260101-000000-quick"])
def test_names_are_fit_for_paths(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize("text", ["", ".", "..", "a..b", "a/b", "a b", "-a", "a\n", "x" * 231])
def test_what_is_unfit_for_paths_is_no_name(text: str) -> None:
    assert not is_name(text)
