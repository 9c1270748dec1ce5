"""Candidates for the top of the page, and the words for how sure they are."""

import math
from enum import IntEnum
from typing import NamedTuple

from tsuishi.base.language import t
from tsuishi.estimates.unseen import rarest_shown
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
    return t("Certain: at most 5 of 100 reports have an error ({trials} trials)", trials=trials)


def compared_alone(trials: int) -> str:
    """The certainty of a statement that follows from an interval of its own."""
    return t("Not certain: 95 % for itself alone ({trials} trials)", trials=trials)


def alike_by(trials: int) -> str:
    """Of two sides that are alike: what so many trials of each may not have shown."""
    return t(
        "a kind of trial that is rarer than {percent} % may be missing in {trials} trials",
        percent=math.ceil(100 * rarest_shown(trials)), trials=trials,
    )  # fmt: skip


def seen() -> str:
    return t("Seen, not tested")


def marked_as_simulated(sure: str, simulated: bool) -> str:
    """A certainty, with a word for devices that were not distinct real GPUs."""
    return t("{sure}; simulated devices", sure=sure) if simulated else sure
