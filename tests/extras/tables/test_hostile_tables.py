"""Tables made to break a reader: each is read, or refused in one line, in a time that grows with its length alone."""

import codecs
import json
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.extras.tables.test_adopting import served
from tests.extras.tables.test_columns import SHEETS, adopted, numbers
from tests.words import WORDS
from tsuishi.artifacts.network import Network
from tsuishi.base.errors import UserError
from tsuishi.extras.tables.adoption import Corrections, adopt
from tsuishi.extras.tables.printed_quantities import quantity_of
from tsuishi.extras.tables.printed_values import PrintedValues
from tsuishi.extras.tables.table_files import Licence, TableFile, table_files
from tsuishi.extras.tables.written import write_source
from tsuishi.specs.grids import MOST_CELLS, MOST_COLUMNS, MOST_OF_PAGE, grids
from tsuishi.specs.source import Source
from tsuishi.specs.table_text import table_text

LONG = "word " * 100_000


def seconds(of: Callable[[], object]) -> float:
    begun = time.process_time()
    of()
    return time.process_time() - begun


@pytest.mark.parametrize("rate", ["1e300", "1e999", "1e-320"])
def test_a_rate_and_a_time_without_bounds_are_no_batch_size(rate: str) -> None:
    """Their product is infinite, and no integer."""
    table = f"model,precision,images/s,ms/step\nresnet50,fp32,{rate},{rate}\n"
    adoption = adopted(table, "table.csv")
    assert "batch size" in adoption.tables[0].unread


@pytest.mark.parametrize(
    "table",
    [
        "model,batch_size,images/s\nresnet50,{},100\n",
        "model,images/s (bs={})\nresnet50,100\n",
        "# Batch size {}\n\n| model | images/s |\n|---|---|\n| resnet50 | 100 |\n",
        "model,batch_size,images/s,GPUs\nresnet50,1,{},1\n",
    ],
)
def test_integers_of_thousands_of_digits_are_no_setting(table: str) -> None:
    """Python refuses to read them: ValueError."""
    assert numbers(adopted(table.format("9" * 5000), "table.md" if table[0] == "#" else "table.csv")) == []


def test_an_integer_of_json_with_thousands_of_digits_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"^table\.json: not valid: Exceeds the limit"):
        adopted(f'[{{"model": "resnet50", "batch_size": {"9" * 5000}}}]', "table.json")


def test_the_words_of_a_header_take_a_time_in_proportion() -> None:
    """Each word had a copy of all that follow."""
    named = PrintedValues(WORDS)
    assert seconds(lambda: named.within("word " * 20_000)) < 3
    assert seconds(lambda: quantity_of("per image (" * 20_000)) < 3
    assert quantity_of("time per image, batch of 8 (ms)") == quantity_of("ms/image")


def test_a_quotation_mark_that_nothing_closes_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"^table\.csv: not valid: no CSV: field larger than field limit"):
        adopted('model,images/s\nresnet50,"' + "1,\n" * 100_000, "table.csv")


def test_a_table_in_a_cell_of_a_table_is_a_table_of_its_own() -> None:
    inner = "<table><tr><th>model<th>images/s</tr><tr><td>vgg16<td>20</tr></table>"
    outer = f"<table><tr><th>model<th>images/s<tr><td>resnet50{inner}<td>10</tr><tr><td>cnn10<td>30</table>"
    found = grids("table.html", outer)
    assert [grid.rows for grid in found] == [(("vgg16", "20"),), (("resnet50", "10"), ("cnn10", "30"))]
    assert len(grids("table.html", "<table><tr><td>a" * 500 + "<tr><td>b</table>" * 500)) == 500


@pytest.mark.parametrize(
    ("name", "text", "bound"),
    [
        ("keys.json", json.dumps([{f"k{index}": 1} for index in range(2_000)]), f"{MOST_CELLS:,} cells"),
        ("wide.csv", "," * MOST_COLUMNS + "\n1", f"{MOST_COLUMNS:,} columns"),
        ("long.csv", "a\n" + "1\n" * MOST_CELLS, f"{MOST_CELLS:,} cells"),
        ("spans.html", "<table>" + "<tr><td colspan=100 rowspan=100>x" * 500, f"{MOST_COLUMNS:,} columns"),
        ("texts.html", f"<table><tr><td colspan=100 rowspan=9>{LONG}{'<tr>' * 9}", f"{MOST_CELLS:,} cells"),
        (
            "headings.html",
            f"<h1>{LONG}</h1>" + "<table><tr><td>a<tr><td>1</table>" * 200,
            f"{MOST_CELLS:,} cells",
        ),
        ("tables.json", json.dumps({f"t{of}": [{f"k{key}": 1} for key in range(600)] for of in range(9)}), "cells"),
        ("page.md", "[" * (MOST_OF_PAGE + 1), f"{MOST_OF_PAGE:,} characters"),
        ("page.html", "<" * (MOST_OF_PAGE + 1), f"{MOST_OF_PAGE:,} characters"),
        ("marked.html", "<![a<![a", "no HTML"),
        ("deep.json", json.dumps([{"k" * 1_000_000: {str(index): 1 for index in range(900)}}]), "key of more"),
    ],
)
def test_a_file_of_too_many_cells_or_of_none_is_refused_with_the_bound(name: str, text: str, bound: str) -> None:
    def read() -> None:
        with pytest.raises(ValueError, match=bound):
            grids(name, text)

    assert seconds(read) < 5


def test_the_facts_above_a_page_take_a_time_in_proportion() -> None:
    """Lines that begin with "-" were read in two ways each."""
    begun = "---\n" + "-a: b\n" * 1_000
    assert seconds(lambda: grids("table.md", begun)) < 3
    table = "| model | images/s |\n|---|---|\n| resnet50 | 100 |\n"
    (grid,) = grids("table.md", f"{begun}---\n{table}")
    assert grid.heading == ()
    assert grid.rows == (("resnet50", "100"),)


def test_half_a_character_of_json_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"^table\.json: not valid: 'utf-8' codec can't encode"):
        adopted('[{"model": "resnet50", "GPU": "\\ud800", "images/s": 1}]', "table.json")


def written(tmp_path: Path, *tables: TableFile) -> Source:
    adoption = adopt("a-source", tables, WORDS, SHEETS, Corrections(case={"batch_size": 64, "mode": "training"}))
    return write_source(adoption, "A title", tmp_path / "source", tmp_path / "suite.toml", WORDS)[0]


def of_file(name: str, text: str, licence: str = "MIT") -> TableFile:
    return TableFile(name, text, text.encode(), name, Licence(licence, "as it is"))


@pytest.mark.parametrize("sign", ["\x07", "\x1b", "\u202e", "\u200b"])
@pytest.mark.parametrize("header", ["GPU", "model"])
def test_an_invisible_sign_in_a_cell_is_refused_before_anything_is_written(
    tmp_path: Path, sign: str, header: str
) -> None:
    cells = {"GPU": "V100", "model": "resnet50"}
    cells[header] += sign
    text = f"GPU,model,images/s\n{cells['GPU']},{cells['model']},100\nV100,vgg16,50\n"
    with pytest.raises(UserError, match=rf"^nothing is written: source/source\.toml: .*U\+{ord(sign[0]):04X}"):
        written(tmp_path, of_file("table.csv", text))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["source.toml", "LICENSE"])
def test_a_table_named_as_a_file_of_a_source_is_kept_under_another_name(tmp_path: Path, name: str) -> None:
    source = written(tmp_path, of_file(name, "model,images/s\nresnet50,100\n"))
    assert source.tables[0].file == f"table-{name}"
    assert [number.value for number in source.flat()] == [100.0]


def test_tables_of_one_stem_without_a_licence_are_kept_each(tmp_path: Path) -> None:
    tables = (
        of_file("a.csv", "model,images/s\nresnet50,100\n", ""),
        of_file("a.tsv", "model\timages/s\nvgg16\t50\n", ""),
    )
    source = written(tmp_path, *tables)
    assert sorted(number.value for number in source.flat()) == [50.0, 100.0]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("model,images/s,µs\nresnet50,1\n".encode("utf-16"), "UTF-16"),
        ("model\timages/s\nresnet50\t1\n".encode("utf-16-be").join([codecs.BOM_UTF16_BE, b""]), "UTF-16"),
        ("\ufeffmodel,µs\n".encode(), ""),
        ("Modell,Größe,Zeit (µs),±\n".encode("cp1252"), "Windows-1252"),
        ("modèle – “time”,°C\n".encode("cp1252"), "Windows-1252"),
    ],
)
def test_the_encoding_of_a_table_is_told_by_its_mark_or_its_signs(content: bytes, encoding: str) -> None:
    text, found = table_text("table.csv", content)
    assert found == encoding
    assert "\ufeff" not in text
    assert "µ" in text or "–" in text or "images/s" in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("модель,скорость\n".encode("cp1251"), "no UTF-8, and nothing tells its encoding: save it as UTF-8"),
        ("モデル,スループット\n".encode("shift-jis"), "no UTF-8, and nothing tells its encoding"),
        ("模型,速度\n".encode("gbk"), "no UTF-8, and nothing tells its encoding"),
        (codecs.BOM_UTF16_LE + b"a", "no UTF-8, and nothing tells its encoding"),
        ("model".encode("utf-16-le"), "no text, it has zero bytes"),
        (b"PK\x03\x04\x14\x00xl/workbook.xml", "a spreadsheet or an archive: save its sheet as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a spreadsheet or an archive: save its sheet as CSV"),
    ],
)
def test_a_file_of_another_encoding_or_of_none_is_refused_with_what_to_do(content: bytes, said: str) -> None:
    with pytest.raises(UserError, match=f"^table.csv: {said}"):
        table_text("table.csv", content)


def test_a_table_in_utf_16_is_kept_as_it_is_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes("model\tbatch size\timages/s\r\nresnet50\t64\t412.5\r\n".encode("utf-16"))
    (tmp_path / "LICENSE").write_text("Permission is hereby granted, free of charge")
    files = table_files(str(path), Network(), None)
    adoption = adopt("a-source", files, WORDS, SHEETS, Corrections(case={"mode": "training"}))
    assert ("table.txt", "text in UTF-16", "it is no UTF-8") in adoption.evidence
    source, _ = write_source(adoption, "A title", tmp_path / "source", tmp_path / "suite.toml", WORDS)
    assert [number.value for number in source.flat()] == [412.5]
    assert (tmp_path / "source" / "table.txt").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "remote",
    ["https://ada:s3cret@code.example/ada/tables.git", "https://s3cret@code.example/t.git?sig=s3cret#s3cret"],
)
def test_the_address_of_a_table_in_git_has_no_secret(tmp_path: Path, remote: str) -> None:
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)
    run(["git", "init", "-q"])
    run(["git", "remote", "add", "origin", remote])
    run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"])
    (tmp_path / "table.csv").write_text("model,images/s\nresnet50,1\n")
    (file,) = table_files(str(tmp_path / "table.csv"), Network(), None)
    assert file.address.startswith("https://code.example/")
    assert "s3cret" not in file.address


def test_the_address_of_a_table_on_a_server_has_no_secret(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("model,images/s\nresnet50,1\n")
    (tmp_path / "table.xlsx").write_bytes(b"PK\x03\x04")
    with served(tmp_path) as address:
        given = address.replace("//", "//ada:s3cret@") + "/{}?sig=s3cret"
        (file,) = table_files(given.format("table.csv"), Network(), None)
        assert file.address == f"{address}/table.csv"
        for name in ("gone.csv", "table.xlsx"):
            with pytest.raises(UserError) as refused:
                table_files(given.format(name), Network(), None)
            assert str(refused.value).startswith(f"{address}/{name}: ")
            assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("path", ["a%2fb.csv", "..%2f..%2fb.csv", f"{'b' * 230}.csv"])
def test_a_name_in_an_address_leads_nowhere(tmp_path: Path, path: str) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/b.csv", "b.csv", f"{'b' * 230}.csv"):
        (tmp_path / name).write_text("model,images/s\nresnet50,1\n")
    with served(tmp_path) as address:
        (file,) = table_files(f"{address}/{path}", Network(), None)
    source = written(tmp_path, file)
    assert source.tables[0].file in ("b-1-used.csv", "table-1-used.csv")
    assert len(source.flat()) == 1
