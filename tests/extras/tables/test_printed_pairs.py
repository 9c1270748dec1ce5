"""What a table compares: the questions that its suite gets."""

import tomllib
from typing import Any

import pytest

from tests.extras.tables.test_columns import adopted
from tests.words import WORDS
from tsuishi.base import toml
from tsuishi.extras.tables.written import suite_text
from tsuishi.specs.questions import Question
from tsuishi.specs.suite import Suite


def questions(text: str, name: str, **said: Any) -> tuple[Question, ...]:
    """The questions of the suite that is written for a table."""
    written = tomllib.loads(suite_text(adopted(text, name, **said), "A title", WORDS))
    return toml.made("suite", {**written, "name": "a_source"}, Suite, WORDS).questions


def test_the_comparison_with_most_pairs_is_asked_first_where_its_axis_has_most_networks() -> None:
    """Numbers are made up. Two precisions have five pairs, two layouts two, of which one with the batch 8."""
    text = (
        "model,bs,NCHW fp32 img/s,NCHW amp img/s,NHWC fp32 img/s\n"
        "resnet50,8,100,150,120\nresnet18,8,200,400,\nresnet152,8,40,50,\nresnet18,16,220,300,200\nresnet50,16,110,160,\n"
    )
    precision, layout = questions(text, "rtx3090_infer.csv", framework="torch")
    assert (precision.id, precision.of, precision.to) == (
        "precision",
        {"precision": ("amp_fp16",)},
        {"precision": ("fp32",)},
    )
    assert precision.quantity == "throughput_images_per_s"
    (cases,) = precision.cases
    assert (cases["model"], cases["batch_size"], cases["layout"]) == (("resnet18",), (8,), ("channels_first",))
    assert (layout.id, layout.of) == ("layout", {"layout": ("channels_last",)})
    assert precision.worth > layout.worth


@pytest.mark.parametrize(("per_device", "batches"), [(True, {"of": (24,), "to": (12,)}), (False, {})])
def test_devices_are_compared_at_one_batch_or_at_one_batch_each(per_device: bool, batches: dict[str, Any]) -> None:
    text = "model,GPUs,bs,img/s\nresnet50,1,12,100\nresnet50,2,12,190\n"
    (asked,) = questions(text, "rtx3090_train.csv", framework="torch", batch_per_device=per_device)
    assert asked.of
    assert asked.to
    assert (asked.of["devices"], asked.to["devices"]) == ((2,), (1,))
    sides = {"of": asked.of, "to": asked.to}
    assert {name: side["batch_size"] for name, side in sides.items() if "batch_size" in side} == batches


def test_networks_and_batches_alone_are_no_comparison() -> None:
    assert not questions("model,bs,img/s\nresnet50,8,10\nresnet50,16,11\nresnet18,8,30\n", "rtx3090_train.csv")
