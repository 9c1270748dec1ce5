"""What a plan can decide of the claims of sources, and what each other claim would take. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tsuishi.specs.case import DEVICES, SUITE
from tsuishi.specs.claims import Claim
from tsuishi.specs.questions import LOOKS, MatrixCell, PlannedQuestion
from tsuishi.specs.selections import FRAMEWORK
from tsuishi.specs.source import Source

# Why a claim can be judged by a plan, or what it takes.
Takes = Literal["planned", "time", "profile", "suite", "environment", "data", "gpus", "hardware", "nothing"]


class GpusHere(NamedTuple):
    """The GPUs of a machine: their number, and the memory of the smallest.

    reach: by a number of GPUs, whether the first so many, which a trial gets, reach each other's memory.
    """

    gpus: int = 0
    memory_gib: float | None = None
    reach: Mapping[int, bool | None] = {}


@dataclass(frozen=True)
class Situation:
    """A plan, and the machine it is for.

    frameworks: of its environments. suites: of the plan. asked: every question that its profile can ask; `larger`:
    those of the profile `full` with real data. planned: how many trials of each cell are planned.
    """

    hardware: GpusHere
    frameworks: frozenset[str]
    suites: frozenset[str | int]
    asked: Sequence[PlannedQuestion]
    larger: Sequence[PlannedQuestion]
    planned: Mapping[MatrixCell, int]


def what_claims_take(sources: Iterable[Source], here: Situation) -> dict[tuple[str, str], Takes]:
    """What each claim takes here, by source and claim."""
    asked, larger = _cells_of_claims(here.asked), _cells_of_claims(here.larger)
    takes: dict[tuple[str, str], Takes] = {}
    for source in sources:
        for claim in source.claims:
            key = source.name, claim.id
            takes[key] = _needs_of_machine(claim, here) or _needs_of_plan(claim, here, asked.get(key), key in larger)
    return takes


def _needs_of_plan(
    claim: Claim, here: Situation, asked: Sequence[Sequence[MatrixCell]] | None, in_larger: bool
) -> Takes:
    """asked: the cells that each environment (or pair) would judge the claim on; None where none can judge it."""
    if asked:
        enough = any(all(here.planned.get(cell, 0) >= LOOKS[0] for cell in cells) for cells in asked)
        return "planned" if enough else "time"
    if not claim.named(SUITE) <= here.suites:
        return "suite"
    if "accuracy" in claim.about:
        return "data"
    return "profile" if in_larger else "environment"


def gpus_of(claim: Claim) -> int:
    """The GPUs that a claim takes: 0 for a claim that any machine can judge."""
    most = max((int(devices) for devices in claim.named(DEVICES)), default=1)
    return most if "gpu" in claim.about or most > 1 else 0


def _needs_of_machine(claim: Claim, here: Situation) -> Takes | None:
    if claim.untestable:
        return "nothing"
    if here.hardware.gpus < gpus_of(claim):
        return "gpus"
    if claim.scope and not claim.scope.includes(here.hardware.memory_gib, here.hardware.reach.get(gpus_of(claim))):
        return "hardware"
    return None if claim.named(FRAMEWORK) <= here.frameworks else "environment"


def _cells_of_claims(questions: Iterable[PlannedQuestion]) -> dict[tuple[str, str], list[tuple[MatrixCell, ...]]]:
    """The cells of each claim that is asked, once for every environment (or pair) that can judge it."""
    cells: dict[tuple[str, str], list[tuple[MatrixCell, ...]]] = {}
    for question in questions:
        if question.claim:
            cells.setdefault((question.source, question.claim), []).append(question.cells)
    return cells
