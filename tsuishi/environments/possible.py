"""Which cases an environment can run on this machine: one question for all cases, instead of a trial for each."""

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tsuishi.base import files, toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say
from tsuishi.environments import provenance
from tsuishi.environments.entry import Ready, framework_of
from tsuishi.environments.probe import ask
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.case import SUITE, Case
from tsuishi.specs.environment import Accelerator

WORKLOAD = "possible"
# Importing a framework takes minutes from a cold disk; then some small programs are tried, each for 20 s at most.
_TIMEOUT_S = 600.0
# Linux allows 128 KiB for one argument of a program (MAX_ARG_STRLEN); the text around the cases needs some of it.
_CASES_BYTES = 100_000

Question = tuple[str, Case, Mapping[str, Any]]


def unsupported(
    ready: Ready,
    checkout: Checkout,
    cache: Path,
    machine: str,
    accelerator: Accelerator,
    gpus: Sequence[Gpu],
    questions: Sequence[Question],
    say: Say,
) -> dict[str, str]:
    """The reasons why cases cannot run, by case id. A question is a workload, a case and its settings.

    Answers are kept in `cache` for this machine, environment, accelerator and these files of the workloads; only
    questions without an answer are asked. `machine` is the id of the machine's record. Where the environment does not
    answer, there are no reasons, and `say` gets the failure.
    """
    file = _file(ready, checkout, cache, machine, accelerator)
    answers = _kept(file)
    keys = [_key(question) for question in questions]
    new = {key: question for key, question in zip(keys, questions, strict=True) if key not in answers}
    if new:
        heard = _ask(ready, checkout, accelerator, gpus, new, say)
        answers |= heard
        if heard:
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(file, answers)
    found = zip(keys, questions, strict=True)
    return {case.id: reason for key, (_, case, _) in found if (reason := answers.get(key))}


def argument(ready: Ready, accelerator: str, questions: Iterable[Question]) -> dict[str, Any]:
    """The argument of suites/workloads/experiments/possible.py; its cases are in the order of `questions`."""
    groups: list[dict[str, Any]] = []
    for workload, case, settings in questions:
        axes = _axes(case)
        group = {"workload": workload, "settings": dict(settings), "axes": list(axes)}
        if not groups or any(groups[-1][name] != value for name, value in group.items()):
            groups.append({**group, "cases": []})
        groups[-1]["cases"].append(list(axes.values()))
    return {"framework": framework_of(ready.environment), "accelerator": accelerator, "groups": groups}


def _ask(
    ready: Ready,
    checkout: Checkout,
    accelerator: Accelerator,
    gpus: Sequence[Gpu],
    questions: Mapping[str, Question],
    say: Say,
) -> dict[str, str]:
    """The answers by key; none where the environment fails."""
    answers: dict[str, str] = {}
    for keys in _that_fit(questions):
        asked = argument(ready, accelerator, [questions[key] for key in keys])
        transcript, why_not = ask(ready.starter, ready.built, checkout, WORKLOAD, asked, _TIMEOUT_S, tuple(gpus))
        if why_not:
            say(f"{ready.environment.name}: it cannot say which cases it can run, so all are tried: {why_not}")
            return {}
        answers |= {key: transcript.answers[index] for index, key in enumerate(keys) if index in transcript.answers}
    return answers


def _that_fit(questions: Mapping[str, Question]) -> Iterator[list[str]]:
    """The questions' keys in batches that fit an argument; equal workload, axes and settings are side by side."""
    ordered = sorted(questions, key=lambda key: (_alike(questions[key]), key))
    batch: list[str] = []
    size = 0
    for alike, keys in itertools.groupby(ordered, key=lambda key: _alike(questions[key])):
        head = len(alike)
        for key in keys:
            more = len(toml.canonical_json(list(_axes(questions[key][1]).values()))) + 1
            if batch and size + head + more > _CASES_BYTES:
                yield batch
                batch, size, head = [], 0, len(alike)
            batch.append(key)
            size, head = size + head + more, 0
    if batch:
        yield batch


def _alike(question: Question) -> str:
    workload, case, settings = question
    return toml.canonical_json([workload, list(_axes(case)), dict(settings)])


def _key(question: Question) -> str:
    """The key under which the answer to a question is kept."""
    workload, case, settings = question
    return toml.digest([workload, _axes(case), dict(settings)])


def _axes(case: Case) -> dict[str, Any]:
    """The axes that a workload sees: a suite's name changes no answer."""
    return {name: value for name, value in case.values.items() if name != SUITE}


def _file(ready: Ready, checkout: Checkout, cache: Path, machine: str, accelerator: Accelerator) -> Path:
    workloads = provenance.workload_record(checkout.workloads, WORKLOAD).content()
    beside = None if ready.built.details.get("image") else _programs()
    of = [ready.built.realised_id, machine, workloads, accelerator, beside]
    return cache / "possible" / f"{ready.environment.name}-{toml.digest(of)}.json"


def _programs() -> list[Any]:
    """A value that changes when a program, a compiler say, is installed or removed. Only images cannot use these."""
    found: list[Any] = [os.environ.get("CXX")]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        with contextlib.suppress(OSError):
            found.append([folder, Path(folder).stat().st_mtime_ns])
    return found


def _kept(file: Path) -> dict[str, str]:
    """The answers in a file; none where it is not there or damaged."""
    with contextlib.suppress(UserError):
        kept = files.read_json(file)
        if all(isinstance(reason, str) for reason in kept.values()):
            return kept
    return {}
