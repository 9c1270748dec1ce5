"""From literal to steady: made-up epochs and steps with known parts give their shares, as far as trials show them."""

from pathlib import Path
from typing import Any

import pytest

from suites.explanations.training import TimesOfSteps
from tests.report.compared import evidence_of, factors
from tests.synthetic_run import TORCH, SyntheticRun, steady_samples, training_case
from tests.words import WORDS
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.sections.beside_published import cards
from tsuishi.report.sections.fits import fitted_lines
from tsuishi.specs.source import read_source
from tsuishi.verdicts.evidence import Evidence

LITERAL = {"protocol": "literal"}
HOST, PINNED, AHEAD = ({"batches": value} for value in ("host", "host_pinned", "host_ahead"))
RESIDENT: dict[str, str] = {}
UNTUNED = {"convolution_tuning": "untuned"}
INFERENCE = {"mode": "inference"}
STEPS: list[tuple[dict[str, str], float]] = [(LITERAL, 0.5), (HOST, 0.4), (RESIDENT, 0.25)]


def add(
    run: SyntheticRun, axes: dict[str, str], step_s: float, trials: int = 3, apart: float = 0.01, **more: Any
) -> None:
    """Trials whose geometric mean is `step_s`; a literal epoch has 20 steps, the last of half a batch."""
    case = training_case(more.pop("batch_size", 128), **axes, **more)
    size = case.batch_size or 0
    for repetition, factor in enumerate(factors(apart) if trials == 3 else (1.0,), start=1):
        seconds = step_s * factor
        epochs = [("epoch", index, 20, 39 * size // 2, 19.5 * seconds + (3 if index == 0 else 0)) for index in range(4)]
        samples = epochs if case.protocol == "literal" else steady_samples(size, [seconds] * 4)
        run.add(case, TORCH, samples, repetition)


def told(run: SyntheticRun) -> dict[str, str]:
    """The paragraphs of the only environment that has some, by topic."""
    paragraphs = TimesOfSteps(evidence_of(run), "multi_gpu_scaling").paragraphs()
    return {paragraph.topic: paragraph.text for paragraph in paragraphs.get(TORCH, [])}


def test_a_literal_step_is_computing_feeding_and_the_rest(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for axes, step_s in STEPS:
        add(run, axes, step_s)
    assert told(run) == {
        "From literal to steady: cnn10, batch 128": (
            "A step takes 500\u00a0ms in later epochs of literal training, 400\u00a0ms fed batch by batch from "
            "the host, and 250\u00a0ms on a resident batch: of the literal step 50 % is computing, 30 % feeding and "
            "20 % the rest of the user's loop. A literal step takes 1.2 times as long as a step fed from the host (at "
            "least 1.15 times). A step fed from the host takes 1.6 times as long as a step on a resident batch (at "
            "least 1.47 times)."
        )
    }


def test_literal_passes_have_no_epochs_to_divide(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for axes, step_s in STEPS[1:]:
        add(run, axes, step_s)
    for repetition in (1, 2, 3):
        run.add(training_case(128, protocol="literal"), TORCH, steady_samples(128, [0.5] * 4), repetition)
    assert told(run) == {}


def test_trials_that_scatter_leave_it_open_and_a_single_trial_tests_nothing(tmp_path: Path) -> None:
    run, single = SyntheticRun(tmp_path / "run"), SyntheticRun(tmp_path / "single")
    for axes, step_s in STEPS:
        add(run, axes, step_s, apart=0.3)
        add(single, axes, step_s, trials=1)
    (text,) = told(run).values()
    assert text.count(": open.") == 2
    assert "50 % is computing, 30 % (open) feeding and 20 % (open) the rest" in text
    assert "at least" not in text
    (text,) = told(single).values()
    assert "50 % is computing, 30 % feeding and 20 % the rest" in text
    assert text.endswith(
        "A literal step takes 1.2 times as long as a step fed from the host (seen, not tested). A step fed from the "
        "host takes 1.6 times as long as a step on a resident batch (seen, not tested)."
    )


def test_other_ways_to_feed_and_untuned_convolutions_are_told_where_they_were_measured(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for axes, step_s in [*STEPS, (PINNED, 0.3), (AHEAD, 0.26), (UNTUNED, 0.32)]:
        add(run, axes, step_s)
    (text,) = told(run).values()
    longer = "A step fed from the host takes {} times as long as a step {} (at least {} times)."
    assert longer.format("1.3", "fed from pinned memory", "1.22") in text
    assert longer.format("1.5", "whose batch is made ahead", "1.41") in text
    assert text.endswith(
        "A step of untuned convolutions takes 1.3 times as long as a step on a resident batch (at least 1.18 times)."
    )


def test_nothing_is_said_where_a_part_was_not_measured(tmp_path: Path) -> None:
    for missing in range(len(STEPS)):
        run = SyntheticRun(tmp_path / str(missing))
        for axes, step_s in [*STEPS[:missing], *STEPS[missing + 1 :], (AHEAD, 0.3)]:
            add(run, axes, step_s)
        # Another batch, and a loader of its own, are other cases.
        add(run, STEPS[missing][0], STEPS[missing][1], batch_size=64)
        add(run, {"protocol": "literal", "loader": "torchvision"}, 0.6)
        assert told(run) == {}


def test_paragraphs_say_the_axes_in_which_their_cases_differ(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size, devices in ((128, 1), (128, 2), (256, 1)):
        for axes, step_s in STEPS:
            add(run, axes, step_s, batch_size=batch_size, devices=devices)
    assert [*told(run)] == [
        "From literal to steady: cnn10, 1 device, batch 128",
        "From literal to steady: cnn10, 1 device, batch 256",
        "From literal to steady: cnn10, 2 devices, batch 128",
    ]


PRINTED = """title = "A planted source"
language = "en"
[[hardware]]
name = "theirs"
title = "Their machine"
[[numbers]]
suite = "multi_gpu_scaling"
hardware = "theirs"
framework = "torch"
case = { mode = "inference", model = "cnn10", layout = "native", strategy = "none", devices = 1, nodes = 1, precision = "fp32", execution = "native" }
columns = ["batch_size", "step_s"]
rows = [[1, 0.010], [16, %s], [32, 0.0161], [128, 0.0164], [512, 0.0159]]
"""  # noqa: E501


def add_labelled(run: SyntheticRun) -> None:
    """Their program (literal), which makes two images of every batch but the first."""
    for repetition, factor in enumerate(factors(0.01), start=1):
        for label, step_s in ((1, 0.020), (16, 0.032)):
            measure = [("measure", 0, 10, 20, 10 * step_s * factor)]
            run.add(training_case(label, protocol="literal", **INFERENCE), TORCH, measure, repetition)


@pytest.mark.parametrize(("printed_s", "is_said"), [("0.0160", True), ("0.0080", False)])
def test_printed_times_that_do_not_grow_are_held_against_the_steps_here(
    tmp_path: Path, printed_s: str, is_said: bool
) -> None:
    """Planted: this machine takes twice as long; the printed batches are all of two images, or grow at first."""
    (tmp_path / "planted.toml").write_text(PRINTED % printed_s)
    run = SyntheticRun(tmp_path / "run")
    for batch_size, step_s in ((1, 0.020), (2, 0.032), (16, 0.256)):
        add(run, INFERENCE, step_s, batch_size=batch_size)
        add(
            run, {**INFERENCE, **UNTUNED}, 3 * step_s, batch_size=batch_size
        )  # another case, which the printed one does not say
    add_labelled(run)
    evidence = Evidence([run.finish()], (read_source(tmp_path / "planted.toml", WORDS),), WORDS)
    found = TimesOfSteps(evidence, "multi_gpu_scaling").paragraphs().get(TORCH, [])
    assert bool(found) == is_said
    for paragraph in found:
        assert paragraph.topic == "Printed batches: cnn10"
        assert (
            "is 15.9\u00a0ms to 16.4\u00a0ms for batches of 16 to 512, and does not grow; for 1 it is 10.0\u00a0ms."
            in paragraph.text
        )
        assert "takes 2.00 times as long as is printed for 1, and 16.0 times as long for 16" in paragraph.text
        assert "steps as long as the printed ones have 1.98 to 2.05 images here." in paragraph.text
        assert paragraph.text.endswith(
            "The source's own program (`literal`), with the batch size 16, takes 32.0\u00a0ms here, 2.00 times as long "
            "as is printed. In `steady`, 2.00 images take that time."
        )


def test_labels_are_no_batches_a_card_has_the_source_s_own_way_alone_and_the_model_has_no_line(tmp_path: Path) -> None:
    (tmp_path / "planted.toml").write_text(PRINTED % "0.0160")
    run = SyntheticRun(tmp_path / "run")
    for batch_size, step_s in ((1, 0.020), (16, 0.256)):
        add(run, INFERENCE, step_s, batch_size=batch_size)
    add_labelled(run)
    evidence = Evidence([run.finish()], (read_source(tmp_path / "planted.toml", WORDS),), WORDS)
    (card,) = cards(evidence)
    assert (card.cases, card.times.value) == (2, pytest.approx(0.5))
    for protocol, lines in (("steady", 1), ("literal", 0)):
        rows = fitted_lines(SuiteCases(evidence, "multi_gpu_scaling", protocol)).rows.get("throughput_model", [])
        assert len([row for row in rows if row["series"] == TORCH]) == lines
