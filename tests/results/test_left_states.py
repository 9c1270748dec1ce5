"""What a killed or full run leaves, given to the commands that read runs: a result or one line, from each."""

import os

import pytest

from benchmarks import left_states
from benchmarks.left_states import STARTED, Bench, faults_of, last_words, looked_at
from tests.conftest import missing

FULL_AT = {"run": 35, "archive": 9}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    if os.geteuid():
        missing("no right to mount a small disk")
    return Bench(tmp_path_factory.mktemp("left") / "checkout")


@pytest.mark.system
@pytest.mark.parametrize("name", FULL_AT)
def test_a_full_disk_is_a_line_that_names_what_could_not_be_written(bench: Bench, name: str) -> None:
    _, state, ended = bench.state(name, FULL_AT[name], full=True)
    assert (ended.code, list(faults_of(ended, full=True))) == (1, []), last_words(ended)
    assert "No space left on device" in ended.text
    assert str(bench.disk) in ended.text.splitlines()[-1]
    assert list(looked_at(bench, state, [("verify",)])) == []


@pytest.mark.system
@pytest.mark.long
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", STARTED)
def test_every_command_on_every_state(bench: Bench, name: str, *, full: bool) -> None:
    assert not +left_states.sweep(bench, name, 29, full)  # a prime number, as for test_crash_points.py
