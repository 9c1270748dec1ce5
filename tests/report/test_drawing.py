"""What is drawn, and what is kept of it."""

import json
from pathlib import Path

import psutil
import pytest

from tsuishi.report.blocks import Chart, Section, View
from tsuishi.report.drawing import Drawings, Hands, kept, runtime, to_svg

BARS = {"data": {"values": [{"x": 1}]}, "mark": "bar", "encoding": {"x": {"field": "x", "type": "quantitative"}}}


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def section(*names: str) -> Section:
    return Section("a", "A", (View(tuple(Chart("title", name, "caption", BARS) for name in names)),))


def test_every_chart_that_was_begun_is_drawn_as_it_would_be_alone() -> None:
    with Drawings(None) as drawings:
        drawings.begin(section("one", "two"))
        drawings.begin(section("three"))
        drawn = drawings.finished()
    hand = Hands(count=1)
    try:
        assert drawn == {name: to_svg(BARS, name, None, hand) for name in ("one", "two", "three")}
    finally:
        hand.end()


def test_a_chart_that_cannot_be_drawn_is_an_error() -> None:
    broken = Chart("title", "broken", "caption", {"mark": "no such mark"})
    with Drawings(None) as drawings:
        drawings.begin(Section("a", "A", (View((broken,)),)))
        with pytest.raises(ValueError, match="SVG conversion failed"):
            drawings.finished()


def test_a_process_that_draws_and_dies_is_an_error_and_leaves_nothing_behind() -> None:
    others, hand = children(), Hands(count=1)
    try:
        assert hand(draw=json.dumps(BARS)).startswith("<svg")
        (child,) = children() - others
        child.kill()
        with pytest.raises(ValueError, match="the process that draws has ended"):
            hand(draw=json.dumps(BARS))
    finally:
        hand.end()
    assert not child.is_running()


def test_english_charts_are_the_same_whatever_fonts_a_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn() -> dict[str, str]:
        with Drawings(None) as drawings:
            drawings.begin(section("one"))
            return drawings.finished()

    usual = drawn()
    (tmp_path / "fonts").mkdir()
    (tmp_path / "fonts.conf").write_text(f"<fontconfig><dir>{tmp_path}/fonts</dir></fontconfig>", encoding="utf-8")
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    assert drawn() == usual


def test_a_drawing_that_was_kept_is_drawn_no_more(tmp_path: Path) -> None:
    drawn = to_svg(BARS, "one", tmp_path)
    (file,) = tmp_path.iterdir()
    assert drawn == to_svg(BARS, "one")
    file.write_text(file.read_text(encoding="utf-8").replace("<svg", "<svg data-kept=''"), encoding="utf-8")
    assert "data-kept" in to_svg(BARS, "another name", tmp_path)
    assert "data-kept" not in to_svg({**BARS, "width": 90}, "one", tmp_path)


def test_what_is_kept_is_made_once_for_each_name(tmp_path: Path) -> None:
    made = iter(["first", "second"])
    assert [kept(tmp_path / "new", "a", lambda: next(made)) for _ in range(2)] == ["first", "first"]
    assert kept(tmp_path / "new", "b", lambda: next(made)) == "second"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a", "b"]


def test_a_folder_that_cannot_be_written_keeps_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert kept(tmp_path / "file", "a", lambda: "made") == "made"
    assert kept(None, "a", lambda: "made") == "made"


def test_the_runtime_is_one_script_that_no_html_ends() -> None:
    script = runtime(None)
    assert "window.vegaEmbed=" in script
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert "\r" not in script
