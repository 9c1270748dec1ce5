"""What a plan can decide of the claims of sources, and what each other claim would take. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tsuishi.machine.gpus import Nvml
from tsuishi.specs.case import DEVICES, SUITE
from tsuishi.specs.claims import Claim, all_reach
from tsuishi.specs.questions import MatrixCell, PlannedQuestion
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


def gpus_here(nvml: Nvml) -> GpusHere:
    """The GPUs that trials get."""
    memory = [gpu["memory_mib"] / 1024 for gpu in nvml.describe() if gpu["memory_mib"]]
    links = {(*link["gpus"],): link["peer_to_peer"] for link in nvml.links()}
    indices = [gpu.index for gpu in nvml.gpus]
    reach = {count: all_reach(links, indices[:count]) for count in range(len(indices) + 1)}
    return GpusHere(len(nvml), min(memory, default=None), reach)


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
    asked, larger = _claims_among(here.asked), _claims_among(here.larger)
    takes: dict[tuple[str, str], Takes] = {}
    for source in sources:
        for claim in source.claims:
            key = source.name, claim.id
            needs = needs_of_hardware(claim, here.hardware)
            takes[key] = needs or _needs_of_plan(claim, here, asked.get(key, []), key in larger)
    return takes


def _needs_of_plan(claim: Claim, here: Situation, asked: Sequence[PlannedQuestion], in_larger: bool) -> Takes:
    """asked: the claim as a question, once for each environment (or pair) that would judge it."""
    if not claim.named(FRAMEWORK) <= here.frameworks:
        return "environment"
    if asked:
        enough = any(all(here.planned.get(cell, 0) >= each.first_look for cell in each.cells) for each in asked)
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


def needs_of_hardware(claim: Claim, here: GpusHere) -> Takes | None:
    """What a claim takes that no plan on these GPUs has; None where they can judge it."""
    if claim.untestable:
        return "nothing"
    if here.gpus < gpus_of(claim):
        return "gpus"
    if claim.scope and not claim.scope.includes(here.memory_gib, here.reach.get(gpus_of(claim))):
        return "hardware"
    return None


def _claims_among(questions: Iterable[PlannedQuestion]) -> dict[tuple[str, str], list[PlannedQuestion]]:
    """The questions about each claim, by source and claim."""
    claims: dict[tuple[str, str], list[PlannedQuestion]] = {}
    for question in questions:
        if question.claim:
            claims.setdefault((question.source, question.claim), []).append(question)
    return claims
