"""The files with numbers that commands write, as real programs wrote them: which numbers are taken, in seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tsuishi.extras.ab import launcher

FILES = Path(__file__).with_name("files")


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("hyperfine.json", {"sleep 0.01": 0.011042902, "sleep 0.02": 0.021267898}),
        ("pytest-benchmark.json", {"test_bench.py::test_work": None, "test_bench.py::test_list": None}),
        (
            "google.json",  # the median of repetitions; no line of a fit, and no benchmark that failed
            {"BM_Copy/64": None, "BM_Copy/512": None, "BM_Copy/4096": None, "BM_Slow/repeats:3": None},
        ),
    ],
)
def test_a_file_gives_a_number_for_each_of_its_benchmarks(name: str, numbers: dict[str, float | None]) -> None:
    found = launcher.read(str(FILES / name), {})
    assert {*found} == {*numbers}
    assert all(1e-9 < value < 1 for value in found.values())
    assert {name: value for name, value in found.items() if numbers[name]} == {
        name: value for name, value in numbers.items() if value
    }


def test_the_unit_of_a_file_counts_and_repetitions_are_one_number() -> None:
    content = json.loads((FILES / "google.json").read_text())
    (median,) = [
        each
        for each in content["benchmarks"]
        if each["run_name"] == "BM_Slow/repeats:3" and each.get("aggregate_name") == "median"
    ]
    assert median["time_unit"] == "ms"
    found = launcher.read(str(FILES / "google.json"), {})
    assert found["BM_Slow/repeats:3"] == pytest.approx(median["real_time"] * 1e-3)
    raw = next(each for each in content["benchmarks"] if each["run_name"] == "BM_Copy/64")
    assert found["BM_Copy/64"] == pytest.approx(raw["real_time"] * 1e-9)


def test_a_folder_of_criterion_gives_those_of_this_run_alone(tmp_path: Path) -> None:
    for name, estimates in {
        "sort/quick/1000": {"mean": {"point_estimate": 1200.0}, "slope": {"point_estimate": 1100.0}},
        "sort/old/1000": {"mean": {"point_estimate": 1.0}, "slope": None},
        "flat": {"mean": {"point_estimate": 5e6}, "slope": None},
    }.items():
        for which in ("base", "new"):
            (tmp_path / name / which).mkdir(parents=True)
            (tmp_path / name / which / "estimates.json").write_text(json.dumps(estimates))
    old = str(tmp_path / "sort/old/1000/new/estimates.json")
    before = launcher.states(str(tmp_path))
    assert launcher.read(str(tmp_path), {old: before[old]}) == pytest.approx({"sort/quick/1000": 1.1e-6, "flat": 5e-3})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "the command wrote no such file"),
        ("{", "no JSON: "),
        ("[]", "no number of pytest-benchmark"),
        ('{"benchmarks": []}', "no number of pytest-benchmark"),
        ('{"benchmarks": null, "results": {"command": 1}}', "no number of pytest-benchmark"),
        (
            '{"results": [{"name": "a", "mean": 1.0}, 7, {"command": "b", "mean": "x"}]}',
            "no number of pytest-benchmark",
        ),
    ],
)
def test_a_file_without_numbers_ends_with_its_reason(tmp_path: Path, text: str | None, why: str) -> None:
    if text is not None:
        (tmp_path / "out.json").write_text(text)
    with pytest.raises(SystemExit, match=why):
        launcher.read(str(tmp_path / "out.json"), {})


def test_it_ends_as_the_command_ended(tmp_path: Path) -> None:
    private = {"sides": {"base": {"folder": str(tmp_path)}}, "variables": {"PATH": os.environ["PATH"]}}
    (tmp_path / "private.json").write_text(json.dumps(private))
    for command, code in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], -9), (["true"], 0)):
        known = {"command": command, "numbers": "", "lines": True, "private": str(tmp_path / "private.json")}
        (tmp_path / "sides.json").write_text(json.dumps(known))
        ended = subprocess.run(
            [sys.executable, launcher.__file__, "base"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == code
        assert (' s "whole command"\n' in ended.stdout) == (code == 0)


def test_a_name_that_comes_several_times_has_the_median(tmp_path: Path) -> None:
    rows = [{"name": "a", "real_time": value, "time_unit": "s"} for value in (1.0, 9.0, 2.0)]
    (tmp_path / "out.json").write_text(json.dumps({"benchmarks": rows}))
    assert launcher.read(str(tmp_path / "out.json"), {}) == {"a": 2.0}
