"""Two checks of one row at the same time, as two terminals start them."""

import shutil
from pathlib import Path

import pytest

from tests.commands.test_tasks import REAL, checkout, invoke, invoking
from tests.run.test_runner import wait_for
from tests.words import SHIPPED


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with the suite and the source of the first experiment."""
    root = checkout(tmp_path)
    (root / "suites" / "bench.toml").unlink()
    shutil.copy(REAL.suites / "conv2d.toml", root / "suites")
    shutil.copy(REAL.root / "requirements.lock", root)
    for name in SHIPPED:
        shutil.copy(REAL.published / f"{name}.toml", root / "reports" / "published")
    return root


@pytest.mark.long
def test_of_two_checks_of_a_row_the_second_says_who_measures_or_waits(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checks"
    check = ("check", "conv2d-gce", "--row", "SciPy", "--env", "host", "--repetitions", "1", "--in", str(folder))
    with invoking(root, *check) as first:
        wait_for(lambda: (folder / ".lock").exists() and (folder / ".lock").read_text())
        told = f"another tsuishi (process {first.pid}) is checking in {folder}"
        other = invoke(root, *check)
        waited = invoke(root, *check, "--wait")
        out, err = first.communicate()
    assert (other.returncode, other.stderr) == (1, f"error: {told}; wait for it (--wait)\n")
    assert f"waiting: {told}" in waited.stdout
    for code, said, line in ((first.returncode, err, out), (waited.returncode, waited.stderr, waited.stdout)):
        assert (code, said) == (0, "")
        assert "compared" in line
