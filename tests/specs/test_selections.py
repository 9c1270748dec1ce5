"""What selections select, and what goes without saying."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.words import WORDS
from tsuishi.specs.case import Value
from tsuishi.specs.claims import Check
from tsuishi.specs.pictures import Picture
from tsuishi.specs.questions import Question
from tsuishi.specs.selections import Selection, Selector

USUAL: dict[str, Value] = {"warmed": "none", "chained": 1}
CASE: dict[str, Any] = {"suite": "conv2d", "protocol": "literal", "devices": 4}
INTERVENTION = {**CASE, "warmed": "device"}


@pytest.mark.parametrize(
    ("selection", "axes", "is_selected"),
    [
        ({"devices": (4,)}, CASE, True),
        ({"devices": (4,)}, {**CASE, "warmed": "none"}, True),
        ({"devices": (4,)}, INTERVENTION, False),
        ({"warmed": ("none",)}, CASE, True),
        ({"warmed": ("none",)}, INTERVENTION, False),
        ({"warmed": ("device",)}, CASE, False),
        ({"warmed": ("device",)}, INTERVENTION, True),
        ({"warmed": ("none", "device")}, INTERVENTION, True),
        ({"warmed": ("device",)}, {**INTERVENTION, "chained": 10}, False),
        ({"devices": (1,)}, CASE, False),
    ],
)
def test_a_value_that_goes_without_saying_goes_without_saying_on_both_sides(
    selection: Selection, axes: dict[str, Any], is_selected: bool
) -> None:
    assert Selector(selection, usual=USUAL)(axes) == is_selected


AXES, VALUES = st.sampled_from(["warmed", "chained", "devices"]), st.sampled_from(["none", 1, 4])


@given(st.dictionaries(AXES, st.tuples(VALUES)), st.dictionaries(AXES, VALUES))
def test_a_case_is_the_same_case_whether_it_says_its_usual_values_or_not(
    selection: Selection, axes: dict[str, Any]
) -> None:
    unsaid = {axis: value for axis, value in axes.items() if USUAL.get(axis) != value}
    selects = Selector(selection, usual=USUAL)
    assert selects(axes) == selects({**USUAL, **axes})
    assert selects(axes) == selects(unsaid)


def test_a_number_that_states_nothing_may_be_of_either() -> None:
    assert Selector({"warmed": ("device",)}, usual=USUAL, partial=True)(CASE)
    assert Selector({"devices": (4,)}, usual=USUAL, partial=True)(CASE)


def made(model: type[Any], **fields: Any) -> Any:
    return model.model_validate_json(json.dumps(fields), context=WORDS)


RATIO = {"kind": "ratio", "quantity": "first_run_s", "hold": {"above": 1.0}, "why": "made up"}


def test_claims_questions_and_pictures_leave_interventions_out_unless_they_name_them() -> None:
    check = made(Check, **RATIO, of={"devices": 4}, to={"devices": 1})
    assert check.selector(check.of)(CASE)
    assert not check.selector(check.of)(INTERVENTION)
    question = made(Question, id="q", title="q", quantity="first_run_s", cases=[{"devices": 4}])
    assert question.selects(CASE, {})
    assert not question.selects(INTERVENTION, {})
    table = {"id": "t", "kind": "table", "title": "t", "quantities": ["first_run_s"]}
    picture = made(Picture, **table, series=[{"title": "s", "case": {"suite": "conv2d", "devices": 4}}])
    assert picture.selector(picture.series[0])(CASE)
    assert not picture.selector(picture.series[0])(INTERVENTION)


def test_a_side_that_names_an_intervention_is_compared_with_the_usual_case() -> None:
    check = made(Check, **RATIO, of={"warmed": "device"}, to={})
    assert [check.selector(side)(axes) for axes in (CASE, INTERVENTION) for side in (check.of, check.to)] == [
        False, True, True, False,
    ]  # fmt: skip


def test_an_axis_that_is_averaged_over_or_parts_two_ratios_is_not_narrowed() -> None:
    sides = {"of": {"devices": 4}, "to": {"devices": 1}}
    averaged = made(Check, **RATIO, **sides, over=["warmed"])
    of_two = made(Check, **RATIO, **sides, at={"warmed": "device"}, against={"warmed": "none"})
    for check in (averaged, of_two):
        assert check.selector(check.of)(CASE)
        assert check.selector(check.of)(INTERVENTION)
    assert [of_two.selects_ratio(axes, of_two.at) for axes in (CASE, INTERVENTION)] == [False, True]
    assert [of_two.selects_ratio(axes, of_two.against) for axes in (CASE, INTERVENTION)] == [True, False]
