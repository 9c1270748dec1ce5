"""Every benchmark starts: it says what it is, and does the least that it can be asked for."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What asks each for the least.
LEAST = {
    "equal_programs": ["--reports", "1"],
    "find_simulated": ["--searches", "1"],
    "long_texts": ["--only", "expressions"],
    "readers": ["--examples", "2", "--bytes", "20000"],
    "report": ["--trials", "10"],
    "scale": ["--sizes", "10"],
}
# What other tests start, as a process or by its functions: it needs more, or writes a page of the docs.
STARTED_BY = {
    "bit_flips": "results/test_verification",
    "claims_in_time": "benchmarks/test_claims_in_time",
    "claims_table": "plan/test_decidable",
    "crash_points": "results/test_crash_points",
    "gpu": "benchmarks/test_gpu_dry",
    "known_regressions": "extras/ab/test_known_regressions",
    "left_states": "results/test_left_states",
    "mutations": "results/test_received_run",
    "native_code": "engine/test_native_code",
    "peers": "report/test_peers",
    "pictures": "benchmarks/test_pictures",
    "releases": "benchmarks/test_releases",
    "truth": "verdicts/test_truth",
    "two_builds": "engine/test_reproducible",
}


def test_every_benchmark_is_started_by_a_test() -> None:
    programs = {file.stem for file in (ROOT / "benchmarks").glob("*.py") if "__main__" in file.read_text()}
    assert programs | {"gpu"} == LEAST.keys() | STARTED_BY.keys()
    for name, by in STARTED_BY.items():
        assert re.search(
            rf"from benchmarks import .*\b{name}\b|\bbenchmarks\.{name}\b", (ROOT / "tests" / f"{by}.py").read_text()
        )


@pytest.mark.parametrize("name", [*LEAST, *STARTED_BY])
def test_a_benchmark_says_what_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.delitem(sys.modules, f"benchmarks.{name}", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    assert not ended.value.code
    assert "usage:" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", LEAST)
def test_a_benchmark_does_the_least_that_it_can_be_asked_for(name: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", *LEAST[name]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
