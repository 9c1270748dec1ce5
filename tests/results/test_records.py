"""Records: what was written is read into a type, and is the same when it is written again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench import make_checkout
from tests.run.test_runner import session
from tests.synthetic_run import run_content, run_record
from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.results.directory import RunDirectory
from tsuishi.results.facts import Facts
from tsuishi.results.record_files import parsed, read_record
from tsuishi.results.records import (
    CaseRecord,
    EnvironmentRecord,
    MachineRecord,
    TrialRecord,
    WorkloadRecord,
    record_id,
)
from tsuishi.results.run_record import More, RunRecord
from tsuishi.run.new_run import run_suite
from tsuishi.specs.case import case_id
from tsuishi.specs.questions import MatrixCell, PlannedQuestion


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run that was really measured, of trials that ended well and badly."""
    root = tmp_path_factory.mktemp("run")
    make_checkout(root, "ok", "unsupported", "dies")
    return run_suite(session(root))


def written(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def same(content: object, path: Path) -> bool:
    """Whether content is what a file holds, key by key in their order."""
    return json.dumps(content) == json.dumps(written(path))


def test_run_json_is_the_same_when_it_is_written_again(run: RunDirectory) -> None:
    path = run.path / "run.json"
    before = path.read_bytes()
    record = run.run()
    assert same(record.content(), path)
    assert run.is_ours(record)
    run.write_run(record)
    assert path.read_bytes() == before


def test_a_trial_is_the_same_when_it_is_written_again(run: RunDirectory) -> None:
    for folder, trial in run.finished():
        path = folder / "trial.json"
        reported = Facts.reported(written(path)["reported"])
        assert same(trial.model_copy(update={"reported": reported}).content(), path)
        assert trial.content() == written(path)
        assert str(trial.id) == folder.name


def test_a_record_has_the_same_id_when_it_is_written_again(run: RunDirectory) -> None:
    kinds = set()
    for path in run.record_files():
        record = read_record(path)
        assert record is not None
        kinds.add(type(record))
        assert record_id(record) == path.stem
        assert same(record.content(), path)
        assert isinstance(record, CaseRecord) or not record.model_extra, "every key that is written is typed"
    assert kinds == {CaseRecord, EnvironmentRecord, MachineRecord, WorkloadRecord}


def test_keys_that_nobody_knows_are_kept() -> None:
    """A later tsuishi may write more, and this one goes on with the run."""
    content = run_content("r", new={"deep": [1]}, left_out=[{"environment": "e", "reason": "r", "since": "v2"}])
    assert RunRecord.model_validate_json(json.dumps(content)).content() == content
    machine = {"os": "x", "firmware": {"version": 2}}
    assert record_id(MachineRecord.model_validate(machine)) == f"machine-{toml.digest(machine)}"


def test_whole_numbers_and_fractions_stay_what_they_are() -> None:
    for number in (24105, 24105.0):
        assert json.dumps(MachineRecord(memory_mib=number).content()) == json.dumps({"memory_mib": number})


def test_facts_are_written_in_the_order_in_which_they_were_reported() -> None:
    facts = {"python": "3.6.15", "devices": [{"kind": "cpu", "name": "x"}], "framework": "torch", "cuda": None}
    assert json.dumps(Facts.reported(facts).content()) == json.dumps(facts)


def test_facts_name_the_framework_and_the_devices() -> None:
    assert (Facts().title, Facts().computed_on) == ("", "")
    cpu, gpus = {"kind": "cpu", "name": "x"}, [{"kind": "gpu", "name": name} for name in ("B", "A", "B")]
    facts = {"framework": "torch", "versions": {"torch": "2"}}
    assert Facts.model_validate({**facts, "devices": [cpu]}).computed_on == "cpu"
    assert Facts.model_validate({**facts, "devices": [cpu, *gpus]}).computed_on == "A, B"
    assert Facts.model_validate(facts).title == "torch 2"
    assert Facts(framework="torch").title == "torch"


def test_questions_are_written_without_what_is_usual() -> None:
    cell = MatrixCell("a" * 12, "host")
    asked = PlannedQuestion(
        id="q", kind="measurement", title={"en": "q"}, worth=1.0, environments=("host",), of=(cell,)
    )
    short = {"id": "q", "kind": "measurement", "title": {"en": "q"}, "worth": 1.0, "environments": ["host"]}
    short["of"] = [["a" * 12, "host"]]
    record = run_record("r").model_copy(update={"questions": (asked,), "more": (More(**dict(asked), seconds=2.5),)})
    assert record.content()["questions"] == [short]
    assert json.dumps(record.content()["more"]) == json.dumps([{"seconds": 2.5, **short}])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[]", "expected a JSON object"),
        (b'{"trial_id": ', "cannot be read: Expecting value: line 1 column 14 (char 13)"),
        (b"{}", "key 'trial_id' is missing; add it (and 6 more); copy the run again, or remove what is wrong"),
    ],
)
def test_a_text_that_is_no_record_is_refused_in_a_line(text: bytes, reason: str) -> None:
    with pytest.raises(UserError) as caught:
        parsed("x/trial.json", text, TrialRecord)
    assert str(caught.value) == f"x/trial.json: {reason}"


def test_a_number_that_json_does_not_know_is_refused_wherever_it_is() -> None:
    text = json.dumps(run_content("r", later=float("nan"))).encode()
    with pytest.raises(UserError, match=r"^run.json: cannot be read: NaN is no number$"):
        parsed("run.json", text, RunRecord)


def test_a_record_with_a_number_too_large_for_json_is_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "machine-0123456789ab.json"
    path.write_text('{"memory_mib": 1e999}', encoding="utf-8")
    with pytest.raises(UserError, match=r"machine-0123456789ab.json: cannot be read: 1e999 is no number$"):
        read_record(path)


@pytest.mark.parametrize("settings", [{"epochs": "many"}, {"stop_at": -0.1}, {"train_images": True}])
def test_lengths_that_are_no_numbers_are_refused(settings: dict[str, Any]) -> None:
    axes = {"suite": "s", "protocol": "steady"}
    known = case_id(axes)
    entry = {"trial_id": f"s-{known[:6]}.host.r1", "case_id": known, "case": axes, "environment": "host"}
    text = json.dumps(run_content("r", plan=[{**entry, "repetition": 1, "settings": settings}])).encode()
    with pytest.raises(UserError, match="is not a number of 0 or more"):
        parsed("run.json", text, RunRecord)
