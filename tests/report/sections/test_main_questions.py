"""Questions on the page and at the end of the command."""

import re
from pathlib import Path
from typing import Any

from tests.gpu_run import GPU, two_gpus
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case, training_case
from tests.words import WORDS, shipped_sources
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.sections.main_questions import Questions
from tsuishi.report.sections.verdict_table import Verdicts
from tsuishi.verdicts.evidence import Evidence

SOURCES = shipped_sources()


def question(name: str, of: list[list[str]], to: list[list[str]], **more: Any) -> dict[str, Any]:
    environments = list(dict.fromkeys(cell[1] for cell in [*of, *to]))
    return {
        "id": f"suite/{name}", "kind": "cases", "title": {"en": name, "ja": f"{name}？"}, "suite": "multi_gpu_scaling",
        "worth": 1.0, "quantity": "step_s", "environments": environments, "of": of, "to": to, "main": True, **more,
    }  # fmt: skip


def questions(run: SyntheticRun) -> Questions:
    evidence = Evidence([run.finish()], SOURCES, WORDS)
    return Questions(evidence, Verdicts(evidence).conclusions.answers, Explanations(evidence))


def add_steps(run: SyntheticRun, batch_size: int, environment: str, *steps_s: float, **axes: str) -> list[str]:
    case = training_case(batch_size, **axes)
    for number, step_s in enumerate(steps_s, 1):
        run.add(case, environment, [("measure", 0, 1, batch_size, step_s)], repetition=number)
    return [case.id, environment]


def compared(tmp_path: Path, torch_s: tuple[float, ...], tf_s: tuple[float, ...], **more: Any) -> Questions:
    run = SyntheticRun(tmp_path / "run")
    of, to = add_steps(run, 16, TF, *tf_s), add_steps(run, 16, TORCH, *torch_s)
    run.run["questions"] = [question("old against new", [of], [to], kind="environments", **more)]
    return questions(run)


def test_a_comparison_is_answered_by_its_ratio_and_interval(tmp_path: Path) -> None:
    found = compared(tmp_path, (0.5, 0.51, 0.49), (1.0, 1.02, 0.98))
    (answer,) = found.answers
    assert (answer.state, answer.trials) == ("answered", 3)
    # The sides' scatter is the same, 2 %: t with 4 degrees of freedom. At the first look a main question alone has
    # 1.25 %: 4.315 * 0.02 * sqrt(2 / 3) = 7.0 %. Beside it 10 % that three trials do not show: 2.498 normal deviations
    # of modes of 5 %, as far as the scatter does not show them, and of days of 1 %.
    assert found.words(answer) == "step, mean of tf1.13-cpu is 2.00 times that of torch2-cpu, interval 1.77 to 2.26"


def test_a_comparison_whose_interval_holds_1_is_open(tmp_path: Path) -> None:
    found = compared(tmp_path, (0.5, 1.0, 0.8), (1.0, 0.5, 0.7))
    assert found.answers[0].state == "open"
    assert re.search(
        r"3 trials find a difference of [1-9]\.\d+ times in four of five runs", found.words(found.answers[0])
    )


def test_an_interval_that_says_nothing_is_not_printed(tmp_path: Path) -> None:
    """A report said: 1.11 times, interval 0.0720 to 17.1; 3 trials find a difference of 6,121 times."""
    found = compared(tmp_path, (0.1, 1.0, 9.0), (4.0, 0.3, 0.9))
    said = found.words(found.answers[0])
    assert said == "step, mean of tf1.13-cpu is 1.06 times that of torch2-cpu (open: its trials scatter too much)"


def test_words_and_headline_have_the_larger_side_first(tmp_path: Path) -> None:
    found = compared(tmp_path, (1.0, 1.02, 0.98), (0.5, 0.51, 0.49))
    both = found.compared(found.answers[0])
    assert found.words(found.answers[0]).startswith("step, mean of torch2-cpu is 2.00 times that of tf1.13-cpu")
    assert both.headline() == "tf1.13-cpu is at least 1.76 times as fast as torch2-cpu"
    assert both.ratio.low is not None
    assert both.ratio.low > 1.76


def test_single_trials_show_a_ratio_and_decide_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, (0.5,), (1.0,))
    assert found.answers[0].state == "open"
    assert found.words(found.answers[0]).endswith("is 2.00 times that of torch2-cpu (no interval: a single trial)")


def test_single_trials_beside_other_programs_show_no_ratio(tmp_path: Path) -> None:
    """A first page said 2.21 times of trials of which others took 78 and 50 % of the cores; in truth it was 1.08."""
    run, case = SyntheticRun(tmp_path / "run"), training_case(16)
    for environment, step_s, others in ((TF, 1.0, 78.2), (TORCH, 0.45, 50.0)):
        run.add(case, environment, [("measure", 0, 1, 16, step_s)], others_cpu_percent=others)
    sides = [[case.id, environment] for environment in (TF, TORCH)]
    run.run["questions"] = [question("old against new", sides[:1], sides[1:], kind="environments")]
    found = questions(run)
    assert found.words(found.answers[0]) == (
        "no ratio: other programs took up to 78 % of the cores beside its trials, and single trials then differ by "
        "chance"
    )


def test_two_that_are_alike_are_said_to_be(tmp_path: Path) -> None:
    few = compared(tmp_path / "3", (1.0, 1.001, 0.999), (1.0, 1.001, 0.999))
    assert few.answers[0].state == "open"
    found = compared(tmp_path / "6", (1.0, 1.001, 0.999) * 2, (1.0, 1.001, 0.999) * 2)
    assert found.answers[0].state == "answered"
    assert found.words(found.answers[0]).endswith(
        "(usual trials differ by less than a tenth; a kind of trial that is rarer than 40 % may be missing in 6 trials)"
    )


def test_cases_are_named_by_what_tells_them_apart(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    of, to = add_steps(run, 16, TF, 1.0, 1.0, 1.01), add_steps(run, 32, TF, 2.0, 2.0, 2.02)
    run.run["questions"] = [question("batches", [of], [to])]
    found = questions(run)
    assert "batch 32 is 2.00 times that of batch 16" in found.words(found.answers[0])


def test_what_readers_are_spared_is_named_where_it_alone_tells_two_cases_apart(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    of, to = add_steps(run, 16, TF, 1.0, execution="compiled"), add_steps(run, 16, TF, 2.0, execution="native")
    run.run["questions"] = [question("compiled", [of], [to])]
    found = questions(run)
    assert "native is 2.00 times that of compiled" in found.words(found.answers[0])


def test_a_case_that_brings_no_number_answers_nothing_and_says_why(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    of, other = add_steps(run, 16, TF, 1.0, 1.0, 1.0), training_case(64)
    run.add(other, TF, status="out_of_memory", reason="too large")
    run.run["questions"] = [question("too large", [of], [[other.id, TF]])]
    found = questions(run)
    assert found.answers[0].state == "cannot be answered"
    assert found.words(found.answers[0]) == "a case of this question is out of memory"


def test_a_planned_case_that_was_not_come_to_leaves_its_question_open(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    of, other = add_steps(run, 16, TF, 1.0, 1.0, 1.0), training_case(64)
    run.add_plan(other, TF)
    run.run["questions"] = [question("half", [of], [[other.id, TF]])]
    found = questions(run)
    assert found.answers[0].state == "open"
    assert found.words(found.answers[0]) == "not measured yet: batch 64"


def test_an_explanation_is_what_the_report_finds_out(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    cells = []
    for devices, later_s in ((3, 0.12), (4, 0.0004)):
        case = conv2d_case(devices=devices)
        for number in (1, 2, 3):
            run.add(case, TF, [("first_run", 0, 1, 840, 1.0), ("later_runs", 0, 1, 840, later_s)], repetition=number)
        cells.append([case.id, TF])
    asked = {"kind": "explanation", "suite": "conv2d", "quantity": ""}
    run.run["questions"] = [question("why", cells, [], **asked)]
    found = questions(run)
    assert found.answers[0].state == "answered"
    assert found.words(found.answers[0]).startswith("Later runs become faster from 3 to 4 towers")


def test_a_claim_is_answered_by_its_verdict(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    cells = []
    for batch_size in (8, 16, 32, 64):
        case = training_case(batch_size, suite="batch_throughput")
        for number, wobble in enumerate((0.999, 1.0, 1.001), 1):
            seconds = wobble * (batch_size / 1000 + 0.01)
            run.add(case, TF, [("measure", 0, 1, batch_size, seconds)], repetition=number, **GPU)
        cells.append([case.id, TF])
    asked = {"kind": "claim", "suite": "", "quantity": "", "source": "batch-throughput", "claim": "a"}
    run.run["questions"] = [question("a straight line", cells, [], **asked)]
    found = questions(run)
    assert found.answers[0].state == "answered"
    assert found.title(found.answers[0].asked) == "batch-throughput (a): a straight line"
    assert found.words(found.answers[0]).startswith("reproduced: ")


def test_main_questions_come_first(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    of, to = add_steps(run, 16, TF, 1.0, 1.0, 1.01), add_steps(run, 32, TF, 2.0, 2.0, 2.02)
    run.run["questions"] = [question("late", [of], [to], main=False), question("early", [of], [to])]
    found = questions(run)
    assert [found.title(answer.asked) for answer in found.answers] == ["early", "late"]


def test_what_more_time_would_bring_is_told_in_minutes(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    of, to = add_steps(run, 16, TF, 1.0), add_steps(run, 32, TF, 2.0)
    claim = {"kind": "claim", "source": "batch-throughput", "claim": "a2"}
    run.run["questions"] = [question("now", [of], [to])]
    run.run["more"] = [
        {"seconds": 61.0, **question("later", [of], [to])},
        {"seconds": 600.0, **question("a2", [of], [], **claim)},
    ]
    found = questions(run)
    assert found.more() == [
        "with 2 min more: later (tf1.13-cpu)",
        "with 10 min more: claim a2 of batch-throughput (tf1.13-cpu)",
    ]
    (view,) = found.views()
    assert view.rows["questions"][0]["title"] == "now"


def test_a_run_without_questions_has_none(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_steps(run, 16, TF, 1.0)
    found = questions(run)
    assert (list(found.views()), found.more()) == ([], [])


def test_a_comparison_with_a_number_of_0_or_none_cannot_be_answered_and_says_why(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    cells = {}
    for batch_size, printed in ((16, 0.5), (32, 0.0), (64, None)):
        case = training_case(batch_size)
        cells[batch_size] = [case.id, TF]
        metrics = [] if printed is None else [("test_accuracy", printed, "1")]
        run.add(case, TF, [("measure", 0, 1, batch_size, 1.0)], metrics=metrics)
    run.run["questions"] = [
        question(name, [cells[of]], [cells[to]], quantity="accuracy")
        for name, of, to in (("zero", 32, 16), ("silent", 16, 64))
    ]
    found = questions(run)
    assert [answer.state for answer in found.answers] == ["cannot be answered"] * 2
    assert list(map(found.words, found.answers)) == [
        "batch 32: accuracy on the test images is 0, and a ratio takes numbers above 0",
        "batch 64: no trial has the number “accuracy on the test images”",
    ]
    assert found.more() == []
