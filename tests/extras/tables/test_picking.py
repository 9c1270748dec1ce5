"""One printed number is found by the words of its row; where several have them, the words that tell them apart."""

import json
from collections.abc import Sequence

import pytest

from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.extras.tables.adoption import Adoption, Corrections, adopt
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.extras.tables.named_facts import named_facts
from tsuishi.extras.tables.picking import nearest_below, numbers_of_source, numbers_of_tables, pick, refused_in
from tsuishi.extras.tables.printed_values import PrintedValues
from tsuishi.extras.tables.table_files import Licence, TableFile
from tsuishi.specs.source import read_sources

# As timm prints them: a network at several sizes, networks whose names have others in them, two columns.
SIZES = """model,infer_samples_per_sec,infer_step_time,infer_batch_size,infer_img_size,param_count
resnet18,187.86,5.216,1,160,11.69
resnet18,117.15,8.431,1,224,11.69
seresnet18,90.1,11.10,1,224,11.78
lcnet_035,308.98,3.161,1,224,1.64
lcnet_050,300.1,3.332,1,224,1.88
tinynet_e,290.0,3.448,1,106,2.04
mobilenetv3_small_050,280.0,3.571,1,224,1.59
resnet50,64.51,15.39,1,224,25.56
xcit_larger_24,1.0,1000.0,1,224,189.10
"""
NOTHING_SAID = Corrections()
ACROSS = "resnet18,vgg16\n3.0,9.9\n3.2,9.6\n3.1,9.4\n"


def numbers(
    text: str, name: str = "benchmark-infer-fp32-nchw-pt221-cpu-i9_10940x.csv", said: Corrections = NOTHING_SAID
) -> list[CheckableNumber]:
    return numbers_of_tables(adopted(text, name, said), WORDS.axes)


def adopted(text: str, name: str, said: Corrections = NOTHING_SAID) -> Adoption:
    file = TableFile(name, text, text.encode(), name, Licence())
    return adopt("a-source", [file], WORDS, (), said)


def why_not(found: Sequence[CheckableNumber], row: str, column: str = "") -> str:
    with pytest.raises(UserError) as caught:
        pick(found, row, column, ())
    return str(caught.value)


def test_words_of_the_row_choose_it_and_the_first_column_counts() -> None:
    found = pick(numbers(SIZES), "resnet18 224", "", ())
    assert (found.text, found.column, found.quantity) == ("117.15", "infer_samples_per_sec", "throughput_images_per_s")
    assert (found.axes["model"], found.axes["batch_size"], found.release) == ("resnet18", 1, "2.2.1")
    assert "row 2, column infer_samples_per_sec" in found.place
    assert pick(numbers(SIZES), "resnet18 224", "step_time", ()).value == pytest.approx(8.431e-3)


def test_a_name_inside_of_another_is_not_asked_about() -> None:
    assert pick(numbers(SIZES), "ResNet-50", "", ()).text == "64.51"
    assert pick(numbers(SIZES), "seres", "", ()).text == "90.1"


def test_a_number_in_a_row_is_whole_and_words_may_be_of_any_script() -> None:
    batches = "model,batch size,inference img/s\nvgg16,8,OOM\nvgg16,64,210\nvgg16,128,220\n"
    of = adopted(batches, "t.csv")
    with pytest.raises(UserError, match=r"^--row vgg16 8: .*no case here \(") as caught:
        pick(numbers_of_tables(of, WORDS.axes), "vgg16 8", "", refused_in(of))
    assert "OOM" in str(caught.value)
    assert pick(numbers(batches, "t.csv"), "vgg16 128", "", ()).text == "220"
    japanese = numbers("model,batch size,inference 速度 img/s\nresnet50,16,1200\n", "t.csv")
    assert pick(japanese, "resnet50", "速度", ()).text == "1200"
    assert why_not(japanese, "resnet50 訓練").startswith("--row resnet50 訓練: no row has these words")
    assert "has no such column" in why_not(japanese, "resnet50", "時間")
    assert why_not(japanese, "—").startswith("--row —: no row has these words")


def test_several_cases_are_a_question_with_the_words_that_tell_them_apart() -> None:
    asked = why_not(numbers(SIZES), "resnet18")
    assert asked.startswith("--row resnet18 is in 2 cases: “160” (187.86 in infer_samples_per_sec); “224” (117.15 in")
    by_column = numbers("model,batch size,inference img/s,training img/s\nresnet18,4,1500,420\n", "t.csv")
    assert "“training img/s” (420 in training img/s)" in why_not(by_column, "resnet18")
    assert pick(by_column, "resnet18", "training", ()).text == "420"


def test_what_cannot_be_checked_says_so_with_the_nearest_that_can() -> None:
    of = adopted(SIZES, "benchmark-infer-fp32-nchw.csv")
    with pytest.raises(UserError, match=r"xcit_larger_24: xcit_larger_24.*; the nearest that can be checked: "):
        pick(numbers_of_tables(of, WORDS.axes), "xcit_larger_24", "", refused_in(of))
    assert "no row has these words; the nearest that can be checked: “resnet18”" in why_not(numbers(SIZES), "resnet19")
    assert "row resnet50 has no such column; it has infer_samples_per_sec, infer_step_time" in why_not(
        numbers(SIZES), "resnet50", "train"
    )


def test_a_table_with_a_column_for_each_network_is_asked_by_the_network() -> None:
    said = Corrections({"batch_size": 4, "mode": "inference"}, {"all": "step_s ms"})
    found = pick(numbers(ACROSS, "t.csv", said), "vgg16", "", ())
    assert (found.text, found.place) == ("9.6", "row 2, column vgg16, of t.csv, the median of 3")


def test_the_median_of_an_even_number_of_readings_lies_between_two_of_them() -> None:
    said = Corrections({"batch_size": 4, "mode": "inference"}, {"all": "step_s ms"})
    found = pick(numbers("vgg16,resnet50\n9.5,3.1\n9.9,3.1\n9.7,3.0\n9.6,3.1\n", "t.csv", said), "vgg16", "", ())
    assert (found.text, found.value) == ("9.6 to 9.7", pytest.approx(0.00965))
    assert found.place.endswith(", the median of 4")
    same = pick(numbers("vgg16,resnet50\n9.5,3.1\n9.9,3.1\n9.7,3.0\n9.6,3.1\n", "t.csv", said), "resnet50", "", ())
    assert (same.text, same.value) == ("3.1", pytest.approx(0.0031))


def test_a_number_of_a_source_is_found_by_its_axes_and_hardware() -> None:
    checkout = Checkout()
    sources = {source.name: source for source in read_sources(checkout.published, WORDS)}
    of_conv2d = numbers_of_source(sources["conv2d-gce"])
    found = pick(of_conv2d, "SciPy", "", ())
    assert (found.value, found.quantity, found.axes["implementation"], found.release) == (
        0.222, "later_run_s", "scipy", "",
    )  # fmt: skip
    assert why_not(of_conv2d, "scipy now").endswith("can be checked: “scipy SciPy, one CPU”")
    assert "in 8 cases: “devices=1” (14.8978 in first_run_s); “devices=2” (" in why_not(of_conv2d, "V100")
    assert pick(of_conv2d, "V100 devices=2", "", ()).text == "4.32807"
    assert why_not(of_conv2d[-1:], "x").endswith(f"can be checked: “{of_conv2d[-1].case}”")
    of_uploads = numbers_of_source(sources["openbenchmarking-pytorch"])
    assert "batch_size=1" in why_not(of_uploads, "resnet50 CPU")
    assert pick(of_uploads, "resnet50 CPU batch_size=1", "", ()).axes["batch_size"] == 1


def test_a_collection_of_uploads_is_a_median_with_its_percentiles() -> None:
    """As OpenBenchmarking keeps the results of a test: objects by a digest, each with a description."""
    percentiles = [12.0, 20.0, 35.5, 60.0, 79.0]
    texts = {f"Device: CPU - Batch Size: {size} - Model: ResNet-50": size for size in (1, 16)}
    overview = {
        text: {
            "description": text,
            "unit": "batches/sec",
            "samples": 85,
            "percentiles": [each + size / 100 for each in percentiles],
        }
        for text, size in texts.items()
    }
    of = json.dumps({"overview": overview, "capabilities": {"honors_cflags": 0, "scales_cpu_cores": 1}})
    found = pick(numbers(of, "pytorch-2.2.1.json", Corrections({"mode": "inference"})), "ResNet-50 16", "", ())
    assert (found.axes["batch_size"], found.text, found.quantity) == (16, "35.66", "step_s")
    assert found.uploads == pytest.approx([1 / (each + 0.16) for each in percentiles])
    # Whoever knows better than the column says so.
    of_two = numbers(of, "pytorch-2.2.1.json", Corrections({"mode": "inference", "batch_size": 2}))
    assert pick(of_two, "ResNet-50 16", "", ()).axes["batch_size"] == 2


def test_a_sentence_above_a_table_is_no_hardware_and_its_times_are_no_devices() -> None:
    """jcjohnson/cnn-benchmarks has this sentence above its tables."""
    text = "The Pascal Titan X with cuDNN is 49x to 74x faster than dual Xeon E5-2630 v3 CPUs."
    facts = named_facts("README", [text], PrintedValues(WORDS), ())
    assert (facts.case, facts.hardware) == ({}, "")
    assert (
        named_facts("README", ["RTX 5070 Ti (16GB) - desktop"], PrintedValues(WORDS), ()).hardware
        == "RTX 5070 Ti (16GB)"
    )
    facts = named_facts("README", ["Results on 2x Titan X", "batch 16"], PrintedValues(WORDS), ())
    assert facts.case == {"devices": 2, "batch_size": 16}


def test_the_nearest_below_has_fewer_devices_or_a_smaller_batch_of_the_same_network() -> None:
    rows = ("resnet18,1,64,400", "resnet18,1,16,300", "resnet18,4,64,1500", "vgg16,1,32,90")
    found = numbers("\n".join(("model,GPUs,batch size,training img/s", *rows)), "t.csv")
    sizes = ((4, 64), (1, 64), (1, 16))
    four, one, small = (pick(found, f"resnet18 devices={n} batch_size={size}", "", ()) for n, size in sizes)
    assert nearest_below(found, four, 1).startswith("the nearest that may be checked: 400 in training img/s (")
    assert "batch_size=16" in nearest_below(found, one, 1)
    assert nearest_below(found, small, 1) == ""


def test_frameworks_of_several_tables_are_told_apart() -> None:
    """u39kun/deep-learning-benchmark has such tables, one below the other."""
    table = "| Model | vgg16 eval | vgg16 train |\n|---|---|---|\n| 2080 Ti | {}ms | {}ms |\n"
    page = f"# PyTorch 0.3.0\n\n{table.format(30.5, 102.9)}\n# TensorFlow 1.4.0\n\n{table.format(31.3, 104.1)}"
    found = numbers(page, "README.md", Corrections({"batch_size": 16}))
    asked = why_not(found, "vgg16 eval 2080 Ti")
    assert "“PyTorch 0.3.0 torch table 1” (30.5ms in vgg16 eval)" in asked.replace("pytorch 0.3.0 ", "")
    chosen = pick(found, "2080 Ti vgg16 tensorflow", "train", ())
    assert (chosen.text, chosen.framework, chosen.release) == ("104.1ms", "tensorflow", "1.4.0")


def test_words_that_a_refused_row_has_too_are_a_question() -> None:
    """msr-fiddle/packrat: one CPU with either allocator is no case, and eight images a step are printed once."""
    text = "model,cores,batch_size,allocator,images/s\n"
    text += "resnet50,1,1,default,9.9\nresnet50,1,1,tcmalloc,10.8\nresnet50,1,8,default,11.4\n"
    table = adopted(text, "results.csv", Corrections(case={"mode": "inference"}))
    found, refused = numbers_of_tables(table, WORDS.axes), refused_in(table)
    assert [each.text for each in found] == ["11.4"]
    with pytest.raises(UserError, match=r"1 default is also in a row that is refused: allocator.*batch_size=8” \(11.4"):
        pick(found, "resnet50 1 default", "", refused)
    assert pick(found, "resnet50 1 default batch_size=8", "", refused).text == "11.4"
