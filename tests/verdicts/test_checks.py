"""What checks of every kind come to, by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.verdicts.claim_checks import CASE, check, finding, steps
from tsuishi.estimates.intervals import InSession, Round
from tsuishi.estimates.terms import case_terms
from tsuishi.estimates.variances import Pool
from tsuishi.report.sections.claim_words import sentence
from tsuishi.specs.claims import Bounds, Claim
from tsuishi.specs.selections import Selection
from tsuishi.verdicts.checks import CheckResult, evaluate
from tsuishi.verdicts.findings import Finding, on_side
from tsuishi.verdicts.hypotheses import Missing
from tsuishi.verdicts.judge import Judgement

TWO_TO_ONE = {"of": {"devices": [2]}, "to": {"devices": [1]}}
LESS = {"hold": {"below": 0.95}, "direction": {"below": 1.0}}
TIGHT = Pool(1e-6, 10)


def outcome(*given: object) -> CheckResult:
    found = evaluate(*given)  # type: ignore[arg-type]
    assert isinstance(found, CheckResult)
    return found


def test_a_ratio_is_of_cases_that_differ_in_nothing_else() -> None:
    findings = [
        steps(1.0, 1.0, 1.0, devices=2, shared=TIGHT),
        steps(2.0, 2.0, 2.0, devices=1, shared=TIGHT),
        steps(9.0, 9.0, 9.0, devices=1, batch_size=256, shared=TIGHT),
    ]
    found = outcome(check("ratio", **TWO_TO_ONE, **LESS), findings)
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx(0.5)
    assert (found.cases, found.trials, len(found.elements)) == (2, 3, 1)
    assert found.p_hold < 1e-6
    assert found.p_against == 1


def test_the_mean_of_several_ratios_is_geometric_and_a_shared_base_is_counted_once_with_its_weight() -> None:
    findings = [
        steps(1.0, 1.0, devices=2, strategy="towers", shared=Pool(0.04, 8)),
        steps(4.0, 4.0, devices=2, strategy="mirrored", shared=Pool(0.04, 8)),
        steps(4.0, 4.0, devices=1, strategy="none", shared=Pool(0.04, 8)),
    ]
    of = {"of": {"devices": [2], "strategy": ["towers", "mirrored"]}, "to": {"devices": [1], "strategy": ["none"]}}
    found = outcome(check("ratio", **of, **LESS, over=["strategy"]), findings)
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx(0.5)
    # 0.04 / 2 for each of the two with weight 1/2, and for the base with weight 1.
    assert found.summary.error == pytest.approx(math.sqrt(0.02 * (0.25 + 0.25 + 1)))


def test_ratios_of_two_models_are_compared_at_the_same_batch() -> None:
    """The gain of the small model is 0.5, and of the large 0.8 and 0.9; the small has no third batch."""
    seconds = {("cnn10", 1): 0.5, ("cnn10", 2): 0.5, ("wrn28_10", 1): 0.8, ("wrn28_10", 2): 0.9, ("wrn28_10", 4): 0.1}
    findings = [
        steps(*[each] * 3, devices=devices, model=model, batch_size=batch, shared=TIGHT)
        for (model, batch), gained in seconds.items()
        for devices, each in ((2, gained), (1, 1.0))
    ]
    of_two = {**TWO_TO_ONE, "at": {"model": ["wrn28_10"]}, "against": {"model": ["cnn10"]}}
    found = outcome(check("order", **of_two, hold={"above": 1.0}), findings)
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx(1.6), "the least favourable of 1.6 and 1.8"
    assert {element.axes["batch_size"] for element in found.elements} == {1, 2}
    assert found.p_hold < 1e-6
    # Four means, each with weight 1 and 1e-6 / 3.
    assert found.summary.error == pytest.approx(math.sqrt(4e-6 / 3))
    alone = evaluate(
        check("order", **of_two, hold={"above": 1.0}), [one for one in findings if one.axes["model"] == "cnn10"]
    )
    assert isinstance(alone, Missing)


def test_all_is_judged_by_the_least_favourable_and_some_by_the_most() -> None:
    findings = [
        *(steps(time, time, time, devices=2, batch_size=batch, shared=TIGHT) for batch, time in ((1, 0.5), (2, 1.5))),
        *(steps(1.0, 1.0, 1.0, devices=1, batch_size=batch, shared=TIGHT) for batch in (1, 2)),
    ]
    every = outcome(check("order", **TWO_TO_ONE, hold={"below": 1.0}), findings)
    some = outcome(check("order", **TWO_TO_ONE, hold={"below": 1.0}, every="some"), findings)
    assert every.summary is not None
    assert some.summary is not None
    assert every.shown(every.summary.value) == pytest.approx(1.5)
    assert some.shown(some.summary.value) == pytest.approx(0.5)
    assert (every.p_hold, some.p_against) == (1, 1)
    assert every.p_against < 1e-6
    assert some.p_hold < 1e-6


def test_frameworks_are_compared_across_environments() -> None:
    findings = [steps(3.0, 3.0, framework="tensorflow"), steps(1.0, 1.0, framework="torch")]
    of = {"of": {"framework": ["tensorflow"]}, "to": {"framework": ["torch"]}}
    found = outcome(check("order", **of, hold={"above": 1.0}), findings)
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx(3)


def test_sides_may_have_different_quantities() -> None:
    findings = [
        finding({"first_run_s": [0.72]}, devices=8, suite="conv2d", implementation="framework"),
        finding({"later_run_s": [0.24]}, suite="conv2d", implementation="scipy"),
    ]
    of = {"of": {"devices": [8], "implementation": ["framework"]}, "to": {"implementation": ["scipy"]}}
    found = outcome(
        check("ratio", quantity="first_run_s", to_quantity="later_run_s", **of, hold={"above": 1.0}), findings
    )
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx(3)


def test_a_trend_is_the_slope_of_logarithms() -> None:
    findings = [steps(*[0.01 * batch**0.5] * 3, batch_size=batch, shared=TIGHT) for batch in (16, 32, 64, 128)]
    found = outcome(check("trend", along="batch_size", hold={"above": 0.4, "below": 0.6}), findings)
    assert found.summary is not None
    assert found.summary.value == pytest.approx(0.5)
    assert found.p_hold < 1e-6
    # With scatter s the slope's error is s / sqrt(sum of squares of x about its mean) / sqrt(trials).
    xs = [math.log(batch) for batch in (16, 32, 64, 128)]
    spread = sum((x - sum(xs) / 4) ** 2 for x in xs)
    assert found.summary.error == pytest.approx(1e-3 / math.sqrt(3 * spread))


def test_two_points_are_no_trend() -> None:
    findings = [steps(1.0, batch_size=batch) for batch in (16, 32)]
    found = evaluate(check("trend", along="batch_size", hold={"below": 0.0}), findings)
    assert isinstance(found, Missing)
    assert found.side == "along"


def test_a_level_is_held_against_a_number_in_its_unit() -> None:
    findings = [finding({"gpu_utilisation_percent": [40.0, 50.0, 45.0]})]
    found = outcome(check("order", quantity="gpu_utilisation_percent", than=90, hold={"below": 1.0}), findings)
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx((40 * 45 * 50) ** (1 / 3) / 90)


def test_differences_are_of_the_values_themselves() -> None:
    findings = [
        finding({"accuracy": [0.89, 0.90]}, framework="torch"),
        finding({"accuracy": [0.88, 0.88]}, framework="tensorflow"),
    ]
    of = {"of": {"framework": ["torch"]}, "to": {"framework": ["tensorflow"]}}
    margin = {"hold": {"above": -0.02, "below": 0.02}}
    found = outcome(check("equal", quantity="accuracy", scale="difference", **of, **margin), findings)
    assert found.summary is not None
    assert found.summary.value == pytest.approx(0.015)


def test_presence_is_of_all_trials_or_of_none() -> None:
    asked = check("presence", of={"batch_size": [2048], "devices": [1]}, status="out_of_memory")
    full = finding({}, statuses=("out_of_memory",) * 3, batch_size=2048, devices=1)
    fits = finding({}, statuses=("ok",) * 3, batch_size=2048, devices=1)
    mixed = finding({}, statuses=("ok", "out_of_memory"), batch_size=2048, devices=1)
    answers = [(outcome(asked, [one]).p_hold, outcome(asked, [one]).p_against) for one in (full, fits, mixed)]
    assert answers == [(0, 1), (1, 0), (1, 1)]


def test_presence_wants_every_case_it_names() -> None:
    asked = check("presence", of={"batch_size": [1024, 2048]}, status="ok")
    found = evaluate(asked, [finding({}, batch_size=1024)])
    assert found == Missing("of", {"batch_size": 2048})


def test_a_case_that_did_not_get_as_far_says_nothing_of_what_fits() -> None:
    asked = check("presence", of={"batch_size": [2048], "strategy": ["multi_gpu_model"]}, status="out_of_memory")
    for status in ("unsupported", "skipped", "failed", "timeout"):
        found = evaluate(asked, [finding({}, statuses=(status,), batch_size=2048, strategy="multi_gpu_model")])
        assert isinstance(found, Missing)


def test_an_axis_that_a_published_number_leaves_out_matches_anything() -> None:
    printed = Finding("k80", {"suite": "conv2d", "devices": 2}, None, {}, {}, partial=True)
    measured = Finding("tf", {"suite": "conv2d", "devices": 2}, None, {}, {})
    cases: tuple[tuple[Selection, tuple[bool, bool]], ...] = (
        ({"protocol": ("literal",), "framework": ("torch",)}, (True, False)),
        ({"devices": (2,)}, (True, True)),
        ({"devices": (4,)}, (False, False)),
    )
    for selection, selected in cases:
        asked = check("presence", of=selection)
        found = on_side([printed, measured], asked, asked.of)
        assert (printed in found, measured in found) == selected


def test_a_printed_cost_time_is_of_whole_steps_and_of_no_part_of_them() -> None:
    findings = [finding({"cost_time_s": [seconds]}, devices=devices) for devices, seconds in ((1, 0.05), (2, 0.15))]
    whole = outcome(check("fit", parameter="t_cost", **TWO_TO_ONE, hold={"above": 1.0}), findings)
    assert whole.summary is not None
    assert whole.shown(whole.summary.value) == pytest.approx(3)
    parts = check("fit", parameter="t_cost", quantity="forward_s", **TWO_TO_ONE, hold={"above": 1.0})
    assert isinstance(evaluate(parts, findings), Missing)


def line(cost_s: float, speed: float, quantity: str = "step_s", **axes: Any) -> list[Finding]:
    return [finding({quantity: [batch / speed + cost_s] * 3}, batch_size=batch, **axes) for batch in (16, 32, 64, 128)]


def test_parameters_of_lines_are_compared() -> None:
    findings = line(0.01, 1000, devices=1) + line(0.03, 2000, devices=2)
    for parameter, ratio in (("t_cost", 3), ("v0", 2), ("b_half", 6)):
        found = outcome(check("fit", parameter=parameter, **TWO_TO_ONE, hold={"above": 1.0}), findings)
        assert found.summary is not None
        assert found.shown(found.summary.value) == pytest.approx(ratio)


def test_a_part_of_the_step_has_a_line_of_its_own() -> None:
    findings = [
        finding({"step_s": [batch / 1000 + 0.03] * 3, "forward_s": [batch / 3000 + 0.01] * 3}, batch_size=batch)
        for batch in (16, 32, 64, 128)
    ]
    asked = check("fit", parameter="t_cost", quantity="forward_s", to_quantity="step_s", to={}, hold={"below": 0.5})
    found = outcome(asked, findings)
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx(1 / 3)


def test_a_cost_at_or_below_nothing_counts_and_decides_nothing() -> None:
    """Dropped, such lines leave those whose cost is above 0 by chance: a false claim was reproduced in 17 to 43 %."""
    below = [steps(*[batch / 1000 - 0.001] * 3, devices=2, batch_size=batch) for batch in (16, 32, 64, 128)]
    found = outcome(
        check("fit", parameter="t_cost", **TWO_TO_ONE, hold={"above": 1.0}), [*below, *line(0.01, 1000, devices=1)]
    )
    assert found.summary is not None
    assert (found.p_hold, found.p_against) == (1.0, 1.0)
    assert found.summary.interval() == (-math.inf, math.inf)
    assert found.shown(found.summary.value) == 0.0


def scattered(factor: float, batches: Sequence[int] = (16, 32, 64, 128), **axes: Any) -> list[Finding]:
    """A line whose trials scatter by 1 %; the middle batch sizes lie off it by `factor`."""
    return [
        steps(
            *((batch / 1000 + 0.01) * (factor if batch in (32, 64) else 1.0) * each for each in (0.99, 1.0, 1.01)),
            batch_size=batch,
            **axes,
        )
        for batch in batches
    ]


def test_the_error_of_a_parameter_is_that_of_trials_or_of_the_distance_from_the_line() -> None:
    asked = check("fit", parameter="v0", **TWO_TO_ONE, hold={"above": 0.9, "below": 1.1})
    errors = {}
    for factor in (1.0, 1.03):
        found = outcome(asked, [*scattered(factor, devices=2), *scattered(factor, devices=1)])
        assert found.summary is not None
        assert found.summary.error is not None
        errors[factor] = found.summary.error, found.summary.freedom
    # The scatter of 4 x 3 trials, or the distance of 4 points; equal variances of two lines count as one.
    assert errors[1.0][1] == pytest.approx(8)
    assert errors[1.03][1] == pytest.approx(2)
    assert errors[1.03][0] > 2 * errors[1.0][0]


def test_a_line_through_two_batch_sizes_has_the_error_of_its_trials() -> None:
    """Without an error, the value alone decided."""
    asked = check("fit", parameter="t_cost", **TWO_TO_ONE, hold={"above": 1.0})
    few = [each for devices in (1, 2) for each in scattered(1.0, (16, 128), devices=devices)]
    found = outcome(asked, few)
    assert found.summary is not None
    interval = found.summary.interval()
    assert interval is not None
    assert 0.0 in interval
    assert (found.p_hold > 0.5, found.p_against > 0.5) == (True, True)
    equal = [*line(0.01, 1000, devices=1), *line(0.03, 1000, devices=2)]
    same = outcome(asked, [each for each in equal if each.axes["batch_size"] in (16, 128)])
    assert (same.p_hold, same.p_against) == (1.0, 1.0)


def test_lines_of_different_days_are_not_compared() -> None:
    asked = check("fit", parameter="v0", **TWO_TO_ONE, hold={"above": 0.9, "below": 1.1})

    def on(day: str, findings: list[Finding]) -> list[Finding]:
        return [
            replace(
                each,
                logs={
                    name: term._replace(sessions={day: InSession(term.mean, term.trials)})
                    for name, term in each.logs.items()
                },
            )
            for each in findings
        ]

    one, two = scattered(1.0, devices=1), scattered(1.0, devices=2)
    assert outcome(asked, [*on("monday", one), *on("monday", two)]).p_hold < 0.05
    assert outcome(asked, [*on("monday", one), *on("tuesday", two)]).p_hold == 1.0
    # Nor is a line whose batch sizes were measured on different days.
    apart = [*on("monday", one), *on("monday", two[:2]), *on("tuesday", two[2:])]
    assert outcome(asked, apart).p_hold == 1.0


def test_what_rounds_have_in_common_cancels_in_a_ratio_of_lines() -> None:
    """Rounds of 3 %, trials of 1 %: the error of v0's ratio is that of trials of 1 %."""
    random, batches, trials = np.random.default_rng(1), (16, 32, 64, 128, 256), 6
    slow = random.normal(0, 0.03, trials)
    values = {
        ("multi_gpu_scaling", "steady", str(devices), "step_s"): {
            str(b): ((b / 1000 + 0.01) * np.exp(slow + random.normal(0, 0.01, trials))).tolist() for b in batches
        }
        for devices in (1, 2)
    }
    rounds = {key: {case: [Round("x", n) for n in range(trials)] for case in cases} for key, cases in values.items()}
    asked = check("fit", parameter="v0", **TWO_TO_ONE, hold={"above": 0.9, "below": 1.1})
    errors = []
    for known in (rounds, None):
        findings = [
            Finding("torch", {**CASE, "batch_size": int(case), "devices": int(side)}, "torch", {"step_s": term}, {})
            for (case, side, _), term in case_terms(values, rounds=known).items()
        ]
        found = outcome(asked, findings)
        assert found.summary is not None
        errors.append(found.summary.error or math.inf)
    assert errors[0] < 0.006
    assert errors[1] > 2 * errors[0]


def test_of_three_days_each_day_counts_as_a_trial_of_a_line() -> None:
    """Environments that were measured on days of their own: the lines of the days are what scatters."""
    asked = check("fit", parameter="v0", **TWO_TO_ONE, hold={"above": 0.5, "below": 2.0})
    findings = []
    for devices, days in ((1, (0.98, 1.0, 1.02)), (2, (0.97, 1.0, 1.03))):
        for each in scattered(1.0, devices=devices):
            term = each.logs["step_s"]
            sessions = {f"{devices} {day}": InSession(term.mean + math.log(day), 1) for day in days}
            findings.append(replace(each, logs={"step_s": term._replace(sessions=sessions)}))
    found = outcome(asked, findings)
    assert found.summary is not None
    squares = [sum(math.log(day) ** 2 for day in days) / 2 / 3 for days in ((0.98, 1.0, 1.02), (0.97, 1.0, 1.03))]
    assert found.summary.error == pytest.approx(math.sqrt(sum(squares)), rel=1e-3)


def test_a_printed_parameter_counts_where_nothing_is_left_to_fit() -> None:
    findings = [
        finding({"ideal_speed_images_per_s": [speed], "cost_time_s": [cost]}, devices=devices, batch_size=None)
        for devices, speed, cost in ((1, 258.1, 0.054), (2, 513.8, 0.15))
    ]
    found = outcome(check("fit", parameter="b_half", **TWO_TO_ONE, hold={"above": 1.0}), findings)
    assert found.summary is not None
    assert found.shown(found.summary.value) == pytest.approx(513.8 * 0.15 / (258.1 * 0.054))


def test_every_point_is_held_against_its_line() -> None:
    findings = line(0.01, 1000)
    asked = check("fit", parameter="residual", hold={"above": 0.95, "below": 1.0526})
    found = outcome(asked, findings)
    assert len(found.elements) == 4
    assert found.p_hold < 1e-6
    kinked = [*findings, finding({"step_s": [0.2] * 3}, batch_size=96)]
    assert outcome(asked, kinked).p_against < 1e-6


def test_what_was_tried_and_failed_is_told() -> None:
    findings = [finding({}, statuses=("unsupported",), devices=2), steps(1.0, devices=1)]
    assert evaluate(check("ratio", **TWO_TO_ONE, **LESS), findings) == Missing(
        "of", {"devices": (2,)}, ("unsupported",)
    )


EVERY_BATCH = check(
    "order", case={"batch_size": [64, 128, 256]}, **TWO_TO_ONE, hold={"below": 1.0}
)  # fmt: skip


def batches(*sizes: int, failed: tuple[int, ...] = (), status: str = "failed") -> list[Finding]:
    """Two devices in half of the time of one device; the cases of two devices at some batch sizes failed."""
    rows = []
    for size in sizes:
        rows.append(steps(2.0, 2.0, 2.0, devices=1, batch_size=size, shared=TIGHT))
        if size in failed:
            rows.append(finding({}, devices=2, batch_size=size, statuses=(status,) * 3))
        else:
            rows.append(steps(1.0, 1.0, 1.0, devices=2, batch_size=size, shared=TIGHT))
    return rows


def test_every_size_is_shown_only_where_every_size_has_a_number() -> None:
    whole = outcome(EVERY_BATCH, batches(64, 128, 256), True)
    assert (whole.p_hold < 1e-6, whole.absent) == (True, ())
    failed = outcome(EVERY_BATCH, batches(64, 128, 256, failed=(256,)), True)
    assert (failed.p_hold, failed.p_direction) == (1.0, 1.0)
    assert [(absent.selection["batch_size"], absent.statuses) for absent in failed.absent] == [(256, ("failed",) * 3)]
    untried = outcome(EVERY_BATCH, batches(64, 128), True)
    assert {absent.selection["batch_size"] for absent in untried.absent} == {256}
    assert untried.p_hold == 1.0


def test_a_case_that_is_absent_keeps_nobody_from_refuting_every_and_from_showing_some() -> None:
    slow = EVERY_BATCH.model_copy(update={"hold": Bounds(above=1.0)})
    assert outcome(slow, batches(64, 128, 256, failed=(256,)), True).p_against < 1e-6
    some = EVERY_BATCH.model_copy(update={"every": "some"})
    assert outcome(some, batches(64, 128, 256, failed=(256,)), True).p_hold < 1e-6
    mean = slow.model_copy(update={"over": ("batch_size",)})
    assert outcome(mean, batches(64, 128, 256, failed=(256,)), True).p_against == 1.0


def test_what_an_environment_does_not_support_is_no_case_there_and_published_tables_may_have_gaps() -> None:
    rows = batches(64, 128, 256)
    rows.append(finding({}, devices=2, batch_size=128, strategy="mirrored", statuses=("unsupported",)))
    assert outcome(EVERY_BATCH, rows, True).absent == ()
    assert outcome(EVERY_BATCH, batches(64, 128)).p_hold < 1e-6


@pytest.mark.parametrize(
    ("near", "far", "shrinks"), [(2.0, 1.2, True), (2.0, 0.8, True), (2.0, 0.4, False), (0.5, 0.8, True)]
)
def test_a_gap_shrinks_where_the_far_ratio_is_nearer_to_1_on_either_side(
    near: float, far: float, shrinks: bool
) -> None:
    rows = [
        steps(ratio, ratio, ratio, devices=devices, batch_size=batch, shared=TIGHT)
        for batch, of in ((16, near), (64, 1.0), (256, far))
        for devices, ratio in ((2, of), (1, 1.0))
    ]
    found = outcome(check("shrinks", **TWO_TO_ONE, along="batch_size"), rows)
    assert (found.p_hold < 1e-6, found.p_against < 1e-6) == (shrinks, not shrinks)


def test_what_fits_in_memory_is_counted_and_never_always() -> None:
    rows = [finding({}, statuses=("ok",) * trials, batch_size=batch) for batch, trials in ((64, 3), (128, 2))]
    found = outcome(check("presence", of={"batch_size": [64, 128]}), rows)
    judgement = Judgement("made-up", Claim.model_construct(id="a"), None, "reproduced", (found,), level=0.01)
    assert sentence(judgement).endswith("in 5 of 5 trials.")
