"""The Dockerfiles that the template gives: of every environment, linted, and what is in them."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pytest

from tests.bench import REAL
from tsuishi.base.errors import BuildError
from tsuishi.commands.development import HADOLINT, write_dockerfiles
from tsuishi.engines.docker import recipe
from tsuishi.specs.environment import Environment, known_environments, read_environment

TEMPLATE = REAL.dockerfile.read_text(encoding="utf-8")
PINNED = [one for path in known_environments(REAL.images).values() if (one := read_environment(path)).pinned]
NAMES = [environment.name for environment in PINNED]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def dockerfiles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("dockerfiles")
    return {path.stem: path.read_text(encoding="utf-8") for path in write_dockerfiles(REAL, folder)}


def steps(text: str) -> list[str]:
    """Instructions without comments, continuations joined."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return "\n".join(lines).replace("\\\n", " ").split("\n")


def hadolint(text: str) -> tuple[str, int]:
    """What it says, and its exit code."""
    command = [str(BIN / HADOLINT[0]), *HADOLINT[1:], "-"]
    linted = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return linted.stdout + linted.stderr, linted.returncode


def test_every_pinned_environment_has_one_that_hides_nothing_from_hadolint(dockerfiles: dict[str, str]) -> None:
    assert sorted(dockerfiles) == sorted(NAMES)
    assert "hadolint ignore" not in "".join(dockerfiles.values())


def test_hadolint_would_find_something() -> None:
    said, code = hadolint("FROM debian\nRUN apt-get install python3\n")
    assert code == 1
    assert {"DL3006", "DL3008"} <= set(re.findall(r"DL\d+", said))


def test_every_image_ends_as_nobody_with_python_and_no_program_in_front(dockerfiles: dict[str, str]) -> None:
    for text in dockerfiles.values():
        assert steps(text)[-4:] == ["USER 65534:65534", "WORKDIR /tmp", "ENTRYPOINT []", 'CMD ["python"]']


def test_what_has_gpu_code_asks_for_its_driver_and_gets_no_gpu_unasked(dockerfiles: dict[str, str]) -> None:
    assert any(environment.cuda for environment in PINNED)
    for environment in PINNED:
        text = dockerfiles[environment.name]
        if environment.cuda is None:
            assert "NVIDIA" not in text
        else:
            assert "ENV NVIDIA_VISIBLE_DEVICES=void NVIDIA_DRIVER_CAPABILITIES=compute,utility" in text
            assert f'NVIDIA_REQUIRE_DRIVER="driver>={environment.cuda.min_driver}"' in text


def test_no_step_fetches_anything(dockerfiles: dict[str, str]) -> None:
    for step in (step for text in dockerfiles.values() for step in steps(text)):
        if step.startswith('RUN "python'):
            assert step.count("install --no-index ") == step.count("--require-hashes") == 2
        assert not re.search(r"https?://|^ADD\b|\bcurl\b|\bwget\b|apt-get update", step)


def test_an_environment_of_its_base_adds_no_file(dockerfiles: dict[str, str]) -> None:
    found = steps(dockerfiles["tf1.15-ngc"])
    assert found[0] == "FROM nvcr.io/nvidia/tensorflow:23.03-tf1-py3 AS base"
    assert {step.split()[0] for step in found} == {"FROM", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def test_debian_packages_are_copied_as_what_they_install_and_the_venv_stands_on_them(
    dockerfiles: dict[str, str],
) -> None:
    stages = [step for step in steps(dockerfiles["tf1.13-cu100"]) if step.startswith(("FROM", "COPY"))]
    assert stages == [
        "FROM docker.io/library/ubuntu:18.04 AS bare",
        "FROM bare AS debs",
        "COPY debs/ /debs/",
        "FROM bare AS base",
        "COPY --from=debs /result/ /",
        "FROM base AS build",
        "COPY wheels/ /wheels/",
        "COPY bootstrap.txt pip-0-py3-none-any.whl requirements.txt /",
        "FROM base",
        "COPY --from=build /result/ /",
    ]


def test_cudas_libraries_are_looked_for_where_the_packages_of_that_release_put_them(
    dockerfiles: dict[str, str],
) -> None:
    (install,) = [step for step in steps(dockerfiles["tf1.13-cu100"]) if "apt-get install" in step]
    conf = 'echo "/usr/local/cuda-$TSUISHI_CUDA/targets/x86_64-linux/lib" > /etc/ld.so.conf.d/tsuishi-cuda.conf'
    assert "ARG TSUISHI_CUDA=10.0" in steps(dockerfiles["tf1.13-cu100"])
    assert install.index(conf) < install.index("&& ldconfig")


def test_the_venv_is_of_the_environments_own_python(dockerfiles: dict[str, str]) -> None:
    for name, python in (("torch1.1-cu100", "3.6"), ("torch2-cpu", "3.11")):
        assert f"ARG TSUISHI_PYTHON={python}" in steps(dockerfiles[name])
        assert 'RUN "python$TSUISHI_PYTHON" -m venv' in dockerfiles[name]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_an_environment_is_in_what_a_shell_runs(name: str) -> None:
    """A shell would take it for a program, whatever refused it before."""

    def programs(environment: Environment) -> list[str]:
        return [step for step in steps(recipe.dockerfile(TEMPLATE, environment, "b")) if step.startswith("RUN")]

    environment = next(one for one in PINNED if one.name == name)
    odd: dict[str, Any] = {"python": "$(id)", "name": "$(id)", "title": "$(id)", "promises": {"$(id)": "$(id)"}}
    if environment.cuda:
        odd["cuda"] = environment.cuda.model_copy(update={"toolkit": "$(id)", "min_driver": "$(id)"})
    odd["pins"] = tuple(replace(pin, name="$(id)", version="$(id)", file="$(id)") for pin in environment.pins)
    odd["debs"] = tuple(replace(deb, name="$(id)", version="$(id)", file="$(id)") for deb in environment.debs)
    assert programs(environment.model_copy(update=odd)) == programs(environment)


def test_a_template_that_asks_for_what_there_is_not_is_refused() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'base_image' is undefined"):
        recipe.dockerfile("FROM {{ base_image }}", PINNED[0], "b")


def test_the_same_artefacts_make_the_same_context_whenever_and_by_whomever(tmp_path: Path) -> None:
    contexts = []
    for number, mode in ((1, 0o600), (2, 0o644)):
        folder = tmp_path / str(number)
        folder.mkdir()
        wheels = [folder / name for name in ("pip-21.3.1-py3-none-any.whl", "six-1.16.0-py2.py3-none-any.whl")]
        for wheel in wheels:
            wheel.write_bytes(b"a wheel")
            wheel.chmod(mode)
            os.utime(wheel, (number, number))
        made = recipe.context(TEMPLATE, PINNED[0], "base:1", wheels, (), folder / "temporary")
        with made as tar:
            contexts.append(tar.read_bytes())
        assert not tar.exists()
    assert contexts[0] == contexts[1]


def test_a_lock_without_pip_is_told_before_anything_is_built(tmp_path: Path) -> None:
    environment = next(one for one in PINNED if one.packages == "locked")
    with (
        pytest.raises(BuildError, match=rf"{environment.name}\.lock pins no wheel of pip: add a wheel"),
        recipe.context(TEMPLATE, environment, "base:1", (), (), tmp_path),
    ):
        pass
