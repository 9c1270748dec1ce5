"""Changes over a session, against least squares by hand and a known truth; the order of blocks within a trial."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.report.compared import evidence_of
from tests.synthetic_run import TORCH, SyntheticRun, steady_samples, training_case
from tsuishi.estimates.drift import trend_p
from tsuishi.estimates.steadiness import TrialTime, session_changes
from tsuishi.report.sections.load import telemetry_warnings


def test_the_change_is_that_of_a_line_through_the_logarithms_of_one_case() -> None:
    began = [0.0, 10.0, 25.0, 40.0, 55.0, 70.0, 90.0, 100.0]
    logs = [0.0, 0.02, 0.01, 0.03, 0.05, 0.04, 0.07, 0.08]
    times = [TrialTime("1", "e", "c", at, math.exp(log)) for at, log in zip(began, logs, strict=True)]
    (change,) = session_changes(times)
    line = stats.linregress(began, logs)
    assert (change.trials, change.p) == (8, pytest.approx(line.pvalue))
    assert math.log1p(change.change) == pytest.approx(100 * line.slope)
    reach = 100 * line.stderr * stats.t.ppf(0.975, 6)
    assert math.log1p(change.high) - math.log1p(change.change) == pytest.approx(reach)
    assert change.matters


def test_cases_of_any_length_share_a_change_and_a_case_of_a_single_trial_says_nothing() -> None:
    random = np.random.default_rng(1)
    times = [
        TrialTime("1", "e", str(case), at, (case + 1) * math.exp(0.0005 * at + random.normal(0, 0.005)))
        for case in range(4)
        for at in (10.0 * case, 100 + 10.0 * case, 200 - 10.0 * case)
    ]
    (change,) = session_changes([*times, TrialTime("1", "e", "alone", 500.0, 9.0)])
    assert change.trials == 12
    assert change.low < math.expm1(0.0005 * 200) < change.high
    assert change.matters


def test_too_few_trials_and_trials_of_one_moment_say_nothing() -> None:
    assert session_changes([TrialTime("1", "e", "c", at, 1.0 + at) for at in (0.0, 1.0, 2.0)]) == []
    assert session_changes([TrialTime("1", "e", "c", 5.0, 1.0 + at) for at in range(20)]) == []


def test_a_report_names_environment_and_change_of_a_session_and_no_other(tmp_path: Path) -> None:
    said = []
    for name, grows in (("warms", 0.02), ("steady", 0.0)):
        run = SyntheticRun(tmp_path / name)
        random = np.random.default_rng(2)
        for number in range(10):
            trial: dict[str, Any] = {"repetition": number + 1, "started_at": f"2026-07-01T10:{number:02}:00Z"}
            step_s = 0.1 * math.exp(grows * number + random.normal(0, 0.003))
            run.add(training_case(16), TORCH, steady_samples(16, [step_s] * 4), **trial)
        said.append([text for text in telemetry_warnings(evidence_of(run)) if "session" in text])
    (warning,), nothing = said
    assert warning.startswith("torch2-cpu, session warms 0: steps became 2")
    assert "% slower (+" in warning
    assert nothing == []


def test_a_trial_counts_once_though_its_epoch_is_derived_from_its_steps(tmp_path: Path) -> None:
    """A source trained the case, so each trial has the time of an epoch too, which is far longer than a step."""
    run = SyntheticRun(tmp_path / "run")
    for number in range(10):
        trial: dict[str, Any] = {"repetition": number + 1, "started_at": f"2026-07-01T10:{number:02}:00Z"}
        run.add(training_case(128), TORCH, steady_samples(128, [0.1 + 0.001 * (number % 3)] * 4), **trial)
    evidence = evidence_of(run, published=True)
    assert {"step_s", "median_epoch_s"} <= set(evidence.estimates["quantity"])
    (change,) = evidence.session_changes
    assert change.trials == 10
    assert -0.05 < change.low < change.high < 0.05


def test_the_order_of_blocks_is_judged_as_by_kendall() -> None:
    values = np.array([1.0, 1.2, 1.1, 1.3, 1.5, 1.4, 1.7, 1.6])
    assert trend_p(values) == pytest.approx(stats.kendalltau(range(8), values).pvalue, abs=0.005)
    many = np.random.default_rng(3).normal(np.linspace(0, 1, 40), 1)
    assert trend_p(many) == pytest.approx(stats.kendalltau(range(40), many).pvalue, abs=0.002)
    assert trend_p(np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0])) > 0.2
