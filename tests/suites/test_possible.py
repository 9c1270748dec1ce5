"""Which cases can be run, as a process asked of all of them says it: what it tries, and that a trial says the same."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import psutil
import pytest

from common import events
from common.request import Request
from experiments import possible
from tests.engine.test_main_job import REMEDY, UNSUPPORTED
from tests.job import EVERYWHERE, TENSORFLOW, TORCH, WITHOUT_CHANNELS_FIRST
from tests.suites.environments import PINNED, REAL, built, inside
from tests.words import SUITES_OF_OURS, WORDS
from tsuishi.environments import possible as asking
from tsuishi.environments import probe
from tsuishi.environments.entry import Ready
from tsuishi.environments.possible import Question
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.case import Case
from tsuishi.specs.environment import Environment
from tsuishi.specs.suite import PROFILES, Profile, read_suite
from tsuishi.stream.events import EventParser
from tsuishi.stream.listener import Transcript, listen

JAX = ["jax-cpu"]
MXNET = ["mxnet-cpu"]
CHAINER = ["chainer-cpu"]
OF_2019 = [*MXNET, *CHAINER]
NAMED = [*JAX, *OF_2019]
STRATEGY_SUITES = "multi_gpu_scaling channels_first batch_throughput parity"
# As UNSUPPORTED, for what only the longer profiles ask, and for the environments that are no part of the main job.
LONGER = [
    ("conv2d", {"graph_optimizers": "none"}, TORCH),
    ("input_pipeline", {"strategy": "towers"}, TORCH),
    ("multi_gpu_scaling", {"layout": "channels_last"}, ["torch1.1-cu90"]),
    ("multi_gpu_scaling", {"layout": "channels_first"}, WITHOUT_CHANNELS_FIRST),
    ("parity", {"precision": "fp64"}, NAMED),
    ("parity", {"model": "mobilenet_v2"}, ["torch1.1-cu90"]),  # wrong gradients of depthwise convolutions
    ("multi_gpu_scaling", {"precision": "amp_fp16"}, ["torch1.1-cu90", "tf1.13-cpu"]),
    *(("device_limits multi_gpu_scaling", {"precision": precision}, NAMED) for precision in ("tf32", "amp_fp16")),
    ("multi_gpu_scaling", {"precision": "amp_bf16"}, OF_2019),
    ("device_limits", {"precision": "fp16"}, MXNET),
    ("device_limits", {"precision": "bf16"}, OF_2019),
    ("device_limits", {"operation": "all_reduce"}, CHAINER),
    *(("multi_gpu_scaling", {"execution": execution}, NAMED) for execution in ("compiled", "cuda_graph")),
    ("transformer_block parity", {"execution": "compiled"}, JAX),
    *(("transformer_block parity", {"model": "decoder_" + name}, OF_2019) for name in ("tiny", "small")),
    ("multi_gpu_scaling channels_first parity", {"layout": "channels_last"}, OF_2019),
    ("conv2d", {"search": "folding_edge"}, NAMED),
    *(("conv2d", {"graph_optimizers": optimizers}, NAMED) for optimizers in ("no_folding", "none")),
    *(("conv2d", axes, [*TORCH, *NAMED]) for axes in ({"call": "callable"}, {"implementation": "keras"})),
    *(("conv2d", axes, [*EVERYWHERE, *NAMED]) for axes in ({"autotune": "off"}, {"host_memory": "pageable"})),
    ("conv2d", {"host_memory": "pinned"}, [*EVERYWHERE, *NAMED]),
    ("input_pipeline", {}, NAMED),
    ("multi_gpu_scaling", {"loader": "tensors_2_workers"}, TENSORFLOW),
    ("multi_gpu_scaling", {"loader": "torchvision_4_workers"}, [*TENSORFLOW, "torch2-cpu"]),
    *(("multi_gpu_scaling", {"loader": loader}, NAMED) for loader in WORDS.axes["loader"].values[1:]),
    ("multi_gpu_scaling", {"batches": "host_pinned"}, [*TORCH, *TENSORFLOW, *NAMED]),
    *(("multi_gpu_scaling channels_first", {"batches": batches}, NAMED) for batches in ("host", "host_ahead")),
    *((STRATEGY_SUITES, {"strategy": strategy}, NAMED) for strategy in WORDS.axes["strategy"].values[1:-1]),
    (STRATEGY_SUITES, {"strategy": "shard_map"}, OF_2019),
    *((STRATEGY_SUITES, axes, environments) for suites, axes, environments in UNSUPPORTED if "strategy" in axes),
]


def refused() -> None:
    raise events.Unsupported("not on this device")


def fails() -> None:
    raise KeyError("a bug")


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(file: str) -> None:
    """Writes the id of a process that it waits for."""
    child = subprocess.Popen(["sleep", "600"])
    pathlib.Path(file).write_text(str(child.pid))
    child.wait()


def test_a_try_gives_the_reason_of_its_refusal_and_none_where_it_works() -> None:
    assert possible.try_apart(refused, ()) == "not on this device"
    assert possible.try_apart(time.sleep, (0,)) == ""


@pytest.mark.parametrize("function", [fails, dies])
def test_a_try_that_fails_or_dies_is_no_refusal(function: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert possible.try_apart(function, ()) == ""
    assert f"{function.__name__}() gave no answer: its cases are tried" in capfd.readouterr().err


def test_a_try_that_hangs_is_ended_with_all_it_started(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pid"
    assert possible.try_apart(hangs, (str(file),), limit_s=2.0) == ""
    assert "gave no answer: its cases are tried" in capfd.readouterr().err
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(file.read_text())).wait(timeout=10)


def test_what_a_try_changes_is_gone_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TSUISHI_TRIED", raising=False)
    assert possible.try_apart(os.environ.__setitem__, ("TSUISHI_TRIED", "1")) == ""
    assert "TSUISHI_TRIED" not in os.environ


def test_the_same_try_is_made_once_for_all_cases_that_need_it(tmp_path: pathlib.Path) -> None:
    seen = tmp_path / "seen"

    def counted(text: str) -> None:
        with seen.open("a") as file:
            file.write(text)
        raise events.Unsupported(text)

    tried: dict[Any, str] = {}
    request: Any = None
    for _ in range(3):
        with pytest.raises(events.Unsupported, match="a"):
            possible.ask_and_try(lambda request: [(counted, ("a",))], tried, request)
    assert seen.read_text() == "a"


def asked(argument: dict[str, Any]) -> Transcript:
    """What the script says, in this interpreter."""
    command = [sys.executable, str(REAL.workloads / "run.py"), json.dumps({"experiment": "possible", **argument})]
    done = subprocess.run(command, capture_output=True, check=False)
    transcript, parser = Transcript(), EventParser()
    for piece in parser.feed(done.stdout):
        if not isinstance(piece, bytes):
            transcript.hear(piece, 0.0)
    assert parser.garbled == 0, done.stdout
    return transcript


def smoke(name: str) -> list[Question]:
    return list(questions_of("smoke", name))


def questions_of(profile: Profile, name: str = "*") -> Iterator[Question]:
    """Every case of a profile on CPUs, with its workload and settings."""
    for suite in (read_suite(REAL.suites / f"{key}.toml", WORDS) for key in SUITES_OF_OURS if name in ("*", key)):
        settings = suite.profile(profile).settings_for("cpu").model_dump()
        yield from ((suite.workload, case, settings) for case, _ in suite.cases(profile, "cpu"))


def test_cases_refused_without_a_framework_have_their_reason_where_none_is_installed() -> None:
    ready = Ready(PINNED[0].model_copy(update={"framework": "any"}), None, None, EnvironmentRecord(name=""))  # type: ignore[arg-type]
    questions = smoke("device_limits")
    transcript = asked(asking.argument(ready, "cpu", questions))
    assert transcript.finished
    for index, (_, case, _) in enumerate(questions):
        tf32 = "Unsupported: precision 'tf32': a mode of NVIDIA GPUs since 2020, and this is a CPU; 'fp32' would run"
        none = "Unsupported: none of torch, tensorflow, jax, mxnet, chainer is installed in this environment"
        expected = tf32 if case.axes.get("precision") == "tf32" else none if "devices" in case.axes else ""
        assert transcript.answers[index] == expected, "what is of the machine alone needs none"


def test_a_case_that_is_none_is_left_to_its_trial_and_the_others_are_answered() -> None:
    group = {"workload": "device_limits", "settings": {}, "axes": ["operation"], "cases": [["no such"], ["matmul"]]}
    other = {"workload": "probe", "settings": {}, "axes": [], "cases": [[]]}
    transcript = asked({"framework": None, "accelerator": "cpu", "groups": [group, other]})
    assert (transcript.finished, transcript.answers) == (True, {0: "", 1: "", 2: ""})


def test_a_reason_longer_than_an_event_is_cut() -> None:
    reader, writer = os.pipe()
    events.Events(writer).possible(10**6, "ä" * 5000)
    written = os.read(reader, 2 * events.LIMIT)
    assert 3500 < len(written) <= events.LIMIT
    assert json.loads(written[1:])["reason"].endswith(events.TRUNCATED)


def answers(environment: Environment, questions: list[Question]) -> dict[str, str]:
    """Asked of the environment itself: reasons by case id. An error that is no refusal would be the trial's end."""
    starter, there = built(environment)
    ready = Ready(environment, starter, there, EnvironmentRecord(name=environment.name))
    log = bytearray()

    def heard(process: Any, transcript: Transcript, started: float, timeout_s: float, hear: Any, _: Any) -> Any:
        return listen(process, transcript, started, timeout_s, hear, log.extend)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "listen", heard)
        question = asking.argument(ready, "cpu", questions)
        transcript, why_not = probe.ask(starter, there, REAL, "possible", question, 300.0)
    assert not why_not
    assert b"Traceback" not in log, log.decode(errors="replace")
    assert sorted(transcript.answers) == list(range(len(questions)))
    return {questions[index][1].id: reason for index, reason in transcript.answers.items() if reason}


@cache
def refusals(name: str) -> dict[str, str]:
    """What an environment refuses of everything, by case id."""
    return answers(next(one for one in PINNED if one.name == name), everything())


def _rule(reason: str) -> str:
    """What a reason is about: "precision 'tf32'" of "Unsupported: precision 'tf32': a mode of …"."""
    return re.split("[:;(] ?", reason.removeprefix("Unsupported: "), maxsplit=1)[0]


def everything() -> list[Question]:
    """Every case of every suite and profile; a case that several profiles have, as the shortest has it."""
    found: dict[str, Question] = {}
    for profile in PROFILES:
        for question in questions_of(profile):
            found.setdefault(question[1].id, question)
    return list(found.values())


def is_expected(case: Case, environment: str) -> bool:
    values = {**dict.fromkeys(WORDS.axes), **case.axes}
    return any(
        case.suite in suites.split()
        and environment in environments
        and all(values[axis] == value for axis, value in axes.items())
        for suites, axes, environments in [*UNSUPPORTED, *LONGER]
    )


@inside
@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
def test_nothing_but_the_known_cases_is_refused(environment: Environment) -> None:
    found = refusals(environment.name)
    cases = [case for _, case, _ in everything()]
    assert {case.id for case in cases if is_expected(case, environment.name)} == set(found)
    for reason in found.values():
        assert REMEDY.search(reason), reason


@inside
@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
def test_what_a_plan_takes_for_too_early_is_refused(environment: Environment) -> None:
    """A plan knows it before the environment is built (`since` in axes.toml)."""
    released = environment.framework, environment.release
    early = {case.id for _, case, _ in everything() if WORDS.not_yet(case.values, *released)}
    assert early <= refusals(environment.name).keys()
    assert bool(early) is (environment.name in ("torch1.1-cu90", "tf1.13-cpu"))


@inside
@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
def test_the_trial_says_the_same_for_a_case_of_every_rule(environment: Environment) -> None:
    """Of a rule that several environments have, in the first of them alone: a trial takes seconds."""
    questions = {question[1].id: question for question in everything()}
    before = PINNED[: PINNED.index(environment)]
    known = {_rule(reason) for other in before for reason in refusals(other.name).values()}
    found = refusals(environment.name)
    # The first case of each rule: smoke comes first.
    of_rule = {_rule(reason): (reason, case_id) for case_id, reason in reversed(found.items())}
    case_of = dict(of_rule[rule] for rule in of_rule if rule not in known)
    assert found
    starter, there = built(environment)
    for reason, case_id in case_of.items():
        workload, case, settings = questions[case_id]
        argument = {"case": case.axes, "framework": environment.framework, "accelerator": "cpu", "settings": settings}
        transcript, _ = probe.ask(starter, there, REAL, workload, argument, 300.0)
        assert transcript.failure, reason
        assert transcript.failure.kind == "unsupported"
        assert f"{transcript.failure.type}: {transcript.failure.text}" == reason


def test_a_request_of_the_question_is_that_of_the_trial() -> None:
    ready = Ready(PINNED[0], None, None, EnvironmentRecord(name=""))  # type: ignore[arg-type]
    questions = everything()
    parsed = possible.read(asking.argument(ready, "cpu", questions))
    assert len(parsed) == len(questions)
    for (name, request), (workload, case, settings) in zip(parsed, questions, strict=True):
        own = Request(
            {"case": case.values, "framework": PINNED[0].framework, "accelerator": "cpu", "settings": settings}
        )
        assert (name, request.case, request.settings) == (workload, own.case, own.settings)
