"""What a report says of the difference that its run was made to explain, whatever stands in its run.json."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest

from tests.synthetic_run import TORCH, SyntheticRun, add_record, machine, training_case
from tests.words import WORDS, shipped_sources
from tsuishi.base.language import speaking
from tsuishi.extras.explain.design import ERROR, Bar
from tsuishi.extras.explain.difference import Difference, explained
from tsuishi.extras.explain.sections import summary_views
from tsuishi.report.parts.blocks import Chart, Heading, Text, View
from tsuishi.report.parts.wording import Table, worded
from tsuishi.verdicts.evidence import Evidence

CASE = training_case(16)
# 64 images in place of 16: 0.4 s in place of 0.1 s, and 0.05 s are printed.
ASKED = {
    "text": "50",
    "column": "time (ms)",
    "case": "batch_size=16",
    "axes": {axis: value for axis, value in CASE.axes.items() if axis != "protocol"},
    "quantity": "step_s",
    "value": 0.05,
    "hardware": "a card",
    "mine": {"batch_size": 64},
    "mine_in": TORCH,
    "theirs_in": TORCH,
    "why_no_limits": "no data sheet",
}


def run(path: Path, asked: dict[str, Any], seconds: dict[int, float] | None = None) -> SyntheticRun:
    made = SyntheticRun(path, task="explain", request=asked)
    for batch_size, each in (seconds or {16: 0.1, 64: 0.4}).items():
        for repetition, factor in enumerate((0.99, 1.0, 1.01), start=1):
            samples = [("measure", index, 1, batch_size, each * factor) for index in range(4)]
            made.add(training_case(batch_size), TORCH, samples, repetition=repetition)
    return made


def views(*runs: SyntheticRun) -> list[View]:
    evidence = Evidence([each.finish() for each in runs], (), WORDS)
    with worded(WORDS):
        return list(summary_views(evidence, (), ()))


def texts(view: View) -> list[str]:
    return [block.text for block in view.blocks if isinstance(block, Text)]


def test_a_sentence_a_drawing_and_a_table_of_all_bars(tmp_path: Path) -> None:
    (view,) = views(run(tmp_path / "run", ASKED))
    sentence, note = texts(view)
    assert sentence.startswith("Mine is 8.00 times the printed 50 (time (ms)): batch_size explains 4.00 [")
    assert sentence.endswith("remains, with a card and all that is not named.")
    assert note.endswith("The device has no bar: no data sheet.")
    (table,) = (block for block in view.blocks if isinstance(block, Table))
    assert [row[0].text for row in table.rows] == ["batch_size", "remainder"]
    assert math.prod(row[1].value or 0 for row in table.rows) == pytest.approx(8, rel=1e-3)
    assert [block.name for block in view.blocks if isinstance(block, Chart)] == ["explanation"]
    with speaking("ja"):
        assert "Mine" not in texts(views(run(tmp_path / "ja", ASKED))[0])[0]


@pytest.mark.parametrize(
    "damage",
    [
        {"value": 0.0},
        {"value": 5e-324},
        {"value": "0.2"},
        {"axes": None},
        {"mine": {f"axis{number}": 1 for number in range(9)}},
        {"limits": {"most": {"flops_per_s": 0.0}, "origin": "x"}},
        {"text": None},
    ],
)
def test_what_run_json_does_not_say_validly_is_a_sentence(tmp_path: Path, damage: dict[str, Any]) -> None:
    (view,) = views(run(tmp_path / "run", {**ASKED, **damage}))
    (said,) = texts(view)
    assert said.startswith("run.json does not say validly what is explained: ")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"mine": {"batch_size": 32}}, "not separable: no number of batch_size=32 in "),
        ({"quantity": "no_such_s"}, "not separable: no number of batch_size="),
        ({"theirs_in": "another"}, "not separable: no number of batch_size="),
        (
            {"axes": {**ASKED["axes"], "devices": 0}, "limits": {"most": {"flops_per_s": 1e12}, "origin": "x"}},  # type: ignore[dict-item]
            "not separable: no number of batch_size=",
        ),
    ],
)
def test_a_corner_without_a_number_says_why(tmp_path: Path, asked: dict[str, Any], why: str) -> None:
    (view,) = views(run(tmp_path / "run", {**ASKED, **asked}))
    (said,) = texts(view)
    assert said.startswith(why)


BOTH = {**ASKED, "mine": {"batch_size": 64, "layout": "channels_last"}}
FIRST, SECOND, THIRD, LAST = (16, "native"), (64, "native"), (16, "channels_last"), (64, "channels_last")


def of_corners(path: Path, asked: dict[str, Any], *corners: tuple[int, str]) -> SyntheticRun:
    """A run with three trials of each corner: four times as long for 64 images, half as long in the other layout."""
    made = SyntheticRun(path, task="explain", request=asked)
    for batch_size, layout in corners:
        each = 0.1 * (4 if batch_size == 64 else 1) * (0.5 if layout == "channels_last" else 1)
        for repetition, factor in enumerate((0.99, 1.0, 1.01), start=1):
            samples = [("measure", index, 1, batch_size, each * factor) for index in range(4)]
            made.add(training_case(batch_size, layout=layout), TORCH, samples, repetition=repetition)
    return made


def test_settings_whose_corners_are_not_all_there_share_a_bar_and_the_note_says_why(tmp_path: Path) -> None:
    (view,) = views(of_corners(tmp_path / "run", BOTH, FIRST, SECOND, LAST))
    sentence, note = texts(view)
    assert sentence.startswith("Mine is 4.00 times the printed 50 (time (ms)): batch_size & layout explains 2.00 [")
    of = "no number of batch_size=16, layout=channels_last in "
    assert note.endswith(f"batch_size & layout: not separated, as {of}{TORCH}: no trial of it was run.")
    (table,) = (block for block in view.blocks if isinstance(block, Table))
    assert [row[0].text for row in table.rows] == ["batch_size & layout", "remainder"]
    assert table.rows[0][3].text == "64, channels_last in place of 16, native"
    (view,) = views(of_corners(tmp_path / "whole", BOTH, FIRST, SECOND, THIRD, LAST))
    assert "batch_size explains 4.00 [" in texts(view)[0]
    assert "layout explains 0.500 [" in texts(view)[0]


def test_without_an_end_nothing_is_explained(tmp_path: Path) -> None:
    (view,) = views(of_corners(tmp_path / "run", BOTH, FIRST, SECOND, THIRD))
    of = "no number of batch_size=64, layout=channels_last in "
    assert texts(view) == [f"not separable: {of}{TORCH}: no trial of it was run"]


def test_settings_that_the_time_did_not_separate_are_one_factor(tmp_path: Path) -> None:
    asked = {**BOTH, "together": ["batch_size", "layout"]}
    (view,) = views(of_corners(tmp_path / "run", asked, FIRST, LAST))
    sentence, note = texts(view)
    assert "batch_size & layout explains 2.00 [" in sentence
    assert note.endswith("batch_size & layout: not separated, as the time was too short for more corners.")
    (view,) = views(of_corners(tmp_path / "other", {**asked, "together": ["batch_size", "no_such_axis"]}, FIRST, LAST))
    assert texts(view)[0].startswith("not to be computed: ")


def test_bars_that_are_looked_at_several_times_count_the_trials_of_the_last_look_and_spend_its_share(
    tmp_path: Path,
) -> None:
    def bars_of(name: str, trials: int, *, looks: bool) -> list[Bar]:
        asked = {**ASKED, "looks": looks}
        made = SyntheticRun(tmp_path / name, task="explain", request=asked)
        for batch_size, repetition in itertools.product((16, 64), range(1, trials + 1)):
            # The first three trials scatter, the others take twice as long.
            factor = {1: 0.99, 2: 1.0, 3: 1.01}.get(repetition, 2.0)
            samples = [("measure", index, 1, batch_size, batch_size / 160 * factor) for index in range(4)]
            made.add(training_case(batch_size), TORCH, samples, repetition=repetition)
        return explained(Evidence([made.finish()], (), WORDS), Difference.model_validate(asked)).bars

    once, first, between, second = (
        bars_of(f"run{trials}{looks}", trials, looks=looks)
        for trials, looks in ((3, False), (3, True), (5, True), (6, True))
    )
    assert [bar.level for bar in once] == [ERROR / 2] * 2
    assert [bar.level for bar in first] == [bar.level for bar in between] == [ERROR / 4] * 2
    assert [bar.size.value for bar in between] == pytest.approx([bar.size.value for bar in first])
    assert [bar.level for bar in second] == [ERROR / 8] * 2
    assert second[1].size.value == pytest.approx(first[1].size.value + math.log(2) / 2, abs=0.01)


def test_a_protocol_is_a_setting_of_the_cases_that_have_it(tmp_path: Path) -> None:
    printed = {**CASE.axes, "protocol": "literal"}
    asked = {**ASKED, "axes": printed, "mine": {"protocol": "steady"}}
    made = SyntheticRun(tmp_path / "run", task="explain", request=asked)
    for protocol, seconds in (("literal", 0.1), ("steady", 0.025)):
        for repetition, factor in enumerate((0.99, 1.0, 1.01), start=1):
            samples = [("measure", index, 1, 16, seconds * factor) for index in range(4)]
            made.add(training_case(16, protocol=protocol), TORCH, samples, repetition=repetition)
    (view,) = views(made)
    assert texts(view)[0].startswith("Mine is 0.500 times the printed 50 (time (ms)): protocol explains 0.250 [")


def test_corners_of_two_machines_are_no_design(tmp_path: Path) -> None:
    made = run(tmp_path / "run", ASKED, {16: 0.1})
    made.machine = add_record(made.directory, "machine", {**machine(), "memory_mib": 15902})
    for repetition in (1, 2):
        samples = [("measure", index, 1, 64, 0.4) for index in range(4)]
        made.add(training_case(64), TORCH, samples, repetition=repetition)
    (view,) = views(made)
    assert texts(view) == ["not separable: no protocol measured all combinations of settings on one machine"]


def test_explanations_of_several_runs_are_each_of_their_own_trials_and_share_one_error(tmp_path: Path) -> None:
    of_one, of_other = run(tmp_path / "one", ASKED), run(tmp_path / "other", ASKED, {16: 0.2, 64: 0.8})
    both = views(of_one, of_other, SyntheticRun(tmp_path / "plain"))
    assert [texts(view)[0].partition(":")[0] for view in both] == [
        "Mine is 8.00 times the printed 50 (time (ms))",
        "Mine is 16.0 times the printed 50 (time (ms))",
    ]
    headings = [block.text for view in both for block in view.blocks if isinstance(block, Heading)]
    assert [heading.rpartition(" ")[2] for heading in headings] == ["(one)", "(other)"]
    assert [block.name for view in both for block in view.blocks if isinstance(block, Chart)] == [
        "explanation-one-",
        "explanation-other-",
    ]
    asked, alone = Difference.model_validate(ASKED), Evidence([of_one.directory], (), WORDS)
    assert [bar.level for bar in explained(alone, asked, 2).bars] == [
        bar.level / 2 for bar in explained(alone, asked).bars
    ]
    assert views(SyntheticRun(tmp_path / "none")) == []


def test_epochs_that_follow_from_a_source_are_explained_beside_other_runs_too(tmp_path: Path) -> None:
    asked = {**ASKED, "quantity": "median_epoch_s", "value": 100.0}
    one, slower = run(tmp_path / "one", asked), run(tmp_path / "slower", asked, {16: 0.2, 64: 0.8})
    runs = [one.finish(), slower.finish()]
    with worded(WORDS):
        for some, whole in ((runs[:1], ["3.12"]), (runs, ["3.12", "6.25"])):
            found = list(summary_views(Evidence(some, shipped_sources(), WORDS), (), ()))
            assert [texts(view)[0].partition(" times")[0] for view in found] == [f"Mine is {times}" for times in whole]


def test_a_copy_of_a_run_is_explained_once(tmp_path: Path) -> None:
    assert len(views(run(tmp_path / "one", ASKED), run(tmp_path / "copy", ASKED))) == 1


def test_what_the_printed_number_does_not_state_is_no_part_of_the_sum(tmp_path: Path) -> None:
    unsaid = {"may_be": {"batch_size": 64, "layout": "channels_last"}, "combinations": 12, "left_out": ["x=1 (no)"]}
    asked = {**ASKED, "value": 0.2, "mine": {}, "unsaid": unsaid}
    (view,) = views(of_corners(tmp_path / "run", asked, FIRST, SECOND, THIRD, LAST))
    sentence, note = texts(view)
    assert sentence.startswith("Mine is 0.500 [")
    # Usual over other values: a quarter of the images, and twice as long in the usual layout.
    names = "batch_size (64) would explain 0.250 [", "layout (channels_last) would explain 2.00 ["
    assert all(name in sentence for name in names)
    assert sentence.index(names[0]) < sentence.index(names[1])
    # 64 images in the other layout take 0.2 s.
    reached = "1 of the 4 combinations that were measured come within 5 % of the printed number; "
    assert sentence.endswith(f"{reached}suites/axes.toml names 12. Not measured: x=1 (no).")
    assert "Settings that the printed number does not state are no part of mine over printed." in note
    (drawn,) = (block for block in view.blocks if isinstance(block, Chart))
    assert "batch_size" not in str(drawn)


def test_a_setting_that_a_number_does_not_state_has_the_usual_value_of_its_axis(tmp_path: Path) -> None:
    axes = {axis: value for axis, value in ASKED["axes"].items() if axis != "layout"}  # type: ignore[attr-defined]
    asked = {**ASKED, "axes": axes, "mine": {"layout": "channels_last"}}
    (view,) = views(of_corners(tmp_path / "run", asked, FIRST, THIRD))
    assert "layout explains 0.500 [" in texts(view)[0]


def test_a_corner_that_failed_leaves_the_remainder_of_what_a_number_does_not_state(tmp_path: Path) -> None:
    unsaid = {"may_be": {"batch_size": 64, "layout": "channels_last"}, "combinations": 6}
    (view,) = views(of_corners(tmp_path / "run", {**ASKED, "mine": {}, "unsaid": unsaid}, FIRST, SECOND))
    sentence, note = texts(view)
    assert sentence.startswith("Mine is 2.00 [")
    assert "would explain" not in sentence
    of = f"no number of batch_size=64, layout=channels_last in {TORCH}: no trial of it was run"
    assert note.endswith(f"batch_size, layout: not separated, as {of}.")
