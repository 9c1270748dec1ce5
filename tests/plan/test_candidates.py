"""Questions of suites and claims, put to environments."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.pinned import environment as pinned
from tests.words import WORDS, shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.plan.candidates import RunnableCases, candidates
from tsuishi.plan.decidable import GpusHere
from tsuishi.specs.case import Case
from tsuishi.specs.environment import Environment
from tsuishi.specs.questions import Question
from tsuishi.specs.suite import read_suite, select_suites


def environment(name: str, framework: str, release: str) -> Environment:
    update = {"name": name, "framework": framework, "promises": {framework: release}}
    return pinned(()).model_copy(update=update)


def case(**axes: Any) -> Case:
    return WORDS.case({"suite": "s", "protocol": "steady", **axes})


def possible(of: Environment, *cases: Case, refused: dict[str, str] | None = None) -> RunnableCases:
    return RunnableCases(of, "cpu", {one.id: one for one in cases}, refused or {})


def ask(**fields: Any) -> Question:
    given = {"id": "q", "title": {"en": "q"}, "quantity": "step_s", "cases": [{"model": "cnn10"}], **fields}
    return Question.model_validate_json(json.dumps(given), context=WORDS)


NONE = GpusHere()
SMALL, LARGE = case(model="cnn10", batch_size=16), case(model="cnn10", batch_size=64)


def test_environments_are_compared_oldest_against_newest_release_of_a_framework() -> None:
    here = [
        possible(environment(name, framework, release), SMALL)
        for name, framework, release in (
            ("torch9", "torch", "2.9.0"),
            ("torch13", "torch", "2.13.0"),
            ("torch1", "torch", "1.1.0"),
            ("tf", "tensorflow", "2.21.0"),
        )
    ]
    (asked,) = candidates(WORDS, {"s": [ask()]}, (), here, NONE)
    assert asked.environments == ("torch1", "torch13")
    assert (asked.of, asked.to) == (((SMALL.id, "torch1"),), ((SMALL.id, "torch13"),))


def test_cases_are_compared_within_each_environment_that_can_run_both() -> None:
    able, unable = environment("able", "torch", "2"), environment("unable", "torch", "1")
    question = ask(of={"batch_size": 16}, to={"batch_size": 64})
    here = [possible(able, SMALL, LARGE), possible(unable, SMALL, LARGE, refused={LARGE.id: "too large"})]
    assert [one.environments for one in candidates(WORDS, {"s": [question]}, (), here, NONE)] == [("able",)]


def test_a_question_may_be_for_a_framework_or_an_accelerator() -> None:
    here = [possible(environment("one", "torch", "1"), SMALL, LARGE)]
    sides = {"of": {"batch_size": 16}, "to": {"batch_size": 64}}
    assert candidates(WORDS, {"s": [ask(**sides, frameworks=["torch"])]}, (), here, NONE)
    assert not candidates(WORDS, {"s": [ask(**sides, frameworks=["tensorflow"])]}, (), here, NONE)
    assert not candidates(WORDS, {"s": [ask(**sides, accelerator="cuda")]}, (), here, NONE)


def test_a_suite_that_names_no_question_is_asked_for_each_of_its_cases() -> None:
    here = [possible(environment(name, "torch", "1"), SMALL, LARGE) for name in ("one", "two")]
    asked = candidates(WORDS, {"s": []}, (), here, NONE)
    assert [one.kind for one in asked] == ["measurement", "measurement"]
    assert {cell for one in asked for cell in one.cells} == {
        (one.id, name) for one in (SMALL, LARGE) for name in ("one", "two")
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"of": {"batch_size": 1}}, "'of' and 'to' go together: give both, to compare cases, or neither"),
        ({"quantity": ""}, "give 'quantity', what is compared, or 'explains = true'"),
        ({"quantity": "speed"}, "unknown quantity 'speed'; known: first_run_s"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        ask(**fields)


def test_a_mistake_in_a_suite_file_names_file_and_key(tmp_path: Path) -> None:
    text = (Checkout().suites / "channels_first.toml").read_text(encoding="utf-8")
    path = tmp_path / "channels_first.toml"
    path.write_text(text.replace('layout = "channels_first" }', 'lay_out = "channels_first" }', 1), encoding="utf-8")
    with pytest.raises(UserError, match=r"channels_first\.toml: key 'questions\[0\]\.of'.*unknown axis 'lay_out'"):
        read_suite(path, WORDS)


def shipped(accelerator: str, gpus: int, *environments: tuple[str, str, str], named: tuple[str, ...] = ()) -> list[str]:
    suites = select_suites(Checkout().suites, named)
    here = [
        RunnableCases(
            environment(*one).model_copy(update={"accelerators": (accelerator,)}),
            accelerator,  # type: ignore[arg-type]
            {case.id: case for suite in suites for case, _ in suite.cases("quick", accelerator, gpus)},  # type: ignore[arg-type]
            {},
        )
        for one in environments
    ]
    sources, hardware = shipped_sources(), GpusHere(gpus, 11.0, dict.fromkeys(range(gpus + 1), False))
    return [one.id for one in candidates(WORDS, {one.name: one.questions for one in suites}, sources, here, hardware)]


TF = (("tf1", "tensorflow", "1.13.1"), ("tf2", "tensorflow", "2.21.0"))


def test_a_cpu_is_asked_for_the_step_of_conv2d_and_for_2019_against_today_and_for_no_claim_about_gpus() -> None:
    asked = shipped("cpu", 0, *TF)
    assert {"conv2d/step/tf1", "multi_gpu_scaling/today/tf1/tf2", "input_pipeline/distinct/tf1"} <= set(asked)
    sources = tuple(f"{source.name}/" for source in shipped_sources())
    assert not [one for one in asked if one.startswith(sources)]


def test_claims_about_cpus_are_asked_of_cpus_alone_and_only_where_their_suite_is_named() -> None:
    torch, suites = ("torch2", "torch", "2.2.1"), ("openbenchmarking_pytorch",)
    asked = "openbenchmarking-pytorch/a/torch2"
    assert asked in shipped("cpu", 0, torch, named=suites)
    assert asked not in shipped("cuda", 1, torch, named=suites)
    assert asked not in shipped("cpu", 0, torch)


def test_gpus_are_asked_for_the_claims_about_them() -> None:
    asked = shipped("cuda", 4, *TF)
    assert {"keras-channels-first/a/tf1", "towers-titanx/b/tf2", "batch-throughput/b/tf2"} <= set(asked)
    one_gpu = shipped("cuda", 1, *TF)
    assert "batch-throughput/b/tf2" not in one_gpu, "two GPUs against one"
    assert "towers-titanx/b/tf2" not in one_gpu, "four GPUs"
    assert "towers-titanx/b/tf2" not in shipped("cuda", 2, *TF)


def test_claims_on_two_frameworks_are_asked_of_pairs_of_environments() -> None:
    asked = shipped("cuda", 2, *TF, ("torch1", "torch", "1.1.0"))
    assert {"torch-2080ti/a/tf1/torch1", "torch-2080ti/c/tf2/torch1"} <= set(asked)
    assert not [one for one in shipped("cuda", 2, *TF) if one.startswith("torch-2080ti/a/")]
