"""The benchmark of reported regressions, on a package of two releases that lie in a folder."""

import os
from pathlib import Path

import pytest

from benchmarks import known_regressions
from benchmarks.known_regressions import Reported
from tests.tiny_venv import tiny_wheel

TEXT = """
import time, tiny
timed("call", lambda: time.sleep(0.01 * float(tiny.__version__)))
"""


@pytest.mark.long
@pytest.mark.parametrize(("neighbours", "code"), [(("1.0", "1.01"), 0), (("1.0", "2.0"), 1)])
def test_a_slower_release_is_found_and_a_neighbour_that_is_red_fails_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, neighbours: tuple[str, str], code: int
) -> None:
    for version in ("1.0", "1.01", "2.0"):
        tiny_wheel(tmp_path, version)
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path)), ("PIP_CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("INVOKE_TSUISHI_CACHE", str(tmp_path / "cache"))
    reported = Reported("tiny", "a/b#1", ("1.0", "2.0"), neighbours, TEXT)
    assert known_regressions.main([], [reported]) == code
