"""Any suite of the workload is diagnosed: its sizes come from the cases, and it names a source only where there is one.

Numbers as measured: 1,680 images of 50x50 float32 in TensorFlow 1.13, which folds what has less than 10 MiB.
"""

from pathlib import Path
from typing import Any

from suites.explanations.conv2d.observations import base_case
from suites.explanations.conv2d.towers import by_towers
from tests.report.compared import compared, evidence_of, page_of, tables, texts
from tests.synthetic_run import TF, SyntheticRun, conv2d_case
from tsuishi.report.parts.explanation import Explanations
from tsuishi.specs.case import Case

SUITE = "conv2d_small"
SIZES = {"images": 1680, "height": 50, "width": 50}
# First and later runs in s, and convolutions left in the graph, by number of towers.
FOLDED = {1: (1.752, 0.4393, 1), 2: (0.3898, 0.0009101, 0), 3: (0.4524, 0.0005801, 0), 4: (0.3799, 0.0007035, 0)}
UNFOLDED = {1: (0.5513, 0.4521, 1), 2: (0.5578, 0.4587, 2), 3: (0.4257, 0.3599, 3), 4: (0.4806, 0.2904, 4)}


def case(**axes: Any) -> Case:
    return conv2d_case(**{"suite": SUITE, **SIZES, **axes})


def small_run(path: Path) -> SyntheticRun:
    run = SyntheticRun(path, workloads={SUITE: "conv2d"})
    for graph_optimizers, runs in (("default", FOLDED), ("no_folding", UNFOLDED)):
        for count, (first_s, later_s, left) in runs.items():
            samples = [("first_run", 0, 1, 1680, first_s), ("later_runs", 0, 1, 1680, later_s)]
            metrics = [("convolutions_in_graph", count, "1"), ("convolutions_left_in_graph", left, "1")]
            one = case(devices=count, graph_optimizers=graph_optimizers)
            run.add(one, TF, samples, metrics=metrics, simulated=count > 1)
    edge = {"largest_folded": (1048, 0.001027), "smallest_unfolded": (1049, 0.1633)}
    run.add(
        case(search="folding_edge", data="random"),
        TF,
        [(f"{side}_run", 0, 1, images, seconds) for side, (images, seconds) in edge.items()],
        metrics=[
            *((f"{side}_images", images, "1") for side, (images, _) in edge.items()),
            *((f"{side}_input_mib", images * 10_000 / 2**20, "MiB") for side, (images, _) in edge.items()),
        ],
    )
    return run


def test_the_step_the_edge_and_the_cause_of_a_suite_of_other_sizes(tmp_path: Path) -> None:
    found = Explanations(evidence_of(small_run(tmp_path / "run"), published=True)).of(SUITE).paragraphs()[TF]
    text = {paragraph.topic: paragraph.text for paragraph in found}
    assert text["In short"].startswith(
        "Later runs become faster from 1 to 2 towers, 439 and 0.910 ms: 483 times. First runs: 1.75 and 0.390 s. It "
        "looks like constant folding: the graph that ran was folded on the fast side and not on the slow one, and with "
        "folding switched off the step is gone (seen, not tested)."
    )
    assert text["Where folding stops"] == (
        "One tower is folded up to 1,048 images (9.99 MiB), and no longer with 1,049 (10.0 MiB). Later runs then take "
        "1.03 ms and 163 ms. From 2 towers on, each tower has at most so many of the 1,680 images; the step is there, "
        "too."
    )


def test_nothing_is_said_of_a_source_that_published_nothing_of_the_suite(tmp_path: Path) -> None:
    evidence = evidence_of(small_run(tmp_path / "run"), published=True)
    found = Explanations(evidence).of(SUITE).paragraphs()[TF]
    said = " ".join(f"{paragraph.topic} {paragraph.text}" for paragraph in found)
    assert [word for word in ("source", "Guess", "published", "840") if word in said] == []


def test_the_page_has_the_diagnosis_and_the_step_of_the_runs(tmp_path: Path) -> None:
    page = page_of(evidence_of(small_run(tmp_path / "run"), published=True))
    assert set(page.tables["diagnosis"]["suite"]) == {SUITE}
    ratios = page.tables["ratios"]
    assert set(zip(ratios["devices"], ratios["more_devices"], strict=True)) == {(1, 2)}
    assert max(ratios["ratio"]) == 0.4393 / 0.0009101


def test_runs_without_a_step_have_no_ratio(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", workloads={SUITE: "conv2d"})
    for count in (1, 2, 4):
        run.add(case(devices=count), TF, [("first_run", 0, 1, 1680, 1.0 / count)])
    view = by_towers(compared(run, suite=SUITE, protocol="literal"))
    (table,) = tables(view).values()
    assert table.columns == ["", "", "1 tower", "2 towers", "4 towers"]
    assert [len(row) for row in texts(table)] == [5]
    assert view.rows["ratios"] == []


def sizes_of(*cases: Case) -> tuple[int, ...]:
    base = base_case(one.axes for one in cases)
    return tuple(base[axis] for axis in ("images", "channels", "filter_size"))


def test_the_base_case_has_the_sizes_of_most_numbers_of_towers() -> None:
    several = [case(devices=count, filter_size=5) for count in (1, 2, 3)]
    assert sizes_of(case(devices=1), case(devices=2), *several) == (1680, 1, 5)


def test_of_sizes_of_as_many_the_base_case_has_the_least_work_and_most_images() -> None:
    variants = [{"filter_size": 10}, {"channels": 10, "images": 84}, {"images": 400}, {}]
    assert sizes_of(*(case(devices=count, **axes) for axes in variants for count in (1, 4))) == (1680, 1, 3)


def test_the_images_of_the_base_case_are_ones_where_any_are() -> None:
    random = [case(devices=count, data="random") for count in (1, 2)]
    assert base_case(one.axes for one in random)["data"] == "random"
    assert base_case(one.axes for one in (*random, case()))["data"] == "ones"


def test_a_search_on_other_images_says_nothing_of_the_edge(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", workloads={SUITE: "conv2d"})
    for count in (1, 2):
        run.add(case(devices=count), TF, [("first_run", 0, 1, 1680, 1.0 / count)])
    other = case(search="folding_edge", data="random", height=200, width=200)
    run.add(other, TF, [], metrics=[("largest_folded_images", 65, "1"), ("largest_folded_input_mib", 9.9, "MiB")])
    topics = [one.topic for one in Explanations(evidence_of(run)).of(SUITE).paragraphs()[TF]]
    assert "Where folding stops" not in topics
