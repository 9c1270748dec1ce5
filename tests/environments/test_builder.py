"""Promises: what an environment must report, and what is said where it does not."""

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench import make_checkout
from tests.pinned import environment as pinned
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.settings import Settings
from tsuishi.engines import contents
from tsuishi.engines.interface import Built
from tsuishi.engines.venv import Mark
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import framework_of
from tsuishi.environments.provenance import environment_record
from tsuishi.environments.self_reports import SelfReport, broken_promises
from tsuishi.results.facts import Facts
from tsuishi.specs.debian import Deb
from tsuishi.specs.environment import read_environment
from tsuishi.specs.lock import Pin

HASH = "a" * 64
PINS = (Pin("torch", "1.1.0", (HASH,)), Pin("numpy", "1.16.6", (HASH,)))
REPORTED = {
    "python": "3.6.15",
    "versions": {"torch": "1.1.0"},
    "packages": {"torch": "1.1.0", "numpy": "1.16.6", "pip": "21.3.1"},
}


def broken(promises: dict[str, str], **reported: Any) -> list[str]:
    environment = pinned(PINS).model_copy(update={"promises": promises})
    return broken_promises(environment, Facts.model_validate({**REPORTED, **reported}))


def test_kept_promises_are_none_broken() -> None:
    assert broken({"python": "3.6", "torch": "1.1.0", "numpy": "1.16.6"}) == []
    assert broken({"python": "3.6.15"}) == []
    assert broken({"python": "3"}) == []


def test_locked_debian_packages_are_there_in_their_versions() -> None:
    debs = (Deb("libcudnn7", "7.5.1.10-1+cuda10.0", HASH), Deb("libnccl2", "2.4.2-1+cuda10.0", HASH))
    environment = pinned(()).model_copy(update={"promises": {}, "debs": debs})
    there = {"libcudnn7:amd64": "7.5.1.10-1+cuda10.0", "libnccl2:amd64": "2.4.2-1+cuda10.0", "libc6:amd64": "2.27"}
    assert broken_promises(environment, Facts(system_packages=there)) == []
    there["libcudnn7:amd64"] = "7.6.5.32-1+cuda10.0"
    assert broken_promises(environment, Facts(system_packages=there)) == [
        "package libcudnn7=7.5.1.10-1+cuda10.0 is 7.6.5.32-1+cuda10.0"
    ]
    assert broken_promises(environment, Facts())[1] == "package libnccl2=2.4.2-1+cuda10.0 is not there"


@pytest.mark.parametrize(
    ("promises", "reported", "said"),
    [
        ({"python": "3.1"}, {"python": "3.11.7"}, ["python is 3.11.7, promised 3.1"]),
        ({"python": "3.6.1"}, {}, ["python is 3.6.15, promised 3.6.1"]),
        ({"python": "3.6"}, {"python": None}, ["python is not there, promised 3.6"]),
        ({"torch": "1.1"}, {}, ["torch is 1.1.0, promised 1.1"]),
        ({"torch": "1.1.0"}, {"versions": {"torch": "1.1.0+cu100"}}, ["torch is 1.1.0+cu100, promised 1.1.0"]),
        ({"jax": "1"}, {}, ["jax is not there, promised 1"]),
        ({}, {"packages": {"torch": "1.1.0"}}, ["package numpy is not there, locked 1.16.6"]),
        (
            {"torch": "2"},
            {"packages": {"torch": "1.1.0", "numpy": "1.17"}},
            ["torch is 1.1.0, promised 2", "package numpy is 1.17, locked 1.16.6"],
        ),
    ],
)
def test_every_broken_promise_is_named_with_both_versions(
    promises: dict[str, str], reported: dict[str, Any], said: list[str]
) -> None:
    assert broken(promises, **reported) == said


def test_what_a_workload_is_told_to_import() -> None:
    assert framework_of(pinned(PINS)) == "torch"
    assert framework_of(pinned(PINS).model_copy(update={"framework": "any"})) is None


def builder(tmp_path: Path, **settings: Any) -> Builder:
    return Builder(Settings(cache=tmp_path / "cache", **settings), Checkout())


def test_an_engine_that_is_of_no_use_is_refused_with_its_remedy(tmp_path: Path) -> None:
    work = builder(tmp_path, engine="host", host_python="/no/such/python")
    with pytest.raises(UserError) as caught:
        work.engines.chosen_for(pinned(PINS))
    assert str(caught.value) == "engine host: no interpreter '/no/such/python'; give one with --host-python"


def test_an_engine_of_an_extra_that_is_absent_is_refused_with_the_engines_that_are_here(tmp_path: Path) -> None:
    work = builder(tmp_path)
    work.engines.of_files = ()  # as without extras
    with pytest.raises(UserError) as caught:
        work.engines["of-files"]
    assert str(caught.value) == (
        "engine of-files is of an extra that is not in tsuishi/extras/: put the extra back, or use an engine "
        "that is here: docker, venv, host"
    )


def test_a_pinned_environment_is_not_entered_with_an_interpreter_as_it_is(tmp_path: Path) -> None:
    said = "it is pinned, and the host engine takes an interpreter as it is: use --env host, or another engine"
    work = builder(tmp_path, engine="host", host_python=sys.executable)
    assert work.engines.refusal(pinned(PINS)) == said
    with pytest.raises(BuildError) as caught:
        work.ensure(pinned(PINS), print)
    assert str(caught.value) == f"env: {said}"


def test_what_comes_with_its_base_image_needs_a_container_engine(tmp_path: Path) -> None:
    of_the_base = pinned(()).model_copy(update={"packages": "of the base"})
    assert builder(tmp_path, engine="venv").engines.refusal(of_the_base) == (
        "its packages come with its base image, which only a container engine can use: start Docker"
    )


@pytest.mark.parametrize("given", ["venv/bin/python", "./venv/bin/python", "~/venv/bin/python"])
def test_the_host_interpreter_may_be_given_by_any_path_and_its_folder_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    work = builder(tmp_path, host_python=given)
    environment = read_environment(Checkout().images / "host.toml")
    built = work.engines.chosen_for(environment).find(environment)
    assert built is not None
    assert built.python == (str(tmp_path / "venv" / "bin" / "python"),)
    confinement = work.engines.host.starter.confinement(built.python[0])
    record = environment_record(built, SelfReport(), confinement)
    assert record.sandbox
    assert str(tmp_path) not in repr(record)


def test_an_interpreter_without_a_framework_can_run_scripts_and_with_a_broken_framework_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    work, host = builder(tmp_path, host_python=str(python)), read_environment(Checkout().images / "host.toml")
    record = work.ensure(host, print).record
    assert (record.python, record.versions, record.cuda_usable) == (platform.python_version(), {}, False)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "torch.py").write_text("import gone_since\n")
    with pytest.raises(BuildError) as caught:
        work.ensure(host, print)
    assert str(caught.value) == f"host cannot be used ({python}): No module named 'gone_since'"


def test_an_interpreter_that_was_entered_is_known_by_its_own_framework_for_the_rest_of_the_command(
    tmp_path: Path,
) -> None:
    """Claims name a framework, and `host` takes any: only the interpreter says which it has, and if it can use GPUs."""
    checkout = make_checkout(tmp_path, "ok")
    (checkout.workloads / "experiments" / "probe.py").write_text(
        "def run(request, emitter):\n"
        "    emitter.environment(framework='torch', versions={'torch': '2.4.1+cu121'}, cuda_usable=False)\n"
    )
    work = Builder(Settings(cache=tmp_path / "cache", host_python=sys.executable), checkout)
    host = read_environment(checkout.images / "host.toml")
    assert work.find(host) is None
    work.enter(host, print)
    ready = work.find(host)
    assert ready is not None
    assert (ready.environment.framework, ready.record.framework) == ("any", "torch")
    built = ready.as_built
    assert (built.framework, built.release, built.accelerators) == ("torch", "2.4.1", ("cpu",))


def test_a_package_that_was_compiled_for_another_build_of_the_framework_is_answered_with_the_way_out(
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path, "ok")
    probe = checkout.workloads / "experiments" / "probe.py"
    probe.write_text("def run(request, emitter):\n    raise RuntimeError('operator torchvision::nms does not exist')\n")
    work = Builder(Settings(cache=tmp_path / "cache", host_python=sys.executable), checkout)
    with pytest.raises(BuildError) as caught:
        work.ensure(read_environment(checkout.images / "host.toml"), print)
    assert str(caught.value).endswith(
        "operator torchvision::nms does not exist: a package was compiled for another build of the framework: require "
        "both from one index, with the same label (as +cpu), or leave the package out"
    )


@pytest.mark.parametrize("with_bubblewrap", [True, False])
def test_an_environment_is_known_to_be_built_without_a_program_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_bubblewrap: bool
) -> None:
    """As `invoke list` asks: the sandbox is looked for only where it is recorded."""
    (programs := tmp_path / "programs").mkdir()
    bubblewrap = programs / "bwrap"
    if with_bubblewrap:
        bubblewrap.write_text("#!/bin/sh\necho bubblewrap does nothing >&2\nexit 1\n")
        bubblewrap.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    work = builder(tmp_path, engine="venv")
    given = pinned(PINS).model_copy(update={"promises": {"torch": "1.1.0"}})
    folder = work.engines.venv.maker._folder(given)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    contents.record(folder, contents.paths(folder), ())
    assert not work.is_built(given)
    mark = Mark(python="3.6.15", lock_sha256="0" * 64, realised_id="venv:1", asked={})
    (folder / contents.MARK).write_text(mark.model_dump_json())
    built = work.engines.venv.find(given)
    assert built is not None
    assert not work.is_built(given)
    work.reports.keep(built, SelfReport.model_validate(REPORTED))
    with monkeypatch.context() as without_programs:
        without_programs.setattr(subprocess, "Popen", None)
        assert work.is_built(given)
    found = work.find(given)
    assert found is not None
    why = (
        "bubblewrap does not work here (bubblewrap does nothing)"
        if with_bubblewrap
        else "bubblewrap (bwrap) is not installed"
    )
    assert found.record.sandbox == f"none: {why}"
    (folder / "pyvenv.cfg").write_text("altered")
    assert not builder(tmp_path, engine="venv").is_built(given)
    assert builder(tmp_path, engine="venv").find(given) is None
    assert work.is_built(given, at_a_glance=True), "a glance compares no file"


@pytest.mark.parametrize("lost", ["contents.json", "tsuishi.json", "bin/python"])
def test_a_glance_sees_that_mark_record_or_interpreter_are_lost(tmp_path: Path, lost: str) -> None:
    work = builder(tmp_path, engine="venv")
    given = pinned(PINS).model_copy(update={"promises": {"torch": "1.1.0"}})
    folder = work.engines.venv.maker._folder(given)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    contents.record(folder, contents.paths(folder), ())
    mark = Mark(python="3.6.15", lock_sha256="0" * 64, realised_id="venv:1", asked={})
    (folder / contents.MARK).write_text(mark.model_dump_json())
    built = work.engines.venv.find(given)
    assert built is not None
    work.reports.keep(built, SelfReport.model_validate(REPORTED))
    assert work.is_built(given, at_a_glance=True)
    (folder / lost).unlink()
    assert not work.is_built(given, at_a_glance=True)
    assert not builder(tmp_path, engine="venv").is_built(given)


def test_what_is_remembered_about_a_build_follows_what_was_asked_and_got(tmp_path: Path) -> None:
    work = builder(tmp_path)
    built = Built(pinned(PINS), "venv", "3.6.15", "spec-1", "got-1", ("python",))
    paths = {
        work.reports._path("env", one)
        for one in (built, *(Built(pinned(PINS), "venv", "3.6.15", *ids, ("python",)) for ids in
                             (("spec-2", "got-1"), ("spec-1", "got-2"), ("spec-1", "got-1"))))
    }  # fmt: skip
    assert len(paths) == 3


def test_the_host_makes_and_stores_nothing_and_only_venvs_can_be_altered(tmp_path: Path) -> None:
    engines = {engine.name: engine for engine in builder(tmp_path).engines}
    assert [name for name, engine in engines.items() if engine.maker and engine.store] == ["docker", "venv"]
    assert [name for name, engine in engines.items() if engine.bases] == ["docker"]
    assert [name for name, engine in engines.items() if engine.inspector] == ["venv"]
    host = engines["host"]
    assert (host.maker, host.store, host.inspector, host.bases) == (None, None, None, None)
