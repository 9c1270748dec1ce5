"""Asks an environment which cases it can run on this machine: one start for all cases, instead of a trial for each."""

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
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.case import SUITE, Case
from tsuishi.specs.environment import Accelerator

WORKLOAD = "possible"
# The import of a framework takes minutes from a cold disk. Then small programs are tried, each for 20 s at most.
_TIMEOUT_S = 600.0
# Linux allows 128 KiB for an argument of a program (MAX_ARG_STRLEN); the text around the cases needs a part.
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
    questions without an answer are asked. `machine` is the id of the machine's record. If the environment does not
    answer, the result has no reasons for new questions. `say` gets a line before it is asked, and the failure.
    """
    file = _file(ready, checkout, cache, machine, accelerator)
    answers = _kept(file)
    keys = [_key(question) for question in questions]
    new = {key: question for key, question in zip(keys, questions, strict=True) if key not in answers}
    if new:
        say(f"asking {ready.environment.name} which cases it can run")
    if new and (new_answers := _ask(ready, checkout, accelerator, gpus, new, say)):
        answers |= new_answers
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(file, answers)
    keyed = zip(keys, questions, strict=True)
    return {case.id: reason for key, (_, case, _) in keyed if (reason := answers.get(key))}


def argument(ready: Ready, accelerator: str, questions: Iterable[Question]) -> dict[str, Any]:
    """The argument for suites/workloads/experiments/possible.py; its cases are in the order of `questions`."""
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
    """The answers by key; empty where the environment fails."""
    # Only a question needs the typed events of a workload, which are slow to import.
    from tsuishi.environments.probe import ask

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
    """The keys in batches that fit an argument. Questions with equal workload, axes and settings are side by side."""
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
    """The axes for the workload. The name of the suite is left out, because it changes no answer."""
    return {name: value for name, value in case.for_workload.items() if name != SUITE}


def _file(ready: Ready, checkout: Checkout, cache: Path, machine: str, accelerator: Accelerator) -> Path:
    workloads = provenance.workload_record(checkout.workloads, WORKLOAD).content()
    programs = None if ready.built.details.get("image") else _programs()  # an image has its own
    of = [ready.built.realised_id, machine, workloads, accelerator, programs]
    return cache / "possible" / f"{ready.environment.name}-{toml.digest(of)}.json"


def _programs() -> list[Any]:
    """A value that changes when a program (a compiler, say) is installed on this machine or removed."""
    state: list[Any] = [os.environ.get("CXX")]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        with contextlib.suppress(OSError):
            state.append([folder, Path(folder).stat().st_mtime_ns])
    return state


def _kept(file: Path) -> dict[str, str]:
    """The answers in a file; empty where the file is missing or damaged."""
    with contextlib.suppress(UserError):
        kept = files.read_json(file)
        if all(isinstance(reason, str) for reason in kept.values()):
            return kept
    return {}
