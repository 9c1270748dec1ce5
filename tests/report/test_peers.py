"""The same results in each tool's own store, and each tool's report of them: benchmarks/peers.py with a few results."""

import json
from pathlib import Path

import pytest

from benchmarks.peer_stores import store_asv
from benchmarks.peers import PRINTED, compare, installed, read_results
from tests.large_run import write_large_run

RESULTS = 150


def test_the_results_of_a_run_are_stored_for_asv_each_of_them_once(tmp_path: Path) -> None:
    results = read_results(write_large_run(tmp_path / "run", RESULTS, telemetry_rows=0).path)
    assert len(results) == RESULTS
    timed = sorted(one.case + one.environment for one in results if one.steps_s)
    assert 0 < len(timed) < RESULTS
    store_asv(results, tmp_path, Path("/nowhere"))
    stored = []
    for path in (tmp_path / "results" / "made-up").glob("*-*-*.json"):
        file = json.loads(path.read_text())
        for median, (cases,), *_ in file["results"].values():
            stored += [case + file["env_name"] for case, value in zip(cases, median, strict=True) if value]
    assert sorted(stored) == timed


@pytest.mark.long
def test_every_tool_reports_what_was_stored(tmp_path: Path) -> None:
    lines = [line.split() for line in compare(RESULTS, tmp_path, installed() / "bin")]
    assert [line[1] for line in lines] == ["tsuishi", "reframe", "asv", "benchopt"]
    results = read_results(tmp_path / "run")
    tensorflow, torch = (
        {(one.case, one.accelerator) for one in results if one.steps_s and one.framework == name}
        for name in ("tensorflow", "torch")
    )
    printed = (tmp_path / "reframe" / PRINTED).read_text()
    suites = {path.stem for path in (tmp_path / "asv" / "html" / "graphs" / "summary").iterdir()}
    assert suites == {one.suite for one in results}
    (page,) = (tmp_path / "benchopt" / "outputs").glob("benchopt_benchopt_run*.html")
    assert all(one.case in page.read_text() for one in results)
    assert tensorflow & torch
    assert all(case in printed for case, _ in tensorflow & torch)
