"""Whatever is wrong with a spec becomes one line: file, key, what is known, what to do."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.base import toml
from tsuishi.base.errors import UserError


class Inner(toml.Spec):
    depth: int = 1
    width: float = 1.0


class Outer(toml.Spec):
    prose = frozenset({"named"})

    name: str
    title: str
    count: int = 0
    inner: Inner = Inner()
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "thing.toml"


def message(file: Path, text: str | bytes) -> str:
    """What loading a file with this text complains about, without the file's name."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as caught:
        toml.load(file, Outer, name=file.stem)
    said = str(caught.value)
    assert said.startswith(f"{file}: ")
    assert "\n" not in said
    return said.removeprefix(f"{file}: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "key 'title' is missing; add it"),
        ("title = 3", "key 'title': input should be a valid string; given: 3"),
        ('title = "t"\ncount = "3"', "key 'count': input should be a valid integer; given: '3'"),
        ('title = "t"\ncount = 3.0', "key 'count': input should be a valid integer; given: 3.0"),
        (
            'title = "t"\ncuont = 3',
            "unknown key 'cuont'; did you mean 'count'? known here: name, title, count, inner, many, named",
        ),
        ('title = "t"\ninner = {dept = 3}', "unknown key 'inner.dept'; did you mean 'depth'? known here: depth, width"),
        ('title = "t"\n[[many]]\n[[many]]\nx = 3', "unknown key 'many[1].x'; known here: depth, width"),
        ('title = "t"\n[named.a]\nx = 3', "unknown key 'named.a.x'; known here: depth, width"),
        ("inner = 3", "key 'title' is missing; add it (and 1 more)"),
        ('title = "t"\nname = "other"', "key 'name' is not allowed in this file; remove it"),
        ('title = "t"\ninner = {width = nan}', "key 'inner.width': input should be a finite number; given: nan"),
        ("title = ", "not valid TOML: Invalid value (at end of document)"),
        ('title = "t"\ntitle = "u"', "not valid TOML: Cannot overwrite a value (at end of document)"),
    ],
)
def test_a_mistake_is_one_line_with_key_and_remedy(file: Path, text: str, said: str) -> None:
    assert message(file, text) == said


def test_a_long_value_is_cut_in_the_message(file: Path) -> None:
    said = message(file, f'title = "t"\ncount = "{"x" * 500}"')
    assert said == f"key 'count': input should be a valid integer; given: '{'x' * 58}…"


def test_bytes_that_are_no_text_and_a_file_that_is_not_there_are_said(file: Path) -> None:
    said = message(file, b'title = "\xff"')
    assert said == "cannot be read: 'utf-8' codec can't decode byte 0xff in position 9: invalid start byte"
    missing = file.with_name("other.toml")
    with pytest.raises(UserError) as caught:
        toml.load(missing, Outer, name="other")
    assert str(caught.value) == f"{missing}: cannot be read: [Errno 2] No such file or directory: '{missing}'"


def test_specs_do_not_change_once_read(file: Path) -> None:
    file.write_text('title = "t"')
    outer = toml.load(file, Outer, name="thing")
    with pytest.raises(ValueError, match="frozen"):
        outer.title = "u"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_canonical_json_is_ascii_in_one_line_and_says_the_same(value: object) -> None:
    text = toml.canonical_json(value)
    assert text.isascii()
    assert "\n" not in text
    assert json.loads(text) == value


def test_a_digest_is_stable_over_releases() -> None:
    assert toml.digest({"a": [1, "ü"]}) == "eadfa0001c9e"
    assert toml.digest({"a": [1, "ü"]}, 64).startswith("eadfa0001c9e")
    assert toml.digest({"a": 1, "b": 2}) != toml.digest({"b": 2, "a": 1})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "t\\ndeb http://other.example x"', "key 'title' holds U+000A"),
        ('title = "t\\r"', "key 'title' holds U+000D"),
        ('title = "\\u001b[2J"', "key 'title' holds U+001B"),
        ('title = "\\u0085"', "key 'title' holds U+0085"),
        ('title = "\\u202egnp.exe"', "key 'title' holds U+202E"),
        ('title = "\\u2028"', "key 'title' holds U+2028"),
        ('title = "t"\n"a\\nb" = 3', "key '' holds U+000A"),
        ('title = "t"\n[named."a\\u001b"]', "key 'named' holds U+001B"),
        ('title = "t"\n[[many]]\nx = """\na"""\n[[many]]\nx = ["b", "\\n"]', "key 'many[1].x[1]' holds U+000A"),
    ],
)
def test_what_nobody_sees_is_in_no_text(file: Path, text: str, said: str) -> None:
    assert message(file, text) == f"{said}; write it without, on one line"


def test_prose_may_have_several_lines(file: Path) -> None:
    assert message(file, 'title = "t"\n[named.a]\nx = "one\\n\\ttwo"') == (
        "unknown key 'named.a.x'; known here: depth, width"
    )


def test_the_mark_that_some_editors_put_first_is_no_part_of_a_file(file: Path) -> None:
    text = 'name = "é"\ntitle = "t"\n'
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert toml.read_text(file) == text
    assert toml.load(file, Outer).name == "é"
