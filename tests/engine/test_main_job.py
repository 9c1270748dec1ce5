"""The main job on real input: the four pinned environments, every suite, a report; with an engine and without."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.job import (
    EVERYWHERE,
    JOB,
    PINNED,
    REAL,
    TENSORFLOW,
    TORCH,
    WITHOUT_CHANNELS_FIRST,
    invoke,
    rows,
    trials,
)
from tests.words import SUITES_OF_OURS, WORDS
from tsuishi.results import directory
from tsuishi.specs.suite import read_suite

pytestmark = pytest.mark.engine

# Cases (suites, axes) and the environments in which a CPU cannot run them.
UNSUPPORTED = [
    ("conv2d", {"search": "folding_edge"}, TORCH),
    ("conv2d", {"graph_optimizers": "no_folding"}, TORCH),
    ("device_limits", {"precision": "tf32"}, EVERYWHERE),
    ("device_limits", {"precision": "fp16"}, ["torch1.1-cu90"]),
    ("device_limits", {"precision": "bf16"}, ["torch1.1-cu90"]),
    ("input_pipeline", {"pipeline": "shared_host"}, TORCH),
    ("input_pipeline", {"pipeline": "shared_device"}, TORCH),
    ("input_pipeline", {"pipeline": "per_device"}, TORCH),
    ("multi_gpu_scaling parity", {"strategy": "data_parallel"}, EVERYWHERE),
    ("multi_gpu_scaling parity", {"strategy": "multi_gpu_model"}, EVERYWHERE),
    ("multi_gpu_scaling parity", {"strategy": "distributed_data_parallel"}, TENSORFLOW),
    ("multi_gpu_scaling parity", {"strategy": "mirrored"}, [*TORCH, "tf1.13-cpu"]),
    ("multi_gpu_scaling parity", {"strategy": "towers"}, TORCH),
    ("multi_gpu_scaling parity", {"strategy": "shard_map"}, EVERYWHERE),
    ("multi_gpu_scaling", {"precision": "tf32"}, EVERYWHERE),
    ("multi_gpu_scaling", {"precision": "amp_bf16"}, ["torch1.1-cu90", "tf1.13-cpu"]),
    ("multi_gpu_scaling", {"execution": "compiled"}, ["torch1.1-cu90", "tf1.13-cpu"]),
    ("multi_gpu_scaling", {"execution": "cuda_graph"}, EVERYWHERE),
    ("multi_gpu_scaling", {"loader": "torchvision"}, [*TENSORFLOW, "torch2-cpu"]),
    ("multi_gpu_scaling", {"loader": "torchvision_2_workers"}, [*TENSORFLOW, "torch2-cpu"]),
    ("transformer_block parity", {"attention": "fused"}, [*TENSORFLOW, "torch1.1-cu90"]),
    ("transformer_block parity", {"precision": "amp_bf16"}, ["torch1.1-cu90", "tf1.13-cpu"]),
    ("transformer_block parity", {"execution": "compiled"}, ["torch1.1-cu90", "tf1.13-cpu"]),
    ("parity", {"precision": "fp64"}, TENSORFLOW),
    ("channels_first parity", {"layout": "channels_last"}, ["torch1.1-cu90"]),
    ("channels_first parity", {"layout": "channels_first"}, WITHOUT_CHANNELS_FIRST),
]
# What a reason ends with: what would run instead, what is missing, or who has it.
REMEDY = re.compile(r"would run|needs \d GPUs|these are: |are its ways|and newer do|2\.x ha(?:s|ve)|TensorFlow has")


def test_every_case_runs_or_says_why_it_cannot(done: tuple[Path, str]) -> None:
    expected = Counter(
        {
            (suite, environment): len(list(read_suite(REAL.suites / f"{suite}.toml", WORDS).cases("smoke", "cpu")))
            for suites, environments in JOB
            for suite in suites
            for environment in environments
        }
    )
    assert {suite for suite, _ in expected} == set(SUITES_OF_OURS)
    found = rows(done[0], "trials")
    assert Counter((row["suite"], row["environment"]) for row in found) == expected
    assert {row["status"] for row in found} == {"ok", "unsupported"}
    for row in found:
        assert bool(row["reason"]) == (row["status"] == "unsupported")
        assert not row["reason"] or REMEDY.search(row["reason"]), row["reason"]


def test_every_environment_reports_what_it_promises(done: tuple[Path, str]) -> None:
    run = directory.open_run(done[0] / "results")
    records = {run.environment(trial.environment_record or "").name: trial for _, trial in run.finished()}
    for environment in PINNED:
        trial = records[environment.name]
        record = run.environment(trial.environment_record or "").content()
        assert record["python"].startswith(f"{environment.python}.")
        assert record["packages"] | {pin.name: pin.version for pin in environment.pins} == record["packages"]
        assert record["image"]["labels"]["io.tsuishi.lock-sha256"] == environment.lock_sha256
        framework = environment.framework
        assert trial.framework == f"{framework} {environment.promises[framework]}"


def test_every_output_of_conv2d_was_checked_against_scipy(done: tuple[Path, str]) -> None:
    ran = trials(done[0], suite="conv2d", status="ok")
    assert {trial["environment"] for trial in ran} == set(EVERYWHERE)
    for trial in ran:
        assert trial["metrics"]["outputs_checked"] >= 1
        assert trial["metrics"]["max_relative_error"] < 1e-4


def test_the_same_network_starts_from_the_same_loss_everywhere(done: tuple[Path, str]) -> None:
    axes = {"model": "cnn10", "batch_size": "16", "strategy": "none", "precision": "fp32", "execution": "native"}
    ran = trials(done[0], protocol="steady", mode="training", status="ok", **axes)
    assert {trial["environment"] for trial in ran} == set(EVERYWHERE)
    # Each run draws seeds of its own, which all of its environments and suites share.
    by_run: dict[str, list[float]] = {}
    for trial in ran:
        by_run.setdefault(trial["run"], []).append(trial["metrics"]["initial_loss"])
    assert all(max(losses) - min(losses) < 1e-4 * min(losses) for losses in by_run.values())
    assert len({losses[0] for losses in by_run.values()}) == len(by_run) > 1


def test_the_report_is_where_it_says_and_the_same_when_made_again(done: tuple[Path, str]) -> None:
    folder, printed = done
    index = Path(printed.splitlines()[-1].removeprefix("report: "))
    files = {path.relative_to(index.parent): path.read_bytes() for path in index.parent.rglob("*") if path.is_file()}
    assert {Path("index.html"), Path("report.md"), Path("details.md"), Path("tables/cases.csv")} <= set(files)
    assert invoke(folder, "report").returncode == 0
    assert files == {
        path.relative_to(index.parent): path.read_bytes() for path in index.parent.rglob("*") if path.is_file()
    }
