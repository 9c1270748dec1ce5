"""How often explanations are wrong: `python -m benchmarks.truth --why [--draws N]` from the root.

Both ends and the corners between them are drawn with planted factors, and `explain` makes the bars of them. The printed
number is their end, made faster by DEVICE: a cause that is no factor.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.bounds import Fault, Row, broken
from benchmarks.known_truths import Draw, Random, cases_of, terms_of
from tsuishi.extras.explain.design import Bar, Factor, bars, corners

# Their settings here take as many times as long as the printed number.
DEVICE = 3.0
_NAMES = "abcdefgh"
_FAULT_DRAWS = 400


def rows() -> Iterator[Row]:
    """Every row, in the order of docs/certainty.md."""
    for factors in (1, 3, 5, 8):
        for scatter in (0.01, 0.03, 0.10):
            name = (
                f"{factors} setting{'s' * (factors > 1)} of no effect, scatter {100 * scatter:g} %: a setting is blamed"
            )
            yield Row(name, 0.05, blamed(factors, {}, scatter))
    noisy = "5 settings of no effect, one of 16 corners scatters 10 times as much: a setting is blamed"
    yield Row(noisy, 0.05, blamed(5, {}, 0.03, noisy=10.0))
    for planted in ({"a": 1.2}, {"a": 1.2, "b": 0.8}, {"a": 1.5, "b": 1.2, "ab": 1.1}):
        yield Row(f"5 settings, {_said(planted)}: another is blamed", 0.05, blamed(5, planted, 0.03))
        yield Row(f"5 settings, {_said(planted)}: the interval of a bar misses", 0.05, missed(5, planted, 0.03))
    for planted in ({"a": 1.2}, {"a": 1.5, "b": 1.2, "ab": 1.1}):
        yield Row(f"5 settings, {_said(planted)}: a is not named first", 0.10, not_first(planted, 0.03))


def faults() -> Iterator[Fault]:
    """Each bar at an error of 5 %, for the two kinds of bound."""
    alone = (("tsuishi.extras.explain.design.ERROR", 0.05 * 14),)  # the bars of five settings
    nothing = Row("5 settings of no effect", 0.05, blamed(5, {}, 0.03))
    yield Fault("each bar at 5 %", nothing, alone)
    yield Fault("each bar at 5 %, intervals", Row("5 settings", 0.05, missed(5, {"a": 1.2}, 0.03)), alone)


def main(draws: int) -> int:
    """Print what is found, then claimed against found. Returns 1 where a bound is broken, or a fault breaks none."""
    for scatter in (0.01, 0.03, 0.10):
        random, draw = np.random.default_rng(7), not_first({"a": 1.2}, scatter)
        share = 1 - sum(draw(random) for _ in range(draws)) / draws
        print(f"a factor of 1.2 among five, scatter {scatter:.0%}: named first in {share:.1%}", flush=True)
    return min(1, broken(rows(), faults(), draws, _FAULT_DRAWS))


def blamed(factors: int, planted: Mapping[str, float], scatter: float, noisy: float = 1.0) -> Draw:
    """A setting that was not planted is certain to explain a part."""
    return lambda random: any(
        bar.finding == "certain" and bar.name not in planted
        for bar in _settings(factors, planted, scatter, random, noisy)
    )


def missed(factors: int, planted: Mapping[str, float], scatter: float) -> Draw:
    """The interval of a bar, of a pair, or of the remainder does not hold its true value."""
    truth = [bar.size.value for bar in _drawn(factors, planted, 0.0, np.random.default_rng(0))]

    def draw(random: Random) -> bool:
        found = _drawn(factors, planted, scatter, random)
        intervals = [bar.size.interval(1 - bar.level) for bar in found]
        return any(of is None or true not in of for of, true in zip(intervals, truth, strict=True))

    return draw


def not_first(planted: Mapping[str, float], scatter: float) -> Draw:
    """The largest factor, `a`, is not certain, or is not the largest bar of a setting."""

    def draw(random: Random) -> bool:
        largest = max(_settings(5, planted, scatter, random), key=lambda bar: abs(bar.size.value))
        return (largest.name, largest.finding) != ("a", "certain")

    return draw


def _settings(
    factors: int, planted: Mapping[str, float], scatter: float, random: Random, noisy: float = 1.0
) -> list[Bar]:
    return [bar for bar in _drawn(factors, planted, scatter, random, noisy) if bar.name in _NAMES]


def _drawn(factors: int, planted: Mapping[str, float], scatter: float, random: Random, noisy: float = 1.0) -> list[Bar]:
    """The bars of an explanation: three rounds of every corner.

    planted: by how many times mine takes as long, for a factor or for several together.
    """
    every, names = corners(factors), _NAMES[:factors]
    means = [
        math.log(DEVICE)
        + math.fsum(math.log(times) for of, times in planted.items() if not any(corner[names.index(n)] for n in of))
        for corner in every
    ]
    each = np.full(len(every), scatter)
    each[len(every) // 2] *= noisy
    terms = terms_of({"here": cases_of(random, each, 3, means)})["here"]
    by_corner = {corner: terms[str(number)] for number, corner in enumerate(every)}
    return bars([Factor(name, "on", "off") for name in names], by_corner, printed=1.0)


def _said(planted: Mapping[str, float]) -> str:
    return " and ".join(f"{' x '.join(of)} of {times:g}" for of, times in planted.items())
