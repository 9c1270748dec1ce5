"""`invoke publish`: the numbers of an archive become a published source, and the next report compares with them."""

import statistics
from pathlib import Path

import pytest

from tests.commands.test_tasks import checkout, invoke
from tests.extras.handover.archived import packed
from tests.reports import table_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case, listed, training_case
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.specs.source import read_source

STEPS_S = (0.11, 0.10, 0.12)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("publish")
    run = SyntheticRun(folder / "20261121-080000-example")
    for repetition, step_s in enumerate(STEPS_S, start=1):
        blocks = [("measure", index, 10, 160, 10 * step_s) for index in range(4)]
        run.add(training_case(16), TORCH, blocks, repetition)
    run.add(conv2d_case(devices=2), TF, [("first_run", 0, 1, 840, 1.5)], simulated=True)
    run.add(conv2d_case(), TF, [("first_run", 0, 1, 840, 2.5), ("later_runs", 0, 1, 840, 0.5)])
    packed(folder / "a.tsuishi.zip", [listed(run.finish())])
    return folder / "a.tsuishi.zip"


@pytest.fixture(scope="module")
def published(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real suites, where an archive was published."""
    root = checkout(tmp_path_factory.mktemp("checkout"), "ok")
    (root / "suites").rename(root / "bench-suites")
    (root / "suites").symlink_to(Checkout().suites)
    done = invoke(root, "publish", str(archive), "--name", "lab-2026", "--title", "Our lab, 2026")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numbers; `invoke list --sources` shows it" in done.stdout
    return root


def test_every_number_is_there_with_all_its_readings(published: Path) -> None:
    source = read_source(published / "reports" / "published" / "lab-2026.toml", WORDS)
    assert source.title == "Our lab, 2026"
    assert source.date == "2026-11-21"
    found = {(number.hardware, number.quantity, number.axes["suite"]): number for number in source.flat()}
    step = found["torch2-cpu", "step_s", "multi_gpu_scaling"]
    assert step.readings == pytest.approx(STEPS_S)
    assert step.value == pytest.approx(statistics.median(STEPS_S))
    assert step.framework == "torch"
    assert step.axes == {"suite": "multi_gpu_scaling", **training_case(16).axes}
    assert found["tf1-13-cpu", "first_run_s", "conv2d"].value == 2.5
    assert all(number.axes.get("devices") != 2 for number in source.flat())


def test_where_it_comes_from_is_kept(published: Path, archive: Path) -> None:
    source = read_source(published / "reports" / "published" / "lab-2026.toml", WORDS)
    notes = [str(note) for note in source.notes]
    assert any("run 20261121-080000-example, profile quick" in note for note in notes)
    verified = invoke(published, "verify", "--archive", str(archive)).stdout
    root = verified.partition("; root ")[2][:64]
    assert any(f"with the root {root}" in note for note in notes)
    assert any("left out: 1 numbers" in note or "left out: " in note for note in notes)


def test_a_report_compares_with_it(published: Path, archive: Path) -> None:
    done = invoke(published, "report", "--archive", str(archive), "--out", "beside")
    assert done.returncode == 0, done.stdout + done.stderr
    every = table_of(published / "reports" / "out" / "beside", "published")
    rows = [row for row in every if row["source"] == "lab-2026"]
    assert {row["quantity"] for row in rows} >= {"step_s", "first_run_s"}


def test_an_archive_without_a_number_writes_no_source(published: Path, tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "20261121-080000-simulated")
    run.add(conv2d_case(devices=2), TF, [("first_run", 0, 1, 840, 1.5)], simulated=True)
    packed(tmp_path / "b.tsuishi.zip", [listed(run.finish())])
    refused = invoke(published, "publish", str(tmp_path / "b.tsuishi.zip"), "--name", "nothing")
    assert refused.returncode == 1
    assert "none of its numbers can be published" in refused.stderr
    assert not (published / "reports" / "published" / "nothing.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", "lab-2026"), "there is such a source already: give another --name"),
        ((), "--name takes letters of ASCII in lower case, digits and '-'; given: nothing"),
        (("--name", "../a"), "--name takes letters of ASCII in lower case, digits and '-'; given: ../a"),
    ],
)
def test_mistakes_are_a_line(published: Path, archive: Path, arguments: tuple[str, ...], said: str) -> None:
    refused = invoke(published, "publish", str(archive), *arguments)
    assert refused.returncode == 1
    assert refused.stderr.endswith(f"{said}\n")
