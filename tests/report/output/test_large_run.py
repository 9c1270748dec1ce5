"""Reports of large runs grow no faster than the runs, and their pages hardly at all."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.large_run import write_large_run
from tests.synthetic_run import listed
from tests.words import WORDS
from tsuishi.report.sections.load import telemetry_section, telemetry_warnings
from tsuishi.results import manifest
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.verdicts.evidence import Evidence

pytestmark = pytest.mark.runs

SMALL, LARGE = 300, 1_200
TELEMETRY_ROWS = 60


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, RunDirectory]:
    folder = tmp_path_factory.mktemp("large")
    return {trials: write_large_run(folder / str(trials), trials, TELEMETRY_ROWS) for trials in (SMALL, LARGE)}


@contextmanager
def counted(calls: list[str]) -> Iterator[None]:
    """Note the calls of functions, Python's and C's, that are made meanwhile."""
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event in ("call", "c_call") else None)
    try:
        yield
    finally:
        sys.setprofile(None)


def calls_for(run: RunDirectory) -> int:
    """How many calls the telemetry of a report takes."""
    calls: list[str] = []
    with counted(calls):
        evidence = Evidence([run], (), WORDS)
        telemetry_section(evidence)
        list(telemetry_warnings(evidence))
    return len(calls)


@pytest.mark.parametrize("is_kept", [False, True], ids=["from its trials", "as it was gathered"])
def test_four_times_the_trials_take_at_most_four_times_the_calls(runs: dict[int, RunDirectory], is_kept: bool) -> None:
    calls_for(runs[SMALL])  # what is imported and remembered once
    for run in runs.values():
        listed(run)
        if not is_kept:
            (run.path / manifest.ANEW).unlink()
    assert calls_for(runs[LARGE]) <= 4 * calls_for(runs[SMALL])


def test_the_page_has_room_for_so_much_telemetry_however_large_the_run(runs: dict[int, RunDirectory]) -> None:
    for run in runs.values():
        section = telemetry_section(Evidence([run], (), WORDS))
        data = next(block.data for block in section.blocks if hasattr(block, "data"))
        lists = [one for trial in data["trials"] for lists in trial["devices"].values() for one in lists.values()]
        assert 0 < sum(map(len, lists)) <= 250_000


def test_telemetry_is_read_whole_and_held_once(runs: dict[int, RunDirectory]) -> None:
    telemetry = read_runs([runs[LARGE]], WORDS).telemetry
    with (runs[LARGE].path / "telemetry.csv").open() as file:
        assert len(telemetry) == sum(1 for _ in file) - 1
    # Numbers, and codes of texts: no Python object for each value.
    assert telemetry.memory_usage(deep=True).sum() < 120 * len(telemetry)
