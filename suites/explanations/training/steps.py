"""The time of a literal epoch beside the computing that the steady protocol times.

Three cases of the same network and batch divide a step: a literal epoch over its steps, a steady step whose batch comes
from the host, and a steady step on a resident batch. Nothing is said where one of them was not measured.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tsuishi.base.language import mark, prose, t
from tsuishi.report.parts.explanation import Paragraph
from tsuishi.report.parts.two_sides import Timed, compared, is_open
from tsuishi.report.parts.wording import amount, capital, case_text

# Of later epochs, and of steady steps; a smaller last batch counts with its own number of images.
RATE = "throughput_images_per_s"
_BATCHES, _TUNING = "batches", "convolution_tuning"
# The values of the axes that tell the cases of a step apart. Where a suite has no such axis, its only value is usual.
_USUAL = {"loader": "tensors", _BATCHES: "resident", _TUNING: "tuned"}
_LITERAL = mark("a literal step")
_FED = mark("a step fed from the host")
_RESIDENT = mark("a step on a resident batch")
# Other ways to feed a step, and cuDNN without its search, as literal training may leave it.
_BESIDE = (
    ({_BATCHES: "host_pinned"}, mark("a step fed from pinned memory"), _FED),
    ({_BATCHES: "host_ahead"}, mark("a step whose batch is made ahead"), _FED),
    ({_TUNING: "untuned"}, mark("a step of untuned convolutions"), _RESIDENT),
)


# _Axes with their values.
_Axes = tuple[tuple[str, Any], ...]


def _kind(protocol: str = "steady", **axes: Any) -> _Axes:
    """The axes that distinguish the cases of a step."""
    return (("protocol", protocol), *((axis, axes.get(axis, usual)) for axis, usual in _USUAL.items()))


def _parts() -> dict[str, _Axes]:
    """The axes that distinguish the cases of a step, by their names."""
    beside = {name: _kind(**axes) for axes, name, _ in _BESIDE}
    return {_LITERAL: _kind("literal"), _FED: _kind(**{_BATCHES: "host"}), _RESIDENT: _kind(), **beside}


def division(measured: Iterable[tuple[Mapping[str, Any], Timed]]) -> Iterator[Paragraph]:
    """A paragraph for every network and batch of which all three steps were measured, as cases with their rates."""
    # By a case's axes without the protocol and the axes of _USUAL, then by these.
    rates: dict[_Axes, dict[_Axes, Timed]] = {}
    for of_suite, rate in measured:
        of_case = {axis: value for axis, value in of_suite.items() if axis != "suite"}
        same = tuple((axis, value) for axis, value in of_case.items() if axis not in ("protocol", *_USUAL))
        rates.setdefault(same, {})[_kind(**of_case)] = rate
    named = {
        same: {name: kinds[kind] for name, kind in _parts().items() if kind in kinds} for same, kinds in rates.items()
    }
    whole = {same: parts for same, parts in named.items() if {_LITERAL, _FED, _RESIDENT} <= parts.keys()}
    told = {axis for same in whole for axis, value in same if any(dict(other).get(axis) != value for other in whole)}
    for same, parts in whole.items():
        axes = dict(same)
        case = case_text(axes, {"model", "batch_size", *told})
        yield Paragraph(t("From literal to steady: {case}", case=case), _text(axes["batch_size"], parts))


def _text(images: int, parts: Mapping[str, Timed]) -> str:
    """images: of a step. parts: the rates by name; literal, fed and resident are there."""
    literal, fed, resident = (images / parts[name].value for name in (_LITERAL, _FED, _RESIDENT))
    division = t(
        "A step takes {literal} in later epochs of literal training, {fed} fed batch by batch from the host, and "
        "{resident} on a resident batch: of the literal step {computing} is computing, {feeding} feeding and {rest} "
        "the rest of the user's loop.",
        literal=amount(literal, "s"),
        fed=amount(fed, "s"),
        resident=amount(resident, "s"),
        computing=_share(resident, literal),
        feeding=_share(fed - resident, literal, of=(parts[_RESIDENT], parts[_FED])),
        rest=_share(literal - fed, literal, of=(parts[_FED], parts[_LITERAL])),
    )
    pairs = [(_LITERAL, _FED), (_FED, _RESIDENT), *((name, other) for _, name, other in _BESIDE if name in parts)]
    # The rates are compared upside down: of the same images, the lower rate takes longer.
    texts = (compared(parts[other], parts[name], t(name), t(other), same=1.0) for name, other in pairs)
    return prose([division, *(t("{comparison}.", comparison=capital(text)) for text in texts)])


def _share(part_s: float, literal_s: float, of: tuple[Timed, Timed] | None = None) -> str:
    """The share of a literal step in words. of: the two rates behind a difference, which may be open."""
    text = f"{100 * part_s / literal_s:.0f} %"
    return t("{share} (open)", share=text) if of and is_open(*of) else text
