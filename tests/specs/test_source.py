"""Published numbers: the shipped files hold the source's tables, and a wrong file says what is wrong with it."""

from pathlib import Path

import pytest

from tests.synthetic_run import conv2d_case, training_case
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.specs.source import Number, epochs_of, read_source, read_sources

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"

VALID = """
title = "A title"
language = "ja"
[[hardware]]
name = "k80"
title = "K80"
[[numbers]]
suite = "conv2d"
hardware = "k80"
columns = ["devices", "first_run_s"]
rows = [[1, 3.25], [2, 3]]
"""


def numbers(source: str) -> list[Number]:
    return list(read_source(PUBLISHED / f"{source}.toml", WORDS).flat())


def test_all_fifteen_rows_of_the_pytorch_tables_are_there() -> None:
    totals = [number for number in numbers("torch-2080ti") if number.quantity == "total_s"]
    assert len(totals) == 15
    by_case = {(n.axes["model"], n.axes["devices"], n.axes["batch_size"]): n.value for n in totals}
    assert by_case["wrn28_10", 1, 128] == 3 * 3600 + 3 * 60 + 57
    assert by_case["cnn10", 2, 2048] == 11 * 60 + 45


def test_totals_are_first_plus_99_medians_within_a_percent() -> None:
    """A check of every digit typed: the table's own arithmetic (the source ran 100 epochs)."""
    found = numbers("torch-2080ti")
    for first, median, total in zip(found[0::4], found[1::4], found[2::4], strict=True):
        assert total.value == pytest.approx(first.value + 99 * median.value, rel=0.0075)


def test_the_conv2d_tables_keep_every_printed_digit() -> None:
    found = {(n.hardware, n.axes.get("devices")): n.value for n in numbers("conv2d-gce")}
    assert len(found) == 17
    assert found["v100", 1] == 14.897803307
    assert found["k80", 4] == 0.690669060
    assert found["cpu", None] == 0.222


def test_a_source_says_what_a_whole_training_is_and_of_which_cases() -> None:
    sources = read_sources(PUBLISHED, WORDS)

    def whole(**axes: str) -> tuple[int, int | None] | None:
        found = epochs_of(sources, training_case(128, **axes).axes)
        return (found.images, found.count) if found else None

    assert whole() == (50_000, 100)
    assert whole(mode="inference") is None
    assert whole(suite="batch_throughput") == (50_000, None)
    assert whole(suite="batch_throughput", model="mlp") is None
    assert whole(suite="mine") is None
    assert {number.epochs.steps(128) for number in numbers("torch-2080ti") if number.epochs} == {391}


def test_numbers_match_the_cases_they_were_measured_for_and_no_others() -> None:
    conv2d, training = numbers("conv2d-gce"), numbers("torch-2080ti")

    def keys(found: list[Number], axes: dict[str, object]) -> list[str]:
        return sorted({number.key for number in found if number.matches(axes)})

    assert keys(conv2d, conv2d_case(devices=3).axes) == ["published_conv2d_gce_k80", "published_conv2d_gce_v100"]
    assert keys(conv2d, conv2d_case(devices=3, data="random").axes) == []
    scipy = conv2d_case(implementation="scipy", strategy=None, feed=None, graph_optimizers=None)
    assert keys(conv2d, scipy.axes) == ["published_conv2d_gce_cpu"]
    assert keys(training, training_case(128).axes) == ["published_torch_2080ti_rtx_2080ti"]
    assert keys(training, training_case(64).axes) == []
    assert keys(training, training_case(128, mode="inference").axes) == []
    assert keys(training, training_case(128, execution="compiled").axes) == []
    assert keys(training, training_case(128, protocol="literal").axes) == ["published_torch_2080ti_rtx_2080ti"]
    assert keys(training, training_case(512, devices=2).axes) == []
    two = training_case(512, devices=2, strategy="data_parallel", model="wrn28_10")
    assert [number.value for number in training if number.matches(two.axes)] == [59.01, 56.49, 5654, 0.7695]


def test_the_constants_of_the_throughput_model_are_there_by_number_of_gpus() -> None:
    found = {(n.axes["devices"], n.quantity): n.value for n in numbers("batch-throughput")}
    assert found == {
        (1, "ideal_speed_images_per_s"): 258.1,
        (1, "cost_time_s"): 0.054,
        (2, "ideal_speed_images_per_s"): 513.8,
        (2, "cost_time_s"): 0.15,
    }


def test_every_line_of_the_tower_logs_is_there_and_their_median_counts() -> None:
    found = {(n.axes["strategy"], n.quantity): n for n in numbers("towers-titanx") if "throughput" in n.quantity}
    alone, towers = found["none", "throughput_images_per_s"], found["towers", "throughput_images_per_s"]
    assert alone.readings == (768.2, 745.9, 730.8, 764.6, 779.0)
    assert towers.readings == (2682.6, 2475.5, 2452.7, 2500.2, 2853.9)
    assert (alone.value, towers.value) == (764.6, 2500.2)
    assert round(towers.value / alone.value, 2) == 3.27


def test_the_tower_logs_agree_with_themselves() -> None:
    """A check of every digit typed: images over seconds is the printed speed, as far as its seconds are printed."""
    found = {(n.axes["batch_size"], n.quantity): n for n in numbers("towers-titanx") if len(n.readings) == 5}
    for batch_size, printed_s in ((128, 0.0005), (512, 4 * 0.0005)):
        speeds, steps = (found[batch_size, name].readings for name in ("throughput_images_per_s", "step_s"))
        for speed, step_s in zip(speeds, steps, strict=True):
            assert batch_size / speed == pytest.approx(step_s, abs=printed_s)


def test_what_follows_from_the_gpus_readings_is_reckoned_and_not_typed() -> None:
    found = {
        (n.axes["pipeline"], n.axes["batch_size"], n.quantity): n.value
        for n in numbers("towers-titanx")
        if not n.readings
    }
    assert found["shared_host", 128, "gpu_imbalance"] == 4.0
    assert found["shared_host", 512, "gpu_imbalance"] == pytest.approx((23 - 8) / 15.5)
    assert found["per_device", 256, "gpu_imbalance"] == pytest.approx((37 - 26) / 31)
    assert found["per_device", 512, "gpu_utilisation_percent"] == 34.25
    assert found["shared_host", 128, "least_gpu_memory_share"] == pytest.approx(11607 / 12212)
    assert {key[2] for key in found} == {"gpu_imbalance", "gpu_utilisation_percent", "least_gpu_memory_share"}


def test_numbers_say_which_framework_computed() -> None:
    assert {number.framework for number in numbers("torch-2080ti")} == {"torch"}
    assert {(n.hardware, n.framework) for n in numbers("conv2d-gce")} == {
        ("v100", "tensorflow"),
        ("k80", "tensorflow"),
        ("cpu", None),
    }


def test_the_cpu_of_conv2d_is_compared_with_the_gpus() -> None:
    hardware = {one.name: one.beside for one in read_source(PUBLISHED / "conv2d-gce.toml", WORDS).hardware}
    assert hardware == {"v100": (), "k80": (), "cpu": ("v100", "k80")}


def test_a_source_that_shows_charts_only_has_no_numbers() -> None:
    source = read_source(PUBLISHED / "keras-channels-first.toml", WORDS)
    assert (source.software["tensorflow"], source.numbers, source.author, source.address) == ("1.13.1", (), None, None)


def test_a_valid_file_is_read_and_integers_become_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(VALID)
    (source,) = read_sources(tmp_path, WORDS)
    assert (source.name, source.author, source.date) == ("x", None, None)
    assert [number.value for number in source.flat()] == [3.25, 3.0]


def test_several_readings_count_as_their_median(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(VALID.replace("[2, 3]", "[2, [3, 5, 2.5, 4]]"))
    (source,) = read_sources(tmp_path, WORDS)
    assert [(number.value, number.readings) for number in source.flat()] == [
        (3.25, (3.25,)),
        (3.5, (3.0, 5.0, 2.5, 4.0)),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('hardware = "k80"', 'hardware = "k8"', "numbers[0]: unknown hardware 'k8'; did you mean 'k80'? known: k80"),
        ("first_run_s", "first_run_ms", "unknown axis or quantity 'first_run_ms'; did you mean 'first_run_s'?"),
        ("[2, 3]", "[2]", "rows[1] has 1 values for 2 columns; make them as many"),
        ("[2, 3]", '[2, "3 s"]', "rows[1]: 'first_run_s' is '3 s'; give a number in s, or several"),
        ("[2, 3]", "[2, []]", "rows[1]: 'first_run_s' is (); give a number in s, or several"),
        ("[2, 3]", "[[2, 4], 3]", "rows[1]: key 'devices'"),
        ("[2, 3]", "[0, 3]", "rows[1]: key 'devices'"),
        (
            "[2, 3]",
            '[2, [3, "4 s"]]',
            "key 'numbers[0].rows[1][1]': expected a word, a number, or an array of numbers; given: [3, '4 s']",
        ),
        ("[2, 3]", "[2, true]", "rows[1][1]': expected a word, a number, or an array of numbers; given: True"),
        (
            'name = "k80"',
            'name = "k80"\nbeside = ["v100"]',
            "hardware 'k80': beside: unknown hardware 'v100'; known: k80",
        ),
        (
            'suite = "conv2d"',
            'suite = "conv2d"\ncase = { device = 1 }',
            "unknown axis 'device'; did you mean 'devices'?",
        ),
        ('suite = "conv2d"', 'suite = "conv2d"\ncase = { devices = 1 }', "'devices' is given twice"),
        ('["devices", "first_run_s"]', '["devices", "batch_size"]', "no quantity among them; add one of: first_run_s"),
        ('language = "ja"', "", "key 'language' is missing; add it"),
        ('language = "ja"', 'language = "ja"\nauthour = "?"', "unknown key 'authour'; did you mean 'author'?"),
    ],
)
def test_a_wrong_file_names_itself_the_key_and_the_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(VALID.replace(old, new, 1) if old != 'hardware = "k80"' else VALID.replace(old, new))
    with pytest.raises(UserError) as error:
        read_source(path, WORDS)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
