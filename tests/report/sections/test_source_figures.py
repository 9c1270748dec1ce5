"""The sources' own pictures: every source is there, whatever ran, and what it takes to add ours is a command."""

from pathlib import Path

import pytest

from tests.gpu_run import add_steps, two_gpus
from tests.report.compared import PUBLISHED, evidence_of, page_of, texts
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case
from tsuishi.report.parts.blocks import Block, Chart, Code, Heading, Section, Text
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.report.parts.wording import Table
from tsuishi.report.sections.source_figures import figures_section

TITAN = "TITAN X (published)"
SOURCES = [path.stem for path in sorted(PUBLISHED.glob("*.toml"))]


def section_of(run: SyntheticRun) -> Section:
    evidence = evidence_of(run, published=True)
    return figures_section(evidence, cases_of_suites(evidence))


def of_source(found: Section, title: str) -> list[Block]:
    """The blocks of the source whose title contains these words."""
    (view,) = [
        view for view in found.views if any(isinstance(block, Heading) and title in block.text for block in view.blocks)
    ]
    return list(view.blocks)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Section:
    """The section of a run whose suite has no source with a picture of it: published points only."""
    run = SyntheticRun(tmp_path_factory.mktemp("section") / "run")
    run.add(conv2d_case(data="random"), TORCH, [("first_run", 0, 1, 840, 0.2)])
    return section_of(run)


def test_every_source_is_there_by_its_published_points_whatever_ran(published: Section) -> None:
    assert published.anchor == "sources"
    assert [chart.name for chart in published.charts] == [
        "source-batch-throughput-speed",
        "source-conv2d-gce-time",
        "source-torch-2080ti-cnn10",
        "source-torch-2080ti-wrn28-10",
        "source-torch-2080ti-accuracy-cnn10",
        "source-torch-2080ti-accuracy-wrn28-10",
    ]
    notes = [block.text for block in published.blocks if isinstance(block, Text) and block.kind == "note"]
    named = [name for note in notes for name in SOURCES if note.startswith(f"{name} (")]
    assert named == ["batch-throughput", "conv2d-gce", "keras-channels-first", "torch-2080ti", "towers-titanx"]


def test_a_source_with_charts_only_has_no_empty_frame_but_a_sentence(published: Section) -> None:
    blocks = of_source(published, "channels_first makes training")
    assert not [block for block in blocks if isinstance(block, Chart)]
    (first, *_) = [block for block in blocks if isinstance(block, Text) and block.topic]
    assert first.topic.startswith("Time of an epoch of cnn10 on one device")
    assert first.text.endswith("no run of this report measured them: L: channels_last; F: channels_first.")


def test_the_command_names_environments_suites_and_gpus(published: Section) -> None:
    blocks = of_source(published, "with PyTorch")
    wanted, command, without, on_cpu = blocks[-4:]
    assert isinstance(wanted, Text)
    assert wanted.text == "To add the missing measurements, on a machine with 2 GPUs:"
    suites = "--suite=channels_first,multi_gpu_scaling --profile=quick report"
    assert command == Code(f"invoke build run-suite --env=tf1.13-cu100-wheels,torch1.2-cu100 {suites}")
    assert isinstance(without, Text)
    assert "Without GPUs" in without.text
    assert on_cpu == Code(f"invoke build run-suite --env=tf1.13-cpu,torch2-cpu {suites}")


def test_the_towers_tables_have_the_sources_rows_and_columns(published: Section) -> None:
    log, power, memory, load = [block for block in of_source(published, "four GPUs") if isinstance(block, Table)]
    assert log.columns[-2:] == ["throughput, images/s", "step, mean, s"]
    assert texts(log)[0] == ["unmodified code: one tower", "step 10", TITAN, "768.2", "0.167"]
    assert texts(log)[5] == ["unmodified code: one tower", "median", TITAN, "764.6", "0.167"]
    assert [row[3] for row in texts(log)[6:11]] == ["2,682.6", "2,475.5", "2,452.7", "2,500.2", "2,853.9"]
    assert texts(power)[0] == ["unmodified code: one tower", TITAN, "77", "15", "15", "15"]
    assert [row[-1] for row in texts(memory)] == ["11,607", "11,701", "11,701", "11,701"]
    assert [row[2:] for row in texts(load)][2:] == [["37", "26", "27", "34"], ["38", "34", "31", "34"]]


def test_the_tables_of_pytorch_have_all_their_rows_in_order(published: Section) -> None:
    (table,) = [block for block in of_source(published, "with PyTorch") if isinstance(block, Table)]
    rows = texts(table)
    assert len(rows) == 15
    assert rows[5] == [
        "1 device, WRN-28-10", "128", "RTX 2080 Ti (published)", "111.89", "110.42", "11,037", "0.8743",
    ]  # fmt: skip
    assert [row[0] for row in rows[::5]] == ["1 device, cnn10", "1 device, WRN-28-10", "2 devices, cnn10"]


def test_ours_stand_beside_a_single_quantity_and_below_several(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    run.add(conv2d_case(devices=3), TF, [("first_run", 0, 1, 840, 0.9)], simulated=True)
    add_steps(run, TORCH, 0.04)
    found = section_of(run)
    (listing,) = [block for block in of_source(found, "tf.nn.conv2d") if isinstance(block, Table)]
    assert listing.columns == ["devices", "V100 (published)", "K80 (published)", f"{TF} on Example CPU @ 2.50GHz"]
    assert texts(listing)[2] == ["3", "5.6454", "3.8373", "0.900"]
    assert texts(listing)[3] == ["4", "0.6842", "0.6907", "—"]
    (table,) = [block for block in of_source(found, "with PyTorch") if isinstance(block, Table)]
    rows = texts(table)
    assert rows[1][:3] == ["1 device, cnn10", "128", f"{TORCH} on RTX 2080 Ti"]
    assert rows[1][4] == "15.6†"
    assert len(rows) == 16


def test_what_was_measured_needs_no_command_and_the_rest_is_named(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for strategy, devices in (("none", 1), ("data_parallel", 2)):
        for model in ("cnn10", "wrn28_10"):
            add_steps(run, TORCH, 0.04, strategy=strategy, devices=devices, model=model)
    blocks = of_source(section_of(run), "with PyTorch")
    missing = [block.text for block in blocks if isinstance(block, Text) and "Not measured here" in block.text]
    assert missing[0].endswith(
        "Not measured here: TensorFlow channels_first, 1 device; TensorFlow channels_first, 2 devices; "
        "TensorFlow channels_last, 1 device; TensorFlow channels_last, 2 devices."
    )
    run = SyntheticRun(tmp_path / "all")
    for devices in range(1, 9):
        run.add(conv2d_case(devices=devices), TF, [("first_run", 0, 1, 840, 0.9)], simulated=devices > 1)
    scipy = conv2d_case(implementation="scipy", strategy=None, feed=None, graph_optimizers=None)
    run.add(scipy, TORCH, [("first_run", 0, 1, 840, 0.25), ("later_runs", 0, 1, 840, 0.24)])
    blocks = of_source(section_of(run), "tf.nn.conv2d")
    assert not [block for block in blocks if isinstance(block, Code)]


def test_the_section_stands_after_the_environments_side_by_side(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(conv2d_case(devices=3), TF, [("first_run", 0, 1, 840, 0.9)])
    page = page_of(evidence_of(run, published=True))
    anchors = [section.anchor for section in page.sections]
    assert anchors[anchors.index("side-by-side") + 1] == "sources"
    assert len(page.tables["readings"]["value"]) == 20
