"""Claims that follow from a table, to be tried here: a pair of its own numbers speaks against each of them."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tsuishi.extras.tables.adoption import STEADY, Adoption
from tsuishi.extras.tables.hardware_names import KINDS, kind_of_hardware
from tsuishi.extras.tables.printed_pairs import PrintedPair, grouped, printed_pairs, said, settings
from tsuishi.extras.tables.printed_quantities import STEP
from tsuishi.specs.case import BATCH_SIZE, MODEL, NODES, PROTOCOL, SUITE, Value
from tsuishi.specs.selections import FRAMEWORK
from tsuishi.specs.vocabulary import Vocabulary

# The most claims of a table, and networks of a claim; the fewest pairs of a comparison.
_CLAIMS, _NETWORKS, _FEWEST = 3, 2, 6
# Clearly faster, and no faster: times as many images a second.
_CLEAR, _ALIKE = 1.2, 1.05
# The least share of clear pairs among those at the same settings. A typical gain is within this factor of the median.
_SHARE, _NEAR = 0.1, 1.1


def proposed_claims(adoption: Adoption, words: Vocabulary, doubted: Collection[str]) -> list[dict[str, Any]]:
    """The claims, as [[claims]] has them: one on each axis, or on two networks. doubted: places of numbers in doubt.

    One side is clearly faster, and elsewhere in the tables it is not. Of two networks, the larger is faster.
    """
    titles = {each.name: each.title for each in adoption.hardware()}
    kinds = {name: kind for name, title in titles.items() if (kind := kind_of_hardware(title))}
    axes = [axis for axis in (*words.line_axes, MODEL) if axis != NODES]
    claims: list[dict[str, Any]] = []
    for pairs in printed_pairs(adoption, words, axes, doubted):
        groups = [
            (of_kind, kind)
            for kind in KINDS
            for of_kind in grouped((pair for pair in pairs if kinds.get(pair.hardware) == kind), "sides")
        ]
        for group, kind in sorted(groups, key=lambda each: -len(each[0])):
            if len(group) >= _FEWEST and (found := _clearly_faster(group, words)):
                suite = adoption.name.replace("-", "_")
                claims.append({"id": "abc"[len(claims)], **_claim(suite, *found, words, kind, titles)})
                break
        if len(claims) == _CLAIMS:
            break
    return claims


def _clearly_faster(pairs: Sequence[PrintedPair], words: Vocabulary) -> tuple[list[PrintedPair], PrintedPair] | None:
    """Pairs of typical networks at the same settings, whose side `of` is clearly faster, and the most contrary pair.

    The contrary pair is of another network at these settings, or else of other settings. None without such pairs.
    """
    if sum((pair.faster >= _CLEAR) - (pair.faster <= 1 / _CLEAR) for pair in pairs) < 0:
        pairs = [pair.turned() for pair in pairs]
    if pairs[0].axis == MODEL and not 0 < _operations(pairs[0].to, words) < _operations(pairs[0].of, words):
        return None
    for alike in settings(pairs, words):
        slow = {pair.shared.get(MODEL) for pair in alike if pair.faster < _CLEAR}
        clear = [pair for pair in alike if pair.shared.get(MODEL) not in slow]
        against = [pair for pair in (_slowest(alike), _slowest(pairs)) if pair.faster <= _ALIKE]
        if against and len(clear) >= max(1, _SHARE * len(alike)):
            models = _typical(clear, words)
            return [pair for pair in clear if pair.shared.get(MODEL) in models], against[0]
    return None


def _typical(pairs: Sequence[PrintedPair], words: Vocabulary) -> list[Value | None]:
    """Networks whose gain is near the median: those with a file, the fastest first; else those of middle speed."""
    middle = statistics.median(pair.faster for pair in pairs)
    near = [pair for pair in pairs if 1 / _NEAR <= pair.faster / middle <= _NEAR] or pairs
    models = [*dict.fromkeys(pair.shared.get(MODEL) for pair in sorted(near, key=lambda pair: -pair.rate))]
    known = [model for model in models if model in words.networks]
    return (known or models[len(models) // 2 :])[:_NETWORKS]


def _slowest(pairs: Sequence[PrintedPair]) -> PrintedPair:
    return min(pairs, key=lambda pair: pair.faster)


def _operations(axes: Mapping[str, Value], words: Vocabulary) -> int:
    return words.networks[str(axes[MODEL])].multiply_adds


def _claim(
    suite: str,
    pairs: Sequence[PrintedPair],
    against: PrintedPair,
    words: Vocabulary,
    kind: str,
    titles: Mapping[str, str],
) -> dict[str, Any]:
    """The claim that the side `of` is faster. It holds half-way, in logarithms, between no gain and the least gain."""
    first, least = pairs[0], math.sqrt(_slowest(pairs).faster)
    models = sorted({str(pair.shared[MODEL]) for pair in pairs if MODEL in pair.shared})
    even = int(first.of.get(BATCH_SIZE, 1)) / int(first.to.get(BATCH_SIZE, 1)) if first.quantity == STEP else 1.0

    def printed(faster: float) -> float:
        return even / faster if first.quantity == STEP else faster

    def digits(value: float) -> str:
        return f"{value:.3g}"

    bound, side = float(digits(printed(least))), "below" if first.quantity == STEP else "above"
    scope = said(first.scope, words)
    if first.axis == MODEL:
        text = f"{first.of[MODEL]} are at least {digits(least)} times those of {first.to[MODEL]}"
        work = _operations(first.of, words) / _operations(first.to, words)
        reason = f"{first.of[MODEL]} has {digits(work)} times as many operations"
    else:
        of, to = (said(each, words, first.axis) for each in (first.of, first.to))
        text = f"{' and '.join(models)} are at least {digits(least)} times as many with {of} as with {to}"
        reason = "The operations are the same"
    ratios = sorted({digits(printed(pair.faster)) for pair in pairs}, key=float)
    case = {**first.shared, **first.of}
    other = {axis: value for axis, value in {**against.shared, **against.of}.items() if case.get(axis) != value}
    where = [said({axis: value}, words, axis) for axis, value in other.items()]
    where += [titles[against.hardware]] * (against.hardware not in {pair.hardware for pair in pairs})
    check: dict[str, Any] = {
        "kind": "ratio",
        "quantity": first.quantity,
        "case": {
            **{SUITE: suite, FRAMEWORK: first.framework, PROTOCOL: STEADY[1], **first.scope},
            **({MODEL: models} if models else {}),
        },
        "of": dict(first.of),
        "to": dict(first.to),
        "hold": {side: bound},
        "direction": {side: even},
        "why": f"{even:g} is no gain; the source prints {' to '.join(dict.fromkeys((ratios[0], ratios[-1])))}, and "
        f"{bound:g} is half-way in logarithms. {reason}, and the source prints "
        f"{digits(printed(against.faster))} for {', '.join(where)}.",
    }
    if not first.framework:
        del check["case"][FRAMEWORK]
    return {
        "about": [kind],
        "stated": False,
        "text": f"On a {kind.upper()}, the images a second of {text} ({scope}).",
        "checks": [check],
    }
