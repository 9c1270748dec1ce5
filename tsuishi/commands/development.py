"""Checks of tsuishi itself: `invoke lint`, `invoke advisories` and `invoke test`."""

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from tsuishi import extras
from tsuishi.base import budget, toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.specs.environment import check_framework, known_environments, read_environment, read_environments
from tsuishi.specs.lock import logical_lines
from tsuishi.specs.suite import known_suites, read_suite
from tsuishi.specs.vocabulary import vocabulary

# Any complaint counts. Exceptions stand in the template, with reasons.
HADOLINT = ("hadolint", "--no-color", "--failure-threshold=style")
# It holds the packages of requirements.lock, too.
_TEST_LOCK = "requirements-test.lock"
ADVISORIES = "advisories.toml"
# The tests that need nothing but Python, and make a single real run.
ON_ANY_MACHINE = "not engine and not browser and not pythons and not system and not long and not gpus and not runs"
# The folders whose tests run with `--all` only.
_ELSEWHERE = ("extras", "benchmarks", "engine", "browser")

# Beside the workloads, what extras have any Python from 3.6 on run.
_LAUNCHERS = [str(path) for path in extras.files("launcher.py")]


class Acknowledged(toml.Spec):
    """An acknowledged advisory: until a day it is no reason to stop."""

    id: str
    package: str
    reason: str
    until: date


class AcknowledgedFile(toml.Spec):
    """advisories.toml."""

    acknowledged: tuple[Acknowledged, ...] = ()


def lint(variables: Mapping[str, str]) -> None:
    """Check specs, then run ruff (rules and format), mypy, vermin and hadolint. Raises UserError for any complaint."""
    checkout = Checkout()
    check_specs(checkout)
    _install_test_tools(checkout.root, variables)
    with tempfile.TemporaryDirectory() as folder:
        commands = (
            ["ruff", "check"],
            ["ruff", "format", "--check"],
            ["mypy"],
            ["vermin", "--quiet", "--no-tips", "--violations", "--target=3.6-", str(checkout.workloads), *_LAUNCHERS],
            [*HADOLINT, *map(str, write_dockerfiles(checkout, Path(folder)))],
        )
        tools = Path(sys.executable).parent
        failed = [name for name, *rest in commands if _run(checkout.root, [str(tools / name), *rest], variables)]
    _run(checkout.root, [sys.executable, "-m", "tests.english", "--brief"], variables)
    if failed:
        raise UserError(f"lint: {', '.join(dict.fromkeys(failed))} complained, see above")


def ask_advisories(variables: Mapping[str, str]) -> None:
    """Print the advisories on the packages of tsuishi. Raises UserError for a new advisory, and without an answer."""
    root = Checkout().root
    _install_test_tools(root, variables)  # uv is one of them
    if not check_advisories(root, date.today()):
        raise UserError("advisories: see above")


def check_advisories(root: Path, today: date, service: str = "") -> bool:
    """Print the advisories on the packages of a checkout's locks. True: uv has an answer, and all are acknowledged.

    The packages of environments are not asked about: an environment of 2019 holds what 2019 had, behind walls
    (docs/security.md).

    service: the address of a service like OSV; OSV without it. Raises UserError where advisories.toml is wrong.
    """
    known = toml.load(root / ADVISORIES, AcknowledgedFile).acknowledged
    lines = logical_lines(toml.read_text(root / _TEST_LOCK, "the lock "))
    pins = [line.partition(" --hash=")[0].strip() for _, line in lines]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text(_audited_project(pins), "utf-8")
        uv = str(Path(sys.executable).parent / "uv")
        command = [uv, "audit", "--project", folder, "--preview-features=audit-command"]
        command += [f"--service-url={service}"] if service else []
        command += [f"--ignore={entry.id}" for entry in known if entry.until > today]
        return subprocess.run(command, check=False, cwd=folder).returncode == 0


def _audited_project(pins: Sequence[str]) -> str:
    """A project of exactly these packages: an override counts more than the packages' own requirements."""
    python = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    listed = json.dumps(list(pins))
    return (
        f'[project]\nname = "audited"\nversion = "0"\nrequires-python = "{python}"\ndependencies = {listed}\n'
        f"[tool.uv]\noverride-dependencies = {listed}\n"
    )


def write_dockerfiles(checkout: Checkout, folder: Path) -> list[Path]:
    """Write every environment's Dockerfile as `<environment>.Dockerfile`. The base has its tag, for the linter."""
    from tsuishi.environments.engine_choice import Engines

    maker, written = Engines(Settings(), checkout).docker.maker, []
    for environment in read_environments(checkout.images):
        if environment.base is not None:
            file = folder / f"{environment.name}.Dockerfile"
            file.write_text(maker.dockerfile(environment, environment.base.reference), "utf-8")
            written.append(file)
    return written


def check_specs(checkout: Checkout) -> None:
    """Read every environment, suite and published source. Raises UserError for the first wrong file."""
    from tsuishi.specs.source import check_names, read_sources

    for path in known_environments(checkout.images).values():
        check_framework(path, checkout.workloads)
        read_environment(path)
    words = vocabulary(checkout.suites)
    for problem in words.wrong.values():
        raise UserError(problem)
    published = read_sources(checkout.published, words)
    check_names(checkout.published, published, words)
    sources = {source.name for source in published}
    for path in known_suites(checkout.suites).values():
        suite = read_suite(path, words)
        if suite.source and suite.source not in sources:
            raise UserError(
                f"{path}: key 'source': no reports/published/{suite.source}.toml; known: {', '.join(sorted(sources))}"
            )
        if not (checkout.workloads / "experiments" / f"{suite.workload}.py").is_file():
            raise UserError(f"{path}: key 'workload': no suites/workloads/experiments/{suite.workload}.py")


def test(variables: Mapping[str, str], select: str, everything: bool) -> None:
    """Run the tests of the core that any machine can run, or all tests. Raises UserError where a test fails."""
    root = Checkout().root
    _install_test_tools(root, variables)
    # A worker for each core. tests/conftest.py decides which tests stay together, and which begin first.
    command = [sys.executable, "-m", "pytest", f"--numprocesses={len(os.sched_getaffinity(0))}"]
    command += ["--dist=loadfile", "--no-loadscope-reorder", "--durations=10"]
    command += ["-k", select] if select else []
    command += [] if everything else ["-m", ON_ANY_MACHINE, *(f"--ignore=tests/{folder}" for folder in _ELSEWHERE)]
    if _run(root, command, variables):
        raise UserError("test: some failed, see above")


def _install_test_tools(root: Path, variables: Mapping[str, str]) -> None:
    """Install the packages that tests need into this virtual environment, once for each version of their lock."""
    lock, installed = root / _TEST_LOCK, Path(sys.prefix) / _TEST_LOCK
    if installed.exists() and filecmp.cmp(lock, installed, shallow=False):
        return
    print(f"installing what the tests need, from {_TEST_LOCK} (once)", flush=True)
    if _run(root, [sys.executable, "-m", "tsuishi.artifacts.lock_installation", str(lock)], variables):
        raise UserError(f"{_TEST_LOCK} could not be installed, see above")
    shutil.copyfile(lock, installed)


def _run(root: Path, command: list[str], variables: Mapping[str, str]) -> int:
    """Run a tool with visible output, and with the variables INVOKE_TSUISHI_* of this call. Returns the exit code."""
    environ = {**os.environ, **variables}
    environ.pop(budget.BEGAN, None)  # the start time of this command, not of commands that the tool runs
    return subprocess.run(command, cwd=root, env=environ, check=False).returncode
