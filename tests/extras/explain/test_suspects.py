"""Two runs beside each other: how much slower the second is, and what differs in their records."""

import re
from pathlib import Path

import pytest

from tests.commands.test_tasks import checkout, invoke

pytestmark = pytest.mark.runs


def run(root: Path, name: str) -> None:
    done = invoke(root, "run-suite", "--env", "host", "--repetitions", "3", "--name", name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_workload_is_named_and_nothing_else_is_blamed(tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok")
    run(root, "first")
    run(root, "again")
    behave = root / "suites" / "workloads" / "experiments" / "behave.py"
    behave.write_text(behave.read_text() + "\n# changed\n")
    run(root, "changed")
    runs = {path.name.rpartition("-")[2]: path.name for path in (root / "results").iterdir()}

    alike = invoke(root, "explain", runs["first"], "--beside", runs["again"])
    assert alike.returncode == 0, alike.stdout + alike.stderr
    assert re.match(r"the second takes \S+ times as long as the first: one case, host\n", alike.stdout), alike.stdout
    assert "their records do not differ: another time, other load, or a cause that no record sees" in alike.stdout

    differs = invoke(root, "explain", runs["first"], "--beside", runs["changed"])
    rows = differs.stdout.partition("to separate it")[2].strip().splitlines()
    assert len(rows) == 1
    assert rows[0].startswith("code of the workload behave ")
    assert rows[0].endswith("measure with one version of the code")
