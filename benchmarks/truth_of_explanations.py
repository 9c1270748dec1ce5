"""How often explanations are wrong: `python -m benchmarks.truth --why [--draws N]` from the root.

Both ends and the corners between them are drawn with planted factors, and `explain` makes the bars of them. The printed
number is their end, made faster by DEVICE: a cause that is no factor.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.bounds import Fault, Row, broken
from benchmarks.known_truths import Draw, Random, cases_of, terms_of
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.extras.explain.design import Bar, Corner, Factor, _remainder, _sum, are_decided, bars, corners
from tsuishi.specs.questions import LOOKS, share_of_look

# Their settings here take as many times as long as the printed number.
DEVICE = 3.0
# The rounds of an explanation that is looked at once.
ROUNDS = 3
_NAMES = "abcdefgh"
_FAULT_DRAWS = 400


def rows() -> Iterator[Row]:
    """Every row, in the order of docs/certainty-figures.md."""
    for factors in (1, 3, 5, 8):
        for scatter in (0.01, 0.03, 0.10):
            name = f"{factors} setting{'s' * (factors > 1)} of no effect, {_at(scatter)}: a setting is blamed"
            yield Row(name, 0.05, blamed(factors, {}, scatter))
    noisy = "5 settings of no effect, one of 16 corners scatters 10 times as much: a setting is blamed"
    yield Row(noisy, 0.05, blamed(5, {}, 0.03, noisy=10.0))
    for planted in ({"a": 1.2}, {"a": 1.2, "b": 0.8}, {"a": 1.5, "b": 1.2, "ab": 1.1}):
        for scatter in (0.01, 0.03, 0.10):
            of = f"5 settings, {_said(planted)}, {_at(scatter)}"
            yield Row(f"{of}: another is blamed", 0.05, blamed(5, planted, scatter))
            yield Row(f"{of}: the interval of a bar misses", 0.05, missed(5, planted, scatter))
    for planted in ({"a": 1.2}, {"a": 1.5, "b": 1.2, "ab": 1.1}):
        yield Row(f"5 settings, {_said(planted)}: a is not named first", 0.10, not_first(planted, 0.03))
    for scatter in (0.03, 0.10):
        of = f"4 settings and the environment, {_said({'a': 1.2, 'e': 1.5})}, {_at(scatter)}"
        yield Row(f"{of}: another is blamed", 0.05, blamed(5, {"a": 1.2, "e": 1.5}, scatter, crossed=True))
        yield Row(f"{of}: the interval of a bar misses", 0.05, missed(5, {"a": 1.2, "e": 1.5}, scatter, crossed=True))
    for planted in ({}, {"a": 1.2}, {"a": 1.05, "b": 0.97}):
        for scatter in (0.01, 0.03, 0.10):
            of = f"up to 24 rounds, 5 settings, {_said(planted) or 'none of any effect'}, {_at(scatter)}"
            yield Row(f"{of}: a setting is blamed", 0.05, blamed(5, planted, scatter, looks=LOOKS))
            yield Row(f"{of}: the interval of a bar misses", 0.05, missed(5, planted, scatter, looks=LOOKS))
    for among in (10, 100):
        of = f"a report with {among} explanations of 1 setting of no effect, {_at(0.10)}"
        yield Row(f"{of}: a setting is blamed", 0.05, blamed_in_reports(among, among))
    delay = "5 settings of no effect, a delay that is none of them: it is not certain to remain, or a setting is blamed"
    yield Row(delay, 0.05, not_remaining(0.03))


def faults() -> Iterator[Fault]:
    """A fault for each kind of bound."""
    alone = (("tsuishi.extras.explain.design.ERROR", 0.05 * 14),)  # the bars of five settings
    nothing, planted = Row("8 settings of no effect", 0.05, blamed(8, {}, 0.10)), {"a": 1.2}
    of_remainder = (("tsuishi.extras.explain.design._remainder", _of_my_end),)
    halved = (("tsuishi.extras.explain.design._sum", _halved),)
    each_look = (("benchmarks.truth_of_explanations.share_of_look", lambda trials: 1.0),)
    never = (("tsuishi.extras.explain.design.ERROR", 0.0),)
    yield Fault("each bar at 5 %", nothing, alone)
    yield Fault("each bar at 5 %, intervals", Row("5 settings", 0.05, missed(5, planted, 0.10)), alone)
    of_looks = Row("1 setting of no effect", 0.05, missed(1, {}, 0.10, looks=tuple(range(LOOKS[0], LOOKS[-1] + 1))))
    yield Fault("a look after each round, each with the whole error", of_looks, each_look)
    of_reports = Row("10 explanations", 0.05, blamed_in_reports(10, 1))
    yield Fault("each of 10 explanations of a report with the whole error", of_reports, ())
    yield Fault("the remainder is that of my end", Row("5 settings", 0.05, missed(5, planted, 0.03)), of_remainder)
    yield Fault("half of each bar", Row("5 settings", 0.05, missed(5, planted, 0.03)), halved)
    yield Fault("no error at all, so nothing is certain", Row("5 settings", 0.10, not_first(planted, 0.03)), never)
    yield Fault("no error at all, a delay", Row("5 settings", 0.05, not_remaining(0.03)), never)


def _of_my_end(mine: Term, theirs: Term, printed: float, device: Bar | None) -> tuple[str, Contrast]:
    return _remainder(mine, mine, printed, device)


def _halved(weights: Mapping[Corner, float], terms: Mapping[Corner, Term]) -> Contrast:
    return _sum({corner: weight / 2 for corner, weight in weights.items()}, terms)


def main(draws: int) -> int:
    """Print what is found, then claimed against found. Returns 1 where a bound is broken, or a fault breaks none."""
    for scatter in (0.01, 0.03, 0.10):
        random, draw = np.random.default_rng(7), not_first({"a": 1.2}, scatter)
        share = 1 - sum(draw(random) for _ in range(draws)) / draws
        print(f"a factor of 1.2 among five, scatter {scatter:.0%}: named first in {share:.1%}", flush=True)
    return min(1, broken(rows(), faults(), draws, _FAULT_DRAWS))


def blamed(
    factors: int,
    planted: Mapping[str, float],
    scatter: float,
    noisy: float = 1.0,
    *,
    crossed: bool = False,
    looks: tuple[int, ...] = (),
    among: int = 1,
) -> Draw:
    """A setting that was not planted is certain to explain a part."""
    return lambda random: any(
        bar.finding == "certain" and bar.name not in planted
        for bar in _settings(
            _drawn(factors, planted, scatter, random, noisy, crossed=crossed, looks=looks, among=among)
        )
    )


def blamed_in_reports(explanations: int, among: int) -> Draw:
    """One of the explanations of a report, each of a setting of no effect, blames it. among: they share the error."""
    one = blamed(1, {}, 0.10, among=among)
    return lambda random: any(one(random) for _ in range(explanations))


def missed(
    factors: int,
    planted: Mapping[str, float],
    scatter: float,
    *,
    crossed: bool = False,
    looks: tuple[int, ...] = (),
) -> Draw:
    """The interval of a bar, of a pair, or of the remainder does not hold its true value."""
    truth = [bar.size.value for bar in _drawn(factors, planted, 0.0, np.random.default_rng(0), crossed=crossed)]

    def draw(random: Random) -> bool:
        found = _drawn(factors, planted, scatter, random, crossed=crossed, looks=looks)
        intervals = [bar.size.interval(1 - bar.level) for bar in found]
        return any(of is None or true not in of for of, true in zip(intervals, truth, strict=True))

    return draw


def not_first(planted: Mapping[str, float], scatter: float) -> Draw:
    """The largest factor, `a`, is not certain, or is not the largest bar of a setting."""

    def draw(random: Random) -> bool:
        largest = max(_settings(_drawn(5, planted, scatter, random)), key=lambda bar: abs(bar.size.value))
        return (largest.name, largest.finding) != ("a", "certain")

    return draw


def not_remaining(scatter: float) -> Draw:
    """A cause that is no factor is not certain to remain, or a setting is blamed for it."""

    def draw(random: Random) -> bool:
        found = {bar.name: bar.finding for bar in _drawn(5, {}, scatter, random)}
        return found["remainder"] != "certain" or "certain" in (found[name] for name in _NAMES[:5])

    return draw


def _settings(found: list[Bar]) -> list[Bar]:
    return [bar for bar in found if bar.name in _NAMES]


def _drawn(
    factors: int,
    planted: Mapping[str, float],
    scatter: float,
    random: Random,
    noisy: float = 1.0,
    *,
    crossed: bool = False,
    looks: tuple[int, ...] = (),
    among: int = 1,
) -> list[Bar]:
    """The bars of an explanation: three rounds of every corner; or with looks, rounds until a look decides all bars.

    planted: by how many times mine takes as long, for a factor or for several together. crossed: the last factor is
    the environment. among: the explanations of a report.
    """
    every, names = corners(factors - crossed, crossed=crossed), _NAMES[:factors]
    means = [
        math.log(DEVICE)
        + math.fsum(math.log(times) for of, times in planted.items() if not any(corner[names.index(n)] for n in of))
        for corner in every
    ]
    each = np.full(len(every), scatter)
    each[len(every) // 2] *= noisy
    trials = cases_of(random, each, max(looks, default=ROUNDS), means)
    of_names = [Factor(name, "on", "off") for name in names]
    for look in looks or (ROUNDS,):
        terms = terms_of({"here": {case: values[:look] for case, values in trials.items()}})["here"]
        by_corner = {corner: terms[str(number)] for number, corner in enumerate(every)}
        share = share_of_look(look) if looks else 1.0
        found = bars(of_names, by_corner, printed=1.0, share=share / among)
        if are_decided(found, of_names):
            break
    return found


def _at(scatter: float) -> str:
    return f"scatter {100 * scatter:g} %"


def _said(planted: Mapping[str, float]) -> str:
    return " and ".join(f"{' x '.join(of)} of {times:g}" for of, times in planted.items())
