"""What several test files need, and how the tests are shared out among workers.

The tests of a file, or those that name a group of their own (`xdist_group`), run in one worker, so that what they share
is made once. The groups that take or wait longest begin first.
"""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from tests.job import invoke
from tests.reports import KEPT_IN

# How long an example takes says what else this machine does.
settings.register_profile("tsuishi", deadline=None)
settings.load_profile("tsuishi")

# What a shell starts in the background ignores Ctrl-C, and so would all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Groups by what they take, longest first, those that wait beside those that compute; the others follow in their order.
LONGEST = (
    "job",
    "docker",
    "podman",
    "engine/test_building",
    "engine/test_daemon_dies",
    "engine/test_reproducible",
    "engine/test_venv_job",
    "suites/test_self_check",
    "suites/test_training",
    "suites/test_input_pipeline",
    "test_tasks",
    "test_runner",
    "report/test_folder",
    "fetching/test_tls",
    "test_locking",
    "fetching/test_artifacts",
    "test_real_trial",
    "report/test_drawing",
    "analysis/test_verdicts",
    "report/test_report_task",
    "report/test_language",
)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests of each file, and put the longest groups first."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_file(item)))
    order = {name: index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(_group(item), len(order)))


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).with_suffix("").as_posix()


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    assert marker is not None
    return str(marker.args[0])


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


@contextmanager
def one_worker(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[None]:
    """One worker at a time: what they share is made by the first of them, and found by the others."""
    with (shared_folder(tmp_path_factory) / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every environment that a CPU takes is built, as images or virtual environments: once for all workers."""
    with one_worker(tmp_path_factory, "environments"):
        result = invoke(tmp_path_factory.mktemp("environments"), "build")
    if result.returncode:
        missing(f"an environment that could not be built: {result.stderr}")


def missing(what: str) -> NoReturn:
    """Skip a test for want of something; where everything must be there (CI sets CI), fail instead."""
    if os.environ.get("CI"):
        pytest.fail(f"this run must have it all, and there is {what}")
    pytest.skip(what)
