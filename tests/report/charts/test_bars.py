"""Bars: shares of limits, energy per image, parts of a step."""

from pathlib import Path
from typing import Any

from tests.report.compared import compared
from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    limits_case,
    steady_samples,
    training_case,
    work,
)
from tsuishi.report.charts.bars import energies, limit_fractions, step_parts
from tsuishi.report.parts.blocks import Chart, View


def drawn(view: View) -> tuple[Chart, list[dict[str, Any]]]:
    (chart,) = view.blocks
    assert isinstance(chart, Chart)
    (rows,) = chart.specification["datasets"].values()
    return chart, rows


def add_limits(run: SyntheticRun) -> None:
    """20 GFLOP/s and 2 GB/s."""
    blocks = [("measure", index, 10, 0, 1.0) for index in range(4)]
    run.add(limits_case("matmul", precision="fp32", matrix_size=1000), TF, blocks, metrics=work(2e9))
    run.add(limits_case("memory_copy", buffer_mib=1000), TF, blocks, metrics=work(moved=2e8))


def test_a_share_of_a_limit_is_a_bar(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_limits(run)
    for environment, step_s in ((TF, 0.1), (TORCH, 0.2)):
        run.add(training_case(16), environment, steady_samples(16, [step_s] * 4), metrics=work(1e9))
    chart, rows = drawn(limit_fractions(compared(run)))
    assert {row["environment"]: row["value"] for row in rows} == {TF: 0.5, TORCH: 0.25}
    assert chart.caption.startswith("Longer is better.")


def test_of_many_sizes_the_best_is_drawn(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in range(1, 31):
        run.add(training_case(batch_size), TF, [], metrics=[("energy_per_image_j", 1 / batch_size, "J")])
    chart, rows = drawn(energies(compared(run)))
    assert [(row["case"], row["value"]) for row in rows] == [("batch 30", 1 / 30)]
    assert chart.caption == "Shorter is better. Of cases that differ only in their size, the best is drawn."


def test_parts_of_a_step_are_drawn_beside_the_whole(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    parts = [(phase, i, 10, 160, s) for phase, s in (("forward", 0.3), ("forward_backward", 0.9)) for i in range(4)]
    run.add(training_case(16), TF, [*steady_samples(16, [0.1] * 4), *parts])
    _, rows = drawn(step_parts(compared(run)))
    assert [(row["part"], round(row["time"], 9)) for row in rows] == [
        ("forward", 30),
        ("forward and backward", 90),
        ("whole step", 100),
    ]


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4))
    suite_cases = compared(run)
    assert [view(suite_cases) for view in (limit_fractions, energies, step_parts)] == [View()] * 3
