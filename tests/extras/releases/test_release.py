"""The environment of another release: which Python, which day, and that its lock has what an index had on that day."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_tasks import checkout, invoke
from tests.locking.test_resolve import NO_ENGINE, Images, Index, serve
from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.pip_configuration import Sources
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.extras.releases.release import labelled, resolve_release
from tsuishi.locking.resolve import Locker, NewLock
from tsuishi.specs.environment import read_environment

TODAY = "2026-03-01"


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", NO_ENGINE)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index with a framework of two releases, and what is needed beside it, older and newer."""
    with serve(tmp_path / "index") as served:
        for day, version in (("2018-01-01", "1.1"), ("2019-05-01", "1.2"), ("2026-01-01", "3.0")):
            served.day = day
            for name in ("numpy", "scipy", "tool"):
                served.wheel(name, version)
        served.day = TODAY
        served.wheel("pip", "9.0")
        served.day = "2023-10-15"
        served.wheel("wheel", "9.0")
        served.wheel("setuptools", "68.0")
        served.day = "2024-01-01"
        served.wheel("setuptools", "69.0")
        release(served, "2019-04-30", "1.4.1", "cp36-cp36m-manylinux1_x86_64")
        release(served, "2019-05-02", "1.4.1", "cp37-cp37m-manylinux1_x86_64")
        release(served, TODAY, "2.9.0", "cp311-cp311-manylinux2014_x86_64")
        yield served


def release(index: Index, day: str, version: str, tag: str, requires: Sequence[str] = ("numpy", "tool<3")) -> None:
    index.day = day
    index.wheel("torchcpu", version, tag, requires)


@pytest.fixture
def images(tmp_path: Path) -> Images:
    """A folder with an environment of the newest release, `th2-cpu`, for CPython 3.11."""
    images = Images(tmp_path)
    like(images)
    return images


def like(images: Images, python: str = "3.11", accelerators: str = '"cpu"', more: str = "") -> Path:
    path = images.spec.with_name("th2-cpu.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"""
title = "Torch 2.9.0, CPU"
framework = "torch"
accelerators = [{accelerators}]
python = "{python}"
family = "torch"
released = {TODAY}
requires = ["tool>=1", "torchcpu==2.9.0", "numpy"]
{more}
[base]
reference = "docker.io/library/python:{python}.9-slim-bookworm"
[promises]
torch = "2.9.0"
[expect]
slowdown = 1.5
"""
    )
    path.with_suffix(".lock").write_text(f"torchcpu==2.9.0 --hash=sha256:{'a' * 64}\n")
    return path


def locker(images: Images, index: Index, python_of: Callable[[str], Path | None] = lambda version: None) -> Locker:
    cache = images.folder / "cache"
    engine = DockerEngine(Checkout().dockerfile, {}, cache)
    sources, network = Sources((index.simple,), ()), Network(connect_s=2)
    return Locker(sources, Cache(cache), network, {}, engine, images.said.append, python_of)


def locked(images: Images, index: Index, version: str) -> tuple[str, NewLock]:
    return resolve_release(locker(images, index), images.spec.with_name("th2-cpu.toml"), version)


def refused(images: Images, index: Index, version: str) -> str:
    with pytest.raises(UserError) as caught:
        locked(images, index, version)
    return str(caught.value)


def promised(new: NewLock) -> str:
    """The version of the framework that a new spec promises."""
    (text,) = [text for path, text in new.files.items() if path.suffix == ".toml"]
    return str(tomllib.loads(text)["promises"]["torch"])


def versions(new: NewLock) -> dict[str, str]:
    return {line.split()[1]: line.split()[2] for line in new.difference}


def test_a_release_gets_the_newest_python_of_its_wheels_and_the_packages_of_the_day_of_that_wheel(
    images: Images, index: Index
) -> None:
    name, new = locked(images, index, "1.4.1")
    assert name == "th1.4-cpu"
    assert versions(new) == {
        "numpy": "1.2",
        "pip": "9.0",
        "scipy": "1.2",
        "setuptools": "68.0",
        "tool": "1.2",
        "torchcpu": "1.4.1",
        "wheel": "9.0",
    }
    new.write()
    made = read_environment(images.spec.with_name("th1.4-cpu.toml"))
    assert (made.python, made.family, str(made.released), str(made.as_of)) == (
        "3.7",
        "torch",
        "2019-04-30",
        "2019-05-02",
    )
    assert made.promises == {"python": "3.7", "torch": "1.4.1", "numpy": "1.2", "scipy": "1.2"}
    assert made.requires == ("torchcpu==1.4.1", "numpy", "scipy", "pip", "setuptools", "wheel")
    assert (made.title, made.default, made.expect.slowdown) == ("Torch 1.4.1, CPU", (), 1.5)
    assert made.base
    assert made.base.reference == "docker.io/library/python:3.7-slim"


@pytest.mark.parametrize(("belongs_to", "found"), [("1.4.1", "0.2.3"), ("1.4.2", None)])
def test_a_release_has_the_version_of_a_package_that_belongs_to_it_or_none(
    images: Images, index: Index, belongs_to: str, found: str | None
) -> None:
    spec = like(images)
    text = spec.read_text().replace('"numpy"]', '"numpy", "torchsight==0.9.0"]')
    spec.write_text(text.replace('torch = "2.9.0"', 'torch = "2.9.0"\ntorchsight = "0.9.0"'))
    with spec.with_suffix(".lock").open("a") as lock:
        lock.write(f"torchsight==0.9.0 --hash=sha256:{'b' * 64}\n")
    index.day = "2019-05-01"
    for version, of in (("0.2.2", "1.4.0"), ("0.2.3", belongs_to), ("0.9.0", "2.9.0")):
        index.wheel("torchsight", version, requires=[f"torchcpu=={of}"])
    name, new = locked(images, index, "1.4.1")
    assert versions(new).get("torchsight") == found
    new.write()
    made = read_environment(spec.with_name(f"{name}.toml"))
    assert made.promises.get("torchsight") == found
    assert ("torchsight" in made.requires) == (found is not None)
    assert ("left out" in images.said[-2]) == (found is None)


def test_a_release_is_the_same_build_as_what_it_is_like_where_an_index_has_it_and_that_is_said_where_not(
    images: Images, index: Index
) -> None:
    spec = like(images)
    spec.write_text(spec.read_text().replace("2.9.0", "2.9.0+cpu"))
    spec.with_suffix(".lock").write_text(f"torchcpu==2.9.0+cpu --hash=sha256:{'a' * 64}\n")
    index.day = "2019-04-30"
    index.wheel("nvidia-cuda-runtime-cu9", "9.2.148")
    release(
        index, "2019-04-30", "1.4.1", "cp37-cp37m-manylinux1_x86_64", ("numpy", "tool<3", "nvidia-cuda-runtime-cu9")
    )
    _, new = locked(images, index, "1.4.1")
    assert versions(new)["torchcpu"] == "1.4.1"
    assert promised(new) == "1.4.1+cu92"
    first, *_, last = images.said
    assert first.startswith("1.4.1 is another build than that of th2-cpu, which is +cpu, as torchcpu 1.4.1+cpu has no ")
    assert re.fullmatch(r"to fetch: 8 files, .*; of these 1 file, .* are NVIDIA's libraries for GPUs, .*", last)
    release(index, "2019-04-30", "1.4.1+cpu", "cp37-cp37m-manylinux1_x86_64")
    _, new = locked(images, index, "1.4.1")
    assert (versions(new)["torchcpu"], promised(new)) == ("1.4.1+cpu", "1.4.1+cpu")
    assert "NVIDIA" not in images.said[-1]


@pytest.mark.parametrize(
    "name", ["torch1.13-cpu", "torch2.0-cu117", "torch2.5-cu124", "torch2.8-cu128", "torch1.5-cpu"]
)
def test_the_label_of_a_build_for_cuda_is_what_its_wheel_was_seen_to_say(name: str) -> None:
    seen = read_environment(Checkout().images / f"{name}.toml")
    unlabelled = seen.promises | {"torch": seen.release.partition("+")[0]}
    assert labelled(seen.model_copy(update={"promises": unlabelled}), seen.pins).promises == seen.promises


def test_a_release_keeps_python_and_base_of_the_environment_that_it_is_like_where_it_has_a_wheel_for_it(
    images: Images, index: Index
) -> None:
    like(images, python="3.6")
    _, new = locked(images, index, "1.4.1")
    (spec,) = [tomllib.loads(text) for path, text in new.files.items() if path.suffix == ".toml"]
    assert (spec["python"], str(spec["as_of"])) == ("3.6", "2019-04-30")
    assert spec["base"]["reference"] == "docker.io/library/python:3.6.9-slim-bookworm"
    assert versions(new)["numpy"] == "1.1"


def test_a_lock_made_anew_has_the_packages_of_the_same_day(images: Images, index: Index) -> None:
    _, new = locked(images, index, "1.4.1")
    new.write()
    assert locker(images, index).resolve(images.spec.with_name("th1.4-cpu.toml")).files == {}


def test_sdists_are_asked_for_their_requirements_by_the_python_of_the_release_where_it_is_here(
    images: Images, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    run = subprocess.run

    def noted(command: list[str], **given: Any) -> Any:
        commands.append(command)
        return run(command, **given)

    monkeypatch.setattr(subprocess, "run", noted)
    for python, wanted in ((Path(sys.executable), [f"--python={sys.executable}"]), (None, [])):
        asked: list[str] = []

        def of_machine(version: str, python: Path | None = python, asked: list[str] = asked) -> Path | None:
            asked.append(version)
            return python

        commands.clear()
        resolve_release(locker(images, index, of_machine), images.spec.with_name("th2-cpu.toml"), "1.4.1")
        assert asked == ["3.7"]
        compiled = [command for command in commands if "compile" in command]
        assert [[word for word in command if word.startswith("--python=")] for command in compiled] == [wanted]


def test_without_a_day_a_lock_has_what_the_index_has_now(images: Images, index: Index) -> None:
    images.require("tool", promise='python = "3.6"')
    assert [line.partition(" ")[0] for line in images.locked(index.simple)] == ["tool==3.0"]


def test_a_release_that_no_index_has_is_told_with_those_of_its_series(images: Images, index: Index) -> None:
    assert refused(images, index, "1.5.0") == (
        "torchcpu 1.5.0 has no wheel for Linux x86-64 whose day of upload an index states (PEP 700): "
        f"{index.simple} has 1.4.1"
    )


def test_an_index_without_the_package_is_named_with_its_answer(images: Images, tmp_path: Path) -> None:
    with serve(tmp_path / "empty") as empty:
        page = f"{empty.simple}/torchcpu/"
        assert refused(images, empty, "1.4.1").endswith(f"{empty.simple} has none ({page}: 404 File not found)")


def test_an_index_that_states_no_days_has_no_release(images: Images, tmp_path: Path) -> None:
    with serve(tmp_path / "undated") as undated:
        undated.wheel("torchcpu", "1.4.1", "cp37-cp37m-manylinux1_x86_64")
        assert refused(images, undated, "1.4.1").endswith(f"(PEP 700): {undated.simple} has none")


def test_code_for_gpus_is_left_out_and_an_environment_for_gpus_alone_is_refused(images: Images, index: Index) -> None:
    cuda = '[cuda]\ntoolkit = "9.0"\nmin_driver = "384.81"\nnative = ["3.5", "7.0"]\n'
    like(images, accelerators='"cpu", "cuda"', more=cuda)
    _, new = locked(images, index, "1.4.1")
    (spec,) = [tomllib.loads(text) for path, text in new.files.items() if path.suffix == ".toml"]
    assert "cuda" not in spec
    assert spec["accelerators"] == ["cpu"]
    like(images, accelerators='"cuda"', more=cuda)
    assert refused(images, index, "1.4.1") == (
        "th2-cpu is for GPUs: a release is made like an environment that computes on CPUs"
    )


def test_the_task_writes_both_files_and_refuses_to_write_them_again(tmp_path: Path, index: Index) -> None:
    root = checkout(tmp_path / "checkout")
    like(Images(root))
    environ = {"DOCKER_HOST": NO_ENGINE, "INVOKE_TSUISHI_INDEXES": index.simple}
    asked = ("lock", "--like", "th2-cpu", "--release", "1.4.1")
    assert invoke(root, *asked, "--plan", **environ).stdout.endswith(
        "\nth1.4-cpu: would be written: th1.4-cpu.toml, th1.4-cpu.lock\n"
    )
    assert invoke(root, *asked, **environ).stdout.endswith("\nth1.4-cpu: written: th1.4-cpu.toml, th1.4-cpu.lock\n")
    again = invoke(root, *asked, **environ)
    assert again.returncode == 1
    assert again.stderr.endswith(
        "images/th1.4-cpu.toml is there already: `invoke lock --env th1.4-cpu` makes its lock anew\n"
    )
    assert invoke(root, "lock", "--like", "th2-cpu", **environ).stderr == (
        "error: a release is made by --like and --release, without --env: invoke lock --like tf2-cpu --release 2.16.2\n"
    )
