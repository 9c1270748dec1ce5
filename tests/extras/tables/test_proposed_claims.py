"""The claims that `invoke adopt` proposes: each follows from the numbers, and can fail."""

from pathlib import Path
from typing import Any

import pytest

from tests.extras.tables.test_columns import SHEETS, adopted
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.extras.tables.adoption import Adoption, Corrections, adopt
from tsuishi.extras.tables.proposed_claims import proposed_claims
from tsuishi.extras.tables.table_files import Licence, TableFile
from tsuishi.extras.tables.written import write_source
from tsuishi.specs.source import read_source

HEADER = "model,bs,NCHW img/s,NHWC img/s\n"
NAMES = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "vgg16"]


def layouts(gains: list[float], title: str = "rtx3090_infer_amp") -> Adoption:
    """A table of two layouts: numbers are made up, a row for each gain."""
    rows = (
        f"{name},64,{100 + place},{(100 + place) * gain:.1f}\n"
        for place, (name, gain) in enumerate(zip(NAMES, gains, strict=False))
    )
    return adopted(HEADER + "".join(rows), f"{title}.csv", framework="torch")


def published(**said: Any) -> Adoption:
    """Tables of this checkout, adopted again."""
    paths = sorted((Checkout().published / "pytorch-gpu-benchmark").glob("*.csv"))
    tables = [
        TableFile(path.name, path.read_text(), path.read_bytes(), path.name, Licence("MIT", "…")) for path in paths
    ]
    return adopt("again", tables, WORDS, SHEETS, Corrections(framework="torch", batch_per_device=True, **said))


def test_a_published_table_gets_the_claims_that_were_found_by_hand(tmp_path: Path) -> None:
    """Claims of reports/published/pytorch-gpu-benchmark: two GPUs and half are faster with ResNet-50, not with all."""
    adoption = published(case={"batch_size": 12}, columns={"all": "step_s ms"})
    write_source(
        adoption, "Again", tmp_path / "again", tmp_path / "again.toml", WORDS, proposed_claims(adoption, WORDS, ())
    )
    claims = read_source(tmp_path / "again" / "source.toml", WORDS).claims
    assert [(claim.about, claim.stated) for claim in claims] == [(("gpu",), False)] * 3
    devices, precision, networks = (claim.checks[0] for claim in claims)
    assert (devices.of["devices"], devices.to and devices.to["devices"]) == ((2,), (1,))
    assert devices.case["model"] == ("resnet101", "resnet50")
    assert devices.hold
    assert devices.direction
    assert (devices.hold.below, devices.direction.below) == (1.78, 2.0)
    assert "prints 1.57 to 1.59" in devices.why["en"]
    assert "prints 3.55 for network vgg11" in devices.why["en"]
    assert (precision.of, precision.to) == ({"precision": ("fp16",)}, {"precision": ("fp32",)})
    assert "prints 0.998 for network torchvision:densenet201" in precision.why["en"]
    assert (networks.of, networks.to) == ({"model": ("resnet18",)}, {"model": ("mobilenet_v2",)})
    assert networks.why["en"].endswith(
        "6.03 times as many operations, and the source prints 3.99 for mode inference, precision fp64."
    )


def test_a_claim_names_the_side_that_is_faster_its_range_and_the_pair_against_it() -> None:
    for gains in ([1.3, 1.4, 1.5, 1.4, 1.3, 0.8], [1 / 1.3, 1 / 1.4, 1 / 1.5, 1 / 1.4, 1 / 1.3, 1 / 0.8]):
        (claim,) = proposed_claims(layouts(gains), WORDS, ())
        fast, slow = ("channels_last", "channels_first")[:: 1 if gains[0] > 1 else -1]
        (check,) = claim["checks"]
        assert (check["of"], check["to"]) == ({"layout": fast}, {"layout": slow})
        assert check["hold"] == {"above": pytest.approx(1.4**0.5, abs=0.1)}
        assert check["direction"] == {"above": 1.0}
        assert "the source prints 0.8 for network vgg16" in check["why"]
        assert {"precision": "amp_fp16", "batch_size": 64, "mode": "inference"}.items() <= check["case"].items()
        assert "vgg16" not in check["case"]["model"]


@pytest.mark.parametrize(
    ("gains", "title"),
    [
        ([1.3, 1.4, 1.5, 1.4, 1.3, 1.2], "rtx3090_infer_amp"),  # nothing speaks against it
        ([1.3, 1.4, 1.5, 1.4, 1.0], "rtx3090_infer_amp"),  # five pairs
        ([1.1, 1.1, 1.1, 1.1, 1.1, 1.0], "rtx3090_infer_amp"),  # no clear gain
        ([1.3, 1.4, 1.5, 1.4, 1.3, 0.8], "infer_amp"),  # no hardware is named
    ],
)
def test_what_can_hardly_fail_or_is_not_known_is_no_claim(gains: list[float], title: str) -> None:
    assert not proposed_claims(layouts(gains, title), WORDS, ())


def test_numbers_in_doubt_take_no_part() -> None:
    adoption = layouts([1.3, 1.4, 1.5, 1.4, 1.3, 0.8])
    (table,) = adoption.numbers(WORDS)
    places = [table.printed(row, "throughput_images_per_s")[0] for row in range(len(table.rows))]
    assert proposed_claims(adoption, WORDS, ())
    for place in places:
        assert not proposed_claims(adoption, WORDS, [place])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("2xRTX3090", "gpu"), ("Tesla V100-PCIE-16GB, cuda 10", "gpu"), ("A100-SXM4-80GB", "gpu"),
        ("CPU i9_10940x", "cpu"), ("Intel Xeon Gold 6148", "cpu"), ("Core i9 with an RTX 3090", ""),
        ("Apple M1", ""), ("TPU v3", ""),
    ],
)  # fmt: skip
def test_claims_are_about_the_kind_of_hardware_that_is_named(name: str, kind: str) -> None:
    rows = "".join(f"{name},64,{100},{gain}\n" for name, gain in zip(NAMES, (130, 130, 130, 130, 130, 80), strict=True))
    found = adopted(HEADER + rows, "infer.csv", framework="torch", hardware=name)
    assert [claim["about"] for claim in proposed_claims(found, WORDS, ())] == ([[kind]] if kind else [])


@pytest.mark.parametrize(("fast", "proposed"), [("resnet18", 1), ("mobilenet_v2", 0)])
def test_of_two_networks_a_claim_is_made_where_operations_say_the_opposite(fast: str, proposed: int) -> None:
    slow = "mobilenet_v2" if fast == "resnet18" else "resnet18"
    rows = [f"{fast},{2**power},{300 if power else 200}\n{slow},{2**power},200\n" for power in range(6)]
    found = adopted("model,bs,img/s\n" + "".join(rows), "rtx3090_train_fp32.csv", framework="torch")
    assert len(proposed_claims(found, WORDS, ())) == proposed
