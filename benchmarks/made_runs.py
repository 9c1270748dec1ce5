"""Run folders with made-up trials, as the runner writes them (tests/synthetic_run.py)."""

import itertools
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.known_truths import Random
from tests.synthetic_run import SyntheticRun, training_case
from tsuishi.results.directory import RunDirectory

TORCH, TENSORFLOW = "torch2-cpu", "tf2-cpu"
FRAMEWORKS = {
    TORCH: "torch 2.13.0",
    TENSORFLOW: "tensorflow 2.21.0",
    "torch1.1-cpu": "torch 1.1.0",
    "tf1.13-cpu": "tensorflow 1.13.1",
}
SUITE = "multi_gpu_scaling"
STEP_S = 0.1
# The steps of a block, and the blocks of a trial whose mean is given.
_STEPS, _BLOCKS = 10, (0.98, 1.0, 1.02)
# A folder in memory, where the machine has such a folder: the files of a run are all written to the disk, which takes
# most of the time, and nobody keeps these.
_MEMORY = Path("/dev/shm")  # noqa: S108


class Trial(NamedTuple):
    """A trial: the seconds per step of its blocks. `fields`: of its trial.json, where they are not usual."""

    steps_s: Sequence[float]
    fields: Mapping[str, Any] = {}


# By environment and batch size.
Cells = Mapping[tuple[str, int], Sequence[Trial]]


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as name:
        yield Path(name)


def trial(step_s: float, **fields: Any) -> Trial:
    """A trial with this mean time of a step."""
    return Trial([step_s * factor for factor in _BLOCKS], fields)


def write(path: Path, cells: Cells, sessions: Sequence[str] = ()) -> RunDirectory:
    """Write a run of these trials, whose main questions compare each pair of its environments.

    sessions: environments that are measured each in a session (a day) of its own; without any, all are measured in one.
    """
    environments = list(dict.fromkeys(environment for environment, _ in cells))
    days = {environment: 1 + (sessions.index(environment) if sessions else 0) for environment in environments}
    run = SyntheticRun(
        path,
        frameworks={environment: FRAMEWORKS[environment] for environment in environments},
        sessions=[{"began_at": _time(day, 0)} for day in sorted(set(days.values()))],
        questions=[*_questions(environments, sorted({batch_size for _, batch_size in cells}))],
        left_out=[],
    )
    for (environment, batch_size), trials in cells.items():
        for repetition, (steps_s, fields) in enumerate(trials, start=1):
            samples = [
                ("measure", index, _STEPS, _STEPS * batch_size, _STEPS * step_s) for index, step_s in enumerate(steps_s)
            ]
            begun = {"started_at": _time(days[environment], repetition)}
            run.add(training_case(batch_size), environment, samples, repetition, **{**begun, **fields})
    return run.finish()


def _time(day: int, minute: int) -> str:
    return f"2026-11-{day:02}T{8 + minute // 60:02}:{minute % 60:02}:00Z"


def _questions(environments: Sequence[str], batch_sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    for pair in itertools.combinations(environments, 2):
        of, to = ([[training_case(batch_size).id, side] for batch_size in batch_sizes] for side in pair)
        named = {"id": f"{SUITE}/made-up/{'/'.join(pair)}", "kind": "environments", "title": {"en": "made up"}}
        asked = {"suite": SUITE, "worth": 1.0, "quantity": "step_s", "environments": pair, "of": of, "to": to}
        yield {**named, **asked, "main": True}


def drawn_cells(
    random: Random,
    scatter: np.ndarray,
    trials: int,
    factors: Mapping[str, float] | None = None,
    environments: Sequence[str] = (TORCH, TENSORFLOW),
    batch_sizes: Sequence[int] = (),
) -> Cells:
    """Trials that scatter log-normally. scatter: of each case; factors: of environments that are not as the others."""
    sizes = batch_sizes or range(1, len(scatter) + 1)
    cells = {}
    for environment in environments:
        for batch_size, of_case in zip(
            sizes, random.normal(size=(len(scatter), trials)) * scatter[:, None], strict=True
        ):
            true_s = STEP_S * (factors or {}).get(environment, 1.0)
            cells[environment, batch_size] = [trial(true_s * math.exp(noise)) for noise in of_case.tolist()]
    return cells
