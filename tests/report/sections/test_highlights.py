"""The top of the page: planted truths, and what the first screen says of each."""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.gpu_run import GPU, add_steps, two_gpus
from tests.report.compared import add_trials, evidence_of, page_of
from tests.suites.explanations.test_input_pipeline import case as pipeline_case
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case, training_case
from tests.words import WORDS, shipped_sources
from tsuishi.report.parts.blocks import Bullets, Highlight, Highlights, Page, Strip, Text
from tsuishi.report.parts.two_sides import at_least
from tsuishi.report.parts.wording import Cell, Table
from tsuishi.specs.case import Case

TRIALS = (0.98, 1.0, 1.02)
OLD_AND_NEW = "the oldest against the newest"
# Half an interval of a question of its own at its first look, which has 1.25 %, of trials that scatter by 2 %: t with
# 4 degrees of freedom, and beside it 2.498 normal deviations of what three trials do not show: modes of 5 %, as far as
# the scatter does not show them, and days of 1 %.
REACH = math.hypot(4.315 * 0.02 * math.sqrt(2 / 3), 2.498 * math.sqrt(2 * (0.05**2 - 0.02**2) / 3 + 2 * 0.01**2))


def page(*runs: SyntheticRun) -> Page:
    return page_of(evidence_of(*runs, published=True))


def cards(made: Page) -> list[Highlight]:
    """The cards that a measurement filled."""
    shown = [block for block in made.sections[0].blocks if isinstance(block, Highlights)]
    return [item for block in shown for item in block.items if item.certainty != "printed"]


def rows_of_anchors(made: Page) -> dict[str, list[Cell]]:
    """The rows of all tables that links can lead to."""
    tables = [block for section in made.sections for block in section.blocks if isinstance(block, Table)]
    return {anchor: row for table in tables for anchor, row in zip(table.anchors, table.rows, strict=False) if anchor}


def questions_table(made: Page) -> Table:
    tables = (block for block in made.sections[0].blocks if isinstance(block, Table))
    return next(table for table in tables if table.columns[0] == "question")


def lead(made: Page) -> str:
    return next(block.text for block in made.sections[0].blocks if isinstance(block, Text))


def strip(made: Page) -> Strip:
    return next(block for block in made.sections[0].blocks if isinstance(block, Strip))


def still_open(made: Page) -> tuple[str, ...]:
    bullets = (
        block for block in made.sections[0].blocks if isinstance(block, Bullets) and block.title == "Open questions"
    )
    return next((block.items for block in bullets), ())


def asks(run: SyntheticRun, of: Iterable[tuple[Case, str]], to: Iterable[tuple[Case, str]] = (), **more: Any) -> None:
    """A main question: a comparison of two environments, unless `more` says otherwise."""
    sides = [[[case.id, environment] for case, environment in side] for side in (of, to)]
    environments = list(dict.fromkeys(cell[1] for side in sides for cell in side))
    question = {
        "id": f"suite/{len(run.run['questions'])}", "kind": "environments", "title": {"en": OLD_AND_NEW}, "worth": 1.0,
        "suite": "multi_gpu_scaling", "quantity": "step_s", "environments": environments, "of": sides[0],
        "to": sides[1], "main": True, **more,
    }  # fmt: skip
    run.run["questions"] = [*run.run["questions"], question]


def compared(tmp_path: Path, torch_s: float, tf_s: float, apart: float = 0.02, **trial: Any) -> SyntheticRun:
    """Two environments with three trials each, and the question which is faster."""
    run, case = SyntheticRun(tmp_path / "run"), training_case(16)
    run.run["questions"] = []
    add_trials(run, case, TORCH, torch_s, apart=apart, **trial)
    add_trials(run, case, TF, tf_s, apart=apart, **trial)
    asks(run, [(case, TF)], [(case, TORCH)])
    return run


def stepping(
    tmp_path: Path, folded_from: int, why: bool = True, trials: int = len(TRIALS), scatter: int = 1
) -> SyntheticRun:
    """conv2d with the folding step at this number of towers; `why`: the cases with folding off ran too.

    scatter: how many times as much as TRIALS its trials scatter.
    """
    run, cells = SyntheticRun(tmp_path / "run"), []
    run.run["questions"] = []
    for optimizers in ("default", "no_folding") if why else ("default",):
        for count in (1, 2, 3, 4):
            case = conv2d_case(devices=count, graph_optimizers=optimizers)
            gone = optimizers == "default" and count >= folded_from
            for number, factor in enumerate(TRIALS[:trials], 1):
                later_s = (0.0004 if gone else 0.36) * factor**scatter
                samples = [("first_run", 0, 1, 840, 1.0), ("later_runs", 0, 1, 840, later_s)]
                metrics = [
                    ("convolutions_in_graph", count, "1"),
                    ("convolutions_left_in_graph", 0 if gone else count, "1"),
                ]
                run.add(case, TF, samples, repetition=number, metrics=metrics)
            cells.append((case, TF))
    asks(run, cells, kind="explanation", suite="conv2d", quantity="", title={"en": "conv2d: the step"})
    return run


def test_a_slow_environment_is_a_finding_by_the_near_end_of_its_interval(tmp_path: Path) -> None:
    made = page(compared(tmp_path, 0.5, 1.0))
    (card,) = cards(made)
    near = 2 * math.exp(-REACH)
    assert at_least(near) == "1.76 times"
    assert card.title == f"{TORCH} is at least 1.76 times as fast as {TF}"
    assert (card.certainty, card.anchor) == ("certain", "suite-multi_gpu_scaling")
    assert f"Step, mean of {TF} is 2.00 times that of {TORCH}, interval 1.77 to 2.26." in card.text
    (chart,) = card.charts
    assert [row["value"] for row in chart.specification["datasets"]["rows"] if row["value"]] == [
        factor * mean for mean in (1.0, 0.5) for factor in (math.exp(-0.02), 1.0, math.exp(0.02))
    ]
    assert "Certain findings: 1. Open questions: 0." in lead(made)
    assert still_open(made) == ()
    assert made.title == f"multi_gpu_scaling: {card.title}", "the answer; the machine stands below it"
    assert lead(made).startswith("Example CPU @ 2.50GHz (2 logical cores, no GPU), 2026-11-21. 6 trials of ")


def test_a_near_end_has_as_many_digits_as_tell_it_from_1(tmp_path: Path) -> None:
    made = page(compared(tmp_path, 0.5, 0.5 * math.exp(REACH + 0.0034)))
    (card,) = cards(made)
    assert card.title == f"{TORCH} is at least 1.003 times as fast as {TF}"
    assert f"{TF} is 1.13 times that of {TORCH}, interval 1.003 to 1.28." in card.text
    assert "interval 1.003 to 1.28" in questions_table(made).rows[0][3].text


def test_equal_environments_that_scatter_are_no_finding(tmp_path: Path) -> None:
    made = page(compared(tmp_path, 0.5, 0.5, apart=0.2))
    assert cards(made) == []
    assert "No finding is certain. More trials would show smaller differences" in lead(made)
    (line,) = still_open(made)
    assert line.startswith(f"{OLD_AND_NEW}: step, mean of tf1.13-cpu is 1.00 times that of torch2-cpu")
    assert "3 trials find a difference of" in line


def test_the_page_of_a_check_does_not_name_a_command_that_its_user_cannot_give(tmp_path: Path) -> None:
    run = compared(tmp_path, 0.5, 0.5, apart=0.2)
    run.run["task"] = "check"
    assert lead(page(run)).partition("No finding is certain.")[2] == ""


def test_environments_that_are_alike_are_found_to_be_by_six_trials(tmp_path: Path) -> None:
    assert cards(page(compared(tmp_path / "3", 0.5, 0.5, apart=0.001))) == []
    (card,) = cards(page(compared(tmp_path / "6", 0.5, 0.5, apart=0.001, trials=6)))
    assert card.title == f"{TF} and {TORCH} are alike: their usual trials differ by less than a tenth"
    assert "A kind of trial that is rarer than 40 % may be missing in 6 trials." in card.text


def test_single_trials_are_seen_and_not_tested_and_only_where_they_are_far_apart(tmp_path: Path) -> None:
    for name, torch_s, titles in (("far", 0.1, [f"{TORCH} was 4.0 times as fast as {TF}"]), ("near", 0.3, [])):
        run = SyntheticRun(tmp_path / name)
        add_trials(run, training_case(16), TORCH, torch_s, trials=1)
        add_trials(run, training_case(16), TF, 0.4, trials=1)
        made = page(run)
        assert [card.title for card in cards(made)] == titles
        assert {card.certainty for card in cards(made)} <= {"seen"}
        assert "No finding is certain." in lead(made)


def test_single_trials_beside_other_programs_are_no_finding(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_trials(run, training_case(16), TORCH, 0.1, trials=1)
    add_trials(run, training_case(16), TF, 0.4, trials=1, others_cpu_percent=60.0)
    assert cards(page(run)) == []


def test_the_step_stands_where_it_was_planted_with_its_cause(tmp_path: Path) -> None:
    for below, above in ((1, 2), (2, 3), (3, 4)):
        (card,) = cards(page(stepping(tmp_path / str(above), folded_from=above)))
        assert card.title.startswith(f"From {below} to {above} towers a later run becomes at least ")
        assert card.title.endswith("times as fast: this is constant folding")
        assert card.certainty == "certain"
        rows = card.charts[0].specification["datasets"]["rows"]
        assert {row["x"] for row in rows if row["y"] < 10} == set(range(above, 5))


def test_a_cause_that_the_interval_of_the_report_does_not_show_looks_like_it_wherever_it_is_said(
    tmp_path: Path,
) -> None:
    made = page(stepping(tmp_path, folded_from=4, scatter=7))
    (card,) = cards(made)
    least = re.fullmatch(r"From 3 to 4 towers .* becomes (at least .* times) as fast: (.*)", card.title)
    assert least
    assert least[2] == "it looks like constant folding"
    assert card.text.endswith("With folding off the step is gone, by an interval of 95 % for itself alone.")
    (row,) = questions_table(made).rows
    answer = row[3].text
    assert f"900 times ({least[1]})" in answer
    assert "It looks like constant folding: the graph that ran was folded on the fast side" in answer
    assert answer.count("by an interval of 95 % for itself alone") == 1


def test_what_no_question_asked_for_is_not_certain(tmp_path: Path) -> None:
    run = stepping(tmp_path, folded_from=4)
    run.run["questions"] = []
    made = page(run)
    (card,) = cards(made)
    assert (card.certainty, card.sure) == ("seen", "Not certain: 95 % for itself alone (3 trials)")
    assert "No finding is certain." in lead(made)


def test_a_step_without_the_cases_that_test_its_cause_has_no_cause(tmp_path: Path) -> None:
    (card,) = cards(page(stepping(tmp_path, folded_from=4, why=False)))
    assert "constant folding" not in card.title
    assert card.text == (
        "The reason is open: the measurements do not show whether with folding switched off the step is gone."
    )


def test_without_a_step_there_is_no_headline(tmp_path: Path) -> None:
    assert cards(page(stepping(tmp_path, folded_from=9))) == []


def with_two_gpus(tmp_path: Path, two: float) -> SyntheticRun:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for batch_size in (128, 512, 2048):
        for model, times in (("cnn10", 1.0), ("wrn28_10", 9.0)):
            step_s = times * (0.009 + batch_size / 4800)
            add_steps(run, TORCH, step_s, batch_size=batch_size, model=model)
            add_steps(run, TORCH, two * step_s, batch_size=batch_size, model=model, devices=2, strategy="data_parallel")
    return run


def test_a_claim_is_a_finding_whether_it_holds_or_not(tmp_path: Path) -> None:
    for name, two, verdict, letter in (("fast", 0.6, "reproduced", "R"), ("slow", 1.5, "contradicted", "C")):
        made = page(with_two_gpus(tmp_path / name, two))
        found = {card.topic: card for card in cards(made)}
        card = found["claim d of torch-2080ti"]
        assert card.title == f"“PyTorch trains faster on two GPUs than on one” {verdict} in {TORCH}"
        (row, *_) = card.charts[0].specification["datasets"]["rows"]
        assert math.isclose(row["value"], two, rel_tol=1e-9)
        assert row["low"] < two < row["high"]
        (row_of_source,) = [each for each in strip(made).rows if each.source == "torch-2080ti"]
        cells = {cell.name: cell for cell in row_of_source.cells}
        assert (cells["d"].letter, cells["j"].letter) == (letter, "·")
        assert cells["d"].words.endswith(f": {verdict} in {TORCH}")
        assert cells["d"].anchor == card.anchor
        assert rows_of_anchors(made)[card.anchor][0].text.startswith("(d) ")


def test_what_a_source_says_against_its_own_numbers_is_marked_as_printed(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(WORDS.case({"suite": "input_pipeline", "protocol": "literal", "strategy": "none", "batch_size": 128}), TF)
    made = page(run)
    (shown,) = [block for block in made.sections[0].blocks if isinstance(block, Highlights)]
    (card,) = shown.items
    assert (card.certainty, card.topic) == ("printed", "claim b of towers-titanx")
    assert card.title.endswith("by the source's own numbers it is 3.27")
    assert [cell.text for cell in rows_of_anchors(made)[card.anchor][1:3]] == ["towers-titanx", "direction only"]


def test_simulated_devices_are_said_where_they_were_measured(tmp_path: Path) -> None:
    """On the card and in the section of their suite, not in warnings at the top of the page."""
    made = page(compared(tmp_path, 0.5, 1.0, simulated=True))
    (card,) = cards(made)
    assert card.sure.endswith("3 trials); simulated devices")
    (suite,) = [section for section in made.sections if section.anchor == "suite-multi_gpu_scaling"]
    assert suite.about.endswith("; warnings: 1")
    first = next(iter(suite.blocks))
    assert isinstance(first, Bullets)
    assert first.items[0].startswith("6 of 6 trials: simulated devices")
    top = [item for block in made.sections[0].blocks if isinstance(block, Bullets) for item in block.items]
    assert not any("simulated" in item for item in top)


def test_out_of_memory_in_one_environment_only_is_seen(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_trials(run, training_case(2048), TORCH, 0.4)
    run.add(training_case(2048), TF, status="out_of_memory", reason="too large")
    (card,) = cards(page(run))
    assert card.title == f"{TF} ran out of memory where {TORCH} did not"


def test_answers_come_first_and_no_more_than_six_cards_are_shown(tmp_path: Path) -> None:
    run = with_two_gpus(tmp_path, 0.6)
    run.run["questions"] = []
    for batch_size in (16, 32, 64, 96, 160, 192, 224):
        case = training_case(batch_size)
        for environment, step_s in ((TORCH, 0.1), (TF, 0.1 + batch_size / 100)):
            add_trials(run, case, environment, step_s, apart=0.01, **GPU)
        asks(run, [(case, TF)], [(case, TORCH)], title={"en": f"batch {batch_size}"})
    found = cards(page(run))
    assert [card.topic for card in found] == [f"batch {size}" for size in (224, 192, 160, 96, 64, 32)]


def test_the_command_ends_with_two_findings_and_counts_all(tmp_path: Path) -> None:
    run, case = compared(tmp_path, 0.5, 1.0), training_case(32)
    for factor in TRIALS:
        run.add(case, TF, [("measure", 0, 1, 32, factor)], repetition=TRIALS.index(factor) + 1)
    asks(run, [(case, TF)], [(training_case(64), TF)], kind="cases", title={"en": "the batch"})
    made = page(run)
    assert made.closing == (
        f"{OLD_AND_NEW}: {TORCH} is at least 1.75 times as fast as {TF}",
        "Certain findings: 1. Open questions: 1.",
    )


def test_the_strip_names_every_claim_once_and_sources_without_a_verdict_in_one_line(tmp_path: Path) -> None:
    run = with_two_gpus(tmp_path, 0.6)
    add_steps(run, TF, 0.5, batch_size=128, model="cnn10")
    made = strip(page(run))
    of_sources = {source.name: [claim.id for claim in source.claims] for source in shipped_sources()}
    shown = {row.source: [cell.name for cell in row.cells] for row in made.rows}
    assert shown == {name: of_sources[name] for name in shown}
    others = {name: len(claims) for name, claims in of_sources.items() if claims and name not in shown}
    assert len(others) > 2
    assert all(f"{name} ({count})" in made.others for name, count in others.items())
    assert {cell.letter for row in made.rows for cell in row.cells} > {"·"}, "a row without a verdict is none"


def test_where_no_claim_was_tested_findings_come_first_and_a_line_says_what_claims_need(tmp_path: Path) -> None:
    made = page(compared(tmp_path, 0.5, 1.0))
    assert lead(made).endswith("Certain findings: 1. Open questions: 0.")
    first, second, third, *_ = made.sections[0].blocks
    assert [type(block) for block in (first, second, third)] == [Text, Highlights, Text], "no strip of dots"
    (line,) = [block.text for block in [*made.sections[0].blocks][2:] if isinstance(block, Text)]
    found = re.fullmatch(r"Published claims that were not tested: (\d+) of \1\. They need (.*)\.", line)
    assert found
    needs = {name: int(count) for name, count in re.findall(r"(?:^|, | and )([^,]*?) \((\d+)\)", found[2])}
    assert sum(needs.values()) == int(found[1]) == sum(len(source.claims) for source in shipped_sources())
    assert needs["NVIDIA GPUs"] == max(needs.values())
    assert needs["something that no suite has"] == 2


def test_a_cause_that_no_interval_shows_only_looks_like_it(tmp_path: Path) -> None:
    for trials in (1, 2):
        made = page(stepping(tmp_path / str(trials), folded_from=4, trials=trials))
        (card,) = cards(made)
        assert card.title.endswith("times as fast: it looks like constant folding")
        assert card.text.endswith("With folding off the step is gone (seen, not tested).")
        assert (card.certainty, "at least" in card.title) == ("seen", False)
        (row,) = questions_table(made).rows
        assert "It looks like constant folding" in row[3].text
        assert "the step is gone (seen, not tested)." in row[3].text


def test_what_an_explanation_found_stands_at_the_top_though_nobody_asked_for_it(tmp_path: Path) -> None:
    run = stepping(tmp_path / "step", folded_from=4)
    run.run["questions"] = []
    (card,) = cards(page(run))
    assert card.topic == f"conv2d, {TF}"
    assert card.title.endswith("times as fast: this is constant folding")
    run = SyntheticRun(tmp_path / "pipeline")
    for batch_size, step_s in ((32, 0.1), (64, 0.2)):
        add_trials(run, pipeline_case("resident", batch_size), TF, step_s)
    bullets = [block for block in page(run).sections[0].blocks if isinstance(block, Bullets)]
    (found,) = [block for block in bullets if block.title == "What explains it"]
    assert found.items[0].startswith(f"input_pipeline, {TF}: ")


def test_a_measurement_has_its_number_and_is_not_open(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.run["questions"] = []
    for batch_size in (16, 32):
        add_trials(run, training_case(batch_size), TF, 0.5, trials=1)
        asks(run, [(training_case(batch_size), TF)], kind="measurement", quantity="")
    made = page(run)
    assert still_open(made) == ()
    assert "Open questions: 0" in lead(made) or "No finding is certain" in lead(made)
    rows = [[cell.text.replace("\u00a0", " ") for cell in row] for row in questions_table(made).rows]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (f"multi_gpu_scaling: batch {batch}", "answered", f"step, mean: {TF} 500 ms") for batch in (16, 32)
    ]


def test_where_nothing_was_found_the_numbers_of_the_only_suite_stand_open_at_the_top(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_trials(run, training_case(16), TORCH, 0.2)
    made = page(run)
    assert not any(isinstance(block, Highlights | Strip) for block in made.sections[0].blocks)
    assert [(section.anchor, section.folded) for section in made.sections[:3]] == [
        ("summary", False),
        ("suite-multi_gpu_scaling", False),
        ("claims", True),
    ]
