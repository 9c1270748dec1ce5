"""The table of machines: what a record knows, in words, and nothing for what it does not know."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.compared import evidence_of, page_of, texts
from tests.synthetic_run import TORCH, SyntheticRun, add_record, machine, steady_samples, training_case
from tsuishi.base.checkout import Checkout
from tsuishi.base.language import speaking
from tsuishi.report.output.typesetting import as_html, as_markdown
from tsuishi.report.sections.descriptions import machine_table
from tsuishi.verdicts.evidence import Evidence

CARD: dict[str, Any] = {
    "index": 0, "name": "A100", "uuid": "GPU-1", "compute_capability": "8.0", "memory_mib": 40960.0,
    "power_limit_w": 250.0, "sm_clock_max_mhz": 1410, "memory_clock_max_mhz": 1215, "display_active": False,
    "pcie_generation_max": 4, "pcie_lanes_max": 16, "persistence_mode": True, "ecc": True, "sm_clock_set_mhz": 1095,
}  # fmt: skip
UNKNOWN = dict.fromkeys(CARD) | {"index": 1, "name": "K80", "ecc": False}


def on(path: Path, **more: Any) -> Evidence:
    run = SyntheticRun(path / "run")
    run.machine = add_record(run.directory, "machine", {**machine(), **more})
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4))
    return evidence_of(run)


def shown(evidence: Evidence) -> dict[str, str]:
    return {row[0]: row[1] for row in texts(machine_table(evidence))}


@pytest.fixture
def known(tmp_path: Path) -> Evidence:
    cpu = {**machine()["cpu"], "governor": "performance"}
    return on(tmp_path, cpu=cpu, gpus=[CARD, UNKNOWN], peer_to_peer=False)


def test_what_the_record_knows_is_shown_in_words(known: Evidence) -> None:
    rows = shown(known)
    assert rows["CPU frequency governor"] == "performance"
    assert rows["GPU 0"] == (
        "A100, index 0, UUID GPU-1, compute capability 8.0, memory 40960 MiB, ECC enabled, power limit 250 W, "
        "SM clock up to 1410 MHz, SM application clock 1095 MHz, memory clock up to 1215 MHz, persistence mode "
        "enabled, PCIe up to generation 4, PCIe link width up to ×16, display disabled"
    )
    assert rows["peer-to-peer access between GPUs"] == "not between all"


def test_the_gpus_that_reach_each_other_are_named(tmp_path: Path) -> None:
    links = [
        {"gpus": [0, 1], "peer_to_peer": True, "nvlink": True, "ancestor": "a NUMA node"},
        {"gpus": [0, 2], "peer_to_peer": False, "nvlink": False, "ancestor": "the system"},
        {"gpus": [1, 2], "peer_to_peer": False, "nvlink": False, "ancestor": "the system"},
    ]
    gpus = [{"index": number, "name": "RTX A6000"} for number in range(3)]
    rows = shown(on(tmp_path, gpus=gpus, links=links))
    assert rows["peer-to-peer access between GPUs"] == "only between 0–1 (NVLink)"


def test_what_a_record_does_not_know_is_not_there(known: Evidence, tmp_path: Path) -> None:
    assert shown(known)["GPU 1"] == "K80, index 1, ECC disabled"
    nothing = {"governor": None, "physical": None, "model": None, "logical": 2}
    rows = shown(on(tmp_path / "other", cpu=nothing, peer_to_peer=None))
    assert rows["physical / logical cores"] == "— / 2"
    assert not {"CPU", "CPU frequency governor", "GPU 0", "peer-to-peer access between GPUs"} & {*rows}
    assert "None" not in "".join(rows.values())


def test_the_page_and_the_markdown_show_them(known: Evidence) -> None:
    page, templates = page_of(known), Checkout().templates
    for text in (as_html(page, {}, templates, ""), "".join(as_markdown(page, templates, ()).values())):
        for words in ("performance", "ECC enabled", "PCIe link width up to ×16", "not between all"):
            assert words in text


def test_japanese_has_words_of_its_own_for_them(known: Evidence) -> None:
    with speaking("ja"):
        rows = shown(known)
    assert rows["CPU 周波数ガバナー"] == "performance"
    assert "ECC 有効" in rows["GPU 0"]
    assert "PCIe 最大世代 4" in rows["GPU 0"]
    assert rows["GPU 間のピアツーピアアクセス"] == "不可の組み合わせあり"
