"""What plans can decide of the claims, on every machine of docs/claims.md, and what is missing where they cannot."""

import re
import subprocess
import sys

import pytest

from benchmarks.claims_table import PAGE, TIMES, Plan, page, suites_of, takes
from tests.commands.test_tasks import REAL
from tests.words import shipped_sources
from tsuishi.plan.decidable import GpusHere, Situation, Takes, what_claims_take
from tsuishi.plan.lines import claim_rows
from tsuishi.specs.case import SUITE

SOURCES = shipped_sources()
UNTESTABLE = {("batch-throughput", "i"), ("torch-2080ti", "j")}
GPUS = (0, 1, 2, 4, 8)


@pytest.mark.long
def test_every_claim_but_those_on_mxnet_and_a_tpu_is_decided_by_the_full_profile_on_some_machine() -> None:
    decided = {
        key for gpus in GPUS for key, needs in takes(Plan(gpus, "full", "no limit")).items() if needs == "planned"
    }
    for source in SOURCES:
        if suites := suites_of(source):
            plans = [takes(Plan(gpus, "full", "no limit", suites)) for gpus in (0, 2)]
            decided |= {key for found in plans for key, needs in found.items() if needs == "planned"}
    every = {(source.name, claim.id) for source in SOURCES for claim in source.claims}
    assert every - decided == UNTESTABLE


@pytest.mark.long
@pytest.mark.parametrize("profile", ["quick", "full"])
def test_more_time_and_more_gpus_decide_no_less(profile: str) -> None:
    def decided(gpus: int, time: str) -> int:
        return sum(needs == "planned" for needs in takes(Plan(gpus, profile, time)).values())  # type: ignore[arg-type]

    by_time = [decided(2, time) for time in TIMES]
    by_gpus = [decided(gpus, "no limit") for gpus in GPUS]
    assert by_time == sorted(by_time)
    assert by_gpus == sorted(by_gpus)
    assert by_gpus[0] < by_gpus[-1]


@pytest.mark.parametrize(
    ("gpus", "profile", "time", "claim", "needs"),
    [
        (0, "quick", "no limit", ("keras-channels-first", "a"), "gpus"),
        (1, "quick", "no limit", ("keras-channels-first", "c"), "gpus"),
        (2, "quick", "no limit", ("keras-channels-first", "c"), "planned"),
        (2, "quick", "no limit", ("torch-2080ti", "n"), "profile"),
        (1, "quick", "10 min", ("keras-channels-first", "b"), "planned"),
        (1, "quick", "10 min", ("batch-throughput", "d"), "time"),
        (1, "quick", "no limit", ("keras-channels-first", "e"), "data"),
        (0, "quick", "no limit", ("timm-results", "a"), "suite"),
        (8, "full", "no limit", ("torch-2080ti", "j"), "nothing"),
    ],
)
def test_a_claim_takes(gpus: int, profile: str, time: str, claim: tuple[str, str], needs: Takes) -> None:
    assert takes(Plan(gpus, profile, time))[claim] == needs  # type: ignore[arg-type]


def test_a_claim_takes_gpus_of_its_scope() -> None:
    def of(memory_gib: float, peer_to_peer: bool) -> dict[tuple[str, str], Takes]:
        bridged = {2: peer_to_peer, 8: False}
        claims = [claim for source in SOURCES for claim in source.claims]
        suites = frozenset[str | int](suite for claim in claims for suite in claim.named(SUITE))
        return what_claims_take(SOURCES, Situation(GpusHere(8, memory_gib, bridged), frozenset(), suites, (), (), {}))

    assert of(24.0, False)["torch-2080ti", "e"] == "hardware"
    assert of(11.0, False)["torch-2080ti", "e"] == "environment"
    assert of(11.0, True)["batch-throughput", "b"] == "hardware"


def test_claims_are_listed_by_what_they_take() -> None:
    rows = claim_rows({("s", "a"): "gpus", ("s", "b"): "planned", ("r", "a"): "gpus"})
    assert rows == [("1 can be judged by this plan", "s b"), ("2 need NVIDIA GPUs that are not here", "s a; r a")]
    rows = claim_rows({("s", "a"): "suite", ("s", "b"): "suite"}, {("s", "a"): "--suite x, 2 min"})
    assert rows == [("2 need another suite", "s a (--suite x, 2 min), b")]


@pytest.mark.runs
def test_a_plan_names_the_suite_of_a_claim_that_any_machine_can_judge() -> None:
    words = [sys.executable, "-m", "invoke", "run-suite", "--plan", "--env", "torch2-cpu", "--engine", "venv"]
    planned = subprocess.run(words, cwd=REAL.root, capture_output=True, text=True, timeout=300)
    assert re.search(r"timm-results a \(--suite timm_results, \d+ min\)", planned.stdout), planned.stderr


@pytest.mark.runs
def test_the_page_of_claims_is_that_of_these_suites_and_sources() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m benchmarks.claims_table writes it anew"
