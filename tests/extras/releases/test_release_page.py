"""What the page of `invoke find` says: of changes, of releases that narrow nothing, of a search that has not ended."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tsuishi.base.checkout import Checkout
from tsuishi.estimates.intervals import Contrast
from tsuishi.extras.releases.release_changes import ReleaseChange, SearchResult, SearchVerdict
from tsuishi.extras.releases.release_page import ReleaseAnswer, write_answer
from tsuishi.specs.environment import read_environment

NAMES = ("tf1.8-cpu", "tf1.13-cpu", "tf2-cpu")


def answer(ratio: float, verdict: SearchVerdict = "changed", error: float = 0.01, unit: str = "s") -> ReleaseAnswer:
    change = ReleaseChange("tf1.8-cpu", "tf2-cpu", Contrast(math.log(ratio), error, 11), 0.01, ("tf1.13-cpu",))
    releases = tuple(read_environment(Checkout().images / f"{name}.toml") for name in NAMES)
    result = SearchResult(verdict, (change,), ("tf1.13-cpu",), ("a, b",))
    values = {"tf1.8-cpu": [1.0, 1.02], "tf2-cpu": [ratio, ratio]}
    return ReleaseAnswer("later runs", "a suite (devices=3)", unit, releases, values, {"tf1.13-cpu": "no"}, result, 4)


@pytest.mark.parametrize(
    ("ratio", "unit", "words"),
    [
        (2.0, "s", "at least 1.93 times as slow (ratio 2, interval 1.94 to 2.06)"),
        (0.5, "s", "at least 1.93 times as fast (ratio 0.5, interval 0.485 to 0.516)"),
        (2.0, "images/s", "at least 1.93 times as much (ratio 2, interval 1.94 to 2.06)"),
        (0.5, "images/s", "at least 1.93 times as little (ratio 0.5, interval 0.485 to 0.516)"),
    ],
)
def test_a_change_is_stated_by_the_near_end_of_its_interval(ratio: float, unit: str, words: str) -> None:
    assert answer(ratio, unit=unit).sentences() == [
        "later runs of a suite (devices=3) changed between tf1.8-cpu and tf2-cpu",
        "between tf1.8-cpu (1.8.0, 2018-04-28) and tf2-cpu (2.21.0, 2026-03-06), with tf1.13-cpu between them: "
        + words,
        "tf1.13-cpu cannot run it (no): it does not narrow the search",
        "undecided after all rounds: a, b",
    ]


def test_a_change_that_is_not_certain_and_a_search_that_is_open_are_said_to_be_so() -> None:
    said = answer(1.01, "open", error=0.1).sentences()
    assert said[0].endswith(": the search has not ended; these are the results so far")
    assert said[1].endswith("1.01 times, which is not certain (ratio 1.01, interval 0.74 to 1.38)")
    assert said[3] == "not decided yet: a, b"


def test_ends_that_are_alike_do_not_speak_for_the_releases_between_them() -> None:
    alike = replace(
        answer(1.0), result=SearchResult("alike"), unvisited="--all visits all 10, in 30 trials at least: 4 min"
    )
    assert alike.sentences() == [
        "later runs of a suite (devices=3): no change between tf1.8-cpu and tf2-cpu: they are alike within 10 %",
        "a release between them may still differ: none was visited; --all visits all 10, in 30 trials at least: 4 min",
    ]


def test_an_open_search_says_between_which_releases_it_stands_and_a_change_what_was_counted_beside_it() -> None:
    found = answer(2.0, "open")
    counted = {"convolutions left": {"tf1.8-cpu": 3, "tf2-cpu": 0}, "convolutions": {"tf1.8-cpu": 3, "tf2-cpu": 3}}
    said = replace(found, result=replace(found.result, narrowed=("tf1.13-cpu", "tf2-cpu")), counted=counted).sentences()
    assert said[1] == (
        "narrowed so far: the change lies between tf1.13-cpu (1.13.1, 2019-02-26) and tf2-cpu (2.21.0, 2026-03-06)"
    )
    assert said[3] == "beside it, in every trial: convolutions left: 3 in tf1.8-cpu, 0 in tf2-cpu"
    assert not any("convolutions: " in line for line in said)


def test_the_page_has_a_row_for_each_release_and_a_chart_and_its_data_are_json(tmp_path: Path) -> None:
    page = write_answer(tmp_path / "out", answer(2.0))
    text = page.read_text()
    assert "| tf1.8-cpu | 1.8.0 | 2018-04-28 | 2 | 1.01 s |" in text
    assert "| tf1.13-cpu | 1.13.1 | 2019-02-26 | 0 | no |" in text
    svg = page.with_suffix(".svg").read_text()
    assert "2.21.0" in svg
    assert "later runs, s" in svg
    data = json.loads(page.with_suffix(".json").read_text())
    assert (data["changes"][0]["older"], data["changes"][0]["ratio"]) == ("tf1.8-cpu", 2.0)
    assert data["unable"] == {"tf1.13-cpu": "no"}
