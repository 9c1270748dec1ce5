"""Pictures: what a source's figures may say, and that those of this checkout can be drawn and measured."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.specs.test_source import PUBLISHED, VALID
from tests.words import SHIPPED, WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.specs.environment import Accelerator, read_environment
from tsuishi.specs.pictures import Picture, PictureSeries
from tsuishi.specs.selections import FRAMEWORK, Selector
from tsuishi.specs.source import Source, read_source, read_sources
from tsuishi.specs.suite import select_suites

FIGURE = """
[rerun]
environments = ["tf1.13-cu100"]
gpus = 2
[[figures]]
id = "time"
kind = "figure"
title = "Time over GPUs"
x = "devices"
values = [1, 2]
quantities = ["first_run_s"]
case = { suite = "conv2d" }
[[figures.series]]
title = "towers"
case = { strategy = "towers" }
[[figures.series]]
title = "one by one"
case = { strategy = "none", suite = "channels_first" }
printed = false
"""
TABLE = """
[rerun]
environments = ["tf1.13-cu100"]
gpus = 0
[[figures]]
id = "log"
kind = "table"
title = "The log"
quantities = ["first_run_s"]
readings = ["line 1", "line 2", "line 3"]
[[figures.series]]
title = "all"
case = { suite = "conv2d", devices = 2 }
"""
SOURCES = read_sources(PUBLISHED, WORDS, tables=False)


def read(tmp_path: Path, text: str) -> Source:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    return read_source(path, WORDS)


def test_a_figure_is_read_with_series_of_several_suites(tmp_path: Path) -> None:
    source = read(tmp_path, VALID + FIGURE)
    (picture,) = source.figures
    towers, alone = picture.series
    assert (picture.x, picture.values, picture.scale) == ("devices", (1, 2), "linear")
    assert (picture.suites(towers), picture.suites(alone)) == (["conv2d"], ["channels_first"])
    assert (towers.printed, alone.printed) == (True, False)
    assert source.rerun
    assert source.rerun.gpus == 2


def test_a_table_of_readings_is_read(tmp_path: Path) -> None:
    (picture,) = read(tmp_path, VALID.replace("[2, 3]", "[2, [3, 4, 5]]") + TABLE).figures
    assert [title["en"] for title in picture.readings] == ["line 1", "line 2", "line 3"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["first_run_s"]', '["first_run"]', "unknown quantity 'first_run'; did you mean 'first_run_s'?"),
        ('["first_run_s"]', '["first_run_s", "accuracy"]', "a figure has one unit; given: 1, s: make a figure of each"),
        ('["first_run_s"]', "[]", "key 'figures[0].quantities'"),
        ('x = "devices"', 'x = "device"', "unknown axis 'device'; did you mean 'devices'?"),
        ('x = "devices"', 'x = "strategy"', "key 'strategy': input should be"),
        ('x = "devices"\nvalues = [1, 2]', 'x = "data"\nvalues = ["ones"]', "'data' has names: make it a table"),
        ('x = "devices"\n', "", "'x' and 'values' go together; give both, or neither"),
        ('x = "devices"\nvalues = [1, 2]\n', "", "a figure needs 'x' and 'values'; add them, or make it a table"),
        ("[1, 2]", "[1, 2, 1]", "values: a value is given twice; give each once"),
        ("[1, 2]", "[0]", "key 'devices': input should be greater than 0"),
        ('id = "time"', 'id = "Time"', "key 'figures[0].id'"),
        ('kind = "figure"', 'kind = "chart"', "key 'figures[0].kind'"),
        ('kind = "figure"', 'kind = "table"\nscale = "log"', "a table has no use for 'line', 'scale'"),
        ('kind = "figure"', 'kind = "figure"\nreadings = ["one"]', "a figure has no use for 'readings'; remove them"),
        ('kind = "figure"', 'kind = "figure"\nline = ["first_run_s", "v0"]', "unknown quantity 'v0'"),
        ('case = { suite = "conv2d" }\n', "", "series 'towers': no suite; add one to its 'case', or to that of the"),
        ('"one by one"', '"towers"', "series: 'towers' is given twice; give the second another title"),
        ('strategy = "towers"', 'strategy = "tower"', "input should be 'none', 'towers'"),
        ('strategy = "towers"', 'strategie = "towers"', "unknown axis 'strategie'; did you mean 'strategy'?"),
        ('strategy = "towers"', 'framework = "TensorFlow"', "framework: expected a name as torch or tensorflow"),
        (
            "printed = false",
            "printed = true",
            "figures 'time': series 'one by one': no number of first_run_s in [[numb",
        ),
        (
            'case = { strategy = "towers" }',
            'case = { strategy = "towers" }\nprinted = false',
            "figures 'time': series 'towers': the source prints first_run_s of it; remove 'printed'",
        ),
        ('[rerun]\nenvironments = ["tf1.13-cu100"]\ngpus = 2\n', "", "figures: add [rerun] with the environments"),
        ('environments = ["tf1.13-cu100"]', "environments = []", "key 'rerun.environments'"),
        ("gpus = 2", "gpus = -1", "key 'rerun.gpus'"),
        ("gpus = 2", "gpu = 2", "unknown key 'rerun.gpu'; did you mean 'gpus'?"),
    ],
)
def test_a_wrong_figure_names_its_file_the_key_and_the_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FIGURE
    with pytest.raises(UserError) as error:
        read(tmp_path, VALID + FIGURE.replace(old, new, 1))
    assert str(error.value).startswith(f"{tmp_path / 'x.toml'}: ")
    assert message in str(error.value)


def test_a_figure_is_given_once(tmp_path: Path) -> None:
    twice = FIGURE + FIGURE[FIGURE.index("[[figures]]") :]
    with pytest.raises(UserError, match="figures: 'time' is given twice; give the second another id"):
        read(tmp_path, VALID + twice)


def test_readings_are_rows_of_their_own_and_as_many_as_their_titles(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="first_run_s has 1 readings for 3 titles; make them as many"):
        read(tmp_path, VALID + TABLE)
    with pytest.raises(UserError, match="rows are either values of 'x' or 'readings'; remove one of them"):
        read(tmp_path, VALID + TABLE.replace("readings", 'x = "devices"\nvalues = [2]\nreadings'))


def shipped() -> Iterator[Any]:
    for source in SOURCES:
        for picture in source.figures:
            yield pytest.param(source, picture, id=f"{source.name}-{picture.id}")


@pytest.mark.parametrize(("source", "picture"), list(shipped()))
def test_a_shipped_picture_leaves_no_number_of_its_series_out(source: Source, picture: Picture) -> None:
    for series in picture.series:
        numbers = [
            number
            for number in source.flat()
            if number.quantity in picture.wanted(series) and number.may_be(*picture.selections(series))
        ]
        assert {number.axes[picture.x] for number in numbers if picture.x in number.axes} <= set(picture.values)


@pytest.mark.parametrize(("source", "picture"), list(shipped()))
def test_a_shipped_picture_is_in_both_languages(source: Source, picture: Picture) -> None:
    texts = [picture.title, *(series.title for series in picture.series), *picture.readings]
    assert all({*text} == {"en", "ja"} for text in [*texts, *([picture.note] if picture.note else [])])


def planned(accelerator: Accelerator) -> list[dict[str, Any]]:
    suites = select_suites(Checkout().suites, ())
    return [case.axes for suite in suites for case, _ in suite.cases("quick", accelerator)]


def measured(source: Source, accelerator: Accelerator, names: tuple[str, ...]) -> list[tuple[Picture, PictureSeries]]:
    """The series of which the profile quick has cases in these environments."""
    cases = planned(accelerator)
    frameworks = [read_environment(Checkout().images / f"{name}.toml").framework for name in names]
    return [
        (picture, series)
        for picture in source.figures
        for series in picture.series
        for axes in cases
        if any(Selector(*picture.selections(series))({**axes, FRAMEWORK: framework}) for framework in frameworks)
    ]


@pytest.mark.parametrize("source", [each for each in SOURCES if each.name in SHIPPED], ids=lambda source: source.name)
def test_the_command_of_a_source_measures_each_of_its_series(source: Source) -> None:
    """On GPUs each of them; on a CPU at least one."""
    assert source.figures
    assert source.rerun
    known = measured(source, "cuda", source.rerun.environments)
    for picture in source.figures:
        for series in picture.series:
            assert (picture, series) in known, f"{picture.id}: {series.title['en']}"
    if source.rerun.on_cpu:
        assert measured(source, "cpu", source.rerun.on_cpu)


def test_the_chart_of_two_frameworks_joins_two_suites_in_the_order_of_its_source() -> None:
    (source,) = (source for source in SOURCES if source.name == "torch-2080ti")
    first = source.figures[0]
    assert [suite for series in first.series for suite in first.suites(series)] == [
        *["channels_first"] * 2,
        *["multi_gpu_scaling"] * 4,
    ]
    assert [series.printed for series in first.series] == [False] * 4 + [True] * 2
