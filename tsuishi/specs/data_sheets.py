"""The limits of a card by its maker's data sheet, from images/compatibility.toml."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from tsuishi.base import toml
from tsuishi.base.printable import alphanumerics

_MAKER = "NVIDIA "
# Words of a card's name that say how it is mounted, and its memory.
_FORM = re.compile(r"SXM\d?|PCIe|\d+GB|HBM(?:\d\w?)?", re.IGNORECASE)

Above0 = Annotated[float, Field(gt=0)]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp64"]


class DataSheet(toml.Spec):
    """A card as its maker describes it.

    `names`: those that NVML gives it, without "NVIDIA ". `peak_tflops`: dense, in 1e12 FLOP/s by precision, products of
    fp16 and bf16 added up in fp32; a precision that is missing has no arithmetic of its own. `memory_gb_per_s`: in
    1e9 B/s.
    """

    names: tuple[str, ...] = Field(min_length=1)
    power_limit_w: Above0
    multiprocessors: Annotated[int, Field(gt=0)]
    boost_mhz: Above0
    peak_tflops: dict[Precision, Above0]
    memory_gb_per_s: Above0
    source: str


def sheets_of_printed(hardware: str, sheets: Iterable[DataSheet]) -> list[DataSheet]:
    """The data sheets of the card that a text names first, with maker, family, form and memory or without.

    "RTX 3090, 350 W"; "V100" may be each V100, "V100 PCIe" those with this form.
    """
    name, form = _parts(hardware.partition(",")[0])
    name = name.removeprefix(alphanumerics(_MAKER))
    return [sheet for sheet in sheets if any(name in _spellings(of) and _fits(form, of) for of in sheet.names)]


def fastest_of(sheets: Iterable[DataSheet], precision: str) -> tuple[DataSheet, float] | None:
    """The card with the highest peak of products of this precision, and this peak in FLOP/s; None where none has one.

    Of cards of one name the fastest counts, where a text does not say which it is.
    """
    peaks = [(sheet, 1e12 * of) for sheet in sheets for name, of in sheet.peak_tflops.items() if name == precision]
    return max(peaks, key=lambda each: (each[1], each[0].memory_gb_per_s), default=None)


def _parts(card: str) -> tuple[str, set[str]]:
    """The letters and digits of a name, and apart from them its words of form and memory: PCIE, SXM2, 40GB."""
    words = re.split(r"[\W_]+", re.sub(r"(?i)\bpci-e\b", "PCIe", re.sub(r"(?i)(\d) ?GB\b", r"\1GB", card)))
    form = {word.upper() for word in words if _FORM.fullmatch(word)}
    return alphanumerics("".join(word for word in words if word.upper() not in form)), form


def _fits(form: set[str], card: str) -> bool:
    """Whether a card may have this form and memory: "SXM" is any SXM, and of a card without words any memory."""
    of_card = _parts(card)[1]
    has_memory = any(word.endswith("GB") for word in of_card)
    return all(
        word in of_card
        or (word in ("SXM", "HBM") and any(each.startswith(word) for each in of_card))
        or (word.endswith("GB") and not has_memory)
        for word in form
    )


@cache  # a table may name thousands of cards, each to be held against all sheets
def _spellings(card: str) -> frozenset[str]:
    """The name without form and memory, and its ends from a later word on that have a number."""
    words = card.split()
    ends = (_parts(" ".join(words[first:]))[0] for first in range(len(words)))
    return frozenset(end for end in ends if re.search(r"\d", end))
