"""Tables of CSV, Markdown, HTML and JSON as grids of text."""

import json
from unittest.mock import Mock

import pytest

from tsuishi.specs import grids as module
from tsuishi.specs.grids import Grid, grids


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", '\ufeff# measured in May\n\nmodel,ms\nresnet50,"1,234.5"\n'),
        ("a.tsv", "model\tms\nresnet50\t1,234.5\n"),
        ("semicolons.csv", "model;ms\nresnet50;1,234.5\n"),
        (
            "a.md",
            "# Title\n\nwords\n\n| **model** | [ms](http://example.org) |\n|---|:-:|\n| `resnet50` | **1,234.5** |\n",
        ),
        ("README", "model | ms\n--|--\nresnet50 | 1,234.5\n"),
        ("a.html", "<p>x<table><tr><th>model<th>ms</tr><tr><td>resnet50</td><td> 1,234.5\n</td></tr></table>"),
        ("a.json", '[{"model": "resnet50", "ms": "1,234.5"}]'),
        ("a.json", '{"model": ["resnet50"], "ms": ["1,234.5"]}'),
        ("page", '{"results": [{"model": "resnet50", "ms": "1,234.5"}]}'),
    ],
)
def test_the_same_table_in_any_form_is_the_same_grid(name: str, text: str) -> None:
    (grid,) = grids(name, text)
    assert grid.header == ("model", "ms")
    assert grid.rows == (("resnet50", "1,234.5"),)


def test_cells_that_span_rows_and_columns_stand_in_each_of_them() -> None:
    page = """<table><thead><tr><th rowspan=2>model</th><th colspan=2>ms</th></tr><tr><th>1 GPU</th><th>2 GPUs</th></tr>
    </thead><tr><td rowspan=2>resnet50</td><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>"""
    assert grids("a.html", page) == [
        Grid(("model", "ms 1 GPU", "ms 2 GPUs"), (("resnet50", "1", "2"), ("resnet50", "3", "4")))
    ]


def test_the_headings_and_the_items_of_a_list_above_a_table_go_with_it() -> None:
    page = "# A\n## B\n### C\n* batch 128\n\n| x |\n|---|\n| 1 |\n\n## D\n\n| y |\n|---|\n| 2 |\n"
    first, second = grids("a.md", page)
    assert first.heading == ("A", "B", "C", "batch 128")
    assert second.heading == ("A", "D")


def test_objects_by_name_and_inner_objects_become_rows_and_columns() -> None:
    (grid,) = grids("a.json", '{"resnet50": {"fp32": {"ms": 1}, "note": null}, "vgg16": {"fp32": {"ms": 2.5}}}')
    assert grid == Grid(("name", "fp32 ms", "note"), (("resnet50", "1", ""), ("vgg16", "2.5", "")))


def test_rows_keep_a_cell_too_many_and_empty_files_have_no_table() -> None:
    (grid,) = grids("a.csv", "model,ms\nresnet50,1,2\n\nvgg16,3\n")
    assert grid.rows == (("resnet50", "1", "2"), ("vgg16", "3"))
    assert [grids(name, "") for name in ("a.csv", "a.md", "a.html")] == [[], [], []]
    assert grids("a.csv", "model,ms\n") == []


def test_of_many_tables_no_more_are_made_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were all made first: 7 MiB of small tables took 28 seconds and 1.5 GiB, to be refused."""
    made = Mock(side_effect=module._grid)
    monkeypatch.setattr(module, "_grid", made)
    text = json.dumps({f"t{table}": [{f"k{key}": 1 for key in range(100)}] for table in range(3000)})
    with pytest.raises(ValueError, match="more than 250,000 cells"):
        grids("a.json", text)
    assert 1000 < made.call_count < 1300
