"""Runs of earlier schemas: upgraded when they are read, step by step; others are refused in a line."""

from pathlib import Path
from typing import Any

import pytest

from tests.job import invoke
from tests.results.kept_runs import KEPT, kept_run
from tests.synthetic_run import listed_example
from tsuishi.base.errors import UserError
from tsuishi.base.files import read_json, write_json
from tsuishi.base.option_table import task_with
from tsuishi.results import upgrade
from tsuishi.results.run_record import SCHEMA_VERSION
from tsuishi.results.upgrade import STEPS, upgraded


def renamed(content: dict[str, Any]) -> dict[str, Any]:
    """As a step of a later tsuishi may be: a key has another name."""
    return {"profile" if name == "how_long" else name: value for name, value in content.items()}


def with_a_list(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "left_out": [content["left_out"]]}


def test_there_is_a_step_from_every_earlier_schema_to_the_next() -> None:
    assert sorted(STEPS) == list(range(1, SCHEMA_VERSION))


@pytest.mark.parametrize(
    ("old", "task", "request_of"),
    [
        ({"arguments": {"suite": ""}, "extras": {}}, "run-suite", {}),
        ({"arguments": {"quantity": "step_s"}}, task_with("quantity"), {}),
        ({"arguments": {}, "extras": {"check": {}}}, "check", {}),
        ({"extras": {"explain": {"value": 1.0}}}, "explain", {"value": 1.0}),
        ({"extras": ["explain"]}, "run-suite", {}),
    ],
)
def test_a_run_of_schema_2_gets_the_task_that_made_it(old: dict[str, Any], task: str, request_of: object) -> None:
    new = upgraded("a run", {"schema_version": 2, **old})
    assert (new["task"], new["request"], new.get("extras")) == (task, request_of, None)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tsuishi of schema 3, with a step from each schema before."""
    monkeypatch.setattr(upgrade, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(upgrade, "STEPS", {1: renamed, 2: with_a_list})


@pytest.mark.usefixtures("later")
def test_an_older_run_takes_every_step_in_its_order_and_has_no_seal() -> None:
    old = {"schema_version": 1, "how_long": "quick", "left_out": "tf2-cpu", "mac": "ab"}
    assert upgraded("a run", old) == {
        "schema_version": 3, "profile": "quick", "left_out": ["tf2-cpu"], "mac": None}  # fmt: skip
    assert old["mac"] == "ab"
    assert upgraded("a run", {**old, "schema_version": 3}) == {**old, "schema_version": 3}


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    ("version", "why"),
    [
        (4, "a later tsuishi made it: update tsuishi"),
        (10**30, "a later tsuishi made it: update tsuishi"),
        (0, "no tsuishi wrote it"),
        (-1, "no tsuishi wrote it"),
        ("2", "no tsuishi wrote it"),
        (True, "no tsuishi wrote it"),
        (2.0, "no tsuishi wrote it"),
        (None, "no tsuishi wrote it"),
    ],
)
def test_other_schemas_are_refused_in_a_line(version: object, why: str) -> None:
    with pytest.raises(UserError) as caught:
        upgraded("a run", {"schema_version": version})
    assert str(caught.value) == f"a run: run schema {version}, this tsuishi reads up to 3; {why}"


def test_an_older_run_is_read_as_one_of_today_and_its_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = listed_example(tmp_path / "20261121-080000-example")
    today, file = run.run(), run.path / "run.json"
    old = read_json(file)
    write_json(file, {**old, "schema_version": 0, "how_long": old.pop("profile"), "mac": "ab"})
    before = file.read_bytes()
    monkeypatch.setattr(upgrade, "STEPS", {**STEPS, 0: renamed})
    assert run.run() == today.model_copy(update={"mac": None})
    assert not run.is_ours(run.run())
    assert file.read_bytes() == before


def test_a_kept_run_of_every_schema_is_read_and_reported(tmp_path: Path) -> None:
    versions = []
    for number, kept in enumerate(KEPT):
        run = kept_run(kept, tmp_path / str(number))
        versions.append(read_json(run.path / "run.json")["schema_version"])
        assert run.run().schema_version == SCHEMA_VERSION
        assert [trial.trial_id for trial in run.run().plan] == [str(trial.id.planned) for _, trial in run.finished()]
        reported = invoke(tmp_path, "report", "--run", str(run.path))
        assert (reported.returncode, reported.stderr) == (0, "")
        assert run.id in reported.stdout
    assert sorted(set(versions)) == list(range(1, SCHEMA_VERSION + 1))
