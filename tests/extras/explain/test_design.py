"""The bars of a waterfall: they add up, find what was planted, and blame nothing that was not."""

import itertools
import math
import random
import statistics
from collections.abc import Callable

import pytest

from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.variances import pool
from tsuishi.extras.explain.design import Bar, Corner, Factor, are_decided, bars, corners, groupings
from tsuishi.extras.explain.difference import Difference
from tsuishi.extras.explain.sections import drawing

PRINTED = Difference(
    text="200",
    column="a",
    case="b",
    axes={},
    quantity="step_s",
    value=200,
    hardware="",
    mine={},
    mine_in="c",
    theirs_in="c",
)
FACTORS = [Factor(name, "on", "off") for name in ("precision", "layout", "threads")]


def measured(
    value: Callable[[Corner], float], scatter: float, seed: int, rounds: int = 6, factors: int = 3
) -> dict[Corner, Term]:
    """The terms of all corners. value: the true logarithm at a corner. scatter: of a trial, in logarithms."""
    drawn = random.Random(seed)  # noqa: S311
    trials = {corner: [value(corner) + drawn.gauss(0, scatter) for _ in range(rounds)] for corner in corners(factors)}
    shared = pool(list(trials.values()))
    return {
        corner: Term(statistics.fmean(values), rounds, shared, own=pool([values])) for corner, values in trials.items()
    }


def planted(corner: Corner) -> float:
    """precision makes mine 1.5 times the printed, layout 0.8 times; together they have 1.1 more."""
    precision, layout = not corner[0], not corner[1]
    return math.log(100) + precision * math.log(1.5) + layout * math.log(0.8) + precision * layout * math.log(1.1)


def times(found: list[Bar], *, parts: bool = True) -> dict[str, float]:
    return {bar.name: math.exp(bar.size.value) for bar in found if bar.is_part == parts}


def test_a_waterfall_begins_at_the_printed_number_and_each_bar_where_the_last_has_ended() -> None:
    found = bars(FACTORS, measured(planted, 0.0, 0), printed=200.0)
    rows = drawing(found, PRINTED)["datasets"]["rows"]
    assert [row["name"] for row in rows] == ["remainder", "precision", "layout", "threads", "interactions", "mine"]
    assert rows[0]["from"] == 1.0
    assert all(before["to"] == after["from"] for before, after in itertools.pairwise(rows[:-1]))
    assert rows[-1]["to"] == pytest.approx(100 * 1.5 * 0.8 * 1.1 / 200)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("factors", range(1, 9))
def test_a_design_has_both_ends_and_mixes_no_factor_with_another_or_with_a_pair(factors: int, crossed: bool) -> None:
    every = corners(factors, crossed=crossed)
    assert (every[0], every[-1]) == ((False,) * (factors + crossed), (True,) * (factors + crossed))
    assert len(set(every)) == len(every) == 2 ** (min(factors, 4) + crossed)
    columns = [tuple(-1 if corner[index] else 1 for corner in every) for index in range(factors + crossed)]
    pairs = [tuple(math.prod(both) for both in zip(*two, strict=True)) for two in itertools.combinations(columns, 2)]
    for number, column in enumerate(columns):
        assert all(sum(map(math.prod, zip(column, of, strict=True))) == 0 for of in (*columns[:number], *pairs))


def test_pairs_that_a_fraction_mixes_share_a_bar() -> None:
    """Of five factors the fifth is mixed with three others: each pair of two of the four with the pair of the rest."""
    five = [Factor(name, "on", "off") for name in "abcde"]
    together = measured(lambda corner: math.log(1.2) * (not corner[0] and not corner[1]), 0.0, 0, factors=5)
    found = bars(five, together, 1.0)
    pairs = {name: value for name, value in times(found, parts=False).items() if abs(value - 1) > 1e-9}
    assert pairs == pytest.approx({"a x b + c x e": 1.2})
    assert times(found)["a"] == pytest.approx(math.sqrt(1.2))
    assert math.prod(times(found).values()) == pytest.approx(1.2)


def test_of_eight_factors_sixteen_corners_say_nothing_of_interactions() -> None:
    eight = [Factor(name, "on", "off") for name in "abcdefgh"]
    together = measured(lambda corner: 0.7 * (not any(corner[:3])), 0.0, 0, factors=8)
    found = bars(eight, together, 1.0)
    assert "interactions" not in times(found)
    assert math.prod(times(found).values()) == pytest.approx(math.exp(0.7))


def test_bars_add_up_to_mine_over_printed_and_interactions_have_a_bar() -> None:
    found = bars(FACTORS, measured(planted, 0.0, 0), printed=200.0)
    ratio = math.prod(times(found).values())
    assert ratio == pytest.approx(100 * 1.5 * 0.8 * 1.1 / 200)
    # A main effect is the mean over the other factors: half of the interaction goes to each of both.
    half = math.sqrt(1.1)
    assert times(found) == pytest.approx(
        {"precision": 1.5 * half, "layout": 0.8 * half, "threads": 1.0, "interactions": 1.0, "remainder": 0.5}
    )
    # The effect of one is 1.1 times as large with mine of the other.
    assert times(found, parts=False) == pytest.approx(
        {"precision x layout": 1.1, "precision x threads": 1.0, "layout x threads": 1.0}
    )
    all_three = bars(FACTORS, measured(lambda c: math.log(2) * (not any(c)), 0.0, 0), 1.0)
    assert math.prod(times(all_three).values()) == pytest.approx(2.0)
    assert times(all_three)["interactions"] == pytest.approx(2**0.25)
    two = bars(FACTORS[:2], measured(lambda c: math.log(2) * (not any(c)), 0.0, 0, factors=2), 1.0)
    assert times(two) == pytest.approx({"precision": 2**0.5, "layout": 2**0.5, "remainder": 1.0})
    assert times(two, parts=False) == pytest.approx({"precision x layout": 2.0})
    (alone, left) = bars(FACTORS[:1], measured(lambda c: 0.7 * (not c[0]), 0.0, 0, factors=1), 1.0)
    assert (alone.name, alone.size.value, left.name) == ("precision", pytest.approx(0.7), "remainder")


def test_planted_factors_above_a_fifth_are_found_and_the_interval_of_the_rest_covers_the_truth() -> None:
    named, covered, wrong = 0, 0, 0
    for seed in range(200):
        found = {bar.name: bar for bar in bars(FACTORS, measured(planted, 0.03, seed), printed=200.0)}
        largest = max(FACTORS, key=lambda factor: abs(found[factor.name].size.value)).name
        named += found["precision"].finding == "certain" and largest == "precision"
        wrong += found["threads"].finding == "certain"
        interval = found["remainder"].size.interval()
        covered += interval is not None and math.log(0.5) in interval
    assert named >= 180
    assert covered >= 184  # of 200 at 95 %: fewer in 1 of 100 tries
    assert wrong <= 4


def test_where_nothing_differs_hardly_an_explanation_blames_anything() -> None:
    blamed = 0
    for seed in range(400):
        found = bars(FACTORS, measured(lambda corner: 0.0, 0.03, seed), printed=1.0)
        blamed += any(bar.finding == "certain" for bar in found)
    assert blamed <= 30  # 5 % are 20; more than 30 in 1 of 100 tries


def test_no_effect_needs_an_interval_within_three_percent() -> None:
    sharp = bars(FACTORS, measured(lambda corner: 0.0, 0.003, 1, rounds=12), printed=1.0)
    assert {bar.finding for bar in sharp} == {"no effect"}
    blunt = bars(FACTORS, measured(lambda corner: 0.0, 0.2, 1, rounds=3), printed=1.0)
    assert "no effect" not in {bar.finding for bar in blunt}


def test_a_cause_that_is_no_factor_is_left_and_blames_nobody() -> None:
    """Mine and theirs, as they are measured here, have a delay that the printed number has not."""
    found = {bar.name: bar for bar in bars(FACTORS, measured(lambda corner: math.log(3), 0.03, 7), printed=1.0)}
    assert found.pop("remainder").finding == "certain"
    assert "certain" not in {bar.finding for bar in found.values()}


@pytest.mark.parametrize("error", [0.02, None])
def test_of_two_runs_the_remainder_is_what_both_ends_here_do_not_differ_by(error: float | None) -> None:
    both = Contrast(math.log(3.0), error, 10.0)
    found = bars(FACTORS, measured(planted, 0.01, 5), both)
    whole = math.prod(times(found).values())
    assert whole == pytest.approx(3.0)
    (left,) = [bar for bar in found if bar.name == "remainder"]
    assert left.words == "what differs beside these settings"
    assert math.exp(left.size.value) == pytest.approx(3.0 / (1.5 * 0.8 * 1.1), rel=0.05)
    # Without the scatter between sessions it has no interval, and nothing is said of it.
    assert (left.finding, left.size.error is None) == (("undecided", True) if error is None else ("certain", False))


@pytest.mark.parametrize("settings", range(1, 6))
def test_fewer_factors_need_no_corner_that_more_do_not_need(settings: int) -> None:
    groups = [(f"s{number}",) for number in range(settings)]
    found = list(groupings(groups, settings))
    assert found[0] == groups
    assert len(found[-1]) == (1 if settings <= 4 else settings)
    assert len(found) == (2**settings - settings if settings <= 4 else 1)
    every = {frozenset(itertools.compress(("s0", "s1", "s2", "s3", "s4"), corner)) for corner in corners(settings)}
    for each in found:
        assert sorted(itertools.chain(*each)) == sorted(itertools.chain(*groups))
        for corner in corners(len(each)):
            assert frozenset(itertools.chain(*itertools.compress(each, corner))) in every


def test_settings_apart_are_no_part_and_the_remainder_is_that_of_my_end() -> None:
    terms = measured(planted, 0.01, 3)
    found, sums = bars(FACTORS, terms, 50.0, apart=True), bars(FACTORS, terms, 50.0)
    assert times(found) == {"remainder": pytest.approx(100 * 1.5 * 0.8 * 1.1 / 50, rel=0.03)}
    apart, whole = times(found, parts=False), times(sums) | times(sums, parts=False)
    assert apart == {name: whole[name] for name in apart}
    assert {factor.name for factor in FACTORS} <= {*apart}


def test_a_bar_without_an_error_waits_for_no_trial() -> None:
    terms = measured(lambda corner: math.log(2) * (not corner[0]), 0.001, 1, factors=1)
    found = bars(FACTORS[:1], terms, Contrast(math.log(2), None, math.inf))
    assert [bar.finding for bar in found] == ["certain", "undecided"]
    assert are_decided(found, FACTORS[:1])
    assert not are_decided(bars(FACTORS[:1], measured(lambda corner: 0.0, 0.5, 1, factors=1), 2.0), FACTORS[:1])
