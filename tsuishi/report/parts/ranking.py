"""Candidates for the top of the page, and the words for how sure they are."""

from enum import IntEnum
from typing import NamedTuple

from tsuishi.base.language import t
from tsuishi.report.parts.blocks import Highlight


class Rank(IntEnum):
    """What stands first at the top of the page."""

    ANSWER = 0
    CERTAIN = 1
    SEEN = 2


class Candidate(NamedTuple):
    """A highlight with its rank. surprise: among equals the largest comes first; 0 is no surprise."""

    rank: Rank
    surprise: float
    item: Highlight


def of_the_family(trials: int) -> str:
    """The certainty of a statement that the report's family decided."""
    return t("Certain (of this report's family; {trials} trials)", trials=trials)


def compared_alone(trials: int) -> str:
    """The certainty of a statement that follows from intervals of 99.9 % of its own."""
    return t("Certain (each comparison at 99.9 %; {trials} trials)", trials=trials)


def seen() -> str:
    return t("Seen, not tested")


def marked_as_simulated(sure: str, simulated: bool) -> str:
    """A certainty, with a word for devices that were not distinct real GPUs."""
    return t("{sure}; simulated devices", sure=sure) if simulated else sure
