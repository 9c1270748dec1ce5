"""The main job without an engine: a virtual environment of a CPython that this machine has."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import releases
from tests.conftest import missing
from tests.engine.conftest import linked_cache
from tests.job import invoke
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import read_settings
from tsuishi.machine.interpreters import find_python
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.specs.environment import read_environment
from tsuishi.specs.zoo_names import LIBRARIES

pytestmark = pytest.mark.pythons


def test_networks_of_timm_and_torchvision_run_beside_a_pytorch_for_cpus(tmp_path: Path) -> None:
    """torchvision of the index is built for CUDA: its operators of object detection are missing, and not needed."""
    if find_python("3.11") is None:
        missing("no CPython 3.11")
    cache = linked_cache(read_settings({}, {}, {}).cache, tmp_path / "cache")
    build = ("build", "--engine", "venv", "--env", "torch2-timm-cpu")
    result = invoke(tmp_path, *build, INVOKE_TSUISHI_CACHE=str(cache))
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    (python,) = (cache / "venvs").glob("torch2-timm-cpu-*/bin/python")
    inside = Checkout().root / "tests" / "suites" / "inside" / "check_zoos.py"
    names = ("timm:vit_tiny_patch16_224", "torchvision:resnet18", "timm:resnet_18")
    done = subprocess.run(
        [python, inside, Checkout().suites / "workloads", *names], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.rpartition("found: ")[2])
    subprocess.run([python, Checkout().root / "tests" / "zoo_names.py", tmp_path], check=True)
    for library in ("timm", "torchvision"):
        known = Checkout().root / "tsuishi" / "specs" / "zoos" / f"{library}.txt"
        assert (tmp_path / known.name).read_text() == known.read_text()
    assert LIBRARIES == ("keras", "timm", "torchvision")
    # Parameters and multiply-adds as timm's and torchvision's tables have them: 5.72 M, 11,689,512 and 1.81 G.
    assert round(found[names[0]]["parameters"] / 1e6, 2) == 5.72
    assert (found[names[1]]["parameters"], found[names[1]]["multiply_adds"]) == (11689512, 1814073344)
    assert found[names[2]]["unsupported"].startswith(
        "model 'timm:resnet_18': timm 1.0.31 has no such network; near: res"
    )


def test_an_older_release_of_each_family_is_built_without_an_engine_and_computes_as_numpy_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_python("3.6") is None:
        missing("no CPython 3.6")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    given = read_settings({}, {}, {})
    cache = linked_cache(given.cache, tmp_path / "cache")
    settings = given.model_copy(update={"cache": cache, "results": tmp_path / "results"})
    named = ("tf1.4-cpu", "towers"), ("tf1.13-cu100-wheels", "towers"), ("torch1.2-cu100", "distributed_data_parallel")
    for name, strategy in named:
        session = Session(settings, Choice((name,), ("parity",), "smoke", 1), Screen(), Checkout())
        found = releases.examined(session, read_environment(Checkout().images / f"{name}.toml"))["statuses"]
        assert {status for status, _ in found.values()} <= {"ok", "unsupported"}
        # Networks in training and inference on one device, and the family's own way to share a batch between two.
        for case in ("mlp training none 1", "cnn10 inference none 1", f"cnn10 training {strategy} 2"):
            assert found[f"parity steady {case}"] == ["ok", ""]
        run = directory.open_run(settings.results)
        record = run.environment(next(run.finished())[1].environment_record or "").content()
        assert record["engine"] == "venv"
        assert record["substitutions"][0]["used"].startswith("CPython 3.6.")
        if name == "tf1.13-cu100-wheels":
            assert [change["asked"] for change in record["substitutions"][1:]] == ["libcusolver.so.10.0"]
            assert (record["cuda"], record["cudnn"]) == ("10.0", "7.5.0")
            assert not {"cupy-cuda100", "cntk-gpu"} & record["packages"].keys()
