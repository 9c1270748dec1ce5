"""The main job without an engine: a virtual environment of a CPython that this machine has."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.engine.conftest import linked_cache
from tests.job import invoke, rows
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import read_settings
from tsuishi.machine.interpreters import find_python
from tsuishi.results import directory
from tsuishi.specs.zoo_names import LIBRARIES

pytestmark = pytest.mark.pythons


def test_without_an_engine_the_main_job_runs_in_a_virtual_environment(tmp_path: Path) -> None:
    if find_python("3.6") is None:
        missing("no CPython 3.6")
    cache = linked_cache(read_settings({}, {}, {}).cache, tmp_path / "cache")
    result = invoke(
        tmp_path,
        *("build", "--env", "tf1.13-cpu", "run-suite", "--suite", "conv2d", "--profile", "smoke", "report"),
        INVOKE_TSUISHI_CACHE=str(cache),
        DOCKER_HOST=f"unix://{tmp_path}/nobody.sock",
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    assert "tf1.13-cpu   venv" in result.stdout
    assert {row["status"] for row in rows(tmp_path, "trials")} == {"ok"}
    run = directory.open_run(tmp_path / "results")
    record = run.environment(rows(tmp_path, "trials")[0]["environment_record"]).content()
    assert record["engine"] == "venv"
    assert record["substitutions"][0]["used"].startswith("CPython 3.6.")


def python_of(environment: str, tmp_path: Path) -> Path:
    """The interpreter of a built environment."""
    if find_python("3.11") is None:
        missing("no CPython 3.11")
    cache = linked_cache(read_settings({}, {}, {}).cache, tmp_path / "cache")
    result = invoke(tmp_path, *("build", "--engine", "venv", "--env", environment), INVOKE_TSUISHI_CACHE=str(cache))
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    (python,) = (cache / "venvs").glob(f"{environment}-*/bin/python")
    return python


def has_the_known_names(python: Path, libraries: Sequence[str], tmp_path: Path) -> bool:
    subprocess.run([python, Checkout().root / "tests" / "zoo_names.py", tmp_path], check=True)
    known = [Checkout().root / "tsuishi" / "specs" / "zoos" / f"{library}.txt" for library in libraries]
    return all((tmp_path / each.name).read_text() == each.read_text() for each in known)


def test_the_known_names_of_keras_are_those_of_its_environment(tmp_path: Path) -> None:
    assert has_the_known_names(python_of("tf2-cpu", tmp_path), ["keras"], tmp_path)


def test_networks_of_timm_and_torchvision_run_beside_a_pytorch_for_cpus(tmp_path: Path) -> None:
    """torchvision of the index is built for CUDA: its operators of object detection are missing, and not needed."""
    python = python_of("torch2-timm-cpu", tmp_path)
    inside = Checkout().root / "tests" / "suites" / "inside" / "check_zoos.py"
    names = ("timm:vit_tiny_patch16_224", "torchvision:resnet18", "timm:resnet_18")
    done = subprocess.run(
        [python, inside, Checkout().suites / "workloads", *names], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.rpartition("found: ")[2])
    assert has_the_known_names(python, ["timm", "torchvision"], tmp_path)
    assert LIBRARIES == ("keras", "timm", "torchvision")
    # Parameters and multiply-adds as timm's and torchvision's tables have them: 5.72 M, 11,689,512 and 1.81 G.
    assert round(found[names[0]]["parameters"] / 1e6, 2) == 5.72
    assert (found[names[1]]["parameters"], found[names[1]]["multiply_adds"]) == (11689512, 1814073344)
    assert found[names[2]]["unsupported"].startswith(
        "model 'timm:resnet_18': timm 1.0.31 has no such network; near: res"
    )


def test_an_older_release_of_each_family_is_built_and_computes_as_numpy_does(tmp_path: Path) -> None:
    if find_python("3.6") is None:
        missing("no CPython 3.6")
    cache = linked_cache(read_settings({}, {}, {}).cache, tmp_path / "cache")
    older = ("tf1.4-cpu", "torch1.2-cu100")
    result = invoke(
        tmp_path,
        *("build", "run-suite", "--env", ",".join(older), "--suite", "parity", "--profile", "smoke"),
        INVOKE_TSUISHI_CACHE=str(cache),
        DOCKER_HOST=f"unix://{tmp_path}/nobody.sock",
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    found = rows(tmp_path, "trials")
    assert {row["status"] for row in found} == {"ok", "unsupported"}
    # Networks in training and inference on one device, and the family's own way to share a batch between two.
    ran = {(row["environment"], row["model"], row["mode"], row["strategy"]) for row in found if row["status"] == "ok"}
    single = [(model, "training", "none") for model in ("cnn10", "vgg_small", "mlp", "wrn28_10")]
    for environment, strategy in zip(older, ("towers", "distributed_data_parallel"), strict=True):
        for case in (*single, ("cnn10", "inference", "none"), ("cnn10", "training", strategy)):
            assert (environment, *case) in ran
