"""What is drawn, and what is kept of it."""

import json
import os
import time
from hashlib import sha256
from pathlib import Path

import psutil
import pytest

from tsuishi.report.output.vega import (
    Drawings,
    Renderer,
    here,
    kept_piece,
    runtime,
    to_svg,
)
from tsuishi.report.parts.blocks import Chart, Section, View

BARS = {"data": {"values": [{"x": 1}]}, "mark": "bar", "encoding": {"x": {"field": "x", "type": "quantitative"}}}


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def section(*names: str) -> Section:
    return Section("a", "A", (View(tuple(Chart("title", name, "caption", BARS) for name in names)),), folded=False)


@pytest.mark.long
def test_every_chart_that_was_begun_is_drawn_as_it_would_be_alone() -> None:
    with Drawings(None) as drawings:
        drawings.begin(section("one", "two"))
        drawings.begin(section("three"))
        drawn = drawings.finished()
    hand = Renderer()
    try:
        assert drawn == {name: to_svg(BARS, name, None, hand) for name in ("one", "two", "three")}
    finally:
        hand.end()


def test_a_chart_that_cannot_be_drawn_is_left_out_with_the_reason() -> None:
    broken = Chart("title", "broken", "caption", {"mark": "no such mark"})
    with Drawings(None) as drawings:
        drawings.begin(Section("a", "A", (View((broken,)),), folded=False))
        drawings.begin(section("one"))
        assert drawings.finished().keys() == {"one"}
    assert "SVG conversion failed" in drawings.why_undrawn


def test_a_process_that_draws_and_dies_is_an_error_and_leaves_nothing_behind() -> None:
    others, hand = children(), Renderer()
    try:
        assert hand(draw=json.dumps(BARS)).startswith("<svg")
        (child,) = children() - others
        child.kill()
        with pytest.raises(ValueError, match=r"the process that draws has ended \(exit code -9\): it says nothing$"):
            hand(draw=json.dumps(BARS))
    finally:
        hand.end()
    assert not child.is_running()


@pytest.mark.long
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
    asked: list[str] = []

    def draw(**specification: str) -> str:
        asked.append("drawn")
        return here(**specification)

    assert to_svg(BARS, "one", tmp_path, draw) == to_svg(BARS, "one")
    assert to_svg(BARS, "another name", tmp_path, draw) == to_svg(BARS, "another name")
    assert len(asked) == 1
    to_svg({**BARS, "width": 90}, "one", tmp_path, draw)
    assert len(asked) == 2


def drawn(kept_in: Path, at_once: bool = False) -> int:
    """How many processes draw a chart and the script."""
    others = children()
    with Drawings(kept_in, at_once) as drawings:
        drawings.begin(section("one"))
        drawings.finished()
        assert drawings.runtime
        count = len(children() - others)
    assert children() == others
    return count


def test_no_process_starts_where_everything_is_kept(tmp_path: Path) -> None:
    assert drawn(tmp_path) > 0
    assert drawn(tmp_path) == 0
    assert drawn(tmp_path, at_once=True) == 1


def test_a_drawing_under_way_ends_at_once_with_its_process() -> None:
    others, hand = children(), Renderer()
    rows = [{"x": x} for x in range(200_000)]
    begun = hand.begin(hand, draw=json.dumps({**BARS, "mark": "point", "data": {"values": rows}}))
    while not (drawing := children() - others):
        time.sleep(0.01)
    time.sleep(0.5)
    hand.end()
    assert not any(process.is_running() for process in drawing)
    with pytest.raises(ValueError, match=r"the process that draws has ended \(exit code -9\): it says nothing$"):
        begun.result()


def planted(sealed: bytes, other: bytes) -> list[bytes]:
    """What somebody may write in place of a kept file who has no key; `other` is another piece that was kept."""
    seal, _, content = sealed.partition(b"\n")
    digest = sha256(b"alert(1)").hexdigest().encode()
    script = [b"alert(1)", seal + b"\nalert(1)", seal + b"\n" + content + b"alert(1)", digest + b"\nalert(1)"]
    return [*script, other, b"\xff\xfe\n\xff", b""]


def test_what_others_put_in_place_of_a_kept_piece_is_made_again_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "vega.js"
    kept_piece(tmp_path, path.name, lambda: "ours")
    kept_piece(tmp_path, "other.js", lambda: "alert(1)")
    sealed = path.read_bytes()
    for attack in planted(sealed, (tmp_path / "other.js").read_bytes()):
        path.write_bytes(attack)
        assert kept_piece(tmp_path, path.name, lambda: "ours") == "ours", attack
        assert path.read_bytes() == sealed, attack
    for target in ("other.js", "/dev/zero"):
        path.unlink()
        path.symlink_to(target)
        assert kept_piece(tmp_path, path.name, lambda: "ours") == "ours", target
        assert path.read_bytes() == sealed, target
    path.unlink()
    os.mkfifo(path)
    assert kept_piece(tmp_path, path.name, lambda: "ours") == "ours"
    assert path.read_bytes() == sealed


def test_without_a_key_nothing_is_kept_and_what_is_there_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_piece(tmp_path, "a", lambda: "before")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    assert kept_piece(tmp_path, "a", lambda: "made") == "made"
    assert kept_piece(tmp_path, "b", lambda: "made") == "made"
    assert not (tmp_path / "b").exists()


def test_a_chart_that_names_an_address_asks_for_nothing() -> None:
    asking = {**BARS, "data": {"url": "http://127.0.0.1:9/rows.json"}}
    with pytest.raises(ValueError, match="External data url not allowed"):
        to_svg(asking, "one")


def test_what_is_kept_is_made_once_for_each_name(tmp_path: Path) -> None:
    made = iter(["first", "second"])
    assert [kept_piece(tmp_path / "new", "a", lambda: next(made)) for _ in range(2)] == ["first", "first"]
    assert kept_piece(tmp_path / "new", "b", lambda: next(made)) == "second"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a", "b"]


def test_a_folder_that_cannot_be_written_keeps_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert kept_piece(tmp_path / "file", "a", lambda: "made") == "made"
    assert kept_piece(None, "a", lambda: "made") == "made"


def test_the_runtime_is_one_script_that_no_html_ends() -> None:
    script = runtime(None)
    assert "window.vegaEmbed=" in script
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert "\r" not in script
