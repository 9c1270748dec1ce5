"""`invoke report` as a user calls it: languages, several runs, and exit codes for use in CI."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import add_steps, two_gpus
from tests.job import invoke
from tests.reports import markdown_of
from tests.synthetic_run import TORCH, SyntheticRun


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: on the first two GPUs are faster than one, as published, on the second slower."""
    folder = tmp_path_factory.mktemp("reports")
    for name, factor in (("20260101-000000-faster", 0.6), ("20260102-000000-slower", 1.5)):
        run = two_gpus(SyntheticRun(folder / "results" / name))
        for batch_size in (128, 512, 2048):
            for model in ("cnn10", "wrn28_10"):
                step_s = 0.009 + batch_size / 4800
                add_steps(run, TORCH, step_s, batch_size=batch_size, model=model)
                two: dict[str, Any] = {"devices": 2, "strategy": "data_parallel"}
                add_steps(run, TORCH, factor * step_s, batch_size=batch_size, model=model, **two)
        run.finish()
    return folder


@pytest.mark.long
def test_a_report_that_contradicts_a_claim_ends_with_4_where_asked_to(folder: Path) -> None:
    result = invoke(folder, "report", "--run", "20260102-000000-slower", "--fail-on", "contradicted")
    assert result.returncode == 4
    assert f"contradicted: torch-2080ti (d) in {TORCH}" in result.stdout
    assert (folder / "reports" / "20260102-000000-slower" / "index.html").exists()


@pytest.mark.long
def test_a_report_that_contradicts_nothing_ends_with_0(folder: Path) -> None:
    result = invoke(folder, "report", "--run", "20260101-000000-faster", "--fail-on", "contradicted")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.long
def test_the_latest_run_has_a_name(folder: Path) -> None:
    result = invoke(folder, "report", "--run", "latest", "--out", "of-the-latest")
    assert (result.returncode, result.stderr) == (0, "")
    report = (folder / "reports" / "of-the-latest" / "report.json").read_text(encoding="utf-8")
    assert [run["run_id"] for run in json.loads(report)["runs"]] == ["20260102-000000-slower"]


@pytest.mark.long
def test_a_report_of_many_runs_has_a_name_that_a_file_system_takes(tmp_path: Path) -> None:
    runs = [SyntheticRun(tmp_path / "results" / f"20260101-0000{number:02}-a-run-of-a-series") for number in range(12)]
    for run in runs:
        add_steps(run, TORCH, 0.01)
        run.finish()
    names = ",".join(run.directory.id for run in runs)
    result = invoke(tmp_path, "report", "--run", names)
    assert (result.returncode, result.stderr) == (0, "")
    other = invoke(tmp_path, "report", "--run", names.removesuffix(f",{runs[-1].directory.id}"))
    assert (other.returncode, other.stderr) == (0, "")
    made = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert len(made) == 2, "the names of other runs have another digest"
    assert all(re.fullmatch(rf"{runs[0].directory.id}\+.*-[0-9a-f]{{12}}", name) and len(name) < 220 for name in made)


@pytest.mark.long
def test_several_verdicts_may_be_named(folder: Path) -> None:
    named = "contradicted,direction only,reproduced"
    result = invoke(folder, "report", "--run", "20260101-000000-faster", "--fail-on", named)
    assert result.returncode == 4
    assert f"reproduced: torch-2080ti (d) in {TORCH}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fail-on", "contradict"), "error: unknown verdict 'contradict'; did you mean 'contradicted'? known: "),
        (("--lang", "jp"), "error: unknown language 'jp'; known: en, ja"),
        (("--run", "20260103"), "error: unknown run '20260103'; "),
        (("--out", "../mine"), "error: --out takes the name of a folder under "),
    ],
)
def test_what_there_is_none_of_is_refused_with_what_there_is(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = invoke(folder, "report", *arguments)
    assert result.returncode == 1
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.long
def test_a_report_in_japanese_stands_beside_the_english_one(folder: Path) -> None:
    result = invoke(folder, "report", "--run", "20260101-000000-faster", "--lang", "ja")
    assert result.returncode == 0
    text = (folder / "reports" / "20260101-000000-faster-ja" / "index.html").read_text(encoding="utf-8")
    assert '<html lang="ja">' in text
    assert "再現" in text


def test_runs_are_compared_in_one_report(folder: Path) -> None:
    result = invoke(folder, "report", "--run", "20260101-000000-faster,20260102-000000-slower", "--out", "both")
    assert result.returncode == 0
    text = markdown_of(folder / "reports" / "both")
    assert "20260101-000000-faster" in text
    assert "20260102-000000-slower" in text
