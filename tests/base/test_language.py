"""The language of a report: catalogues are complete, and a report in one of them says nothing in English but names."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from tests.reports import make_report
from tests.synthetic_run import write_example
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.base.files import read_json
from tsuishi.base.language import (
    CATALOGUES,
    ENGLISH,
    in_words,
    languages,
    prose,
    speaking,
    t,
)
from tsuishi.report.output.catalogues import messages, update
from tsuishi.report.output.interactive import live
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.source import read_sources
from tsuishi.specs.statuses import STATUSES

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports" / "published"
OTHERS = [language for language in languages() if language != ENGLISH]


@pytest.fixture(scope="module")
def said() -> set[str]:
    """Every message of the code and the templates."""
    return {str(message.id) for message in messages(ROOT) if message.id}


def catalogue(language: str) -> Catalog:
    with (CATALOGUES / f"{language}.po").open(encoding="utf-8") as file:
        return read_po(file)


@pytest.mark.parametrize("language", OTHERS)
def test_every_message_has_a_translation(language: str, said: set[str]) -> None:
    found = {str(message.id): message for message in catalogue(language) if message.id}
    assert [message for message in said if message not in found or not found[message].string] == []
    assert [id_ for id_, message in found.items() if message.fuzzy] == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_fields_of_its_message(language: str) -> None:
    pairs = [(str(one.id), str(one.string)) for one in catalogue(language) if one.id]
    assert [pair for pair in pairs if fields(pair[0]) != fields(pair[1])] == []


def fields(message: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(message) if name is not None}


def test_an_update_keeps_translations_adds_what_is_new_and_drops_what_is_gone(tmp_path: Path) -> None:
    """Messages in the arguments of others are found too, and those of templates."""
    folder, templates = tmp_path / "tsuishi" / "report", tmp_path / "templates"
    folder.mkdir(parents=True)
    templates.mkdir()
    code = 'A = mark("a mark")\nt("kept {x}", x=", ".join(t("inner" " one") for _ in A))\nt(A)\n'
    (folder / "one.py").write_text(code, encoding="utf-8")
    (templates / "report.html.j2").write_text('<p title="{{ t("a title", x=1) }}">', encoding="utf-8")
    known = tmp_path / "ja.po"
    known.write_text(
        'msgid "kept {x}"\nmsgstr "{x}は残る"\n\nmsgid "gone"\nmsgstr "x"\n\n'
        '#, fuzzy\nmsgid "a title"\nmsgstr "?"\n', encoding="utf-8"
    )  # fmt: skip
    update(known, tmp_path)
    assert known.read_text(encoding="utf-8") == (
        'msgid "a mark"\nmsgstr ""\n\nmsgid "kept {x}"\nmsgstr "{x}は残る"\n\nmsgid "inner one"\nmsgstr ""\n\n'
        '#, fuzzy\nmsgid "a title"\nmsgstr "?"\n\n'
    )


def test_an_unknown_language_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match=r"^unknown language 'xx'.*en, ja"), speaking("xx"):
        pass


def test_a_language_is_spoken_until_its_block_ends() -> None:
    with speaking("ja"):
        assert (t("efficiency"), t("{ratio} times", ratio=3)) == ("効率", "3 倍")
        assert t("what nobody translated: {x}", x=1) == "what nobody translated: 1"
    assert t("efficiency") == "efficiency"


def test_lists_and_paragraphs_are_written_as_the_language_writes_them() -> None:
    assert [in_words(range(1, count + 1)) for count in (1, 2, 3)] == ["1", "1 and 2", "1, 2 and 3"]
    assert prose(["One.", "", "Two."]) == "One. Two."
    with speaking("ja"):
        assert in_words([1, 2, 3]) == "1、2、3"
        assert prose(["一。", "二。"]) == "一。二。"


@pytest.mark.parametrize("language", OTHERS)
def test_axes_quantities_and_what_workloads_measure_have_words_in_every_language(language: str) -> None:
    for axis in WORDS.axes.values():
        texts = [axis.label, *filter(None, [axis.title, axis.words]), *axis.words_of.values()]
        assert [text for text in texts if language not in text and re.search(r"[a-z] |^[a-z]+$", text["en"])] == []
    assert [status.name for status in STATUSES.values() if language not in status.label] == []
    for quantity in WORDS.quantities.values():
        texts = [quantity.label, *filter(None, [quantity.chart])]
        assert quantity.of_one_gpu or all(language in text for text in texts), quantity.name
    workloads = (ROOT / "suites" / "workloads").rglob("*.py")
    metrics = {
        name for path in workloads for name in re.findall(r'\.metric\("(\w+)"', path.read_text(encoding="utf-8"))
    }
    # Of its own program, which is no workload of a suite.
    metrics -= {"import_s"}
    assert len(metrics) > 10
    described = {one.made_of.name for one in WORDS.quantities.values() if one.made_of and one.made_of.kind == "metric"}
    assert metrics <= described


def test_tooltips_call_fields_by_words_and_not_by_their_names() -> None:
    channels = {
        "x": {"field": "x", "type": "quantitative", "title": "タワー数"},
        "y": {"field": "low", "type": "quantitative", "title": "秒"},
        "y2": {"field": "high"},
        "color": {"field": "series", "type": "nominal"},
        "order": {"field": "_part_sort_index"},
    }
    with speaking("ja"):
        told = live({"mark": "rule", "encoding": channels})["encoding"]["tooltip"]
    assert [(one["field"], one["title"]) for one in told] == [
        ("x", "タワー数"), ("low", "最小"), ("high", "最大"), ("series", "系列"),
    ]  # fmt: skip


class Texts(HTMLParser):
    """What a reader of a page sees or hears: its texts but commands, and those of the attributes that are read out."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("style", "script", "code"):
            self._inside.append(tag)
        self.found |= {value or "" for name, value in attrs if name in ("aria-label", "title", "placeholder", "alt")}

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.found.add(" ".join(data.split()))


def strings(value: Any) -> Iterator[str]:
    """Every string of a record, however deep, but for texts by language; packages and flags are named by keys."""
    if isinstance(value, dict) and "en" not in value:
        for key, one in value.items():
            yield from strings(one)
            if key in ("packages", "software", "versions", "flags"):
                yield from (text for name, what in one.items() for text in (name, f"{name} {what}"))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value


# What is the same in every language: units, and names of products, protocols, devices and the model's parameters.
NAMES = {
    "tsuishi", "CPU", "GPU", "CUDA", "cuDNN", "Python", "SciPy", "literal", "steady", "host", "t_cost", "UTC",
    "images/s", "FLOP/s", "GFLOP/s", "MFLOP/s", "B/s", "GB/s", "MB/s", "MiB", "GiB",
}  # fmt: skip


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_example(tmp_path_factory.mktemp("languages") / "run").path


@pytest.fixture(scope="module")
def pages(example: Path) -> dict[str, set[str]]:
    """By language, the texts of the same report."""
    found = {}
    for language in languages():
        out = example.parent / language
        with speaking(language):
            index = make_report([RunDirectory(example)], PUBLISHED, ROOT / "templates", out)
        found[language] = Texts(index.read_text(encoding="utf-8")).found
    return found


@pytest.fixture(scope="module")
def recorded(example: Path) -> list[str]:
    """What the run and the sources say in words of their own, but for statuses; what holds others comes before them."""
    found = {text for path in example.rglob("*.json") for text in strings(read_json(path))}
    found |= {text for source in read_sources(PUBLISHED, WORDS, tables=False) for text in strings(source.model_dump())}
    # No suite has this metric, so no catalogue has a word for it.
    found |= {*NAMES, "images checked"}
    return sorted((one for one in found - set(STATUSES) if len(one) > 2), key=len, reverse=True)


def own(text: str, recorded: list[str]) -> str:
    """What is left of a text without names, milliseconds and what was recorded."""
    text = re.sub(r"\bms\b", " ", text)
    for one in recorded:
        text = text.replace(one, " ")
    return text


@pytest.mark.parametrize("language", OTHERS)
def test_a_report_has_no_text_in_english_but_names_and_what_was_recorded(
    language: str, pages: dict[str, set[str]], recorded: list[str]
) -> None:
    same = pages[language] & pages[ENGLISH]
    assert [text for text in same if re.search(r"\b[A-Za-z]{2,}\b", own(text, recorded))] == []


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_of_a_report_is_partly_english(language: str, pages: dict[str, set[str]], recorded: list[str]) -> None:
    assert [text for text in pages[language] if re.search(r"[a-z]+ [a-z]+ [a-z]+", own(text, recorded))] == []
