"""A two-level factorial design between two ends, and the bars of its waterfall. Pure functions.

Up to four factors have all corners. Five to eight have sixteen: a fraction of resolution IV, in which each factor from
the fifth on has their value where an odd number of three others do (Box, Hunter, Technometrics 3 (1961) 311). A main
effect is then mixed with interactions of three factors, and a pair with other pairs, which share a bar. Both ends
belong to every such design.

The logarithm of mine over printed is the sum of the bar of the device (computed from limits, where they are known), a
bar for each factor (its main effect: the mean over all corners of mine minus theirs), a bar of interactions (the
measured difference of the ends minus the main effects; of two factors it is 0, as each main effect has its half), and
the remainder between their end, as it is measured here, and the printed number. No bar is left out for being small.
Beside the sum stands, for each pair of factors, by how much the effect of the first differs between mine and theirs of
the second.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tsuishi.base.language import t
from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import NO_DIFFERENCE, Contrast, Region, Term
from tsuishi.estimates.variances import Pool

# The factors whose corners are all measured, and the most that are separated: more have no fraction of sixteen corners.
FULL = 4
MOST = 8
# Settings that change together, as one factor.
Members = tuple[str, ...]
# Whether each factor has their value, in the order of the factors.
Corner = tuple[bool, ...]
# A factor has no effect where it is certain to change the number by less than this.
NO_EFFECT = Region(-math.log(1.03), math.log(1.03))
# The error of all bars of an explanation together; each has an equal share (Bonferroni): of a bar it cannot be false
# that it differs, and false that it has no effect. Holm's way would not do: bars without effect would leave their
# shares to the others, and 11 in place of 5 of 100 explanations of nothing blamed something.
ERROR = 0.05
Finding = Literal["certain", "no effect", "undecided", "computed"]


@dataclass(frozen=True)
class Factor:
    """A setting that differs: its name, and its values at both ends."""

    name: str
    mine: str
    theirs: str


@dataclass(frozen=True)
class Bar:
    """A factor of mine over printed, as a logarithm, with its error; `level`: of the interval that decided.

    A computed bar has neither error nor interval.

    is_part: of the sum; else it says how a pair of factors works together.
    """

    name: str
    words: str
    size: Contrast
    finding: Finding
    level: float
    is_part: bool = True


def corners(factors: int, *, crossed: bool = False) -> list[Corner]:
    """Corners of up to MOST factors, mine first and theirs last. crossed: with both values of one more, the last."""
    made = list(itertools.combinations(range(FULL), 3))[: max(0, factors - FULL)]
    free = itertools.product((False, True), repeat=min(factors, FULL))
    measured = [(*corner, *(sum(corner[of] for of in three) % 2 == 1 for three in made)) for corner in free]
    return [(*corner, last) for corner in measured for last in (False, True)] if crossed else measured


def groupings(groups: Sequence[Members], settings: int) -> Iterator[list[Members]]:
    """The groups; then with some of them as one, as few as possible, whose corners belong to the same design.

    settings: how many groups are not the environment, which is crossed with them. The corners of a fraction are not
    those of fewer factors, so more than four settings have no other grouping.
    """
    yield [*groups]
    for size in range(2, len(groups) + 1) if settings <= FULL else ():
        for some in itertools.combinations(reversed(groups), size):
            together = tuple(itertools.chain(*reversed(some)))
            yield [*(group for group in groups if group not in some), together]


def bars(
    factors: Sequence[Factor],
    terms: Mapping[Corner, Term],
    printed: float | Contrast,
    device: Bar | None = None,
    *,
    apart: bool = False,
    share: float = 1.0,
) -> list[Bar]:
    """The bars of a waterfall: the device, main effects, interactions (of three to seven factors), a remainder; pairs.

    terms: of the logarithm of the number, by corner, mine first and theirs last. printed: the number, above 0; or of
    two runs the logarithm of the second over the first: the remainder is this ratio over the ratio of both ends here.
    apart: the printed number may have the values of their end, and is not known to: no factor is a part of the sum, and
    the remainder is that of my end. share: of ERROR, which this look may spend.
    """
    every, count = list(terms), len(factors)
    signs = [{corner: -1.0 if corner[index] else 1.0 for corner in every} for index in range(count)]
    effects = [{corner: sign * 2 / len(every) for corner, sign in of.items()} for of in signs]
    named = [(each.name, t("{mine} in place of {theirs}", mine=each.mine, theirs=each.theirs)) for each in factors]
    sizes = [_sum(weights, terms) for weights in effects]
    if count > 2:
        rest = {corner: -math.fsum(weights[corner] for weights in effects) for corner in every}
        rest[every[0]] += 1.0
        rest[every[-1]] -= 1.0
        if any(abs(weight) > 1e-12 for weight in rest.values()):  # eight factors take all that sixteen corners say
            named.append((t("interactions"), t("the difference of the ends without the bars above")))
            sizes.append(_sum(rest, terms))
    what, left = _remainder(terms[every[0]], terms[every[0 if apart else -1]], printed, device)
    named.append((t("remainder"), t("usual settings here, over the printed number") if apart else what))
    sizes.append(left)
    parts = range(len(sizes) - 1 if apart else 0, len(sizes))
    mixed: dict[tuple[float, ...], list[str]] = {}
    for first, second in itertools.combinations(range(count), 2):
        both = tuple(signs[first][corner] * signs[second][corner] for corner in every)
        mixed.setdefault(both, []).append(f"{factors[first].name} x {factors[second].name}")
    for both, pairs in mixed.items():
        depends = t("how far the effect of one depends on the other")
        named.append((" + ".join(pairs), t("their sum: they are not separated") if len(pairs) > 1 else depends))
        sizes.append(_sum({corner: 4 * sign / len(every) for corner, sign in zip(every, both, strict=True)}, terms))
    level = ERROR * share / len(sizes)
    tested = [
        Bar(*words, size, _finding(size, level), level, number in parts)
        for number, (words, size) in enumerate(zip(named, sizes, strict=True))
    ]
    return [device, *tested] if device else tested


def are_decided(found: Sequence[Bar], factors: Sequence[Factor]) -> bool:
    """Whether the bars of all factors and of the sum are decided, as far as trials decide; pairs may be open."""
    named = {factor.name for factor in factors}
    tested = (bar for bar in found if bar.size.error is not None and (bar.is_part or bar.name in named))
    return all(bar.finding != "undecided" for bar in tested)


def _remainder(mine: Term, theirs: Term, printed: float | Contrast, device: Bar | None) -> tuple[str, Contrast]:
    """What the remainder is, and its size. mine, theirs: the ends."""
    if isinstance(printed, Contrast):
        scatter = None if printed.error is None else Pool(printed.error**2, printed.freedom)
        between = Term(printed.value, 1, scatter)
        return t("what differs beside these settings"), contrast([(1.0, between), (-1.0, mine), (1.0, theirs)])
    left = contrast([(1.0, theirs)])
    what = t("their settings here, over the printed number")
    what = what if device else t("{what}, with the device", what=what)
    return what, left._replace(value=left.value - math.log(printed) - (device.size.value if device else 0.0))


def _sum(weights: Mapping[Corner, float], terms: Mapping[Corner, Term]) -> Contrast:
    return contrast([(weight, terms[corner]) for corner, weight in weights.items() if abs(weight) > 1e-12])


def _finding(size: Contrast, level: float) -> Finding:
    if size.error is None:
        return "undecided"
    if size.p_inside(NO_EFFECT) <= level:
        return "no effect"
    return "certain" if size.p_outside(NO_DIFFERENCE) <= level else "undecided"
