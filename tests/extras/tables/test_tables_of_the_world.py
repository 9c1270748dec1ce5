"""Kinds of tables as people publish them, whose numbers were once read as other numbers (forms of public pages)."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.extras.tables.test_columns import SHEETS, adopted, case, numbers, taken
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.extras.tables.adopting import corrections
from tsuishi.extras.tables.adoption import Adoption, Corrections, adopt
from tsuishi.extras.tables.open_questions import open_questions
from tsuishi.extras.tables.table_files import Licence, TableFile
from tsuishi.specs.zoo_names import near_names


def read(text: str, name: str = "table.md", **said: Any) -> list[tuple[Any, ...]]:
    """(axes, value, hardware) of each number."""
    return [(axes, value, hardware) for axes, _, value, hardware in numbers(adopted(text, name, **said))]


def of_two_rows(column: str, cells: str) -> Adoption:
    """A table with two rows of one case, whose cells in a first column are these."""
    first, second = cells.split()
    return adopted(f"{column},model,batch,img/s\n{first},resnet18,8,30\n{second},resnet18,8,41\n", "titan_v_train.csv")


def values(text: str, name: str = "table.md", **said: Any) -> list[float]:
    return [number[1] for number in read(text, name, **said)]


HEAD = "# PyTorch training, fp32, Titan V\n\n"


@pytest.mark.parametrize(
    "column",
    ["power limit (W)", "num_workers", "prefetch", "clock (MHz)", "dropout rate", "RAM (GB)", "pages", "cooling"],
)
def test_rows_that_differ_in_a_column_of_settings_are_no_readings_of_one_number(column: str) -> None:
    text = f"model,batch,{column},img/s\nresnet18,8,100,30\nresnet18,8,200,41\nvgg16,8,200,9\n"
    found = adopted(text, "titan_v_train.csv")
    assert found.refused() == {("column", column): 2}
    assert [value for _, _, value, _ in numbers(found)] == [9]
    given = adopted(text, "titan_v_train.csv", columns={column: "nothing"})
    assert (given.mapped(), given.joined()) == (3, 2)


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("run", "0 1"),
        ("trial #", "1 2"),
        ("", "0 1"),
        ("seed", "7 9"),
        ("peak memory (GB)", "3.1 3.2"),
        ("loss", "2.1 2.2"),
        ("label", "fp32_bs8_r1 fp32_bs8_r2"),
        ("timestamp", "1763152739 1763152814"),
    ],
)
def test_rows_that_differ_in_a_counter_or_another_result_are_readings(column: str, cells: str) -> None:
    found = of_two_rows(column, cells)
    assert (found.mapped(), found.joined()) == (2, 2)


@pytest.mark.parametrize(
    "header", ["world size", "# of GPUs", "ngpu", "num_gpus", "Ranks", "GPU count", "n_devices", "Cards"]
)
def test_headers_of_counts_of_devices(header: str) -> None:
    text = f"model,batch,{header},img/s\nresnet18,64,1,30\nresnet18,64,2,58\n"
    assert [axes.get("devices", 1) for axes, *_ in read(text, "titan_v_train.csv")] == [1, 2]


def test_devices_and_batches_for_each_node_and_device() -> None:
    text = "node_num,gpu_num_per_node,batch_size_per_device,samples/s\n1,4,32,100\n2,4,32,190\n"
    found = read(text, "train.csv", case={"model": "resnet18"}, framework="torch")
    sizes = [(axes.get("nodes", 1), axes["devices"], axes["batch_size"]) for axes, *_ in found]
    assert sizes == [(1, 4, 128), (2, 8, 256)]


@pytest.mark.parametrize("cell", ["4x A100", "4 x A100", "A100 x4", "A100 × 4", "A100 (4 GPUs)", "4xA100"])
def test_a_count_in_the_name_of_hardware_is_of_devices(cell: str) -> None:
    found = read(f"model,batch,GPU,img/s\nresnet18,8,A100,30\nresnet18,8,{cell},100\n", "train.csv", framework="torch")
    assert [(axes.get("devices", 1), axes.get("strategy", "none"), hardware) for axes, _, hardware in found] == [
        (1, "none", "a100"),
        (4, "data_parallel", "a100"),
    ]
    assert values("model,batch,GPU,img/s\nresnet18,8,3090,30\nresnet18,8,RTX 3090,41\n", "train.csv") == [30, 41]


@pytest.mark.parametrize(
    ("variant", "axis", "value"),
    [
        ("AMP", "precision", "amp_fp16"),
        ("compiled", "execution", "compiled"),
        ("channels_last", "layout", "channels_last"),
    ],
)
def test_a_column_beside_that_of_a_variant_is_as_usual(variant: str, axis: str, value: str) -> None:
    found = read(f"model,batch,img/s,{variant} img/s\nvgg16,8,40,61\n", "titan_v_train.csv")
    assert [(each.get(axis), number) for each, number, _ in found] in (
        [("fp32", 40), (value, 61)],
        [(None, 40), (value, 61)],
    )


def test_a_column_of_a_runtime_that_no_case_has_refuses_itself_alone() -> None:
    text = HEAD + "| Model | batch | img/s | img/s (TensorRT) |\n|--|--|--|--|\n| VGG16 | 8 | 40 | 161 |\n"
    found = adopted(text)
    assert [value for _, _, value, _ in numbers(found)] == [40]
    assert found.refused() == {("execution", "TensorRT"): 1}


@pytest.mark.parametrize(
    ("heading", "precision"),
    [
        ("Training on a single GPU with mixed precision", "amp_fp16"),
        ("Training: half of the images, double the batch", "fp32"),
        ("Training without AMP", "fp32"),
        ("Training, no mixed precision", "fp32"),
        ("Training, AMP disabled", "fp32"),
        ("Half precision training", "fp16"),
        ("Training (half)", "fp16"),
        ("A float in a river: training", "fp32"),
    ],
)
def test_everyday_words_are_settings_in_their_context_alone_and_a_negation_counts(heading: str, precision: str) -> None:
    found = read(f"# {heading}\n\n| Model | batch | img/s |\n|--|--|--|\n| VGG16 | 8 | 40 |\n")
    assert [axes["precision"] for axes, *_ in found] == [precision]


def test_two_values_of_one_axis_in_a_heading_are_asked_for() -> None:
    found = adopted(
        "# FP32 and mixed precision training\n\n| Model | batch | img/s |\n|--|--|--|\n| VGG16 | 8 | 40 |\n"
    )
    assert found.mapped() == 0
    (question,) = open_questions(found, WORDS)
    assert question.text == "which precision is 'FP32 or mixed precision'?"
    assert "--set precision=amp_fp16" in [answer.typed for answer in question.answers]


@pytest.mark.parametrize(
    ("heading", "hardware"),
    [
        ("- **GTX 1080 > Maxwell Titan X**: 1.1 times", "unnamed-hardware"),
        ("A100 vs V100", "unnamed-hardware"),
        ("Training, PyTorch, V100, fp32", "v100"),
        ("Results on an A100 (batch size 8)", "a100"),
        ("With Intel Neural Compressor", "unnamed-hardware"),
        ("Intel(R) Xeon(R) Gold 6248", "intel-xeon-gold-6248"),
    ],
)
def test_hardware_is_a_name_and_no_sentence_and_two_cards_name_none(heading: str, hardware: str) -> None:
    text = f"# Training\n\n{heading}\n\n| Model | batch | img/s |\n|--|--|--|\n| VGG16 | 8 | 40 |\n"
    assert [each for *_, each in read(text)] == [hardware]


@pytest.mark.parametrize("data", ["CIFAR-10", "CIFAR100", "MNIST", "SVHN"])
def test_images_of_small_data_sets_are_asked_for(data: str) -> None:
    found = adopted(f"# Training on {data}\n\n| Model | batch | img/s |\n|--|--|--|\n| ResNet-18 | 8 | 40 |\n")
    assert found.mapped() == 0
    (question,) = open_questions(found, WORDS)
    assert [answer.typed for answer in question.answers] == ["--set image_size=..."]
    given = read(
        f"# Training on {data}\n\n| Model | batch | img/s |\n|--|--|--|\n| ResNet-18 | 8 | 40 |\n",
        case={"image_size": 32},
    )
    assert [axes["image_size"] for axes, *_ in given] == [32]


HTML = "<h1>Training, Titan V</h1><table><tr><th>Model</th><th>batch</th><th>img/s</th></tr>"
HTML += "<tr><td>VGG16</td><td>8</td><td>{}</td></tr></table>"


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("412<sup>1</sup>", [412]),
        ("412<sup>(a)</sup>", [412]),
        ("412<sub>†</sub>", [412]),
        ("<s>78</s> 81", [81]),
        ("<del>78</del>81", [81]),
        ("41<br>39", []),
        ("<p>41</p><p>39</p>", []),
        ("1.2×10<sup>3</sup>", []),
        ("10<sup>6</sup>", []),
        ("<b>41</b>", [41]),
    ],
)
def test_texts_of_one_cell_that_html_keeps_apart_are_no_one_number(cell: str, found: list[float]) -> None:
    assert values(HTML.format(cell), "t.html") == found
    page = "# Training, Titan V\n\n| Model | batch | img/s |\n|--|--|--|\n| VGG16 | 8 | " + cell + " |\n"
    assert values(page) == found


def test_struck_text_of_markdown_and_a_line_end_within_quotes() -> None:
    assert values(f"{HEAD}| Model | batch | img/s |\n|--|--|--|\n| VGG16 | 8 | ~~78~~ 81 |\n") == [81]
    assert values('model,batch,img/s\nvgg16,8,"41\n39"\nresnet18,8,7\n', "titan_v_train.csv") == [7]


def test_a_line_break_in_a_header_parts_words() -> None:
    headers = "Model | Latency(ms)<br>bs=1 | Latency(ms)<br>bs=4 | Speed<br><sup>TensorRT V100<br>(ms)"
    text = f"{HEAD}| {headers} |\n|--|--|--|--|\n"
    found = adopted(text + "| VGG16 | 3 | 9 | 1 |\n", case={"mode": "inference"})
    assert [(axes["batch_size"], value) for axes, _, value, _ in numbers(found)] == [(1, 0.003), (4, 0.009)]
    assert ("execution", "TensorRT") in found.refused() or (
        "batch_size",
        "said of other numbers alone",
    ) in found.refused()


def test_a_unit_in_a_column_of_its_own_is_of_its_row() -> None:
    text = '[{"name": "vgg16", "batch": 8, "real_time": 41.2, "cpu_time": 3, "time_unit": "ms"},'
    text += '{"name": "resnet18", "batch": 8, "real_time": 17250, "cpu_time": 5, "time_unit": "us"}]'
    assert values(text, "titan_v_train.json") == [pytest.approx(0.0412), pytest.approx(0.01725)]
    text = "model,batch,Result,Units\nvgg16,8,30,Samples/s\nresnet18,8,90,Samples/s\nresnet18,1,2.5,Latency (ms)\n"
    found = adopted(text, "titan_v_train.csv")
    assert [value for _, _, value, _ in numbers(found)] == [30, 90]
    assert found.refused() == {("unit", "2.5 Latency (ms)"): 1}
    assert values("model,batch,time\n,,(ms)\nvgg16,8,30\n", "titan_v_train.csv") == [0.03]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("model;batch;img/s\nvgg16;8;1.234\nresnet18;8;2.345\n", 2),
        ("model,batch,img/s\nvgg16,8,1.234\nresnet18,8,987\n", 1),
        ('model,batch,img/s,ms\nvgg16,8,"1.234","66,7"\nresnet18,8,12.5,"1,5"\n', 1),
        ("model,batch,img/s\nvgg16,8,1.234\nresnet18,8,2.345\n", 0),
        ('model,batch,img/s\nvgg16,8,"1,234"\nresnet18,8,987\n', 0),
        ("model;batch;img/s\nvgg16;8;1.234,5\nresnet18;8;987\n", 0),
    ],
)
def test_a_number_of_two_readings_is_asked_for(text: str, refused: int) -> None:
    found = adopted(text, "titan_v_train.csv")
    assert sum(count for (why, _), count in found.refused().items() if why == "two readings") == refused
    asked = [answer.typed for each in open_questions(found, WORDS) for answer in each.answers]
    assert ("--decimal ," in asked) is (refused > 0)
    given = adopted(text, "titan_v_train.csv", decimal=",")
    assert not any(why == "two readings" for why, _ in given.refused())


@pytest.mark.parametrize(
    "cell", ["OpenVINO 2024.1", "TensorRT 8.6", "onnxruntime", "ONNX Runtime 1.17", "Caffe2", "ncnn"]
)
def test_a_runtime_that_no_case_has_refuses_its_rows(cell: str) -> None:
    alone = adopted(
        f"model,batch,backend,img/s\nvgg16,8,{cell},30\nresnet18,8,{cell},90\n", "infer.csv", framework="torch"
    )
    beside = adopted(f"model,batch,backend,img/s\nvgg16,8,{cell},30\nvgg16,8,PyTorch,20\n", "infer.csv")
    assert [value for _, _, value, _ in numbers(beside)] == [20]
    assert alone.mapped() == 0 or cell == "Caffe2"  # a person says another framework


def test_frameworks_of_rows_and_of_columns_are_those_of_their_numbers() -> None:
    text = "Framework,batch,VGG16 (ms)\nMXNet 1.5,8,81\nTensorFlow,8,88\nNeon,8,70\n"
    (table,) = adopted(text, "titan_v_train.csv").tables
    assert [(each.framework, each.value) for each in table.reading.numbers] == [("mxnet", 0.081), ("tensorflow", 0.088)]
    text = "| Model | yours | pytorch (me) | tf (me) |\n|--|--|--|--|\n| VGG16 | 62 | 113 | 169 |\n"
    of = {"batch_size": 8, "mode": "training"}
    (table,) = adopted(text, case=of, columns=dict.fromkeys(("yours", "pytorch (me)", "tf (me)"), "ms")).tables
    assert [each.framework for each in table.reading.numbers] == ["", "torch", "tensorflow"]
    twice = text.replace("pytorch (me)", "mine").replace("tf (me)", "hers")
    found = adopted(twice, case=of, columns=dict.fromkeys(("yours", "mine", "hers"), "ms"))
    assert found.refused() == {("column", "yours beside mine beside hers"): 3}
    lua = adopted(
        "# All training benchmarks were run in Torch\n\n| Model | batch | ms |\n|--|--|--|\n| VGG16 | 8 | 3 |\n"
    )
    assert lua.refused() == {("table", "framework torch7 (no case here)"): 1}


def test_what_is_said_of_one_table_and_tables_of_other_quantities() -> None:
    text = """# Titan V (12GiB memory)

## Scoring, images/sec

- GPU: Titan V (12GiB memory)

| Batch | VGG16 |
|--|--|
| 8 | 205 |

## Memory usage (MiB)

| Batch | VGG16 |
|--|--|
| 8 | 1024 |

## Training

| Batch | VGG16 |
|--|--|
| 8 | 35 |
"""
    plain = [(axes["mode"], value) for axes, value, _ in read(text)]
    assert plain == [("inference", 205)]
    asked = {
        question.where: [each.typed for each in question.answers] for question in open_questions(adopted(text), WORDS)
    }
    assert "--columns 3:all=images/s" in asked["table 3"]
    both = read(text, columns={"all": "images/s"})
    assert [(axes["mode"], value) for axes, value, _ in both] == [("inference", 205), ("training", 35)]


def test_names_of_libraries_as_people_write_them_and_yes_or_no_under_a_setting() -> None:
    names = (
        "VGG-19",
        "DenseNet-121",
        "MobileNetV3-Large",
        "EfficientNet-B0",
        "Inception-v3",
        "ViT-B/16",
        "AlexNet",
        "ResNeXt-50",
    )
    rows = "".join(f"| {name} | 8 | True | 1{index} |\n" for index, name in enumerate(names))
    found = adopted(
        f"{HEAD.replace(', fp32', '')}| Network | bs | AMP | ms |\n|--|--|--|--|\n{rows}| VGG-19 | 8 | False | 40 |\n"
    )
    assert {axes["model"] for axes, *_ in numbers(found)} == {
        f"torchvision:{name}"
        for name in (
            "vgg19",
            "densenet121",
            "mobilenet_v3_large",
            "efficientnet_b0",
            "inception_v3",
            "vit_b_16",
            "alexnet",
        )
    }
    assert {axes["precision"] for axes, *_ in numbers(found)} == {"amp_fp16", "fp32"}
    assert near_names("ResNeXt-50")[-1] == "torchvision:resnext50_32x4d"


def test_units_and_batches_that_a_paragraph_says_and_what_stands_below_a_table() -> None:
    page = "# Benchmark (VGG16)\n\nTraining times in milliseconds per minibatch; minibatch size is 16.\n\n"
    table = "| Framework | V100 | K80 |\n|--|--|--|\n| MXNet | 81 | 1247 |\n"
    found = adopted(page + table)
    of = case("training", 16, model="vgg16")
    assert numbers(found) == [(of, "step_s", 0.081, "v100"), (of, "step_s", 1.247, "k80")]
    assert "batch_size = 16" in found.tables[0].assumed
    below = adopted(page + table + "\nWith TensorRT 8 for all of them.\n")
    assert below.refused() == {("table", "execution TensorRT, below the table (no case here)"): 2}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.csv", "sep=;\nmodel;batch;img/s\nvgg16;8;40,5\n"),
        ("train.jsonl", '{"model": "vgg16", "batch": 8, "img/s": 40.5}\n{"model": "vgg16", "batch": 9, "img/s": 41}\n'),
        ("train.json", '{"model": "vgg16", "batch": 8, "img/s": 40.5}'),
        ("train.csv", "Results of the lab\n\nmodel,batch,img/s\nvgg16,8,40.5\n"),
        ("train.csv", "# Titan V\nmodel,batch,img/s\nvgg16,8,40.5\n"),
    ],
)
def test_forms_of_files(name: str, text: str) -> None:
    assert values(text, name)[0] == 40.5


def test_lines_of_words_inside_of_a_table_are_of_the_rows_below() -> None:
    rows = "| **FP32** | | |\n| VGG16 | 8 | 40 |\n| **Mixed** | | |\n| VGG16 | 8 | 61 |\n"
    text = f"# Training\n\n| Model | batch | img/s |\n|--|--|--|\n{rows}"
    assert [(axes["precision"], value) for axes, value, _ in read(text)] == [("fp32", 40), ("amp_fp16", 61)]
    other = adopted(text.replace("**FP32**", "**Rack 1**").replace("**Mixed**", "**Rack 2**"))
    assert other.refused() == {("column", "(section)"): 2}
    assert taken(other)["(section)"] == "not read"


def test_a_column_headed_cpu_is_of_a_cpu_and_a_bare_ms_is_a_unit() -> None:
    text = "| Network | batch | CPU | TITAN-X GPU |\n|--|--|--|--|\n| ResNet-50 | 1 | 544 ms | 18 ms |\n"
    assert [hardware for *_, hardware in read(text, "train.md")] == ["cpu", "titan-x"]
    assert values("| Network | batch | ms |\n|--|--|--|\n| ResNet-50 | 1 | 544 |\n", "train.md") == [0.544]


TABLE = "| Model | batch | img/s |\n|--|--|--|\n| VGG16 | 8 | 40 |\n"


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("t.md", f"# Training\n\n**V100, AMP**\n\n{TABLE}"),
        ("t.md", f"# Training\n\n> measured with AMP on a V100\n\n{TABLE}"),
        ("t.md", f"<details><summary>V100 training, AMP</summary>\n\n{TABLE}\n</details>\n"),
        ("t.md", f"# Training\n\n- GPU: V100\n- Precision: AMP\n\n{TABLE}"),
        (
            "t.html",
            "<h1>Training</h1><table><caption>V100, AMP</caption><tr><th>Model<th>batch<th>img/s"
            "<tr><td>VGG16<td>8<td>40</table>",
        ),
        (
            "t.json",
            '{"gpu": "V100", "type": "AMP", "mode": "training", "of": [{"model": "vgg16", "bs": 8, "img/s": 40}]}',
        ),
        ("t.json", '{"results": {"vgg16": {"bs": 8, "img/s": 40}}, "meta": {"gpu": "V100", "mode": "AMP training"}}'),
    ],
)
def test_what_stands_beside_a_table_is_said_of_it(name: str, page: str) -> None:
    assert read(page, name) == [(case("training", 8, "amp_fp16", model="vgg16"), 40, "v100")]


@pytest.mark.parametrize(
    ("said", "devices", "batch"),
    [
        ("- GPUs: 8\n- Batch size: 256", 8, 256),
        ("All experiments use a batch size of 32 per GPU and 8 GPUs.", 8, 256),
        (
            "All experiments use a batch size of 32 on one card, of the eight that there are, and none of the others.",
            1,
            32,
        ),
    ],
)
def test_counts_beside_a_table(said: str, devices: int, batch: int) -> None:
    (found,) = read(f"# Training (V100)\n\n{said}\n\n| Model | img/s |\n|--|--|\n| VGG16 | 40 |\n")
    assert (found[0].get("devices", 1), found[0]["batch_size"]) == (devices, batch)


@pytest.mark.parametrize(
    ("heading", "devices"),
    [
        ("Training on Tesla V100-SXM2-16GB × 8", 8),
        ("Training with 4 V100s", 4),
        ("Training on four GPUs", 4),
        ("Single-GPU training", 1),
        ("Training, 8x V100", 8),
        ("Multi-GPU training", None),
        ("Training on several cards", None),
    ],
)
def test_devices_in_a_heading(heading: str, devices: int | None) -> None:
    found = adopted(f"# {heading}\n\n{TABLE}")
    assert [axes.get("devices", 1) for axes, *_ in numbers(found)] == ([devices] if devices else [])
    asked = [answer.typed for each in open_questions(found, WORDS) for answer in each.answers]
    assert ("--set devices=..." in asked) is (devices is None)


@pytest.mark.parametrize("heading", ["PyTorch vs TensorFlow, training", "Training in Caffe and MXNet"])
def test_two_frameworks_in_a_heading_are_asked_for(heading: str) -> None:
    found = adopted(f"# {heading}\n\n{TABLE}")
    assert found.mapped() == 0
    assert any(answer.option == "framework" for each in open_questions(found, WORDS) for answer in each.answers)
    assert len(numbers(adopted(f"# {heading}\n\n{TABLE}", framework="torch"))) == 1


@pytest.mark.parametrize(
    "headers", ["eager img/s,torch.compile img/s", "w/o compile (img/s),w/ compile (img/s)", "img/s,img/s (compiled)"]
)
def test_a_column_with_compilation_and_one_without(headers: str) -> None:
    found = read(f"model,batch,{headers}\nvgg16,8,40,60\n", "titan_v_train.csv")
    assert [(axes.get("execution", "native"), value) for axes, value, _ in found] == [("native", 40), ("compiled", 60)]


def test_a_speed_up_is_no_speed_and_nodes_have_a_device_each() -> None:
    rows = "vgg16,8,40,80 (2.0x)\nvgg16,16,1x,2x\n"
    found = adopted(f"model,batch,V100,A100\n{rows}", "train.csv", columns={"all": "images/s"})
    assert [value for _, _, value, _ in numbers(found)] == [40, 80]
    assert found.refused() == {("unit", "1x"): 1, ("unit", "2x"): 1}
    found = adopted("model,batch,nodes,img/s\nvgg16,8,1,40\nvgg16,8,2,70\n", "titan_v_train.csv")
    assert found.refused() == {("devices", "1 on 2 nodes"): 1}


def test_version_one_and_a_half_of_resnet_is_the_usual_one() -> None:
    rows = "ResNet50 v1.5,8,40\nResNet50 v2,8,50\nResNet-50 x2,8,60\nWide ResNet-50,8,70\nAlexnet(*16),8,80\n"
    assert values(f"model,batch,img/s\n{rows}", "titan_v_train.csv", framework="torch") == [40]


@pytest.mark.parametrize(
    "header",
    [
        "time for 1000 iterations (s)",
        "s / 100 images",
        "time over 50 steps (ms)",
        "elapsed_sec",
        "total duration (s)",
        "p99 (ms)",
    ],
)
def test_times_of_many_steps_are_no_step(header: str) -> None:
    assert adopted(f"model,batch,{header}\nvgg16,8,40\n", "titan_v_train.csv").mapped() == 0
    page = "# VGG16 inference, batch 1, time for 100 images\n\n| GPU | time (s) |\n|--|--|\n| V100 | 12 |\n"
    assert adopted(page).mapped() == 0


@pytest.mark.parametrize(
    "name", ["VGG16 (pruned)", "VGG16-pruned", "VGG16 quantized", "VGG16 (299x299)", "VGG16 (int8)"]
)
def test_a_network_with_words_that_nothing_explains_is_another(name: str) -> None:
    found = adopted(f"model,batch,ms\n{name},8,40\nVGG16 (224x224),8,50\nVGG16 [12],9,60\n", "titan_v_train.csv")
    assert [value for _, _, value, _ in numbers(found)] == [0.05, 0.06]


def test_two_columns_of_one_header_and_a_header_of_two_lines() -> None:
    twice = adopted("model,batch,img/s,img/s\nvgg16,8,40,60\nresnet18,8,70,70\n", "titan_v_train.csv")
    assert twice.refused() == {("column", "img/s"): 2}
    assert [value for _, _, value, _ in numbers(twice)] == [70, 70]
    rows = "| | | FP32 | AMP | AMP |\n| VGG16 | 8 | 1 | 2 | 4 |\n"
    page = f"# Training img/s\n\n| Model | batch | V100 | V100 | A100 |\n|--|--|--|--|--|\n{rows}"
    assert [(axes["precision"], value, hardware) for axes, value, hardware in read(page)] == [
        ("fp32", 1, "v100"),
        ("amp_fp16", 2, "v100"),
        ("amp_fp16", 4, "a100"),
    ]


MODEL_TABLE = "| Model | bs | img/s |\n|--|--|--|\n| resnet50 | 32 | 400 |\n"


@pytest.mark.parametrize(
    "cell",
    [
        "12.5 s",
        "12.5 us",
        "80 fps",
        "12.5 (batch 64)",
        "12.5 (2 GPUs)",
        "12.5 (fp16)",
        "12.5 (TensorRT)",
        "12.5 (estimated)",
        "12.5 GB",
        "12.5 x",
        "12.5 %",
        "12.5-13",
        "12.5 / 13",
        "12.5+",
    ],
)
def test_what_stands_behind_a_number_is_heeded(cell: str) -> None:
    found = adopted(f"model,batch,latency (ms)\nvgg16,8,{cell}\nresnet18,8,4 ms\n", "titan_v_infer.csv")
    seconds = {"12.5 s": 12.5, "12.5 us": 12.5e-6}.get(cell)
    assert [value for _, _, value, _ in numbers(found)] == ([pytest.approx(seconds)] if seconds else []) + [0.004]


@pytest.mark.parametrize(
    "cell", ["12.5 ± 0.3", "12.5 (1.3x)", "12.5 (0.4)", "12.5*", "~12.5", "12.5 ms", "12.5 (±0.2)"]
)
def test_scatter_marks_and_units_behind_a_number_are_no_reason(cell: str) -> None:
    assert values(f"model,batch,latency (ms)\nvgg16,8,{cell}\n", "titan_v_infer.csv") == [0.0125]


@pytest.mark.parametrize(
    "header",
    [
        "optimizer step (ms)",
        "all-reduce (ms)",
        "kernel time (ms)",
        "overhead (ms)",
        "Tail latency (ms)",
        "90th percentile (ms)",
        "peak img/s",
        "theoretical img/s",
        "Preprocess (ms)",
        "CPU time (ms)",
        "img/s/W",
        "img/s per node",
        "1000 img/s",
        "k images/s",
        "images/ms",
        "Caffe (ms)",
        "samples/sec/chip",
    ],
)
def test_headers_of_other_quantities_are_no_speeds(header: str) -> None:
    assert adopted(f"model,batch,{header}\nvgg16,8,40\n", "titan_v_train.csv").mapped() == 0


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("GPU clock speed (MHz)", "1000 1200"),
        ("Link speed (Gb/s)", "10 25"),
        ("pruning ratio", "0.5 0.9"),
        ("loss scale", "1 8"),
        ("score threshold", "0.1 0.3"),
        ("temperature", "0.5 0.9"),
        ("warmup time (s)", "1 9"),
        ("drop path", "0.1 0.2"),
    ],
)
def test_settings_that_are_named_like_results_tell_rows_apart(column: str, cells: str) -> None:
    assert of_two_rows(column, cells).refused() == {("column", column): 2}


@pytest.mark.parametrize(
    "heading",
    [
        "Faster R-CNN with ResNet-50",
        "U-Net with a ResNet-50 encoder",
        "SSD300 ResNet-50",
        "Wide ResNet-50",
        "Pruned ResNet-50",
        "ResNet-50 and VGG16",
        "ResNet-50\n\n## EfficientNet-B0",
        "ResNet-50\n\n## BERT",
        "ResNet-50\n\n## DenseNet-121",
    ],
)
def test_a_heading_of_another_network_is_not_of_ours(heading: str) -> None:
    found = adopted(f"# {heading}\n\n| batch | training img/s |\n|--|--|\n| 8 | 40 |\n")
    assert found.mapped() == 0
    assert values("# ResNet-50 v1.5 for PyTorch\n\n| batch | training img/s |\n|--|--|\n| 8 | 40 |\n") == [40]


@pytest.mark.parametrize(
    ("said", "precision"),
    [
        ("We do not use mixed precision.", "fp32"),
        ("AMP is disabled.", "fp32"),
        ("AMP was not used.", "fp32"),
        ("Using mixed precision would be about twice as fast as what we have here.", "fp32"),
        ("All numbers of this page were measured with mixed precision on this machine.", "amp_fp16"),
    ],
)
def test_sentences_of_what_is_not_so(said: str, precision: str) -> None:
    assert [axes["precision"] for axes, *_ in read(f"# Training\n\n{said}\n\n{MODEL_TABLE}")] == [precision]


@pytest.mark.parametrize(
    "said",
    ["Exported to ONNX and run with onnxruntime.", "It runs in FP16 or INT8 here, as the driver likes it best."],
)
def test_two_values_of_no_case_are_not_better_than_one(said: str) -> None:
    assert adopted(f"# Training\n\n{said}\n\n{MODEL_TABLE}").mapped() == 0


def test_a_label_above_a_table_is_no_sentence() -> None:
    page = f"# Training, FP32\n\nMixed precision results follow in the next section.\n\n{MODEL_TABLE}"
    assert [axes["precision"] for axes, *_ in read(page)] == ["fp32"]


def test_lines_of_words_below_each_other_are_one_path() -> None:
    rows = "| V100 | | |\n| FP32 | | |\n| resnet50 | 32 | 400 |\n| A100 | | |\n| FP32 | | |\n| resnet50 | 32 | 900 |\n"
    found = adopted(f"# Training\n\n| Model | bs | img/s |\n|--|--|--|\n{rows}")
    assert found.joined() == 0


@pytest.mark.parametrize(("header", "cell"), [("FP32", "no"), ("train", "no"), ("eager", "no"), ("without AMP", "no")])
def test_no_under_what_is_usual_may_be_several_things(header: str, cell: str) -> None:
    found = adopted(f"model,batch,{header},img/s\nvgg16,8,{cell},30\nresnet18,8,yes,40\n", "titan_v_train.csv")
    assert [value for _, _, value, _ in numbers(found)] == [40]


@pytest.mark.parametrize(
    ("cell", "devices", "hardware"),
    [
        ("Intel Core i7-8700K CPU @ 3.70GHz × 12", 1, "intel-core-i7-8700k-cpu-3-70ghz-12"),
        ("AMD Ryzen 5 3600X × 12", 1, "amd-ryzen-5-3600x-12"),
        ("V100 PCIe x16 3.0", 1, "v100-pcie-x16-3-0"),
        ("8 V100", 8, "v100"),
        ("2x EPYC 7742", 1, "2x-epyc-7742"),
    ],
)
def test_counts_of_cores_and_of_lanes_are_no_devices(cell: str, devices: int, hardware: str) -> None:
    found = read(f"model,batch,GPU,img/s\nvgg16,8,{cell},30\nresnet18,8,2x A100,40\n", "train.csv", framework="torch")
    assert (found[0][0].get("devices", 1), found[0][2]) == (devices, hardware)


def test_the_same_table_has_the_same_evidence_in_every_process() -> None:
    page = "# Training\n\nPyTorch, with AMP.\n\nAll torch runs, with int8.\n\n"
    program = f"from tests.extras.tables.test_columns import adopted; a = adopted({page + MODEL_TABLE!r}); "
    program += "print(a.evidence, a.refused())"
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Checkout().root,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in range(3)
    }
    assert len(said) == 1
    assert "'pytorch', 'framework = torch'" in said.pop()


@pytest.mark.parametrize(
    "text",
    [
        "| GPU | ResNet-50 | VGG16 |\n|--|--|--|\n| V100 | 300 | 60 |\n",
        "| GPU | Model | img/s |\n|--|--|--|\n| V100 | ResNet-50 | 300 |\n| V100 | VGG16 | 60 |\n",
    ],
)
def test_what_is_said_of_a_network_is_of_its_numbers_alone(text: str) -> None:
    def of(said: str) -> tuple[list[tuple[Any, Any]], Any]:
        given = corrections({"set": f"mode=training,{said}"} | unit, WORDS)
        found = adopt("s", [TableFile("t.md", text, text.encode(), "t.md", Licence())], WORDS, SHEETS, given)
        return [(axes["batch_size"], value) for axes, _, value, _ in numbers(found)], found.refused()

    unit = {"columns": "all=images/s"} if "img/s" not in text else {}
    assert of("batch_size=64,VGG16:batch_size=32") == ([(64, 300), (32, 60)], {})
    assert of("batch_size=64,1:VGG16:batch_size=32") == ([(64, 300), (32, 60)], {})
    assert of("VGG16:batch_size=32") == ([(32, 60)], {("batch_size", "said of other numbers alone"): 1})
    with pytest.raises(UserError, match=r"^--set: unknown network 'VGG19'; did you mean 'VGG16'"):
        of("batch_size=64,VGG19:batch_size=32")
    with pytest.raises(UserError, match=r"^--set: unknown axis 'batchsize'"):
        of("VGG16:batchsize=32")


def test_training_or_inference_is_asked_where_nothing_says_it() -> None:
    found = adopted("model,bs,img/s\nresnet50,32,400\n", "rtx3090.csv")
    assert found.refused() == {("table", "no mode is said (--set mode=...)"): 1}
    (question,) = open_questions(found, WORDS)
    assert question.text == "training or inference?"
    assert [answer.value for answer in question.answers] == ["mode=training", "mode=inference"]
    both = adopted("model,img/s\nresnet50,400\n", "rtx3090.csv")
    assert both.refused() == {("table", "no batch size and no mode is said (--set batch_size=...,mode=...)"): 1}
    assert {each.text for each in open_questions(both, WORDS)} == {"which batch size?", "training or inference?"}
    assert read("model,bs,latency (ms)\nresnet50,1,4\n", "rtx3090.csv")[0][0]["mode"] == "inference"


@pytest.mark.parametrize(
    "said", ["128 GPUs, training", "Training on 1024 GPUs", "training on eight V100 GPUs", "Training, 8 A100 GPUs"]
)
def test_large_counts_of_devices(said: str) -> None:
    (found,) = read(f"# {said}\n\n{MODEL_TABLE}")
    assert found[0]["devices"] > 7


@pytest.mark.parametrize(
    ("said", "mapped"),
    [
        ("Trained on 8 GPUs.", 0),
        ("All networks are trained on CIFAR-10.", 0),
        ("With AMP.", 0),
        ("The following table is of 8 GPUs.", 1),
        ("See the paper.", 1),
    ],
)
def test_what_stands_below_a_table_refuses_it_or_is_of_the_next(said: str, mapped: int) -> None:
    assert adopted(f"# Training\n\n{MODEL_TABLE}\n{said}\n").mapped() == mapped


@pytest.mark.parametrize(
    "said",
    [
        "Training on GTX 1080 GPUs",
        "Training on the older GTX 980 GPUs",
        "Training, A100 80GB GPUs",
        "Training with a V100 16 GB GPU",
        "Training with RTX 30 Series GPUs",
        "ResNet-50 GPU training",
        "Training, CUDA 10 GPU",
    ],
)
def test_numbers_of_names_are_no_devices(said: str) -> None:
    for text in (f"# {said}\n\n{MODEL_TABLE}", f"# Results\n\n{said}.\n\n{MODEL_TABLE}"):
        ((axes, *_),) = read(text)
        assert axes.get("devices", 1) == 1


def test_image_sizes_and_batches_in_prose() -> None:
    (found,) = read(f"# Training at 288x288\n\n{MODEL_TABLE}")
    assert found[0]["image_size"] == 288
    (usual,) = read(f"# Training at 224 x 224\n\n{MODEL_TABLE}")
    assert "image_size" not in usual[0]
    table = "| Model | img/s |\n|--|--|\n| resnet50 | 400 |\n"
    for said in (
        "Batch sizes 32-256 were tested.",
        "The batch size is 32 or 64.",
        "Batch size 32, then batch size 64.",
    ):
        assert adopted(f"# Training\n\n{said}\n\n{table}").mapped() == 0


def test_a_library_that_two_frameworks_have_is_not_guessed() -> None:
    names = ("VGG-19", "DenseNet-121", "DenseNet-169", "DenseNet-201", "EfficientNet-B0")
    rows = "".join(f"{name},8,1{index}\n" for index, name in enumerate(names))
    assert adopted(f"model,batch,ms\n{rows}", "titan_v_infer.csv").mapped() == 0
    assert adopted(f"model,batch,ms\n{rows}", "titan_v_infer.csv", framework="torch").mapped() == 5
    text = "model,batch,Framework,ms\nAlexNet,8,PyTorch,1\nAlexNet,8,TensorFlow,2\n"
    found = adopted(text, "titan_v_infer.csv", framework="torch")
    assert [value for _, _, value, _ in numbers(found)] == [0.001]
    assert found.refused() == {("model", "AlexNet of tensorflow"): 1}


@pytest.mark.parametrize("page", ["one", "two"])
def test_every_option_that_a_question_prints_can_be_typed_and_closes_it(page: str) -> None:
    tables = {
        "one": f"# FP32 and AMP training\n\n{MODEL_TABLE}",
        "two": '# Results\n\n| Net | V100, 2 | Speed "x" |\n|--|--|--|\n| VGG16 | 1 | 2 |\n\n## Training\n\n'
        "| Batch | VGG16 |\n|--|--|\n| 8 | 35 |\n\n## Multi-GPU\n\n" + MODEL_TABLE,
    }
    file = TableFile("page.md", tables[page], tables[page].encode(), "page.md", Licence())
    found = adopt("a-source", [file], WORDS, SHEETS, Corrections())
    asked = open_questions(found, WORDS)
    assert asked
    for question in asked:
        for answer in question.answers:
            given = {"tables": ",".join(map(str, answer.tables))} if answer.tables else {}
            value = answer.value + ("8" if answer.value.endswith("=") else "")
            given |= {answer.option.replace("-", "_"): value or "yes"}
            again = adopt("a-source", [file], WORDS, SHEETS, corrections(given, WORDS))
            assert question.text not in [
                each.text for each in open_questions(again, WORDS) if each.tables == question.tables
            ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": "typo=ms"}, "unknown header 'typo'"),
        ({"set": "9:mode=training"}, "there is no table 9"),
        ({"tables": "2"}, "there is no table 2"),
        ({"tables": "x"}, "--tables"),
        ({"decimal": ";"}, "--decimal"),
    ],
)
def test_corrections_of_what_is_not_there_are_refused(given: dict[str, str], said: str) -> None:
    file = TableFile("page.md", MODEL_TABLE, MODEL_TABLE.encode(), "page.md", Licence())
    with pytest.raises(UserError, match=said):
        adopt("a-source", [file], WORDS, SHEETS, corrections(given, WORDS))


@pytest.mark.parametrize("cell", ["16", "16.5", "\x1e16"])
def test_a_row_whose_network_is_a_number_is_no_case_without_a_network(cell: str) -> None:
    text = f"model,bs,train img/s,GPU\nresnet50,64,1200,V100\nvgg16,64,300,V100\n{cell},64,30,T4\n"
    found = adopted(text, "table.csv")
    assert (values(text, "table.csv"), found.refused()) == (
        [1200.0, 300.0],
        {("model", "said of other numbers alone"): 1},
    )


def test_a_row_is_accounted_for_whatever_its_column_is_called() -> None:
    text = "network,bs,train img/s,GPU\nresnet50,64,1200,V100\nvgg16,64,300,V100\n16 bit,64,30,T4\n"
    assert adopted(text, "table.csv").refused() == {("network", "16 bit"): 1}
