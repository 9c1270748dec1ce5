"""Which facts make another machine, and that every recorded fact is shown where it differs."""

import json
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tests.run.test_sampler import NoGpus
from tests.synthetic_run import machine
from tsuishi.machine.description import machine_record
from tsuishi.report.sections.descriptions import machine_facts
from tsuishi.results.records import GpuRecord, LimitsRecord, MachineRecord, Processor
from tsuishi.results.same_machine import FACTS, differing, is_same, machines

PARTS: dict[str, type[BaseModel]] = {"cpu": Processor, "limits": LimitsRecord, "gpus": GpuRecord}
NAMES = [name for name in MachineRecord.model_fields if name not in PARTS] + [
    f"{part}.{name}" for part, record in PARTS.items() for name in record.model_fields
]
# Two values of a fact: the first pair of its type.
VALUES: tuple[tuple[Any, Any], ...] = (
    (3, 7), ("a", "b"), (True, False), (["a"], ["a", "b"]), ({"a": 1}, {"a": 2}), ({"a": "1"}, {"a": "2"}),
    ([{"gpus": [0, 1], "nvlink": True}], [{"gpus": [0, 1], "nvlink": False}]),
)  # fmt: skip


def record(**facts: Any) -> MachineRecord:
    return MachineRecord.model_validate_json(json.dumps(facts))


def two(name: str) -> tuple[MachineRecord, MachineRecord]:
    """Records of a machine with a GPU that differ in a fact alone."""
    part, _, short = name.rpartition(".")
    for values in VALUES:
        ours, others = ({**machine(), "cpu": {}, "gpus": [{"name": "A100"}], "limits": {}} for _ in values)
        for facts, value in zip((ours, others), values, strict=True):
            inner = facts if not part else facts["gpus"][0] if part == "gpus" else facts[part]
            inner[short] = value
        with suppress(ValidationError):
            return record(**ours), record(**others)
    raise AssertionError(f"no value for {name}")


def test_every_recorded_fact_says_whether_it_makes_another_machine_and_why() -> None:
    assert {*FACTS} == {*NAMES}
    assert all(fact.label and fact.why for fact in FACTS.values())
    ours = record(**json.loads(json.dumps(machine_record(NoGpus()))))
    assert ours.limits is not None
    assert is_same(ours, ours)


@pytest.mark.parametrize("name", NAMES)
def test_a_fact_that_differs_is_shown_and_makes_another_machine_as_its_table_says(name: str) -> None:
    one, other = two(name)
    assert differing(one, other) == [name]
    assert is_same(one, other) is not FACTS[name].makes_another
    assert machine_facts(one) != machine_facts(other)
    if name.partition(".")[0] in ("cpu", "gpus"):
        assert len(machine_facts(one, other)) >= len(machine_facts(one)), "both values are there"


def test_what_a_later_version_records_is_a_note_and_shown() -> None:
    one, other = record(**machine(), phase="new"), record(**machine(), phase="full")
    assert is_same(one, other)
    assert machine_facts(one, other)["phase"] == "new and full"


def test_an_unknown_fact_does_not_differ_and_nearly_equal_memory_is_the_same() -> None:
    old, new = record(**machine()), record(**{**machine(), "memory_mib": 7890, "limits": {"cores": 2, "nice": 0}})
    assert differing(old, new) == []
    assert not is_same(new, record(**{**machine(), "limits": {"cores": 1}})), "a quota makes a machine smaller"
    assert not is_same(old, record(**{**machine(), "gpus": [{"name": "A100"}]}))
    half = record(**{**machine(), "memory_mib": 4000})
    assert machines({"a": old, "b": half, "c": new}) == {"a": "a", "b": "b", "c": "a"}
