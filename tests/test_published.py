"""Published numbers: the shipped files hold the source's tables, and a wrong file says what is wrong with it."""

from pathlib import Path

import pytest

from tests.synthetic_run import conv2d_case, training_case
from tsuishi.errors import UserError
from tsuishi.published import Number, read_source, read_sources

PUBLISHED = Path(__file__).parent.parent / "reports" / "published"

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
    return list(read_source(PUBLISHED / f"{source}.toml").flat())


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


def test_a_source_that_shows_charts_only_has_no_numbers() -> None:
    source = read_source(PUBLISHED / "keras-channels-first.toml")
    assert (source.software["tensorflow"], source.numbers, source.author, source.address) == ("1.13.1", (), None, None)


def test_a_valid_file_is_read_and_integers_become_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(VALID)
    (source,) = read_sources(tmp_path)
    assert (source.name, source.author, source.date) == ("x", None, None)
    assert [number.value for number in source.flat()] == [3.25, 3.0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('hardware = "k80"', 'hardware = "k8"', "numbers[0]: unknown hardware 'k8'; did you mean 'k80'? known: k80"),
        ("first_run_s", "first_run_ms", "unknown axis or quantity 'first_run_ms'; did you mean 'first_run_s'?"),
        ("[2, 3]", "[2]", "rows[1] has 1 values for 2 columns; make them as many"),
        ("[2, 3]", '[2, "3 s"]', "rows[1]: 'first_run_s' is '3 s'; give a number in s"),
        ("[2, 3]", "[0, 3]", "rows[1]: key 'devices'"),
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
        read_source(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
