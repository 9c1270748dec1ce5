"""The kit for a first GPU, run dry with a real PyTorch: the CPU stands for the GPU, and nothing else is made up."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import correctness
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit import Kit
from tests.job import REAL
from tests.words import WORDS
from tsuishi.results.directory import RunDirectory, known_runs
from tsuishi.results.verification import verify

pytestmark = pytest.mark.pythons

MIB = 1 << 20


@pytest.fixture(scope="module")
def dry(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """The folder of the whole kit."""
    folder = tmp_path_factory.mktemp("dry") / "kit"
    arguments = ["--dry", "--minutes", "60", "--host-python", python, "--folder", str(folder)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *arguments], cwd=REAL.root, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr
    return folder


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def test_every_step_has_its_lines_and_none_fails(dry: Path) -> None:
    found = results(dry)
    assert {each["step"] for each in found} == set(range(1, 10))
    assert {each["outcome"] for each in found} == {"pass", "not here"}
    # What is right or wrong is judged on a CPU too; what is fast or slow is not.
    assert {each["step"] for each in found if each["outcome"] == "pass"} == {1, 2, 3, 7, 8, 9}
    assert not [each for each in found if "no time left" in each["words"]]


def test_speeds_are_measured_and_not_judged(dry: Path) -> None:
    for step, what in (
        (4, "conv2d of 840 images, launches decide"),
        (5, "training cnn10, the line over batch sizes, % off it"),
        (6, "best mode, native, over the better of timm's and torchbench's loops"),
    ):
        (words,) = [each["words"] for each in results(dry) if (each["step"], each["what"]) == (step, what)]
        assert words.startswith("--dry judges no speed: "), words


def test_every_mode_that_a_cpu_has_is_held_to_numpy(dry: Path) -> None:
    parity = {each["what"]: each["outcome"] for each in results(dry) if each["step"] == 2}
    for network in ("cnn10, fp32", "vgg_small, fp32", "mlp, fp32", "cnn10, amp_bf16", "cnn10, amp_fp16"):
        assert parity[f"parity of {network}"] == "pass"
    assert parity["parity of cnn10, tf32"] == parity["parity of cnn10, cuda_graph"] == "not here"


def test_the_folder_is_fit_to_be_committed(dry: Path) -> None:
    files = {file.name: file.stat().st_size for file in dry.iterdir()}
    assert len(files) <= 8
    assert sum(files.values()) < 8 * MIB
    assert {"log.txt", "results.jsonl", "summary.md", "runs.tar.gz", "report.html", "report.md"} <= set(files)
    texts = "".join((dry / name).read_text(encoding="utf-8") for name in ("results.jsonl", "summary.md", "report.md"))
    assert str(Path.home()) not in texts
    assert str(dry) not in texts


def test_the_runs_of_the_folder_are_whole(dry: Path, tmp_path: Path) -> None:
    with tarfile.open(dry / "runs.tar.gz") as archive:
        archive.extractall(tmp_path / "results", filter="data")
    runs = known_runs(tmp_path / "results")
    assert {name.rpartition("-")[2] for name in runs} >= {"kit_parity", "kit_limits", "whole"}
    for path in runs.values():
        assert verify(RunDirectory(path), WORDS).is_verified


def test_the_whole_run_needs_no_package_that_docs_gpu_says_to_leave_at_home(tmp_path: Path, python: str) -> None:
    missing = tmp_path / "at home"
    missing.mkdir()
    for name in ("vl_convert", "pysequoia", "uv"):
        (missing / f"{name}.py").write_text(f"raise ModuleNotFoundError('{name} is at home', name='{name}')\n")
    folder = tmp_path / "kit"
    arguments = ["--dry", "--minutes", "5", "--steps", "9", "--host-python", python, "--folder", str(folder)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *arguments],
        cwd=REAL.root, env={**os.environ, "PYTHONPATH": str(missing)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr
    found = results(folder)
    assert {each["step"] for each in found} == {9}
    assert {each["outcome"] for each in found} >= {"pass"}
    assert not [each for each in found if each["outcome"] == "FAIL"]
    assert (folder / "runs.tar.gz").exists()


@pytest.fixture
def faulty(tmp_path: Path, python: str) -> Iterator[Kit]:
    """A kit whose workloads compute a loss that is wrong by a thousandth."""
    kit = Kit(python, "cpu", Journal(tmp_path / "kit"), minutes=10.0)
    kit.checkout.workloads.unlink()
    shutil.copytree(REAL.workloads, kit.checkout.workloads)
    trainer = kit.checkout.workloads / "frameworks" / "torch" / "trainer.py"
    right = "functional.cross_entropy(logits"
    text = trainer.read_text(encoding="utf-8")
    assert text.count(right) == 1
    trainer.write_text(text.replace(right, f"1.001 * {right}"), encoding="utf-8")
    yield kit
    kit.journal.close()


def test_a_framework_that_computes_wrongly_fails_parity_with_both_figures(faulty: Kit) -> None:
    (found,) = correctness.checked(faulty, "kit_faulty", [{"model": "mlp"}])
    assert found.outcome == "FAIL"
    assert "loss_relative_error is 0.001; at most 0.0001 is rounding" in found.words
