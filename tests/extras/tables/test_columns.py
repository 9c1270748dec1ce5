"""What columns are taken for, on tables as people publish them (forms and numbers of public pages, shortened)."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.extras.tables.adoption import Adoption, Corrections, adopt
from tsuishi.extras.tables.table_files import Licence, TableFile
from tsuishi.extras.tables.written import write_source
from tsuishi.machine.compatibility import read_table
from tsuishi.verdicts.doubtful import doubts_about, likely_text

SHEETS = read_table(Checkout().images).data_sheets


def adopted(text: str, name: str = "table.md", **said: Any) -> Adoption:
    file = TableFile(name, text, text.encode(), name, Licence())
    return adopt("a-source", [file], WORDS, SHEETS, Corrections(**said))


def taken(adoption: Adoption) -> dict[str, str]:
    return {text: what for text, what, _ in adoption.evidence}


def numbers(adoption: Adoption) -> list[tuple[Any, ...]]:
    """(axes that are not as usual, quantity, value, hardware) of each number."""
    usual = {"nodes": 1, "execution": "native", "layout": "native", "strategy": "none", "devices": 1}
    found = []
    for table in adoption.tables:
        for each in table.reading.numbers:
            assert table.spec
            axes = {axis: value for axis, value in each.axes.items() if usual.get(axis) != value}
            found.append((axes, each.quantity, pytest.approx(each.value), table.spec.hardware_of(each)))
    return found


def case(mode: str, batch_size: int, precision: str = "fp32", model: str = "resnet50", **axes: Any) -> dict[str, Any]:
    return {"mode": mode, "model": model, "batch_size": batch_size, "precision": precision, **axes}


def test_rows_of_networks_with_facts_in_the_name_and_a_time_without_a_unit() -> None:
    """huggingface/pytorch-image-models, results/."""
    rows = "cnn10,1000.0,1024.0,1024,1.93\nresnet50,2000.0,512.0,1024,25.56\nxcit_large_24,100.0,10240.0,1024,189.1\n"
    text = f"model,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count\n{rows}"
    found = adopted(text, "benchmark-infer-amp-nhwc-pt113-cu117-rtx3090.csv")
    assert (
        "infer_step_time",
        "step_s, printed x 0.001",
        "in ms, rate x time is the batch size in 3 of 3 rows",
    ) in found.evidence
    of = case("inference", 1024, "amp_fp16", layout="channels_last")
    assert numbers(found)[2:] == [
        (of, "throughput_images_per_s", 2000.0, "geforce-rtx-3090"),
        (of, "step_s", 0.512, "geforce-rtx-3090"),
    ]
    assert found.refused() == {("model", "xcit_large_24"): 2}
    assert found.tables[0].named.software == {"pytorch": "1.13", "cuda": "11.7"}


def test_columns_of_networks_and_a_row_for_each_reading() -> None:
    """ryujaehun/pytorch-gpu-benchmark, new_results/."""
    text = "densenet121,resnet50,cnn10,vgg_small\n146.5,149.5,86.1,79.9\n140.6,86.1,85.8,79.0\n"
    name = "GeForce RTX 2080 Ti_2_gpus__float_model_train_benchmark.csv"
    unsaid = adopted(text, name)
    assert unsaid.mapped() == 0
    assert unsaid.refused() == {("table", "no column holds a quantity with a unit"): 8}
    said = {"columns": {"all": "step_s ms"}, "case": {"batch_size": 12}, "batch_per_device": True, "framework": "torch"}
    found = adopted(text, name, **said)
    of = case("training", 24, devices=2, strategy="data_parallel")
    assert numbers(found)[:3] == [
        ({**of, "model": "torchvision:densenet121"}, "step_s", 0.1465, "geforce-rtx-2080-ti"),
        (of, "step_s", 0.1495, "geforce-rtx-2080-ti"),
        ({**of, "model": "cnn10"}, "step_s", 0.0861, "geforce-rtx-2080-ti"),
    ]
    assert (found.mapped(), sum(found.refused().values())) == (8, 0)


def test_many_columns_of_networks_are_said_in_one_line() -> None:
    columns = {"all": "step_s ms"}
    found = adopted(
        "resnet18,vgg16,resnet50,cnn10,note\n3.0,9.9,5,1,a\n",
        "t.csv",
        case={"batch_size": 12, "mode": "training"},
        columns=columns,
    )
    said = "step_s, printed x 0.001, headers are values of model"
    assert taken(found) == {"note": "not read", "resnet18, vgg16, and 2 more": said}
    assert len(numbers(found)) == 4
    few = adopted("resnet18,vgg16\n3.0,9.9\n", "t.csv", case={"batch_size": 12, "mode": "training"}, columns=columns)
    assert [*taken(few)] == ["resnet18", "vgg16"]


def test_units_in_cells_precision_in_headers_and_hardware_in_headings() -> None:
    """NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets/resnet50v1.5."""
    text = """# ResNet50 v1.5 For PyTorch
##### Training performance: NVIDIA DGX-1 32GB (8x V100 32GB)

| **GPUs** | **Throughput - FP32** | **Throughput - mixed precision** | **Throughput speedup (FP32 to mixed)** |
|:--:|:--:|:--:|:--:|
| 1 | 356 img/s | 1156 img/s | 3.24 x |
| 8 | 2766 img/s | 8056 img/s | 2.91 x |

##### Inference performance: NVIDIA T4
###### FP32 Inference Latency

| **Batch Size** | **Throughput Avg** | **Latency Avg** | **Latency 95%** |
|:--:|:--:|:--:|:--:|
| 256 | 415 img/s | 635.98 ms | 620.16 ms |
"""
    found = adopted(text, case={"model": "resnet50"})
    assert numbers(found) == [
        (case("inference", 256), "throughput_images_per_s", 415.0, "nvidia-t4"),
        (case("inference", 256), "step_s", 0.63598, "nvidia-t4"),
    ]
    assert found.refused()["table", "no batch size is said (--set batch_size=...)"] == 6
    several: dict[str, Any] = {"devices": 8, "strategy": "data_parallel"}
    none: dict[str, Any] = {}
    whole = adopted(text, case={"model": "resnet50", "batch_size": 256}, framework="torch")
    assert numbers(whole)[:4] == [
        (case("training", 256, precision, **axes), "throughput_images_per_s", value, "nvidia-dgx-1-32gb-8x-v100-32gb")
        for axes, precision, value in (
            (none, "fp32", 356.0),
            (none, "amp_fp16", 1156.0),
            (several, "fp32", 2766.0),
            (several, "amp_fp16", 8056.0),
        )
    ]
    assert taken(found)["Throughput speedup (FP32 to mixed)"] == "not read"
    assert taken(found)["Latency 95%"] == "not read"


def test_headers_of_network_and_mode_with_rows_of_hardware() -> None:
    """u39kun/deep-learning-benchmark. The column "Model" holds no network."""
    text = """| Model   | resnet50 eval | resnet50 train | densenet161 eval |
|:--------|:-----------|:------------|:-----------------|
| Titan V | 31.3ms     | 108.8ms     | 52.4ms           |
| 1080 Ti | 39.3ms     | 131.9ms     | 62.9ms           |
"""
    found = adopted(text, case={"batch_size": 16})
    assert taken(found)["Model"] == "hardware"
    assert numbers(found)[:2] == [
        (case("inference", 16), "step_s", 0.0313, "titan-v"),
        (case("training", 16), "step_s", 0.1088, "titan-v"),
    ]
    assert found.refused() == {("model", "densenet161"): 2}


def test_a_given_column_has_the_network_of_its_header() -> None:
    """lambdal/deeplearning-benchmark, pytorch-train-throughput-fp32.csv: a column for each network, without a unit."""
    text = "name_gpu,num_gpu,watt,resnet50,waveglow\nRTX 3090,1,350,513,97404\nA100 80GB PCIe,1,300,1014,225014\n"
    columns = {"resnet50": "throughput_images_per_s images/s"}
    name, batch = "pytorch-train-throughput-fp32.csv", {"batch_size": 64}
    found = adopted(text, name, case=batch, columns=columns)
    rate = "throughput_images_per_s"
    assert numbers(found) == [
        (case("training", 64), rate, 513.0, "rtx-3090"),
        (case("training", 64), rate, 1014.0, "a100-80gb-pcie"),
    ]
    (doubt,) = doubts_about(found.numbers(WORDS), found.hardware(), WORDS, SHEETS)
    assert doubt.kind == "surprising"
    assert "are 24.9 TFLOP/s; the limit of the hardware is 19.5: TF32 or Winograd's convolutions or" in doubt.reason
    assert doubt.cells[0].place == "pytorch-train-throughput-fp32.csv, row 2, column resnet50"
    # A given column beside it, whose header no suite has as a network, is no column of resnet50.
    both = {**columns, "waveglow": "throughput_images_per_s images/s"}
    assert numbers(adopted(text, name, case=batch, columns=both)) == numbers(found)


@pytest.mark.parametrize(("header", "unit"), [("time (ms)", "ms"), ("it/s", "it/s")])
def test_a_doubt_has_the_row_and_the_column_of_the_file_and_the_likely_value_in_its_unit(
    header: str, unit: str
) -> None:
    """The rows of two cards stand among each other; a row, the last of resnet34 on the V100, lost its last digit."""
    networks = ("resnet18", "resnet34", "resnet50", "resnet101", "vgg11", "vgg16", "mobilenet_v2")
    rows = [
        f"| {name} | {batch} | {card} | {25 * 2**step + index * 2**step + less} |"
        for index, name in enumerate(networks)
        for step, batch in enumerate((8, 16, 32, 64))
        for less, card in enumerate(("RTX 3090", "V100"))
    ]
    lost = rows.index("| resnet34 | 64 | V100 | 209 |")
    rows[lost] = "| resnet34 | 64 | V100 | 20 |"
    found = adopted(
        "\n".join([f"| model | batch | GPU | {header} |", "|--|--|--|--|", *rows]),
        framework="torch",
        case={"mode": "training"},
    )
    (doubt,) = doubts_about(found.numbers(WORDS), found.hardware(), WORDS, [])
    assert doubt.cells[0].place == f"table.md, row {lost + 1}, column {header}"
    assert likely_text(doubt, WORDS) == f"200 {unit}"


KERAS = """# Keras Applications

| Model | Size (MB) | Parameters | Depth | Time (ms) per inference step (CPU) | Time (ms) per inference step (GPU) |
|--|--|--|--|--|--|
| [Xception](xception) | 88 | 22.9M | 81 | 109.4 | 8.1 |
| [ResNet50](resnet/#resnet50-function) | 98 | 25.6M | 107 | 58.2 | 4.6 |
| [ResNet50V2](resnet/#resnet50v2-function) | 98 | 25.6M | 103 | 45.6 | 4.4 |
| [InceptionV3](inceptionv3) | 92 | 23.9M | 189 | 42.2 | 6.9 |
| [MobileNet](mobilenet) | 16 | 4.3M | 55 | 22.6 | 3.4 |
| [EfficientNetB0](efficientnet/#efficientnetb0-function) | 29 | 5.3M | 132 | 46.0 | 4.9 |
| [EfficientNetV2B0](efficientnet_v2/#efficientnetv2b0-function) | 29 | 7.2M | - | - | - |
"""


@pytest.mark.parametrize("heading", ["# Keras Applications", "# Models"])
def test_networks_of_keras_are_cases_by_its_name_and_times_on_cpu_and_gpu_are_lines_of_their_own(heading: str) -> None:
    """keras.io/api/applications: without the word Keras, the names alone say it."""
    text = KERAS.replace("# Keras Applications", heading)
    found = adopted(text, case={"batch_size": 32}, hardware="Tesla A100")
    times = {
        ("keras:Xception", "cpu"): 0.1094,
        ("keras:Xception", "tesla-a100"): 0.0081,
        ("resnet50", "cpu"): 0.0582,
        ("resnet50", "tesla-a100"): 0.0046,
        ("keras:ResNet50V2", "cpu"): 0.0456,
        ("keras:EfficientNetB0", "tesla-a100"): 0.0049,
    }
    those = {(axes["model"], hardware): value for axes, _, value, hardware in numbers(found)}
    assert len(those) == found.mapped() == 12
    assert {key: those[key] for key in times} == times
    assert numbers(found)[0][:2] == (case("inference", 32, model="keras:Xception"), "step_s")
    assert found.refused() == {("no number", "-"): 2}
    assert {table.spec.framework for table in found.tables if table.spec} == {"tensorflow"}
    assert [(each.name, each.title) for each in found.hardware()] == [("cpu", "CPU"), ("tesla-a100", "Tesla A100")]
    exact = adopted(text.replace("| 98 | 25.6M | 107 |", "| 98 | 25,636,712 | 107 |"), case={"batch_size": 32})
    assert {axes["model"] for axes, *_ in numbers(exact)} >= {"keras:ResNet50", "keras:Xception"}
    of_torch = adopted(text, case={"batch_size": 32}, framework="torch")
    assert of_torch.mapped() == 6  # those that torchvision has too, however they are spelt


def test_a_column_of_cards_counts_where_another_header_names_hardware() -> None:
    rows = "| resnet50 | 32 | V100 | 4.6 | 58.2 |\n| resnet50 | 32 | RTX 3090 | 9.9 | 60.1 |\n"
    text = "| model | batch size | GPU | Time (ms) | CPU (ms) |\n|--|--|--|--|--|\n" + rows
    found = {hardware: value for _, _, value, hardware in numbers(adopted(text, "train.md")) if hardware != "cpu"}
    assert found == {"v100": 0.0046, "rtx-3090": 0.0099}


@pytest.mark.parametrize("said", [{}, {"columns": {"Time (ms)": "ms", "CPU (ms)": "ms"}}])
def test_beside_a_column_that_names_hardware_the_others_are_of_that_of_the_table(said: dict[str, Any]) -> None:
    text = "| model | batch size | Time (ms) | CPU (ms) |\n|--|--|--|--|\n| resnet50 | 32 | 4.6 | 58.2 |\n"
    of = case("training", 32)
    for heading, name in (("", "unnamed-hardware"), ("# RTX 3090\n\n", "geforce-rtx-3090")):
        found = adopted(heading + text, "train.md", **said)
        assert numbers(found) == [(of, "step_s", 0.0046, name), (of, "step_s", 0.0582, "cpu")]
    empty = adopted(
        text.replace("| CPU (ms) |", "| GPU |").replace("58.2", "") + "| vgg16 | 32 | 4.2 | RTX 3090 |\n", "train.md"
    )
    assert [(each.name, each.title) for each in empty.hardware()] == [
        ("unnamed", "unnamed hardware"),
        ("rtx-3090", "RTX 3090"),
    ]


def test_tables_of_frameworks_releases_and_precisions_are_lines_of_their_own_or_refused() -> None:
    """u39kun/deep-learning-benchmark: nothing but headings tells these tables apart."""
    table = "| GPU | resnet50 eval | cnn10 eval |\n|--|--|--|\n| Titan V | {}ms | 48.9ms |\n\n"
    headings: tuple[str, ...] = (
        "## PyTorch 0.3.0\n### 32-bit\n\n",
        "### 16-bit\n\n",
        "## PyTorch 1.0.0\n### 32-bit\n\n",
    )
    headings += ("## Tensorflow 1.4.0\n### 32-bit\n\n", "## Caffe2 0.8.1\n### 32-bit\n\n", "### 32-bit, again\n\n")
    text = "".join(heading + table.format(30 + index) for index, heading in enumerate(headings))
    found = adopted(text, case={"batch_size": 16})
    lines = [(hardware, value) for axes, _, value, hardware in numbers(found) if axes["model"] == "resnet50"]
    assert lines == [
        ("titan-v-pytorch-0-3-0", 0.03),
        ("titan-v-pytorch-1-0-0", 0.032),
        ("titan-v-tensorflow-1-4-0", 0.033),
    ]
    assert [table.spec and table.spec.framework for table in found.tables[:4]] == ["torch", None, "torch", "tensorflow"]
    assert found.refused() == {
        ("table", "precision 16 bit (no case here)"): 2,
        ("table", "framework caffe2 (no case here)"): 4,
    }
    twice = adopted(table.format(1) + "words\n\n" + table.format(2), case={"batch_size": 16})
    assert twice.mapped() == 2
    assert twice.refused() == {("table", "nothing tells it from table.md, table 1"): 2}


def test_a_column_of_words_for_several_axes_and_facts_in_a_list() -> None:
    """sandeepkumar-skb/pytorch_experiments, torchvision_exp."""
    text = """## ResNet50
### Training
* batch_size - 128
* GPU - Tesla V100-SXM2

| Setting | Iteration Time(ms) |
| --- | --- |
| FP32, NHWC | 412.84 |
| AMP, NCHW | 152.20 |
| TRT FP16, NCHW | 1.09 |
"""
    found = adopted(text)
    assert numbers(found) == [
        (case("training", 128, layout="channels_last"), "step_s", 0.41284, "tesla-v100-sxm2"),
        (case("training", 128, "amp_fp16", layout="channels_first"), "step_s", 0.1522, "tesla-v100-sxm2"),
    ]
    assert found.refused() == {("Setting", "TRT FP16, NCHW"): 1}


def test_the_batch_follows_from_rate_and_time() -> None:
    text = """| Model Name | Input Image Size | Inference Time (ms) | Fps | Backend |
|--|--|--|--|--|
| ResNet-50 | 224x224 | 3.35ms | 298.8 | cuda |
"""
    found = adopted(text)
    assert ("rate x time", "batch_size = 1", "in the name of the file, or a heading") in found.evidence
    assert [(axes["batch_size"], axes["mode"]) for axes, *_ in numbers(found)] == [(1, "inference")] * 2


def test_columns_of_hardware_and_other_networks_of_nearly_our_names() -> None:
    text = "model | Intel E5-2650(s) | 1080Ti(3584 CUDA Cores)(s)\n-|-|-\n"
    text += "resnet50 | 0.3807 | 0.009\nresnet50_v2 | 0.5 | 0.01\n"
    found = adopted(text, case={"batch_size": 1, "mode": "inference"})
    assert [(value, hardware) for _, _, value, hardware in numbers(found)] == [
        (0.3807, "intel-e5-2650"),
        (0.009, "1080ti"),
    ]
    assert found.refused() == {("model", "resnet50_v2"): 2}
    parts = adopted("wide_resnet50_2 eval,resnet50 eval\n3ms,4ms\n", "t.csv", case={"batch_size": 1})
    assert [value for _, _, value, _ in numbers(parts)] == [0.004]
    half = adopted("resnet50 half eval,cnn10 half eval\n3ms,4ms\n", "t.csv", case={"batch_size": 1})
    assert [(axes["model"], axes["precision"]) for axes, *_ in numbers(half)] == [
        ("resnet50", "fp16"),
        ("cnn10", "fp16"),
    ]
    mixed = adopted("resnet50 fp16 eval,cnn10 fp16 eval\n3ms,4ms\n", "t.csv", case={"batch_size": 1})
    assert mixed.refused() == {("table", "precision fp16 (no case here)"): 2}


@pytest.mark.parametrize("said_by", ["a heading", "a person", "nobody"])
def test_columns_of_cards_have_the_unit_that_a_heading_or_a_person_says(said_by: str) -> None:
    """lambdalabs.com/blog/2080-ti-deep-learning-benchmarks; V100: VGG16 above the card's FP32 by Winograd's way."""
    text = "## FP32 training" + (", images per second" if said_by == "a heading" else "")
    text += "\n\nModel / GPU | RTX 2080 Ti | Titan V | V100 |\n---|---|---|---|\n"
    text += "ResNet-50 | 294 | 300 | 405 |\nInception v3 | 194 | 208 | 259 |\nVGG16 | 170 | 195 | 240 |\n"
    columns = {"all": "throughput_images_per_s images/s"} if said_by == "a person" else {}
    found = adopted(text, case={"batch_size": 64}, columns=columns)
    if said_by == "nobody":
        assert found.refused() == {("table", "no column holds a quantity with a unit"): 9}
        return
    assert found.refused() == {("model", "Inception v3"): 3}
    assert numbers(found) == [
        (case("training", 64, model=model), "throughput_images_per_s", value, hardware)
        for model, values in (("resnet50", (294, 300, 405)), ("vgg16", (170, 195, 240)))
        for hardware, value in zip(("rtx-2080-ti", "titan-v", "v100"), values, strict=True)
    ]
    (doubt,) = doubts_about(found.numbers(WORDS), found.hardware(), WORDS, SHEETS)
    assert (doubt.kind, doubt.cells[0].value) == ("surprising", 240)
    assert "the limit of the hardware is 15.7: Winograd's convolutions or" in doubt.reason


TRAINING = "## FP32 training, images per second"


@pytest.mark.parametrize(
    ("headings", "headers", "mapped"),
    [
        (TRAINING, "V100 | A100", 4),
        (TRAINING, "TF32 | FP32", 4),
        (TRAINING, "RX 7900 XTX | MI300X", 4),
        (TRAINING, "B200 | Intel Arc A770", 4),
        (f"{TRAINING}\n\n- Every network is measured for 30 seconds", "V100 | A100", 4),
        ("# Latency in ms", "RTX 2080 Ti | Titan Xp", 4),
        # Columns of other quantities.
        (TRAINING, "V100 | A100 speedup", 2),
        (TRAINING, "FP32 | FP16 speedup", 2),
        (TRAINING, "V100 price ($) | V100 memory (GB)", 0),
        (TRAINING, "CPU cores | images/s", 2),
        # Headings of other quantities, of two, or of none.
        ("# Training, images/s\n\n## Peak memory (GB)", "V100 | A100", 0),
        ("# Training, images/s\n\n## Top-1 accuracy", "V100 | A100", 0),
        ("# Train ImageNet in 18 minutes", "V100 | A100", 0),
        ("# Real-time detection at 30 FPS", "V100 | A100", 0),
        ("# Images per second per watt", "V100 | A100", 0),
        ("# Throughput relative to V100 (images/s)", "V100 | A100", 0),
        ("# Training time (s) and images/s", "V100 | A100", 0),
    ],
)
def test_a_heading_says_the_unit_of_columns_that_are_cases_and_nothing_else(
    headings: str, headers: str, mapped: int
) -> None:
    text = f"{headings}\n\nModel | {headers} |\n---|---|---|\nResNet-50 | 294 | 300 |\nVGG16 | 170 | 195 |\n"
    given = {"batch_size": 64, "mode": "training", "precision": "fp32"}
    given = {axis: value for axis, value in given.items() if axis != "precision" or "32" not in headers}
    assert adopted(text, case=given).mapped() == mapped


def test_a_heading_says_nothing_of_cells_with_a_unit_of_their_own() -> None:
    text = f"{TRAINING}\n\nModel | V100 | A100 |\n---|---|---|\nResNet-50 | 76.1 % | 77.2 % |\n"
    assert adopted(text, case={"batch_size": 64}).mapped() == 0


def test_decimal_commas_scatter_and_releases_that_tell_lines_apart() -> None:
    comma = adopted("model;batch;images/s\nresnet50;1;66,7 ± 1,6\nresnet50;2;110,25\n", "train.csv")
    assert [value for _, _, value, _ in numbers(comma)] == [66.7, 110.25]
    files = [
        TableFile(f"pt{release}-train-rtx3090.csv", "model,bs,img/s\nresnet50,8,1\n", b"", "", Licence())
        for release in ("112", "240")
    ]
    two = adopt("s", files, WORDS, SHEETS, Corrections())
    assert [number[3] for number in numbers(two)] == [
        "geforce-rtx-3090-pytorch-1-12",
        "geforce-rtx-3090-pytorch-2-4-0",
    ]


def test_networks_in_headers_are_those_of_the_library_that_has_five_of_them() -> None:
    """ryujaehun/pytorch-gpu-benchmark: a column for each network of torchvision, a row for each reading."""
    names = ["densenet121", "mnasnet0_5", "resnet18", "shufflenet_v2_x0_5", "squeezenet1_0", "vgg13_bn", "vgg11_bn"]
    table = f"{','.join(names)}\n{','.join(['12.5'] * 7)}\n"
    found = adopted(table, "rtx2080ti_train.csv", case={"batch_size": 8}, columns={"all": "step_s ms"})
    models = {f"torchvision:{name}" for name in names} - {"torchvision:resnet18"} | {"resnet18"}
    assert {axes["model"] for axes, *_ in numbers(found)} == models


def test_a_table_is_stored_byte_by_byte_and_a_case_is_there_once(tmp_path: Path) -> None:
    """timm's CSVs: some have CRLF, and the columns of a series change their order."""
    texts = {
        "a": "model,bs,image size,img/s\r\nresnet50,1,160,9\r\nresnet50,8,160,9\r\n",
        "b": "model,image size,bs,img/s\nresnet50,160,2,8\n",
    }
    files = [
        TableFile(f"{name}.csv", text.replace("\r", ""), text.encode(), name, Licence("MIT", "…"))
        for name, text in texts.items()
    ]
    adoption = adopt("s", files, WORDS, SHEETS, Corrections({"mode": "inference"}, hardware="a"))
    write_source(adoption, "A title", tmp_path / "source", tmp_path / "suite.toml", WORDS)
    for name, text in texts.items():
        assert (tmp_path / "source" / f"{name}.csv").read_bytes() == text.encode()
    (group,) = tomllib.loads((tmp_path / "suite.toml").read_text())["groups"]
    assert group["axes"]["batch_size"] == [1, 2, 8]
    again = replace(files[1], text=files[1].text.replace("160,2", "160,1"))
    twice = adopt("s", [files[0], again], WORDS, SHEETS, Corrections({"mode": "inference"}, hardware="a"))
    assert twice.refused() == {("table", "nothing tells it from a.csv, table 1"): 1}


def test_precisions_that_no_case_has_are_refused_not_taken_for_another() -> None:
    found = adopted("model,bs,img/s\nresnet50,8,1\n", "rtx3090_fp16_train.csv")
    assert found.refused() == {("table", "precision fp16 (no case here)"): 1}
    column = adopted("model,bs,dtype,img/s\nresnet50,8,fp16,1\nresnet50,8,amp,2\n", "train.csv")
    assert [axes["precision"] for axes, *_ in numbers(column)] == ["amp_fp16"]
    assert column.refused() == {("precision", "fp16"): 1}


@pytest.mark.parametrize(
    ("printed", "ours"),
    [("half", "fp16"), ("float16", "fp16"), ("double", "fp64"), ("float64", "fp64"), ("fp64", "fp64")]
    + [("32bit", "fp32")]
    + [(refused, None) for refused in ("fp16", "16bit", "bf16", "bfloat16", "int8")],
)
def test_a_type_of_everything_is_a_precision_here_and_what_may_be_mixed_is_none(printed: str, ours: str | None) -> None:
    """In a file's name, in a header and in a cell. "fp16" stands over mixed precision as often."""
    named = adopted("model,bs,img/s\nresnet50,8,1\n", f"rtx3090_{printed}_train.csv")
    header = adopted(f"model,bs,{printed} img/s\nresnet50,8,1\n", "rtx3090_train.csv")
    cell = adopted(f"model,bs,dtype,img/s\nresnet50,8,{printed},1\n", "rtx3090_train.csv")
    for found in (named, header, cell):
        assert [axes["precision"] for axes, *_ in numbers(found)] == ([ours] if ours else [])
        assert sum(found.refused().values()) == (0 if ours else 1)


@pytest.mark.parametrize("columns", [{"x": "step_s parsec"}, {"x": "stepp_s ms"}])
def test_wrong_corrections_are_refused_with_the_nearest(columns: dict[str, str]) -> None:
    with pytest.raises(UserError, match="--columns: unknown"):
        adopted("model,bs,x\nresnet50,8,1\n", "t.csv", columns=columns)


def test_columns_of_cores_are_an_axis_and_a_unit_says_what_another_column_holds() -> None:
    """msr-fiddle/packrat, resnet/cloudlab/torchserve-allocators/: a row with another allocator is no case here."""
    rows = "resnet50,1,1,default,9.90,97.94\nresnet50,2,1,default,17.49,54.06\nresnet50,2,1,tcmalloc,18.40,51.72\n"
    text = f"model,cores,batch_size,allocator,throughput,mean_predict_latency\n{rows}"
    unsaid = adopted(text, "results.csv", case={"mode": "inference"})
    why = {header: reason for header, _, reason in unsaid.evidence}
    assert why["throughput"] == 'no unit in its header: --columns "throughput=images/s"'
    assert why["mean_predict_latency"] == 'no unit in its header: --columns "mean_predict_latency=ms"'
    columns = {"throughput": "images/s", "mean_predict_latency": "ms"}
    found = adopted(text, "results.csv", case={"mode": "inference"}, columns=columns)
    assert numbers(found) == [
        (case("inference", 1, cpus=1), "throughput_images_per_s", 9.9, "unnamed-hardware"),
        (case("inference", 1, cpus=1), "step_s", 0.09794, "unnamed-hardware"),
    ]
    assert found.refused() == {("column", "allocator"): 4}


@pytest.mark.parametrize(
    ("unit", "step_s"),
    [("ms", 0.05), ("it/s", 0.02), ("s", 50.0), ("steps/min", 1.2), ("us", 5e-5), ("ms/step", 0.05), ("s/it", 50.0)],
)
def test_a_unit_alone_is_enough_for_a_column(unit: str, step_s: float) -> None:
    """msr-fiddle/packrat and cyrusbehr/deeplearningInferenceBenchmarks: threads under two headers."""
    for header in ("intraop_threads", "Number of threads"):
        text = f"model,{header},batch_size,result\nresnet50,2,8,50\n"
        found = adopted(text, "results.csv", case={"mode": "inference"}, columns={"result": unit})
        assert numbers(found) == [(case("inference", 8, threads=2), "step_s", step_s, "unnamed-hardware")]


@pytest.mark.parametrize("unit", ["mss", "some words ms", "price per image"])
def test_what_is_no_unit_is_no_column(unit: str) -> None:
    with pytest.raises(UserError, match="--columns: unknown unit, axis or quantity"):
        adopted("model,batch_size,result\nresnet50,8,50\n", "results.csv", columns={"result": unit})


@pytest.mark.parametrize(
    ("header", "cells"), [("Cores", "10496"), ("CPU cores", "16"), ("vCPUs", "8"), ("cores", "2x14")]
)
def test_cores_beside_a_column_of_hardware_are_no_setting(header: str, cells: str) -> None:
    text = (
        f"gpu,{header},model,batch_size,images/s\nRTX 3090,{cells},resnet50,8,500\nRTX 2080 Ti,{cells},resnet50,8,300\n"
    )
    found = adopted(text, "results.csv", case={"mode": "inference"})
    assert [each[0] for each in numbers(found)] == [case("inference", 8)] * 2
    if cells.isdigit():
        alone = adopted(
            f"{header},model,batch_size,images/s\n{cells},resnet50,8,500\n", "results.csv", case={"mode": "inference"}
        )
        assert numbers(alone)[0][0] == case("inference", 8, cpus=int(cells))


def test_cells_of_other_units_than_most_are_refused() -> None:
    """Rows of one table are of other work: images, frames, tokens."""
    text = """| Task | Model | Batch Size | Training Speed | Memory Usage |
|--|--|--|--|--|
| Image Classification | ResNet-50 | 32 | 180 img/sec | 6.2GB |
| Object Detection | YOLO v8 | 16 | 45 samples/s | 7.8GB |
| Text Generation | GPT-2 Small | 8 | 2.1K tokens/sec | 4.5GB |
| Image Classification | VGG16 | 32 | 3.2 sec/image | 5.9GB |
"""
    found = adopted(text)
    assert numbers(found) == [(case("training", 32), "throughput_images_per_s", 180, "unnamed-hardware")]
    assert taken(found)["Task"] == "not read"
    assert found.refused()["unit", "3.2 sec/image"] == 1
    text = "| Platform | Model | Precision | Latency |\n|--|--|--|--|\n| Jetson Orin Nano | ResNet18 | FP32 | 45ms |\n"
    text += (
        "| Cloud (A10G) | ResNet18 | FP32 | 5ms + 50-200ms network |\n| Jetson AGX Orin | ResNet50 | FP32 | 12ms |\n"
    )
    found = adopted(text, case={"batch_size": 1})
    # Nobody prints the latency of training.
    assert numbers(found) == [
        (case("inference", 1, model="resnet18"), "step_s", 0.045, "jetson-orin-nano"),
        (case("inference", 1), "step_s", 0.012, "jetson-agx-orin"),
    ]
    assert found.refused() == {("unit", "5ms + 50-200ms network"): 1}


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("Latency (p99)", "2.3ms"),
        ("Training time (s)", "174.54"),
        ("Total time (s)", "180"),
        ("Time (min)", "3.1"),
        ("Epochs | Time (s)", "4 | 174.54"),
        ("Epochs | Time", "4 | 174.54 s"),
    ],
)
def test_percentiles_and_times_of_whole_trainings_are_no_steps(header: str, cells: str) -> None:
    bars = "--|" * (2 + len(cells.split("|")))
    found = adopted(f"| Model | Batch Size | {header} |\n|{bars}\n| ResNet-18 | 16 | {cells} |\n")
    assert numbers(found) == []
    assert taken(found)[header.rpartition("| ")[2]] == "not read"
    assert ("no mean of whole steps") in [why for *_, why in found.evidence]


def test_training_time_in_ms_is_of_a_step_and_a_time_of_an_image_is_a_rate() -> None:
    text = "| Model | Batch Size | Training time (ms) | Time per image (ms) | train [ms/img] |\n|--|--|--|--|--|\n"
    found = adopted(text + "| ResNet-18 | 16 | 80 | 5 | 5 |\n")
    rate = "throughput_images_per_s", 200
    assert [(quantity, value) for _, quantity, value, _ in numbers(found)] == [("step_s", 0.08), rate, rate]
    other = adopted(text + "| ResNet-18 | 16 | 80 | 5 | 4 |\n")
    assert other.refused() == {("column", "Time per image (ms) beside train [ms/img]"): 2}


def test_batches_and_cores_in_headers_and_precisions_by_their_cells() -> None:
    text = """| model | Type | bs=1 | bs=4 |
|--|--|--|--|
| resnet18 | fp32 | 5.1ms | 6.0ms |
| resnet50 | int8 | 7.8ms | 13.6ms |
"""
    found = adopted(text, case={"mode": "inference"})
    assert [(axes["batch_size"], value) for axes, _, value, _ in numbers(found)] == [(1, 0.0051), (4, 0.006)]
    assert found.refused() == {("precision", "int8"): 2}
    text = "| Model | Format | 1 Core (ms) | 2 Cores (ms) | 4 Core/ms |\n|--|--|--|--|--|\n"
    text += "| resnet18 | FP32 | 39.3 | 22.2 | 13.5 |\n| resnet50 | INT8 | 92.0 | 52.7 | 32.3 |\n"
    found = adopted(text, case={"batch_size": 1, "mode": "inference"})
    assert [(axes["cpus"], value) for axes, _, value, _ in numbers(found)] == [(1, 0.0393), (2, 0.0222), (4, 0.0135)]
    assert found.refused() == {("precision", "INT8"): 3}


def test_indices_of_gpus_are_no_counts_and_a_second_column_of_a_quantity_says_why_it_is_not_read() -> None:
    text = "| GPU | total images/sec | memoryClockRate (GHz) |\n|--|--|--|\n"
    text += "| 0 | 1561.745 | 1.7715 |\n| 1 | 1321.96 | 1.68 |\n"
    of = {"batch_size": 64, "model": "vgg16", "mode": "training"}
    assert adopted(text, case=of).refused() == {("column", "GPU"): 2}
    found = adopted(text, case=of, columns={"GPU": "nothing", "memoryClockRate (GHz)": "nothing"})
    assert [axes.get("devices", 1) for axes, *_ in numbers(found)] == [1, 1]
    text = "| Network | batch | fused (ms/step) | unfused (ms/step) |\n|--|--|--|--|\n| VGG16 | 64 | 22.97 | 25.01 |\n"
    text = f"# Training\n\n{text}"
    found = adopted(text)
    assert numbers(found) == []  # nothing says which of them the network is as usual
    why = {text: why for text, _, why in found.evidence}
    assert why["fused (ms/step)"] == "no axis tells it from unfused (ms/step)"
    assert why["unfused (ms/step)"] == "no axis tells it from fused (ms/step)"
    text = text.replace("unfused (ms/step)", "ms/step").replace("fused (ms/step)", "step (ms)")
    assert [value for _, _, value, _ in numbers(adopted(text))] == [0.02297]


def test_the_facts_that_a_site_has_of_a_page_are_no_heading() -> None:
    page = "---\ntitle: RTX 2060 Super for Machine Learning\ntags: [RTX 2060 Super, gpu]\n---\n\n"
    text = "| Model | batch | images/sec |\n|--|--|--|\n| ResNet50 | 32 | 181.88 |\n"
    assert [hardware for *_, hardware in numbers(adopted(page + text, "train.md"))] == ["unnamed-hardware"]


def test_xla_in_a_header_is_compiled_and_a_table_of_several_precisions_has_no_other() -> None:
    """NVIDIA/DeepLearningExamples, ResNet-50 of TensorFlow."""
    text = "| GPUs | Batch Size / GPU | Throughput - TF32 + XLA | Throughput - mixed precision + XLA |\n|--|--|--|--|\n"
    found = adopted(text + "| 1 | 256 | 808 img/s | 1770 img/s |\n", case={"model": "resnet50", "mode": "training"})
    assert [(axes["precision"], axes["execution"], value) for axes, _, value, _ in numbers(found)] == [
        ("tf32", "compiled", 808),
        ("amp_fp16", "compiled", 1770),
    ]


def test_a_network_with_a_precision_behind_it_is_not_taken_for_fp32_and_frames_per_second_are_of_inference() -> None:
    text = "| Model | Jetson Nano | Xavier NX | Orin NX |\n|--|--|--|--|\n"
    text += "| ResNet-50 (FP16) | 36 FPS | 170 FPS | 340 FPS |\n"
    text += "| MobileNetV2 (INT8) | 80 FPS | 300 FPS | 500 FPS |\n| VGG16 | 8 FPS | 30 FPS | 50 FPS |\n"
    found = adopted(text, case={"batch_size": 1})
    of = case("inference", 1, model="vgg16")
    hardware = zip(("jetson-nano", "xavier-nx", "orin-nx"), (8, 30, 50), strict=True)
    assert numbers(found) == [(of, "throughput_images_per_s", value, name) for name, value in hardware]
    assert found.refused() == {("model", "ResNet-50 (FP16)"): 3, ("model", "MobileNetV2 (INT8)"): 3}


def test_a_number_that_is_said_to_be_approximate_is_read() -> None:
    """A README of detectors prints ~15.0, another **~1.60 ms**."""
    text = "| Method | Inference Time (ms) | Throughput (FPS) |\n|--|--|--|\n"
    found = adopted(text + "| resnet50 | ~15.0 | ~66.7 |\n| **resnet101** | **≈15.5 ms** | **~64.5 FPS** |\n")
    assert [value for *_, value, _ in numbers(found)] == [0.015, 66.7, 0.0155, 64.5]


def test_thousands_and_the_time_of_a_sample_in_cells() -> None:
    text = "| model | batch | Time/Sample | Samples/sec | epoch time |\n|--|--|--|--|--|\n"
    rows = "| resnet18 | 8 | 150ms | 2.1K | 30s |\n| resnet50 | 8 | 0.5-0.7 | 64-90 | 60s |\n"
    found = adopted(text + rows, case={"mode": "training"})
    assert [(quantity, value) for _, quantity, value, _ in numbers(found)] == [
        ("throughput_images_per_s", 1000 / 150),
        ("median_epoch_s", 30),
        ("median_epoch_s", 60),
    ]
    text = "| model | batch | Samples/sec |\n|--|--|--|\n| resnet18 | 8 | 2.1K |\n| resnet50 | 8 | 342 |\n"
    found = adopted(text, "train.md")
    assert [value for _, _, value, _ in numbers(found)] == [2100, 342]


@pytest.mark.parametrize(
    ("header", "cells", "found"),
    [
        ("batch size,throughput (img/s),latency at batch 1 (ms)", "64,1000,7", [(64, 1, 1000), (1, 1, 0.007)]),
        ("throughput (img/s),latency bs=1 (ms)", "1000,7", [(1, 1, 0.007)]),
        ("batch,GPUs,images/s,1 GPU (ms)", "64,8,800,90", [(64, 8, 800), (64, 1, 0.09)]),
        ("batch,1 GPU (img/s),8 GPUs (img/s),CPU (img/s)", "64,100,700,3", [(64, 1, 100), (64, 8, 700), (64, 1, 3)]),
    ],
)
def test_a_count_in_a_header_is_that_of_its_column_alone(header: str, cells: str, found: list[tuple[Any, ...]]) -> None:
    adoption = adopted(f"model,{header}\nresnet50,{cells}\n", "train.csv", framework="torch")
    read = numbers(adoption)
    assert [(axes["batch_size"], axes.get("devices", 1), value) for axes, _, value, _ in read] == found
    assert [axes.get("strategy", "none") == "none" for axes, *_ in read] == [devices == 1 for _, devices, _ in found]


def test_thousands_count_where_a_batch_or_a_unit_follows_from_rate_and_time() -> None:
    text = "model,images/s,latency (ms)\nresnet50,12.3K,83.25\nvgg16,1.23K,832.5\n"
    assert {axes["batch_size"] for axes, *_ in numbers(adopted(text, "t.csv"))} == {1024}
    text = "model,batch,images/s,time\nresnet50,1024,12.3K,83.3\n"
    assert taken(adopted(text, "t.csv"))["time"] == "step_s, printed x 0.001"


def test_times_of_steps_beside_epochs_and_train_times_in_ms_are_read_and_rates_of_a_gpu_are_not() -> None:
    text = "model,epochs,batch size,step time (s),Time per batch (s),time (s)\nresnet18,4,16,0.2,0.2,174\n"
    found = taken(adopted(text, "t.csv"))
    assert (found["step time (s)"], found["time (s)"]) == ("step_s", "not read")
    text = "model,epochs,batch size,run (s)\nresnet18,4,16,174\n"
    assert [why for name, _, why in adopted(text, "t.csv").evidence if name == "run (s)"] == ["no mean of whole steps"]
    text = "| model | batch | Train time | Inference time |\n|--|--|--|--|\n| resnet18 | 16 | 31.3ms | 11ms |\n"
    assert [(axes["mode"], value) for axes, _, value, _ in numbers(adopted(text))] == [
        ("training", 0.0313),
        ("inference", 0.011),
    ]
    text = "| model | batch | GPUs | images/s/GPU | Throughput per GPU (img/s) |\n|--|--|--|--|--|\n"
    assert numbers(adopted(text + "| resnet18 | 16 | 8 | 300 | 300 |\n")) == []


def test_thousands_under_a_heading_with_a_unit_and_millions_of_parameters() -> None:
    text = "## Training throughput (images/s)\n\n| model | FP32 | AMP |\n|--|--|--|\n| resnet50 | 1.2K | 2.4K |\n"
    assert [value for _, _, value, _ in numbers(adopted(text, case={"batch_size": 64}))] == [1200, 2400]
    text = "model;batch;images/s;params\nresnet50;64;100,5;25,56M\n"
    assert len(numbers(adopted(text, "train.csv"))) == 1


def test_a_rule_at_the_beginning_of_a_page_hides_no_table() -> None:
    table = "| model | batch | images/s |\n|--|--|--|\n| resnet50 | 64 | 100 |\n"
    assert len(adopted(f"---\n\n{table}\n---\n\n{table}").tables) == 2
