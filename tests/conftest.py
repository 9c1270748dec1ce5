"""What several test files need, and how the tests are shared out among workers.

The tests of a group run in one worker, so that what they share is made once. The groups that take or wait longest begin
first.
"""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import settings

from tests.job import ENTERED, invoke
from tests.reports import KEPT_IN
from tsuishi.base.checkout import ROOT

# How long an example takes says what else this machine does.
settings.register_profile("tsuishi", deadline=None)
settings.load_profile("tsuishi")

# Processes of tsuishi have to find it without what a shell says of where modules are.
os.environ.pop("PYTHONPATH", None)
# `./invoke test` names its own tree to the processes that it starts.
os.environ.pop(ROOT, None)

# What a shell starts in the background ignores Ctrl-C, and so would all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files whose tests share what is costly: the smoke job, and the images of the tiny environment.
_OF_THE_SMOKE_JOB = (
    "test_main_job",
    "test_conv2d_job",
    "test_training_job",
    "test_input_pipeline_job",
    "test_claims_job",
)
_OF_THE_TINY_ENVIRONMENT = (
    *("test_docker", "test_exchange", "test_locking"),
    *("test_archived_images", "test_registry", "test_slurm_containers"),
)
TOGETHER = {
    **dict.fromkeys(_OF_THE_SMOKE_JOB, "job"),
    **dict.fromkeys(_OF_THE_TINY_ENVIRONMENT, "docker"),
}
# Groups by what they take, longest first, those that wait beside those that compute; the others follow in their order.
LONGEST = (
    "job",
    "docker",
    "podman",
    "slurm",
    "tests/engine/test_building.py",
    "tests/engine/test_daemon_dies.py",
    "tests/engine/test_reproducible.py",
    "tests/engine/test_venv_job.py",
    "tests/benchmarks/test_gpu_dry.py",
    "tests/suites/test_possible.py",
    "tests/suites/test_self_check.py",
    "tests/suites/test_training.py",
    "tests/suites/test_input_pipeline.py",
    "tests/results/test_crash_points.py",
    "tests/results/test_left_states.py",
    "tests/plan/test_decidable.py",
    "tests/extras/tables/test_check.py",
    "tests/results/test_received_run.py",
    "tests/engines/test_venv.py",
    "tests/commands/test_tasks.py",
    "tests/run/test_measuring.py",
    "tests/run/test_runner.py",
    "tests/report/output/test_folder.py",
    "tests/artifacts/test_tls.py",
    "tests/locking/test_resolve.py",
    "tests/artifacts/test_cache.py",
    "tests/base/test_exclusion.py",
    "tests/run/test_real_trial.py",
    "tests/report/output/test_vega.py",
    "tests/verdicts/test_decision.py",
    "tests/commands/test_report.py",
    "tests/base/test_language.py",
    "tests/engines/test_subprocesses.py",
    "tests/base/test_printable.py",
    "tests/run/test_hostile_events.py",
)


def group(nodeid: str) -> str:
    """The group of a test: its file, or what the file shares with others; Podman's half of a file is another.

    The tests on a Slurm cluster share it.
    """
    file = nodeid.partition("::")[0]
    if "[podman" in nodeid:
        return "podman"
    if "engine" in Path(file).parts:
        return TOGETHER.get(Path(file).stem, file)
    if file.startswith("tests/extras/cluster/"):
        return "slurm"
    return file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest groups first."""
    order = {name: index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(group(item.nodeid), len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs all tests of a group. (loadgroup of xdist 3.8 does not: pytest 9.2 keeps ids elsewhere.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return Groups(config, log)


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of these tests know."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def drawings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Charts that one test has drawn are not drawn again for another, see tests/reports.py."""
    folder = shared_folder(tmp_path_factory) / "drawings"
    folder.mkdir(exist_ok=True)
    os.environ[KEPT_IN] = str(folder)


@pytest.fixture(scope="session", autouse=True)
def exclusive_on() -> None:
    """Workers measure at the same time, and beside whatever else is measured here: each keeps out itself alone."""
    os.environ["INVOKE_TSUISHI_EXCLUSIVE_ON"] = f"the machine of test process {os.getpid()}"


@pytest.fixture(scope="session", autouse=True)
def configuration(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests make a key of their own to know their runs by."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("configuration"))


@contextmanager
def one_worker(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[None]:
    """One worker at a time: what they share is made by the first of them, and found by the others."""
    with (shared_folder(tmp_path_factory) / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every environment that tests enter is built, as image or virtual environment: once for all workers."""
    names = ",".join(environment.name for environment in ENTERED)
    with one_worker(tmp_path_factory, "environments"):
        result = invoke(tmp_path_factory.mktemp("environments"), "build", "--env", names)
    if result.returncode:
        missing(f"an environment that could not be built: {result.stderr}")


def missing(what: str) -> NoReturn:
    """Skip a test for want of something; where everything must be there (CI sets CI), fail instead."""
    if os.environ.get("CI"):
        pytest.fail(f"this run must have it all, and there is {what}")
    pytest.skip(what)
