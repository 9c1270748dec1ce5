"""A wrong claim is refused, or has no verdict: whatever its kind, it never becomes a certain sentence."""

import math
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from tests.synthetic_run import SyntheticRun, steady_samples, training_case
from tests.verdicts.claim_checks import check, finding
from tests.words import WORDS, shipped_sources
from tsuishi.estimates.variances import Pool
from tsuishi.report.sections.claim_words import sentence, what
from tsuishi.specs.claims import Check, Claim, Kind
from tsuishi.verdicts.checks import CheckResult, evaluate
from tsuishi.verdicts.conclusions import conclude
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.findings import Finding
from tsuishi.verdicts.hypotheses import Missing

TIGHT = Pool(1e-6, 10)
# What each kind needs beside its sides; presence and a residual have one side.
KINDS: dict[str, dict[str, Any]] = {
    "ratio": {"hold": {"below": 0.9}},
    "order": {"hold": {"below": 0.9}},
    "equal": {"hold": {"above": 0.9, "below": 1.1}},
    "trend": {"hold": {"below": 0.0}, "along": "batch_size"},
    "shrinks": {"along": "batch_size"},
    "imbalance": {"hold": {"below": -0.1}},
    "fit": {"hold": {"below": 0.9}, "parameter": "t_cost"},
}
ONE, TWO = {"devices": [1]}, {"devices": [2]}


def findings(*devices: int) -> list[Finding]:
    """Times that fall with the devices, and loads that grow with them, at three batch sizes."""
    return [
        finding(
            {"step_s": [(1 + batch / 100) / count] * 3, "gpu_imbalance": [0.5 * count] * 3},
            devices=count, batch_size=batch, shared=TIGHT,
        )
        for count in devices
        for batch in (32, 64, 128)
    ]  # fmt: skip


def read(kind: str, **sides: Any) -> Check:
    """The check as it is read from a source."""
    quantity = {"quantity": "step_s"} if kind not in ("imbalance", "fit") else {}
    return Check.model_validate({"kind": kind, "why": "made up", **quantity, **KINDS[kind], **sides}, context=WORDS)


def test_every_kind_is_here() -> None:
    assert {*KINDS, "presence"} == {*get_args(Kind)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sides", "why"),
    [
        ({"of": ONE, "to": ONE}, "'of' and 'to' select the same cases"),
        ({"of": {"devices": [1, 2]}, "to": {"devices": [2, 1]}}, "'of' and 'to' select the same cases"),
        ({"of": {}, "to": {}}, "'of' and 'to' select the same cases"),
        ({"case": ONE, "of": {}, "to": ONE}, "'of' and 'to' select the same cases"),
        ({"of": {"warmed": ["none"]}, "to": {}}, "'of' and 'to' select the same cases"),
        ({"of": {"framework": "torch"}, "to": {"framework": "torch"}}, "'of' and 'to' select the same cases"),
        ({"case": ONE, "of": TWO, "to": ONE}, "'of' selects no case, as 'case' has other values of 'devices'"),
        ({"case": TWO, "of": TWO, "to": ONE}, "'to' selects no case, as 'case' has other values of 'devices'"),
        ({"of": {"framework": "pytorch"}, "to": ONE}, "unknown framework 'pytorch'; did you mean 'torch'?"),
    ],
)
def test_sides_that_are_equal_or_empty_are_refused_when_the_source_is_read(
    kind: str, sides: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        read(kind, **sides)
    assert why in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_side_without_a_finding_and_a_side_that_finds_the_same_have_no_result(kind: str) -> None:
    """Not every sameness is seen in a file: `{}` is any number of devices, and a run may have one."""
    sides = {"of": ONE, "to": {}}
    assert isinstance(evaluate(check(kind, **KINDS[kind], **sides), findings(1)), Missing)
    assert isinstance(evaluate(check(kind, **KINDS[kind], of=ONE, to=TWO), findings(1)), Missing)
    assert isinstance(evaluate(check(kind, **KINDS[kind], of=ONE, to=TWO), []), Missing)


def value_of(kind: str, of: dict[str, Any], to: dict[str, Any], *devices: int) -> CheckResult:
    found = evaluate(check(kind, **KINDS[kind], of=of, to=to), findings(*devices))
    assert isinstance(found, CheckResult)
    return found


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("trend", "shrinks")])
def test_swapped_sides_have_the_opposite_value(kind: str) -> None:
    found, swapped = value_of(kind, TWO, ONE, 1, 2), value_of(kind, ONE, TWO, 1, 2)
    assert found.summary is not None
    assert swapped.summary is not None
    assert found.summary.value == pytest.approx(-swapped.summary.value)
    assert abs(found.summary.value) == pytest.approx(0.5 if kind == "imbalance" else math.log(2))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("trend", "shrinks")])
def test_sides_of_different_length_make_all_pairs_but_those_of_a_case_with_itself(kind: str) -> None:
    found = value_of(kind, {"devices": [1, 2, 4]}, TWO, 1, 2, 4)
    lines = 1 if kind == "fit" else 3
    assert len(found.elements) == 2 * lines
    assert {round(element.contrast.value, 6) for element in found.elements} == (
        {-0.5, 1.0} if kind == "imbalance" else {round(math.log(2), 6), round(-math.log(2), 6)}
    )


def test_ratios_that_are_compared_with_themselves_have_no_result() -> None:
    sides = {"of": TWO, "to": ONE, "hold": {"above": 0.9, "below": 1.1}}
    overlapping = {"at": {"batch_size": [32, 64]}, "against": {"batch_size": [64]}}
    found = evaluate(check("equal", **sides, **overlapping), findings(1, 2))
    assert isinstance(found, CheckResult)
    assert len(found.elements) == 1
    with pytest.raises(ValidationError, match="'at' and 'against' select the same ratios"):
        read("equal", **sides, at={"batch_size": [32, 64]}, against={"batch_size": [64, 32]})


def test_without_environments_on_its_sides_a_check_stays_within_each() -> None:
    """A claim on two frameworks is judged on a pair of environments: devices of one are not those of the other."""
    mixed = [
        finding({"step_s": [seconds] * 3}, framework=framework, devices=devices, shared=TIGHT)
        for framework, devices, seconds in (("torch", 1, 1.0), ("tensorflow", 2, 9.0))
    ]
    assert isinstance(evaluate(check("order", hold={"below": 1.0}, of=TWO, to=ONE), mixed), Missing)


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        ("ratio", {"of": TWO, "to": ONE, "hold": {"below": 0.0}}, "hold: no ratio is below 0"),
        ("ratio", {"of": TWO, "to": ONE, "hold": {"above": math.nan}}, "Input should be a finite number"),
        ("order", {"of": TWO, "than": math.inf}, "Input should be a finite number"),
        ("equal", {"of": TWO, "to": ONE, "hold": {"above": 2.0}}, "a check of kind 'equal' holds around 1"),
        ("trend", {"along": "layout"}, "along: unknown axis of numbers 'layout'"),
        ("shrinks", {"of": {"batch_size": 32}, "to": ONE}, "both sides go along 'batch_size'"),
    ],
)
def test_regions_and_axes_that_hold_anything_or_nothing_are_refused(
    kind: str, fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        read(kind, **fields)
    assert why in str(refused.value)


def test_a_case_that_measured_0_is_named_and_nothing_is_certain_without_it() -> None:
    """Of two comparisons one has no ratio: "always" is not held by the other alone."""
    known = findings(1, 2)
    without = Finding("torch", known[0].axes, "torch", {}, {}, ("ok",) * 3, {"step_s": 0.0})
    found = evaluate(check("order", **KINDS["order"], of=TWO, to=ONE), [without, *known[1:]], complete=True)
    assert isinstance(found, CheckResult)
    assert (found.p_hold, len(found.elements)) == (1.0, 2)
    assert [absent.without_ratio for absent in found.absent] == [("step_s", 0.0)]
    assert evaluate(check("order", **KINDS["order"], of=TWO, to=ONE), [without, known[3]]) == Missing(
        "to", {"devices": (1,)}, ("ok",), ("step_s", 0.0)
    )


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (
            "equal",
            {"of": {"layout": ["native"]}, "to": {"layout": ["channels_last"]}},
            "step, mean: native ÷ channels_last",
        ),
        ("ratio", {"of": {"warmed": ["device"]}, "to": {}}, "step, mean: warmed up by device ÷ warmed up by none"),
        ("ratio", {"of": {"devices": [2]}, "to": {}}, "step, mean: 2 devices ÷ any devices"),
        ("trend", {"case": {"layout": ["native"]}}, "slope of log step, mean over log batch size: native"),
        ("trend", {}, "slope of log step, mean over log batch size: all cases"),
        (
            "order",
            {"of": TWO, "to": ONE, "at": {"nodes": [1]}, "against": {"nodes": [2]}},
            "step, mean: 2 devices ÷ 1 device, with 1 nodes over that with 2 nodes",
        ),
        (
            "order",
            {"of": {"environment": ["tf2-cpu"]}, "to": {"environment": ["tf1.13-cpu"]}},
            "step, mean: tf2-cpu ÷ tf1.13-cpu",
        ),
    ],
)
def test_no_side_of_a_comparison_is_without_words(kind: str, fields: dict[str, Any], said: str) -> None:
    assert what(read(kind, **fields)) == said


def test_releases_of_one_framework_are_compared_by_their_environments(tmp_path: Path) -> None:
    """Each case of one environment is held against that of the other, and the claim is judged on the pair."""
    released = {"old": "torch 1.4.0", "new": "torch 2.8.0", "other": "torch 2.0.0"}
    run = SyntheticRun(tmp_path / "run", frameworks=released)
    for name, step_s in (("old", 2.0), ("new", 1.0), ("other", 5.0)):
        for repetition, factor in enumerate((0.99, 1.0, 1.01), start=1):
            run.add(training_case(32), name, steady_samples(32, [step_s * factor] * 4), repetition)
    sides = {"of": {"environment": ("new",)}, "to": {"environment": ("old",)}}
    claim = Claim(id="a", text={"en": "It is faster."}, checks=(read("order", **sides),))
    sources = (shipped_sources()[0].model_copy(update={"claims": (claim,), "numbers": (), "figures": ()}),)
    (judgement,) = conclude(Evidence([run.finish()], sources, WORDS)).judgements
    assert judgement.subject == (("new", "old"), "steady")
    assert judgement.verdict == "reproduced"
    assert "new ÷ old: 0.500" in sentence(judgement)
