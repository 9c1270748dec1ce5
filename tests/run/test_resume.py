"""The run that a task goes on with by itself: its own, of the same options and request, and interrupted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import make_checkout
from tests.run.test_runner import session
from tsuishi.base.files import read_json, write_json
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.results.run_record import SessionRecord
from tsuishi.run import runner
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import interrupted, resume

REQUEST = {"of": ["a number"]}


@pytest.fixture
def asks(tmp_path: Path) -> Session:
    make_checkout(tmp_path, "ok", "binary")
    return replace(session(tmp_path), task="check", request=REQUEST)


@pytest.fixture
def begun(asks: Session) -> RunDirectory:
    """A run that was interrupted."""
    run = run_suite(asks)
    assert interrupted(asks) is None, "its session ended, also where a trial failed or has no number"
    recorded = run.run()
    run.write_run(recorded.model_copy(update={"sessions": (SessionRecord(began_at=recorded.created_at),)}))
    return run


def test_an_interrupted_run_of_the_same_command_goes_on(asks: Session, begun: RunDirectory) -> None:
    found = interrupted(replace(asks, request={"of": ("a number",)}))
    assert found is not None
    assert found.id == begun.id


CHANGES: dict[str, Callable[[Session], Session]] = {
    "another task": lambda asks: replace(asks, task="run-suite"),
    "another request": lambda asks: replace(asks, request={}),
    "other options": lambda asks: replace(asks, choice=replace(asks.choice, repetitions=2)),
    "another seed": lambda asks: replace(asks, choice=replace(asks.choice, seed=7)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_of_another_command_does_not_go_on(asks: Session, begun: RunDirectory, name: str) -> None:
    assert interrupted(CHANGES[name](asks)) is None


def test_a_run_of_somebody_else_and_of_other_suites_does_not_go_on(asks: Session, begun: RunDirectory) -> None:
    suite = asks.checkout.suites / "bench.toml"
    text = suite.read_text(encoding="utf-8")
    suite.write_text(text.replace("[[groups]]", "[[groups]]\naccelerator = 'cuda'", 1), encoding="utf-8")
    assert interrupted(asks) is None
    suite.write_text(text, encoding="utf-8")
    assert interrupted(asks) is not None
    path = begun.path / "run.json"
    write_json(path, {**read_json(path), "created_at": "2026-11-29T00:00:00Z"})
    assert interrupted(asks) is None


def test_a_run_of_which_nothing_is_left_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the machine and the environment would be recorded in other words now."""
    make_checkout(tmp_path, "ok", "unsupported")
    run = run_suite(session(tmp_path))
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    monkeypatch.setattr(runner, "machine_record", lambda nvml: {"cpu": "another"})
    for _ in range(2):
        resume(session(tmp_path), run.id)
        assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_a_run_whose_last_session_was_killed_ends_with_its_resumption_and_stays_then(
    asks: Session, begun: RunDirectory
) -> None:
    for _ in range(2):
        resume(asks, begun.id)
    assert [bool(call.ended_at) for call in begun.run().sessions] == [False, True]
    assert interrupted(asks) is None
