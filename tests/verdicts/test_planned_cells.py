"""Claims are asked exactly where their checks have enough comparisons: held against the checks themselves."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.verdicts.claim_checks import known
from tests.words import WORDS, shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.intervals import Term
from tsuishi.specs.case import Case
from tsuishi.specs.claims import Claim
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.selections import FRAMEWORK
from tsuishi.specs.suite import select_suites
from tsuishi.verdicts.checks import CheckResult, evaluate
from tsuishi.verdicts.findings import Finding
from tsuishi.verdicts.planned_cells import cells_of as cells_of_findings
from tsuishi.verdicts.planned_cells import planned_findings

SOURCES = shipped_sources()
CLAIMS = {f"{source.name}/{claim.id}": claim for source in SOURCES for claim in source.claims if not claim.untestable}


def cells_of(claim: Claim, cells: dict[MatrixCell, dict[str, Any]]) -> tuple[MatrixCell, ...]:
    return cells_of_findings(claim, planned_findings(WORDS, SOURCES, cells))


@cache
def cases(profile: str, accelerator: str, gpus: int) -> tuple[Case, ...]:
    suites = select_suites(Checkout().suites, ())
    return tuple(case for suite in suites for case, _ in suite.cases(profile, accelerator, gpus))  # type: ignore[arg-type]


@cache
def near(value: float) -> tuple[Term, Term]:
    """The terms of three trials."""
    return known([value, value + 0.1, value + 0.2])


def found(claim: Claim, axes: dict[str, Any], framework: str) -> Finding:
    """A case with three trials of every quantity that the claim's checks ask for."""
    names = {name for check in claim.checks for name in (check.quantity, check.to_quantity) if name}
    terms = {name: near(1.0) for name in {*names, "gpu_imbalance", "step_s"}}
    # Seconds that grow with the batch: else there is no line through them.
    terms["step_s"] = terms["forward_s"] = near(float(axes.get("batch_size") or 1) + 1)
    logs, values = ({name: term[place] for name, term in terms.items()} for place in (0, 1))
    return Finding(framework, axes, framework, logs, values, ("ok",) * 3)


def judged(claim: Claim, findings: list[Finding]) -> bool:
    """Whether the checks have a result, and lack no case that could be the exception."""
    outcomes = [evaluate(check, findings, complete=True) for check in claim.checks]
    return all(isinstance(outcome, CheckResult) and not outcome.absent for outcome in outcomes)


def subjects(profile: str, accelerator: str, gpus: int) -> Iterator[tuple[str, tuple[Case, ...]]]:
    every = cases(profile, accelerator, gpus)
    for protocol in ("literal", "steady"):
        yield protocol, tuple(case for case in every if case.protocol == protocol)


@pytest.mark.parametrize(
    ("profile", "gpus"),
    [
        *(("full", gpus) for gpus in (0, 1, 2, 4, 8)),
        *(pytest.param("quick", gpus, marks=pytest.mark.long) for gpus in (0, 2)),
    ],
)
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_asked_where_its_checks_have_enough_comparisons(name: str, profile: str, gpus: int) -> None:
    claim, accelerator = CLAIMS[name], "cuda" if gpus else "cpu"
    frameworks = sorted(map(str, claim.named(FRAMEWORK))) or ["torch"]
    for protocol, of_protocol in subjects(profile, accelerator, gpus):
        cells: dict[MatrixCell, dict[str, Any]] = {
            MatrixCell(case.id, framework): {**case.values, FRAMEWORK: framework}
            for case in of_protocol
            for framework in frameworks
        }
        asked = cells_of(claim, cells)
        # As a run has its cases: with usual values that another case of the suite states.
        completed = WORDS.completed({case.id: case.axes for case in of_protocol})
        every = [found(claim, axes, framework) for axes in completed.values() for framework in frameworks]
        assert bool(asked) == judged(claim, every), protocol
        if asked:
            needed = [finding for finding in every if MatrixCell(WORDS.case(finding.axes).id, finding.series) in asked]
            assert judged(claim, needed), "the cells that are asked suffice"
            assert len(asked) <= len(every)


def axes_of(claim: Claim) -> set[str]:
    """The axes that its checks name."""
    return {axis for check in claim.checks for axis in (*check.case, *check.of, *(check.to or {}), *check.at)}


@pytest.mark.parametrize("name", CLAIMS)
def test_cases_of_an_intervention_change_no_claim_that_does_not_name_it(name: str) -> None:
    """Whatever suites add: every case once more for each axis that the claim does not name, with an unusual value."""
    claim = CLAIMS[name]
    others = {
        axis: next((value for value in WORDS.axes[axis].values if value != usual), 100)
        for axis, usual in WORDS.usual.items()
        if axis not in axes_of(claim)
    }
    frameworks = sorted(map(str, claim.named(FRAMEWORK))) or ["torch"]
    usual: dict[MatrixCell, dict[str, Any]] = {
        MatrixCell(case.id, framework): {**case.values, FRAMEWORK: framework}
        for case in cases("full", "cuda", 4)
        if all(case.values.get(axis) in (None, WORDS.usual[axis]) for axis in others)
        for framework in frameworks
    }
    changed = {
        MatrixCell(f"{cell.case_id} {axis}", cell.environment): {**axes, axis: other}
        for cell, axes in usual.items()
        for axis, other in others.items()
    }
    assert cells_of(claim, usual | changed) == cells_of(claim, usual)


def test_a_case_that_leaves_an_axis_out_is_compared_by_its_usual_value() -> None:
    trend = {"kind": "trend", "quantity": "step_s", "along": "chained", "hold": {"above": 0}, "why": "made up"}
    claim = Claim.model_validate_json(json.dumps({"id": "a", "text": {"en": "A."}, "checks": [trend]}), context=WORDS)
    cells = {
        MatrixCell(str(number), "torch"): {"suite": "conv2d", "protocol": "steady", FRAMEWORK: "torch", **given}
        for number, given in enumerate(({}, {"chained": 4}, {"chained": 8}))
    }
    assert set(cells_of(claim, cells)) == {*cells}
