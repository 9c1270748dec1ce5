"""What a plan says it can find, beside what the code of a report finds in draws of trials with a known truth."""

import math
import statistics

import numpy as np
import pytest

from benchmarks import known_truths
from tsuishi.plan.lines import power_sentences
from tsuishi.verdicts.power import Comparing, detectable_ratio, share_found

# A scatter that varies between cases, its logarithm by 0.5, has a mean square above that of its middle.
POOLED = math.exp(0.5**2)
# The shares of docs/certainty.md ("What it costs"): by true ratio and scatter, at 3, 6 and 12 trials.
TABLE = {
    (2.0, 0.03): (1.0, 1.0, 1.0),
    (2.0, 0.1): (0.73, 0.98, 1.0),
    (1.3, 0.03): (0.83, 0.99, 1.0),
    (1.3, 0.1): (0.11, 0.41, 0.86),
    (1.1, 0.01): (0.0, 0.99, 1.0),
    (1.1, 0.03): (0.01, 0.50, 0.89),
    (1.1, 0.1): (0.0, 0.0, 0.13),
    (1.03, 0.01): (0.0, 0.01, 0.0),
    (1.03, 0.03): (0.0, 0.0, 0.0),
}


@pytest.mark.parametrize(("true_ratio", "scatter"), TABLE)
def test_the_share_is_near_that_of_ten_thousand_draws(true_ratio: float, scatter: float) -> None:
    found = [share_found(Comparing(scatter * POOLED, 6), true_ratio, trials) for trials in (3, 6, 12)]
    assert found == pytest.approx(TABLE[true_ratio, scatter], abs=0.1)


@pytest.mark.parametrize(
    ("questions", "cells", "trials", "true_ratio"),
    [(1, 1, 3, 1.1), (1, 1, 6, 1.05), (3, 3, 3, 1.05), (3, 3, 6, 1.05), (6, 1, 6, 1.1), (6, 1, 12, 1.05)],
)
def test_the_share_is_near_what_the_code_of_a_report_finds(
    questions: int, cells: int, trials: int, true_ratio: float
) -> None:
    """The standard error of the draws is 0.025 at most."""
    random = np.random.default_rng(0)
    draw = known_truths.found(true_ratio, 0.03, trials, questions, cells)
    drawn = statistics.fmean(draw(random) for _ in range(600 // questions))
    comparing = Comparing(0.03 * POOLED, questions, cells, moderated=questions > 1)
    assert share_found(comparing, true_ratio, trials) == pytest.approx(drawn, abs=0.1)


@pytest.mark.parametrize("trials", [3, 6, 24])
@pytest.mark.parametrize(
    "comparing", [Comparing(0.001, 1, environments=False), Comparing(0.03, 6), Comparing(0.3, 2, cells=5)]
)
def test_the_detectable_ratio_is_found_in_four_of_five_runs(comparing: Comparing, trials: int) -> None:
    ratio = detectable_ratio(comparing, trials)
    assert share_found(comparing, ratio, trials) == pytest.approx(0.8, abs=1e-4)
    assert detectable_ratio(comparing, trials + 1) == ratio, "between two looks the last look stands"
    assert detectable_ratio(comparing, 2 * trials) < ratio


def test_environments_of_one_session_differ_as_those_of_days_do_however_many_trials() -> None:
    """A day of an environment is assumed to be 1 % faster or slower, and a later look has less error."""
    assert detectable_ratio(Comparing(0.0001, 1), 6) > math.exp(2.2 * math.sqrt(2) * 0.01)
    assert detectable_ratio(Comparing(0.0001, 1), 12) > detectable_ratio(Comparing(0.0001, 1), 6)
    assert detectable_ratio(Comparing(0.0001, 1, environments=False), 12) < 1.001


def test_three_trials_find_less_on_cpus_than_on_gpus() -> None:
    of_cpu, of_gpu = (detectable_ratio(Comparing(0.001, 6, device=device), 3) for device in ("cpu", "gpu"))
    assert 1.03 < of_gpu < 1.06 < 1.12 < of_cpu < 1.16


def test_nothing_is_found_before_the_first_look_and_everything_without_scatter() -> None:
    assert share_found(Comparing(0.03, 6), 2.0, 2) == 0.0
    assert detectable_ratio(Comparing(0.03, 6), 2) == math.inf
    assert share_found(Comparing(0.0, 6, environments=False), 1.0001, 12) == 1.0
    assert detectable_ratio(Comparing(1e4, 6), 3) == math.inf


def test_more_questions_and_more_scatter_find_less() -> None:
    shares = [share_found(Comparing(0.03, questions), 1.1, 6) for questions in (1, 2, 6)]
    assert shares == sorted(shares, reverse=True)
    alone = share_found(Comparing(0.03, 1, moderated=False), 1.1, 6)
    assert alone < shares[0], "an interval that rests on two variances alone is longer"
    assert share_found(Comparing(0.06, 1), 1.1, 6) < shares[0] < share_found(Comparing(0.03, 1, cells=3), 1.1, 6)


def test_the_sentences_say_what_the_first_trials_find_and_what_more_would() -> None:
    comparing, known = Comparing(0.03, 6), "usual scatter between trials (too few measured here yet: 3 % is assumed)"
    sentences = [
        "At the usual scatter between trials (too few measured here yet: 3 % is assumed), 3 trials find a difference "
        "of 1.27 times in 8 of 10 runs, and 6 trials of 1.12 times.",
    ]
    assert power_sentences(comparing, known, 6) == power_sentences(comparing, known, 3) == sentences
    assert power_sentences(comparing, known, 2) == [*sentences, "2 trials are planned: they bring no verdict."]
    assert (
        "6 trials find a difference of 1.12 times in 8 of 10 runs, and 12 trials of"
        in power_sentences(comparing, known, 23)[0]
    )
