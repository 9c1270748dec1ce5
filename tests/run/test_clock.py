"""A clock that is set back: durations do not notice, and no two runs share an id."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.bench import make_checkout
from tests.run.test_runner import session
from tests.words import WORDS
from tsuishi.results.verification import verify
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume


@pytest.mark.long
def test_a_clock_that_is_set_back_during_a_run_spoils_neither_durations_nor_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reading of the wall clock is an hour before the last one."""
    make_checkout(tmp_path, "ok", "short_sleep")
    real, readings = time.time, 0

    def back() -> float:
        nonlocal readings
        readings += 1
        return real() - 3600 * readings

    monkeypatch.setattr(time, "time", back)
    monkeypatch.setattr(time, "gmtime", lambda seconds=None, of=time.gmtime: of(back() if seconds is None else seconds))
    first, second = run_suite(session(tmp_path)), run_suite(session(tmp_path))
    assert readings > 0
    assert first.id != second.id
    for run in (first, second):
        assert verify(run, WORDS).faults == ()
        durations: list[Any] = [trial.duration_s for _, trial in run.finished()]
        assert all(0 < duration < 60 for duration in durations)
    assert resume(session(tmp_path)).id in (first.id, second.id)
