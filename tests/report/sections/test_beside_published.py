"""Your card beside the published ones, against arithmetic done by hand."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import GPU, two_gpus
from tests.report.compared import add_trials, evidence_of, factors, tables
from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    conv2d_case,
    limits_case,
    training_case,
    work,
)
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.machine.compatibility import read_table
from tsuishi.report.parts.blocks import Bullets, Text, View
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.sections.beside_published import cards, cards_view, first_card
from tsuishi.report.sections.quantity_tables import measured_view
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.source import read_source
from tsuishi.verdicts.evidence import Evidence

# Published median epochs of cnn10 on one RTX 2080 Ti, in s, by batch size.
PUBLISHED_S = {128: 13.90, 256: 12.29}
SHEETS = read_table(Checkout().images).data_sheets


def add_epochs(run: SyntheticRun, batch_size: int, epoch_s: float, device: str = "RTX 5090", **axes: Any) -> None:
    """Three trials of full epochs, whose geometric mean is `epoch_s`."""
    steps = math.ceil(50_000 / batch_size)
    for repetition, factor in enumerate(factors(), start=1):
        epochs = [("epoch", index, steps, 50_000, epoch_s * factor) for index in range(3)]
        case = training_case(batch_size, protocol="literal", **axes)
        run.add(case, TORCH, epochs, repetition, device=device, simulated=axes.get("devices", 1) != 1)


def bullets(view: View) -> tuple[str, ...]:
    (found,) = [block for block in view.blocks if isinstance(block, Bullets)]
    return found.items


def test_a_card_is_so_many_times_as_fast_over_the_cases_both_have(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_epochs(run, 128, PUBLISHED_S[128] / 2)
    add_epochs(run, 256, PUBLISHED_S[256] / 8)
    add_epochs(run, 64, 1.0)
    evidence = evidence_of(run, published=True)
    (card,) = [one for one in cards(evidence) if one.which.quantity == "median_epoch_s"]
    assert (card.which.device, card.which.devices, card.cases) == ("RTX 5090", 1, 2)
    assert card.times.value == pytest.approx(4.0)
    # The pool has 6 freedoms, t = 2.4469; the mean of two cases with three trials each.
    reach = 2.446912 * math.sqrt(0.01 / 6)
    assert (card.times.low, card.times.high) == pytest.approx((4 * math.exp(-reach), 4 * math.exp(reach)), rel=1e-4)
    view = cards_view(evidence)
    compared_with = "RTX 5090 beside one RTX 2080 Ti on cnn10, later epochs, median"
    assert f"{compared_with}: 4.00× in {TORCH} (interval 3.62 to 4.42; cases: 2)." in bullets(view)
    (row,) = [row for row in view.rows["cards"] if row["quantity"] == "median_epoch_s"]
    assert (row["times_as_fast"], row["source"], row["derived"]) == (card.times.value, "torch-2080ti", False)


def test_unusual_settings_that_a_number_does_not_name_stand_beside_it_only_alone(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_epochs(run, 128, PUBLISHED_S[128] / 2)
    add_epochs(run, 128, PUBLISHED_S[128] / 8, convolution_tuning="untuned")
    add_epochs(run, 256, PUBLISHED_S[256] / 8, convolution_tuning="untuned")
    (card,) = [one for one in cards(evidence_of(run, published=True)) if one.which.quantity == "median_epoch_s"]
    assert (card.cases, card.times.value) == (2, pytest.approx(4.0))


def test_a_cpu_gets_the_same_sentence_and_its_name(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_epochs(run, 128, 2780.0, device="cpu")
    (sentence,) = [text for text in bullets(cards_view(evidence_of(run, published=True))) if "beside" in text]
    assert sentence.startswith("Example CPU @ 2.50GHz beside one RTX 2080 Ti on cnn10")
    assert "0.00500×" in sentence


def test_the_top_of_a_page_has_the_gpu_that_shares_most_cases_with_a_published_one(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    name = GPU["device"]
    for batch_size, published_s in PUBLISHED_S.items():
        add_epochs(run, batch_size, published_s / 2, device=name)
    evidence = evidence_of(run, published=True)
    said = first_card(evidence)
    assert said.startswith(name)
    assert "2.00" in said
    assert said in cards_said(evidence)
    on_a_cpu = SyntheticRun(tmp_path / "cpu")
    add_epochs(on_a_cpu, 128, 100.0, device="Example CPU @ 2.50GHz")
    assert first_card(evidence_of(on_a_cpu, published=True)) == ""


def cards_said(evidence: Evidence) -> tuple[str, ...]:
    return bullets(cards_view(evidence))


def test_without_a_shared_case_it_says_so(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_epochs(run, 64, 1.0)
    view = cards_view(evidence_of(run, published=True))
    assert bullets(view) == ("No case of one device is shared with RTX 2080 Ti (torch-2080ti).",)
    assert tables(view) == {}


def test_where_no_time_was_published_it_says_so(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(limits_case("memory_copy", buffer_mib=1000), TORCH, [], metrics=work(moved=2e9))
    said = [block.text for block in cards_view(evidence_of(run, published=True)).blocks if isinstance(block, Text)]
    assert said[-1] == "No time was published for the suites that ran here."


def test_simulated_and_derived_and_synthetic_are_marked(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_epochs(run, 128, 5.0, strategy="data_parallel", devices=2)
    for repetition in (1, 2, 3):
        samples = [("epoch", index, 20, 2560, 1.0) for index in range(3)]
        run.add(training_case(128, protocol="literal"), TF, samples, repetition, synthetic=True)
    view = cards_view(evidence_of(run, published=True))
    notes = {
        row[1].text: row[-1].notes for row in tables(view)["All devices, environments and published machines"].rows
    }
    assert notes[TORCH] == ("cases: 1", "Simulated devices.")
    assert notes[TF][1:] == ("Epochs derived from steps or shortened ones.", "Synthetic data.")
    # Two devices that one CPU plays are no card.
    assert not any(TORCH in text for text in bullets(view))


def test_towers_are_compared_with_as_many_of_the_published(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for devices in (1, 4):
        run.add(conv2d_case(devices=devices), TF, [("first_run", 0, 1, 840, 0.1)], simulated=devices > 1)
    found = {(one.which.key, one.which.devices): one.times.value for one in cards(evidence_of(run, published=True))}
    assert found["published_conv2d_gce_v100", 1] == pytest.approx(148.97803307)
    assert found["published_conv2d_gce_v100", 4] == pytest.approx(6.84230804)


PLANTED = """title = "A planted source"
language = "en"
[[hardware]]
name = "theirs"
title = "RTX 2080 Ti"
[[numbers]]
suite = "multi_gpu_scaling"
hardware = "theirs"
case = { mode = "inference", model = "resnet50", layout = "native", devices = 1, precision = "fp32" }
columns = ["batch_size", "throughput_images_per_s", "step_s"]
rows = [[16, 1000, 0.016], [32, 10, 0.032], [64, 64000, 0.001]]
"""
RESNET = {"mode": "inference", "model": "resnet50"}


@pytest.mark.parametrize(("sheets", "cases"), [((), 2), (SHEETS, 1)])
def test_an_impossible_number_is_shown_with_its_reason_and_compared_with_nothing(
    tmp_path: Path, sheets: Sequence[DataSheet], cases: int
) -> None:
    """Planted: a rate that its step and its batch contradict, and with data sheets a rate above the card's limit."""
    (tmp_path / "planted.toml").write_text(PLANTED)
    run = SyntheticRun(tmp_path / "run")
    for batch_size in (16, 32, 64):
        add_trials(run, training_case(batch_size, **RESNET), TORCH, 0.016)
    evidence = Evidence([run.finish()], (read_source(tmp_path / "planted.toml", WORDS),), WORDS, sheets)
    every = {card.which.quantity: card.cases for card in cards(evidence)}
    assert every == {"step_s": cases}
    contradiction = "10 images/s x 0.032 s are 0.32 images, not 32"
    (said,) = [text for text in bullets(cards_view(evidence)) if "impossible" in text]
    numbers = f"Numbers of RTX 2080 Ti that are impossible, and compared with nothing: {6 - 2 * cases}"
    assert said == f"{numbers}; {contradiction}."
    suite_cases = SuiteCases(evidence, "multi_gpu_scaling", "steady")
    assert [known.axes["batch_size"] for known in suite_cases.theirs] == [16, 64][:cases]
    view = measured_view(suite_cases, Explanations(evidence).of("multi_gpu_scaling"))
    rows = [row for table in tables(view).values() for row in table.rows]
    notes = [cell.notes for row in rows if row[1].text == "RTX 2080 Ti (published)" for cell in row if cell.notes]
    assert notes.count((f"impossible: {contradiction}",)) == 2
