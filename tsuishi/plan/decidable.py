"""What a plan can decide of the claims of sources, and what each other claim would take. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tsuishi.plan.candidates import Possible, candidates
from tsuishi.specs.case import DEVICES
from tsuishi.specs.claims import FRAMEWORK, Claim
from tsuishi.specs.questions import LOOKS, MatrixCell
from tsuishi.specs.source import Source

# Why a claim can be judged by a plan, or what it takes.
Takes = Literal["planned", "time", "profile", "environment", "data", "gpus", "hardware", "nothing"]


class GpusHere(NamedTuple):
    """The GPUs of a machine: their number, the memory of the smallest, and whether all reach each other's memory."""

    gpus: int = 0
    memory_gib: float | None = None
    peer_to_peer: bool | None = None


@dataclass(frozen=True)
class Situation:
    """A plan, and the machine it is for.

    possible: the cases of the plan's profile, by environment; `larger`: those of the profile `full`. planned: how many
    trials of each cell are planned. `accuracy`: whether trainings are whole and on real data.
    """

    hardware: GpusHere
    possible: Sequence[Possible]
    larger: Sequence[Possible]
    planned: Mapping[MatrixCell, int]
    accuracy: bool = False


def what_claims_take(sources: Iterable[Source], here: Situation) -> dict[tuple[str, str], Takes]:
    """What each claim takes here, by source and claim."""
    sources = tuple(sources)
    askable = _cells_of_claims(sources, here.possible, here.hardware.gpus, here.accuracy)
    larger = _cells_of_claims(sources, here.larger, here.hardware.gpus, accuracy=True)
    takes: dict[tuple[str, str], Takes] = {}
    for source in sources:
        for claim in source.claims:
            key = source.name, claim.id
            takes[key] = _missing(claim, here) or (
                "planned"
                if any(_is_planned(cells, here.planned) for cells in askable.get(key, ()))
                else "time"
                if key in askable
                else "data"
                if "accuracy" in claim.about
                else "profile"
                if key in larger
                else "environment"
            )
    return takes


def gpus_of(claim: Claim) -> int:
    """The GPUs that a claim takes: 0 for a claim that any machine can judge."""
    most = max((int(devices) for devices in claim.named(DEVICES)), default=1)
    return most if "gpu" in claim.about or most > 1 else 0


def _missing(claim: Claim, here: Situation) -> Takes | None:
    if claim.untestable:
        return "nothing"
    if here.hardware.gpus < gpus_of(claim):
        return "gpus"
    if claim.scope and not claim.scope.includes(here.hardware.memory_gib, here.hardware.peer_to_peer):
        return "hardware"
    there = {each.environment.framework for each in here.possible}
    return None if claim.named(FRAMEWORK) <= there else "environment"


def _cells_of_claims(
    sources: Sequence[Source], possible: Sequence[Possible], gpus: int, accuracy: bool
) -> dict[tuple[str, str], list[tuple[MatrixCell, ...]]]:
    """The cells of each claim that can be asked, once for every environment (or pair) that can judge it."""
    cells: dict[tuple[str, str], list[tuple[MatrixCell, ...]]] = {}
    for asked in candidates({}, sources, possible, gpus, accuracy):
        cells.setdefault((asked.source, asked.claim), []).append(asked.cells)
    return cells


def _is_planned(cells: Iterable[MatrixCell], planned: Mapping[MatrixCell, int]) -> bool:
    return all(planned.get(cell, 0) >= LOOKS[0] for cell in cells)
