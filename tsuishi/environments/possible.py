"""Which cases an environment can run on this machine, asked of all at once instead of starting each to learn it."""

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tsuishi.base import files, toml
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say
from tsuishi.environments import provenance
from tsuishi.environments.entry import Ready, framework_of
from tsuishi.environments.probe import ask
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.case import Case
from tsuishi.specs.environment import Accelerator

WORKLOAD = "possible"
# A framework is imported, which takes minutes on a cold disk; some small things are tried, each for 20 s at most.
_TIMEOUT_S = 600.0
# Linux takes 128 KiB as one argument of a program (MAX_ARG_STRLEN); what is around the cases needs some of it.
_CASES_BYTES = 100_000

Question = tuple[str, Case, Mapping[str, Any]]


def unsupported(
    ready: Ready,
    rooms: Rooms,
    cache: Path,
    machine: str,
    accelerator: Accelerator,
    gpus: Sequence[Gpu],
    questions: Sequence[Question],
    say: Say,
) -> dict[str, str]:
    """Why a case cannot be run, by case id, for those that cannot. A question is a workload, a case and its settings.

    `machine` is the id of the machine's record: answers are kept in `cache` for this machine, environment, accelerator
    and these files of the workloads, and only questions that have none are asked. An environment that cannot answer
    gives no reasons, and `say` says why.
    """
    file = _file(ready, rooms, cache, machine, accelerator)
    answers = _kept(file)
    keys = [_key(question) for question in questions]
    new = {key: question for key, question in zip(keys, questions, strict=True) if key not in answers}
    if new:
        heard = _ask(ready, rooms, accelerator, gpus, new, say)
        answers |= heard
        if heard:
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(file, answers)
    found = zip(keys, questions, strict=True)
    return {case.id: reason for key, (_, case, _) in found if (reason := answers.get(key))}


def argument(ready: Ready, accelerator: str, questions: Iterable[Question]) -> dict[str, Any]:
    """What suites/workloads/experiments/possible.py is asked; its cases are in the order of `questions`."""
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
    rooms: Rooms,
    accelerator: Accelerator,
    gpus: Sequence[Gpu],
    questions: Mapping[str, Question],
    say: Say,
) -> dict[str, str]:
    """Answers by key; none where the environment comes to no good end."""
    answers: dict[str, str] = {}
    for keys in _that_fit(questions):
        asked = argument(ready, accelerator, [questions[key] for key in keys])
        transcript, why_not = ask(ready.starter, ready.built, rooms, WORKLOAD, asked, _TIMEOUT_S, tuple(gpus))
        if why_not:
            say(f"{ready.environment.name}: it cannot say which cases it can run, so all are tried: {why_not}")
            return {}
        answers |= {key: transcript.answers[index] for index, key in enumerate(keys) if index in transcript.answers}
    return answers


def _that_fit(questions: Mapping[str, Question]) -> Iterator[list[str]]:
    """Keys of the questions, those with the same workload, axes and settings together, as many as fit an argument."""
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
    """What a question is kept under."""
    workload, case, settings = question
    return toml.digest([workload, _axes(case), dict(settings)])


def _axes(case: Case) -> dict[str, Any]:
    """The axes that a workload sees: a suite's name changes no answer."""
    return {name: value for name, value in case.axes.items() if name != "suite"}


def _file(ready: Ready, rooms: Rooms, cache: Path, machine: str, accelerator: Accelerator) -> Path:
    workloads = provenance.workload_record(rooms.workloads, WORKLOAD)
    beside = None if ready.built.details.get("image") else _programs()
    of = [ready.built.realised_id, machine, workloads, accelerator, beside]
    return cache / "possible" / f"{ready.environment.name}-{toml.digest(of)}.json"


def _programs() -> list[Any]:
    """What changes when a program of this machine, a compiler say, comes or goes: all but images may use it."""
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
