"""The verdict table: what a reader is told of every claim, and the files behind it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import GPU, add_steps, two_gpus
from tests.reports import table_of
from tests.synthetic_run import TORCH, SyntheticRun, conv2d_case, training_case
from tests.words import WORDS
from tsuishi.base.language import speaking
from tsuishi.report.parts.blocks import Bullets
from tsuishi.report.parts.wording import Table, worded
from tsuishi.report.sections.claim_words import takes, what
from tsuishi.report.sections.verdict_table import Verdicts
from tsuishi.specs.claims import Check
from tsuishi.specs.source import read_sources
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.hypotheses import Missing
from tsuishi.verdicts.judge import Judgement

PUBLISHED = Path(__file__).parents[3] / "reports" / "published"
EVERY = {(source.name, claim.id) for source in read_sources(PUBLISHED, WORDS, tables=False) for claim in source.claims}


def verdicts(run: SyntheticRun) -> Verdicts:
    return Verdicts(Evidence([run.finish()], read_sources(PUBLISHED, WORDS, tables=False), WORDS))


def tables(found: Verdicts) -> list[Table]:
    return [block for view in found.views() for block in view.blocks if isinstance(block, Table)]


def told(table: Table) -> dict[tuple[str, str], list[dict[str, str]]]:
    """The rows by source and claim, each as texts by column."""
    rows: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in table.rows:
        texts = dict(zip(table.columns, [cell.text for cell in row], strict=True))
        rows.setdefault((texts["source"], texts["claim"].split(")")[0].lstrip("(")), []).append(texts)
    return rows


@pytest.fixture
def on_two_gpus(tmp_path: Path) -> SyntheticRun:
    """torch on one and two GPUs: two are faster, at every batch size, with both networks."""
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for batch_size in (128, 512, 2048):
        for model, times in (("cnn10", 1.0), ("wrn28_10", 9.0)):
            step_s = times * (0.009 + batch_size / 4800)
            add_steps(run, TORCH, step_s, batch_size=batch_size, model=model)
            two: dict[str, Any] = {"devices": 2, "strategy": "data_parallel"}
            add_steps(run, TORCH, 0.6 * step_s, batch_size=batch_size, model=model, **two)
    return run


def test_every_claim_of_every_source_has_a_row(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(conv2d_case(), TORCH, [("first_run", 0, 1, 840, 1.0)])
    found = verdicts(run)
    table, own, regions = tables(found)
    assert set(told(table)) == set(told(own)) == EVERY
    derived = sum("(not stated, but it follows)" in rows[0]["claim"] for rows in told(table).values())
    apart = f"Stated by a source: {len(EVERY) - derived}; derived from its numbers: {derived}."
    assert found.headline == f"None of the {len(EVERY)} published claims could be tested here. {apart}"
    # Nobody can check here what takes a TPU, or MXNet.
    assert set(told(regions)) == EVERY - {("torch-2080ti", "j"), ("batch-throughput", "i")}
    assert all(row["why"] and row["holds if"] for rows in told(regions).values() for row in rows)
    assert {rows[0]["verdict"] for rows in told(table).values()} == {"not tested"}


@pytest.mark.long
def test_a_claim_that_holds_says_by_how_much_and_within_what(on_two_gpus: SyntheticRun) -> None:
    rows = told(tables(verdicts(on_two_gpus))[0])
    (row,) = rows["torch-2080ti", "d"]
    assert (row["verdict"], row["on"], row["n"]) == ("reproduced", f"{TORCH}, warm", "3")
    assert row["holds if"] == "below 1"
    assert row["published"].startswith("RTX 2080 Ti: 0.858")
    assert "Later epochs, median, wrn28_10: data_parallel, 2 devices ÷ 1 device: 0.600 (interval " in row["in words"]
    assert row["in words"].endswith("no training as the source timed it is judged here (--profile full).")
    assert rows["torch-2080ti", "c"][0]["verdict"] == "not tested"
    assert "no training as the source timed it" not in rows["torch-2080ti", "c"][0]["in words"]


@pytest.mark.long
def test_what_could_not_be_tested_is_listed_with_what_it_takes(on_two_gpus: SyntheticRun) -> None:
    differences, bullets = (
        block for view in verdicts(on_two_gpus).views() for block in view.blocks if isinstance(block, Bullets)
    )
    (order,) = (item for item in differences.items if "in a random order" in item)
    assert order.startswith("torch-2080ti: ")
    assert "Claims it touches: d." in order
    assert not any("DataLoader" in item for item in differences.items), "no literal training ran"
    assert any("TPU" in item and item.endswith("(torch-2080ti j)") for item in bullets.items)
    assert not any("torch-2080ti d" in item for item in bullets.items)
    for gpus, claims in ((8, "conv2d-gce a, conv2d-gce b and conv2d-gce c"), (4, "conv2d-gce d")):
        (item,) = (item for item in bullets.items if f"({claims})" in item)
        assert f"suite conv2d in an environment with tensorflow. It is about GPUs, and takes at least {gpus} of" in item


@pytest.mark.long
def test_the_sources_are_held_against_their_own_numbers(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(conv2d_case(), TORCH, [("first_run", 0, 1, 840, 1.0)])
    own = told(tables(verdicts(run))[1])
    (towers,) = own["towers-titanx", "b"]
    assert (towers["on printed numbers"], towers["found"], towers["holds if"]) == (
        "direction only",
        "3.27",
        "3.5 to 4.5",
    )
    (distinct,) = own["towers-titanx", "b-distinct"]
    assert (distinct["on printed numbers"], distinct["found"]) == ("reproduced", "0.817")
    assert {one["of"] for one in own["conv2d-gce", "a"]} == {"V100", "K80"}
    (half,) = own["towers-titanx", "c"]
    assert (half["on printed numbers"], half["found"]) == ("reproduced, in part", "-0.763")
    (charts_only,) = own["keras-channels-first", "a"]
    assert charts_only["on printed numbers"] == "no numbers published"


@pytest.mark.long
def test_claims_without_a_verdict_are_told_once_for_all_environments(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for environment in ("tf1.13-cpu", TORCH):
        run.add(conv2d_case(), environment, [("first_run", 0, 1, 840, 1.0)])
    rows = told(tables(verdicts(run))[0])
    (row,) = rows["conv2d-gce", "c"]
    assert row["on"] == "tf1.13-cpu, as its source timed it"
    assert Counter(map(len, rows.values())) == {1: len(EVERY)}


@pytest.mark.long
def test_the_files_have_a_row_for_every_check_and_every_comparison(on_two_gpus: SyntheticRun) -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    for view in verdicts(on_two_gpus).views():
        for name, some in view.rows.items():
            rows.setdefault(name, []).extend(some)
    checks = [row for row in rows["verdicts"] if (row["source"], row["claim"]) == ("torch-2080ti", "d")]
    assert [(row["check"], row["verdict"], row["trials"], row["cases"]) for row in checks] == [
        (1, "reproduced", 3, 6), (2, "reproduced", 3, 6),
    ]  # fmt: skip
    cases = [row for row in rows["verdict_cases"] if (row["source"], row["claim"]) == ("torch-2080ti", "d")]
    assert sorted(row["batch_size"] for row in cases) == [128, 128, 512, 512, 2048, 2048]
    assert all(row["estimate"] == pytest.approx(0.6) for row in cases)


@pytest.mark.long
def test_verdicts_in_japanese_are_in_japanese(on_two_gpus: SyntheticRun) -> None:
    with speaking("ja"):
        table = tables(verdicts(on_two_gpus))[0]
    texts = {cell.text for row in table.rows for cell in row if cell.kind == "verdict"}
    assert texts == {"再現", "未検証"}
    assert all(any(ord(letter) > 0x3000 for letter in row[0].text) for row in table.rows)


def test_verdicts_are_in_the_table_of_a_report(on_two_gpus: SyntheticRun, tmp_path: Path) -> None:
    """With all cases a claim is reproduced; where a case of its mean failed, it is not, and the case is named."""
    from tests.reports import make_report

    def rows() -> dict[tuple[str, str], dict[str, str]]:
        index = make_report([run.finish()], PUBLISHED, Path(__file__).parents[3] / "templates", tmp_path / "out")
        return {(row["source"], row["claim"]): row for row in table_of(index.parent, "verdicts")}

    run = on_two_gpus
    found = rows()
    assert set(found) == EVERY
    assert found["torch-2080ti", "d"]["verdict"] == "reproduced"
    run.add(training_case(64), TORCH, status="failed", reason="exit code 1", **GPU)
    found = rows()
    assert found["torch-2080ti", "d"]["verdict"] == "inconclusive"
    assert "64, fp32 (failed)" in found["torch-2080ti", "d"]["sentence"]


def test_a_check_of_two_quantities_of_the_same_cases_names_both_and_the_cases_once() -> None:
    check = {
        "kind": "order", "quantity": "gpu0_utilisation_percent", "to_quantity": "gpu1_utilisation_percent",
        "case": {"devices": 4, "batch_size": 512}, "to": {}, "hold": {"above": 1.0}, "why": "made up",
    }  # fmt: skip
    with worded(WORDS):
        said = what(Check.model_validate_json(json.dumps(check), context=WORDS))
    assert said == "GPU 0 ÷ GPU 1: 4 devices, batch 512"


def test_a_claim_of_which_nothing_ran_says_all_that_it_takes() -> None:
    """The suite alone was said: half an hour later there was still no verdict, as there was no GPU."""
    why: dict[str, Any] = {"verdict": "not tested", "hindrance": "no environment"}
    said = {
        (source.name, claim.id): (claim, takes(Judgement(source.name, claim, None, **why)))
        for source in read_sources(PUBLISHED, WORDS, tables=False)
        for claim in source.claims
        if not claim.untestable
    }
    assert all(("of NVIDIA" in text) == ("gpu" in claim.about) for claim, text in said.values())
    assert said["batch-throughput", "b"][1].endswith(
        "A test needs suite batch_throughput. It is about GPUs, and takes at least 2 of NVIDIA."
    )


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (Missing("to", {"devices": (1,)}, ("ok",), ("step_s", 0.0)), "1 device: step, mean is 0 s, and a ratio takes"),
        (Missing("to", {"devices": (1,)}, ("failed",)), "1 device: failed."),
        (Missing("to", {"devices": (1,)}, ("ok",)), "Not measured: 1 device. It takes a larger profile"),
    ],
)
def test_a_claim_without_a_number_says_why(missing: Missing, said: str) -> None:
    """Trials that measured 0 are no trials that were not made."""
    source = next(source for source in read_sources(PUBLISHED, WORDS, tables=False) if source.name == "torch-2080ti")
    claim = next(claim for claim in source.claims if claim.id == "d")
    with worded(WORDS):
        found = takes(Judgement(source.name, claim, None, "not tested", (missing,), "no cases"))
    assert found.startswith(said)
