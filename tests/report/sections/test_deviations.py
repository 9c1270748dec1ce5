"""Deviations: what software the trials had where a source had other software."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.compared import evidence_of
from tests.synthetic_run import TORCH, SyntheticRun, add_record, environment, steady_samples, training_case
from tsuishi.report.parts.blocks import Bullets
from tsuishi.report.sections.deviations import deviations


def said(path: Path, device: str, **libraries: Any) -> list[str]:
    """The sentences about source torch-2080ti (CUDA 10.0, cuDNN 7.5.1) that begin with "Software"."""
    run = SyntheticRun(path / "run")
    content = {**environment(TORCH, "torch 1.1.0"), **libraries}
    run.environments[TORCH] = add_record(run.directory, "environment", content)
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4), framework="torch 1.1.0", device=device)
    run.add(training_case(32), TORCH, framework="torch 1.1.0", device="", status="unsupported", reason="no")
    (bullets,) = (
        block
        for block in deviations(evidence_of(run, published=True)).blocks
        if isinstance(block, Bullets) and block.title == "torch-2080ti"
    )
    return [
        line for line in map(str, bullets.items) if line.startswith("Software: cu") or line.startswith("Software: CU")
    ]


@pytest.mark.parametrize(
    ("cuda", "cudnn", "expected"),
    [
        ("10.0", "7.5.0", ["Software: cuDNN 7.5.0 where the source had cuDNN 7.5.1."]),
        ("10.0.130", "7602", ["Software: cuDNN 7.6.2 where the source had cuDNN 7.5.1."]),
        ("10.0.130", "7501", []),
        ("10.0", "7", []),
        (
            "12.4",
            "90100",
            [
                "Software: CUDA 12.4 where the source had CUDA 10.0.",
                "Software: cuDNN 9.1.0 where the source had cuDNN 7.5.1.",
            ],
        ),
        (None, None, []),
    ],
)
def test_other_libraries_than_the_sources_are_a_deviation_on_a_gpu(
    tmp_path: Path, cuda: str | None, cudnn: str | None, expected: list[str]
) -> None:
    assert said(tmp_path, "NVIDIA GeForce RTX 2080 Ti", cuda=cuda, cudnn=cudnn) == expected


def test_on_a_cpu_no_library_of_a_gpu_counts(tmp_path: Path) -> None:
    assert said(tmp_path, "cpu", cuda="12.4", cudnn="90100") == []
