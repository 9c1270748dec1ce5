"""Printed tables: each number cell is the number of a case, or refused with a reason."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.words import WORDS
from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.specs import numerals
from tsuishi.specs.grids import grids
from tsuishi.specs.numerals import number_in
from tsuishi.specs.printed_table import PrintedTable, TableReading, place_of
from tsuishi.specs.source import numbers_of
from tsuishi.specs.vocabulary import NetworkFacts

FACTS = {"resnet50": NetworkFacts(25557032, 224)}
COLUMNS: list[dict[str, Any]] = [
    {"name": "model", "holds": "model"},
    {"name": "batch", "holds": "batch_size"},
    {"name": "img/s", "holds": "throughput_images_per_s"},
]


def spec(**given: Any) -> PrintedTable:
    values = {"file": "a.csv", "sha256": "0" * 64, "suite": "adopted", "hardware": "card", "columns": COLUMNS, **given}
    return toml.made("a test", values, PrintedTable, WORDS)


def headed(*networks: str, scale: float = 1.0) -> list[dict[str, Any]]:
    """Columns whose headers are networks."""
    return [{"name": name, "holds": "step_s", "scale": scale, "case": {"model": name}} for name in networks]


def reading(text: str, names: dict[str, Any] | None = None, **given: Any) -> TableReading:
    (grid,) = grids("a.csv", text)
    return spec(**given).read(grid, names or {}, FACTS)


def test_numbers_of_cases_and_the_reasons_of_all_other_cells() -> None:
    text = (
        'model,batch,img/s\nresnet50,64,"1,200.5"\nxcit,64,3\nresnet50,x,3\nresnet50,32,OOM\nresnet50,8\nresnet50,16,\n'
    )
    found = reading(text, case={"devices": 1})
    (number,) = found.numbers
    assert number.axes == {"devices": 1, "model": "resnet50", "batch_size": 64}
    assert (number.row, number.column, number.text, number.value) == (0, "img/s", "1,200.5", 1200.5)
    assert [(cell.row, cell.why, cell.what) for cell in found.refused] == [
        (1, "model", "xcit"),
        (2, "batch_size", "x"),
        (3, "no number", "OOM"),
        (4, "row", "2 cells under 3 headers"),
    ]


def test_printed_texts_stand_for_our_values_and_units_are_converted() -> None:
    columns = [
        *COLUMNS[:2],
        {"name": "it/s", "holds": "step_s", "inverse": True},
        {"name": "ms", "holds": "step_s", "scale": 0.001},
    ]
    names = {"model": {"ResNet-50": "resnet50"}}
    found = reading("model,batch,it/s,ms\nResNet-50,8,4,250 ± 3\nResNet-50,8,0,0.25\n", names, columns=columns)
    assert [number.value for number in found.numbers] == [0.25, 0.25, 0.00025]
    assert [cell.what for cell in found.refused] == ["0"]


def test_a_network_of_other_parameters_is_not_ours_and_other_images_are_another_case() -> None:
    facts = [{"name": "params", "holds": "parameters", "scale": 1e6}, {"name": "size", "holds": "image_size"}]
    rows = "resnet50,64,1,25.56,224\nresnet50,64,1,25.03,224\nresnet50,64,1,25.6M,288x288\n"
    found = reading("model,batch,img/s,params,size\n" + rows, columns=[*COLUMNS, *facts])
    assert [(number.row, number.axes.get("image_size")) for number in found.numbers] == [(0, None), (2, 288)]
    assert [(cell.why, cell.what) for cell in found.refused] == [
        ("parameters", "resnet50: 25,030,000 parameters; here 25,557,032"),
    ]


def test_rows_of_a_case_that_a_column_of_words_tells_apart_are_no_readings_of_it() -> None:
    text = "model,batch,img/s,runtime\nresnet50,64,1,eager\nresnet50,64,2,tensorrt\nresnet50,32,3,eager\n"
    found = reading(text)
    assert [number.value for number in found.numbers] == [3.0]
    assert Counter((cell.why, cell.what) for cell in found.refused) == {("column", "runtime"): 2}
    alike = reading(text.replace("tensorrt", "eager"))
    assert [(table["columns"][-1], table["rows"]) for table, _ in spec().tables(alike.numbers)] == [
        ("throughput_images_per_s", (("resnet50", 64, (1.0, 2.0)), ("resnet50", 32, 3.0)))
    ]
    assert place_of("a.csv", 2, alike.numbers[:2]) == "a.csv, table 2, row 1 and 1 more, column img/s"


def test_the_values_of_axes_that_a_table_gives_are_checked() -> None:
    columns = [*COLUMNS, {"name": "size", "holds": "image_size"}]
    found = reading("model,batch,img/s,size\nresnet50,64,1,0\n", columns=columns)
    with pytest.raises(UserError, match="there: key 'image_size': input should be greater than 0; given: 0"):
        list(numbers_of(spec(columns=columns), found.numbers, "there", WORDS))


def test_headers_are_values_of_an_axis_and_columns_and_rows_name_hardware() -> None:
    found = reading(
        "resnet50,vgg99\n5,6\n7,8\n",
        columns=headed("resnet50", "vgg99", scale=0.001),
        case={"batch_size": 12, "devices": 2},
        batch_per_device=True,
    )
    assert [(number.axes, number.value) for number in found.numbers] == [
        ({"batch_size": 24, "devices": 2, "model": "resnet50"}, pytest.approx(value)) for value in (0.005, 0.007)
    ]
    assert Counter(cell.what for cell in found.refused) == {"vgg99": 2}
    by_row = [*COLUMNS, {"name": "gpu", "holds": "hardware"}]
    numbers = reading("model,batch,img/s,gpu\nresnet50,8,1,Titan V\nresnet50,8,2,K80\n", columns=by_row).numbers
    assert [spec(columns=by_row, hardware="").hardware_of(number) for number in numbers] == ["titan-v", "k80"]


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("model,batch,img/s\nxcit,1,2\nresnet18,1,2\nresnet50,1,3\n", {}),
        ("resnet18,resnet50,xcit\n2,3,4\n", {"columns": headed("resnet18", "resnet50", "xcit")}),
        ("a,resnet18\n3,2\n", {"columns": [{"name": "a", "holds": "step_s", "case": {"model": "resnet50"}},
                                           *headed("resnet18")]}),
        ("s\n3\n", {"columns": [{"name": "s", "holds": "step_s"}], "case": {"model": "resnet50"}}),
    ],
)  # fmt: skip
def test_only_numbers_of_networks_that_are_asked_are_read(text: str, given: dict[str, Any]) -> None:
    (grid,), table = grids("a.csv", text), spec(**given)
    assert [number.value for number in table.read(grid, {}, FACTS, lambda network: network == "resnet50").numbers] == [
        3.0
    ]
    assert not table.read(grid, {}, FACTS, lambda network: network == "mlp").numbers


def test_columns_give_axes_and_words_stand_for_several() -> None:
    columns = [
        {
            "name": "setting",
            "holds": "words",
            "also": {"AMP, NHWC": {"precision": "amp_fp16", "layout": "channels_last"}},
        },
        {"name": "eval", "holds": "step_s", "case": {"mode": "inference"}},
        {"name": "odd", "holds": "step_s", "case": {"mode": "odd"}},
    ]
    found = reading('setting,eval,odd\n"AMP, NHWC",2,3\nother,4,5\n', columns=columns)
    (number,) = found.numbers
    assert number.axes == {"precision": "amp_fp16", "layout": "channels_last", "mode": "inference"}
    assert [(cell.why, cell.what) for cell in found.refused] == [
        ("mode", "odd"),
        ("setting", "other"),
        ("setting", "other"),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2,696", 2696.0),
        ("1024.0", 1024.0),
        ("0012", 12.0),
        ("55.9 ± 0.4", 55.9),
        ("55.9 +/- 0.4", 55.9),
        ("1.74 (0.19)", 1.74),
        ("356 img/s", 356.0),
        ("31.3ms", 31.3),
        ("1e-3", 0.001),
        *((text, None) for text in ("OOM", "n/a", "-", "", "15.0 / 57.2", "17m25s", "3x2", "V100", "1.2.3")),
    ],
)
def test_the_number_of_a_cell(text: str, value: float | None) -> None:
    assert number_in(text) == value


@given(st.from_regex(r"[0-9]{1,17}\.[0-9]{1,17}", fullmatch=True))
def test_a_number_that_is_read_at_once_is_read_as_any_other(text: str) -> None:
    assert number_in(text) == (numerals.value(text, ".") if "." in numerals.forms(text) else None)


def test_a_decimal_comma_is_the_tables() -> None:
    assert number_in("66,7 +11,6 -15,6", ",") == 66.7
    assert number_in("66,7") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": [{"name": "x", "holds": "modle"}]}, "unknown axis or quantity 'modle'"),
        ({"columns": [{"name": "x", "holds": "model"}]}, "no quantity among them"),
        ({"case": {"precison": "fp32"}}, "precison"),
        ({"case": {"precision": "fp31"}}, "fp31"),
        ({"file": "../a.csv"}, "leads out of the folder"),
    ],
)
def test_a_wrong_map_is_refused_with_its_key(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        spec(**given)
