"""Tables in files as grids of text: CSV, TSV, Markdown, HTML and JSON. Nothing is taken for a number here."""

import csv
import io
import json
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from tsuishi.specs import numerals

_DELIMITERS = ",\t;|"
# So many lines tell the delimiter.
_FIRST_LINES = 50
# The header of the column that says under which line of words inside its table a row stands.
SECTION = "(section)"
# Elements that part texts, those whose text is not valid any more, and those that may mark a footnote.
_PARTING, _STRUCK, _RAISED = ("br", "p", "div", "li"), ("s", "del", "strike"), ("sup", "sub")
_MARK = re.compile(r"[\s\d,;()\[\]*†‡§#^+-]{1,8}|[\s(\[]*[a-z][\s)\]]*")
# A header of units, and what it says of which columns these are: "time_unit", "Performance_Units".
_UNITS_HEADER = re.compile(r"(?:(\w+?)[ _-]?)?units?", re.IGNORECASE)
# The widest cell: a number of columns in a file is no reason to write so many cells.
_MOST_SPAN = 100
# The most cells of a file, with its headings above each table, and the most columns of a table. A long text counts as
# several cells, as it takes their time.
MOST_CELLS, MOST_COLUMNS, _LONG_TEXT = 250_000, 1_000, 50
# The facts that a site has of a page, above it.
_FACTS_OF_PAGE = re.compile(r"\A---\n(?:(?!---\n)(?>[\w-]+:|[ \t-]).*\n)++---\n")
# The most characters of a page in HTML or Markdown, whose parsers take some hundred bytes and microseconds for each.
MOST_OF_PAGE = 2 << 20
# The longest key of JSON, with the keys above it.
_LONGEST_KEY = 1_000
# The header of the cells with the percentiles of a collection of uploads.
PERCENTILES = "percentiles of the uploads"
# The header of the cells with their number.
UPLOADS = "uploads"
# Elements of text beside tables.
_PARAGRAPHS = ("p", "pre", "summary", "figcaption")
# A heading has no more words: a longer text is a sentence, and a paragraph of so few words above a table its heading.
MOST_WORDS = 8
# Levels of headings, and an item of a list below them.
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6", "li")


@dataclass(frozen=True)
class Grid:
    """A table as printed: the texts of its header, and of its rows. A row may have more or fewer cells.

    heading: the headings of a page above the table, from the largest down, then the items of lists below the last,
    and a line of few words right above the table. notes: the paragraphs above it since the last table or item, then
    those before the first table below each of its headings, the nearest first. remarks: paragraphs and code below it.
    delimiter: of lines; empty for other files.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    heading: tuple[str, ...] = ()
    notes: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()
    delimiter: str = ""


def grids(name: str, text: str) -> list[Grid]:
    """Every table of a file, by the ending of its name, else by its beginning.

    Raises ValueError for broken JSON, CSV or HTML, and for more than MOST_CELLS or MOST_COLUMNS.
    """
    found, cells = [], 0
    for grid in _grids(name, text):
        cells += sum(_weight(row) for row in (grid.header, *grid.rows, grid.heading))
        _bound(cells)
        found.append(grid)
    return found


def _weight(texts: Iterable[str]) -> int:
    """How many cells texts count as."""
    return sum(1 + len(text) // _LONG_TEXT for text in texts)


def _bound(cells: int, columns: int = 0) -> None:
    if cells > MOST_CELLS:
        raise ValueError(f"more than {MOST_CELLS:,} cells, the most that are read: give a part of the file")
    if columns > MOST_COLUMNS:
        raise ValueError(f"more than {MOST_COLUMNS:,} columns, the most that are read: give a part of the file")


def _grids(name: str, text: str) -> Iterable[Grid]:
    kind, begin = PurePosixPath(name).suffix.lower(), text.lstrip()[:1]
    if kind in (".json", ".jsonl", ".ndjson") or (kind not in (".csv", ".tsv", ".md") and begin in ("{", "[")):
        value = _json(text)
        tables = _of_json(value)  # one after the other: `grids` stops at the first that is too much
        first = next(tables, None)
        return _of_json([value]) if first is None else chain([first], tables)
    is_html = kind in (".html", ".htm") or (begin == "<" and kind not in (".csv", ".tsv", ".md"))
    is_markdown = kind in (".md", ".markdown") or "|--" in text or "| --" in text or "|:-" in text
    if (is_html or is_markdown) and len(text) > MOST_OF_PAGE:
        raise ValueError(f"more than {MOST_OF_PAGE:,} characters, the most of a page: give the part with its tables")
    if is_html:
        return _of_html(text)
    if is_markdown:
        from markdown_it import MarkdownIt

        page = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        return _of_html(page.render(_FACTS_OF_PAGE.sub("", text)))
    return _of_lines(text)


def _grid(
    rows: Iterable[Iterable[str]],
    headers: int = 1,
    heading: tuple[str, ...] = (),
    notes: Iterable[Iterable[list[str]]] = (),
    remarks: Iterable[list[str]] = (),
) -> list[Grid]:
    """The grid of rows whose first `headers` rows are its header; empty without any row of data."""

    @cache  # a cell that spans many places is one text
    def plain(cell: str) -> str:
        cell.encode()  # half a character of JSON is no text
        return " ".join(re.sub(r"(?<=\d)\s*\n\s*(?=\d)", " / ", cell).split())  # numbers in two lines stay two

    cells: list[tuple[str, ...]] = []
    weight = 0
    for row in rows:
        cells.append(tuple(map(plain, row)))
        weight += _weight(cells[-1])
        _bound(weight, len(cells[-1]))
    heads, data = cells[:headers], [row for row in cells[headers:] if any(row)]
    if len(data) > 1 and heads and (_are_units(data[0], heads[-1]) or _is_header(data[0], heads[-1])):
        heads.append(data.pop(0))
    if not heads or not data:
        return []
    # Cells that span several rows of a header stand in each of them: a text is said once.
    columns = [dict.fromkeys(head[index] for head in heads if index < len(head)) for index in range(len(heads[-1]))]
    header = tuple(" ".join(filter(None, column)) for column in columns)
    own, *above = [_paragraphs(group) for group in notes] or [()]
    if own and len(own[-1].split()) <= MOST_WORDS and not own[-1].endswith("."):
        heading, own = (*heading, own[-1]), own[:-1]
    said = tuple(filter(None, (own, *above)))
    return [_with_sections(_with_units(Grid(header, tuple(data), heading, said, _paragraphs(remarks))))]


def _paragraphs(texts: Iterable[list[str]]) -> tuple[str, ...]:
    return tuple(filter(None, (" ".join("".join(text).split()) for text in texts)))


def _are_units(row: Sequence[str], header: Sequence[str]) -> bool:
    """Whether a row below a header has units and nothing else."""
    return len(row) == len(header) and any(row) and all(map(numerals.is_unit_alone, filter(None, row)))


def _is_header(row: Sequence[str], header: Sequence[str]) -> bool:
    """Whether a row below a header is its second line: words, and no cell under the first header."""
    return len(row) == len(header) and not row[0] and any(row) and not any(map(numerals.number_in, filter(None, row)))


def _with_units(grid: Grid) -> Grid:
    """A grid with the units of a column of units behind the numbers that they are of.

    These are of the columns whose headers have the same word ("time" of "time_unit"), else of the nearest on the left.
    """
    for place, name in enumerate(grid.header):
        found = _UNITS_HEADER.fullmatch(name.strip())
        cells = [row[place] for row in grid.rows if place < len(row)]
        if found is None or not any(cells) or any(map(numerals.number_in, cells)):
            continue
        others = [index for index in range(len(grid.header)) if index != place]
        word = (found[1] or "").lower()
        named = [index for index in others if word and word in grid.header[index].lower() and _has_numbers(grid, index)]
        of = named or [index for index in others if index < place and _has_numbers(grid, index)][-1:]
        rows = [
            tuple(
                f"{cell} {row[place]}" if index in of and place < len(row) and cell else cell
                for index, cell in enumerate(row)
            )
            for row in grid.rows
        ]
        grid = replace(grid, rows=tuple(rows))
    return grid


def _has_numbers(grid: Grid, place: int) -> bool:
    return any(place < len(row) and numerals.number_in(row[place]) is not None for row in grid.rows)


def _with_sections(grid: Grid) -> Grid:
    """A grid with a column for its rows that are a line of words over the rows below: `SECTION`."""
    width, section, texts, rows = len(grid.header), "", list[str](), list[tuple[str, ...]]()
    below = False
    for row in grid.rows:
        words = dict.fromkeys(filter(None, row))
        (first, *more) = words
        if (
            len(row) == width > 2
            and not more
            and (row.count(first) in (1, width))
            and not re.search(r"^[\d.,]+$", first)
        ):
            section, row, below = f"{section}, {first}" if below else first, (*[""] * width,), True
        else:
            below = False
        texts.append(section)
        rows.append(row)
    if not any(texts):
        return grid
    with_section = tuple((*row, text) for row, text in zip(rows, texts, strict=True))
    return replace(grid, header=(*grid.header, SECTION), rows=with_section)


def _of_lines(text: str) -> list[Grid]:
    """The table of delimited lines; comments and a title before it are its heading."""
    lines = [line for line in text.lstrip("\ufeff").splitlines(keepends=True) if line.strip()]
    before = list[str]()
    if lines and (said := re.fullmatch(r"sep=(.)\s*", lines[0])):  # of Excel
        lines.pop(0)
    while lines and lines[0].startswith("#"):
        before.append(lines.pop(0).strip("# \r\n"))
    if not lines:
        return []
    first = lines[:_FIRST_LINES]
    delimiter = (
        said[1] if said else max(_DELIMITERS, key=lambda sign: statistics.median(line.count(sign) for line in first))
    )
    try:
        rows = [row for row in csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter) if row]
    except csv.Error as error:  # a quotation mark that nothing closes
        raise ValueError(f"no CSV: {error}") from error
    while len(rows) > 2 and len(rows[0]) < len(rows[1]) and len([*filter(None, rows[0])]) == 1:
        before += rows.pop(0)
    return [replace(grid, delimiter=delimiter) for grid in _grid(rows, heading=tuple(filter(None, before)))]


def _json(text: str) -> Any:
    """The value of a text of JSON; of JSON lines, the list of their values."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].rstrip().endswith(("}", "]")):
            raise
        return [json.loads(line) for line in lines]


def _of_json(value: Any, heading: tuple[str, ...] = ()) -> Iterator[Grid]:
    """The table of a list of objects, of objects by name, or of lists by column; facts beside it are its heading."""
    if isinstance(value, Mapping) and _are_rows(value.values()):
        value = [{"name": name, **each} for name, each in value.items()]
    if isinstance(value, Mapping) and value and all(map(_is_column, value.values())):
        value = [dict(zip(value, row, strict=False)) for row in zip(*value.values(), strict=False)]
    if isinstance(value, Mapping):
        facts = {name: each for name, each in value.items() if not isinstance(each, list) and _is_plain(each)}
        above = (*heading, *(f"{key}: {text}" for key, text in _flat(facts).items() if text))
        for name, each in value.items():
            if name not in facts:
                yield from _of_json(each, above)
    elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        header: dict[str, str] = {}  # a key is one text in all rows
        flat = []
        for each in value:
            flat.append({header.setdefault(key, key): text for key, text in _flat(each).items()})
            _bound(len(flat) * len(header), len(header))
        yield from _grid([[*header], *([each.get(key, "") for key in header] for each in flat)], heading=heading)


def _is_plain(value: Any) -> bool:
    """Whether a value has no table in it: a text, a number, or an object of these."""
    inner = value.values() if isinstance(value, Mapping) else ()
    return not any(isinstance(each, list | Mapping) for each in inner)


def _are_rows(values: Iterable[Any]) -> bool:
    """Whether values are the rows of a table by name: all of plain values, or none."""
    each = list(values)
    return bool(each) and all(map(_is_row, each)) and len({_is_plain(one) for one in each}) == 1


def _is_row(value: Any) -> bool:
    """Whether a value is a row, and no table of rows by name: these have lists in them."""
    inner = [each for each in value.values() if isinstance(each, Mapping)] if isinstance(value, Mapping) else []
    return isinstance(value, Mapping) and not any(isinstance(cell, list) for each in inner for cell in each.values())


def _is_column(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(each, Mapping | list) for each in value)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The texts of an object by key; those of an inner object by both keys."""
    texts: dict[str, str] = {}
    if len(prefix) > _LONGEST_KEY:
        raise ValueError(f"a key of more than {_LONGEST_KEY} characters")
    if isinstance(values.get("percentiles"), list) and values["percentiles"]:
        return _of_uploads(values)
    for key, value in values.items():
        if isinstance(value, Mapping):
            texts |= _flat(value, f"{prefix}{key} ")
        elif not isinstance(value, list):
            texts[f"{prefix}{key}"] = "" if value is None else str(value)
        _bound(0, len(texts))
    return texts


def _of_uploads(values: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a collection of results that people sent in, as OpenBenchmarking prints it: median and percentiles.

    Its description has the texts of its case: "Device: CPU - Batch Size: 1 - Model: ResNet-50".
    """
    percentiles = values["percentiles"]
    parts = [part.partition(":") for part in str(values.get("description", "")).split(" - ")]
    case = {name.strip(): text.strip() for name, colon, text in parts if colon}
    median, unit = str(percentiles[len(percentiles) // 2]), values.get("unit", "")
    uploads = {UPLOADS: str(values.get("samples", "")), PERCENTILES: " ".join(map(str, percentiles))}
    return {**case, f"median of uploads, {unit}": median, **uploads}


def _of_html(text: str) -> list[Grid]:
    reader = _TableReader()
    try:
        reader.feed(text)  # no close(): its time grows with the square of an open tag
    except AssertionError as error:  # "<![a", as html.parser has it
        raise ValueError(f"no HTML: {error}") from error
    return [grid for table in reader.tables for grid in _grid(*table)]


class _TableReader(HTMLParser):
    """Collects the tables of a page: each is its rows, how many of them are a header, the headings above it, and notes.

    (pandas.read_html was looked at: it needs lxml, and takes texts for numbers on its way.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[tuple[list[list[str]], int, tuple[str, ...], list[list[list[str]]], list[list[str]]]] = []
        self._headings: dict[str, list[str]] = {}
        self._heading: list[str] | None = None
        # The paragraphs below each heading before its first table, those since the last table or item; the open one.
        self._introductions: dict[str, list[list[str]]] = {"": []}
        self._is_introduction = True
        # The level of the last heading where nothing stands below it.
        self._last_heading = ""
        self._notes: list[list[str]] = []
        self._remarks: list[list[str]] = []
        self._note: list[str] | None = None
        self._rows: list[list[str]] | None = None
        self._headers = 0
        self._below: dict[int, tuple[int, int]] = {}
        self._cell: list[str] | None = None
        self._items = self._struck = 0
        self._raised = False
        self._spans = (1, 1)
        self._heads: list[bool] = []
        # The tables around the last one, each as the six above; and how many cells there are.
        self._outer: list[tuple[Any, ...]] = []
        self._cells = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a heading, a table, a row or a cell; a table within a cell is a table of its own."""
        self._beside_tables(tag)
        self._parted(tag)
        self._struck += tag in _STRUCK
        if tag == "table":
            self._outer.append((self._rows, self._headers, self._below, self._cell, self._spans, self._heads))
            self._rows, self._headers, self._below, self._cell = [], 0, {}, None
        if tag == "table" or self._rows is None:
            return
        if self._cell is not None and tag in ("tr", "td", "th"):
            self.handle_endtag("td")  # which HTML may leave out
        if tag == "tr":
            self._rows.append([])
            self._heads = []
        elif tag in ("td", "th") and self._rows:
            given = dict(attrs)
            self._spans = _span(given.get("colspan")), _span(given.get("rowspan"))
            self._cell, self._struck, self._raised = [], 0, False
            self._heads.append(tag == "th")
            self._fill()

    def _beside_tables(self, tag: str) -> None:
        """Begin a heading, an item of a list, or a paragraph."""
        if tag in _HEADINGS and not (self._items and tag != "li"):  # a heading in an item of a list is its text
            is_next = tag in ("li", self._last_heading)  # one of several headings in a row
            self._headings = {
                level: text for level, text in self._headings.items() if level < tag or (level == tag and is_next)
            }
            self._last_heading = tag
            self._heading = self._headings.setdefault(tag, [])
            self._heading.append("\n")
            self._notes, self._remarks = [], []
            if tag != "li":
                above = {level: notes for level, notes in self._introductions.items() if level < tag}
                self._introductions, self._is_introduction = {**above, tag: []}, True
        if tag in (*_PARAGRAPHS, "li", "table"):
            self._last_heading = ""
        if tag == "caption" or (tag in _PARAGRAPHS and self._rows is None and not self._items):
            self._note = []
            self._remarks.append(self._note)
            if tag != "pre":
                self._notes.append(self._note)
            if tag != "pre" and self._is_introduction:
                self._introductions[max(self._introductions)].append(self._note)
        self._items += tag == "li"

    def handle_endtag(self, tag: str) -> None:
        """End a heading, a cell, a row or a table."""
        self._items -= tag == "li" and self._items > 0
        self._note = None if tag in (*_PARAGRAPHS, "caption") else self._note
        if tag in _HEADINGS and not self._items:
            self._heading = None
        self._struck -= tag in _STRUCK and self._struck > 0
        self._raised = self._raised and tag not in _RAISED
        if self._rows is None:
            return
        if self._cell is not None and tag in ("td", "th", "tr", "table"):
            row, (columns, rows) = self._rows[-1], self._spans
            text = "".join(self._cell)
            for _ in range(columns):
                if rows > 1:
                    self._below[len(row)] = rows - 1, len(self._rows) - 1
                self._put(row, text)
            self._cell = None
        if tag == "tr" and self._rows:
            self._fill()
            if self._headers == len(self._rows) - 1 and self._heads and all(self._heads):
                self._headers += 1
        elif tag == "table":
            texts = ["".join(text) for _, text in sorted(self._headings.items())]
            heading = tuple(line.strip() for text in texts for line in text.splitlines() if line.strip())
            of_headings = [notes for _, notes in sorted(self._introductions.items(), reverse=True)]
            notes, self._notes, self._remarks = [self._notes, *of_headings], [], []
            self._is_introduction = False
            self._cells += _weight(heading) + sum(_weight(note) for group in notes for note in group)
            _bound(self._cells)
            self.tables.append((self._rows, max(self._headers, 1), heading, notes, self._remarks))
            self._rows, self._headers, self._below, self._cell, self._spans, self._heads = self._outer.pop()

    def handle_data(self, data: str) -> None:
        """A part of the text of a cell or a heading."""
        if self._note is not None and self._cell is None:
            self._note.append(data)
        if self._heading is not None and self._rows is None:
            self._heading.append(data)
        if self._cell is not None and not self._struck:
            self._cell.append(self._beside(data) if self._raised else data)

    def _parted(self, tag: str) -> None:
        """A line end for an element that parts texts of a cell; what is raised or lowered is of its own."""
        if tag in _PARTING:
            if self._cell is not None:
                self._cell.append("\n")
            if self._heading is not None and tag == "br":
                self._heading.append(" ")
        self._raised = self._raised or tag in _RAISED

    def _beside(self, data: str) -> str:
        """What a raised or lowered text adds to a cell: nothing as the mark of a footnote behind a number."""
        before = "".join(self._cell or ()).rstrip(" ")
        if before[-1:].isdigit():
            power = re.search(r"(?:^|[x×*·]\s*)10$", before) is not None
            return f"^{data}" if power else "" if _MARK.fullmatch(data) else f" {data}"
        return f" {data}"

    def _fill(self) -> None:
        """Put the cells that reach down from rows above into the last row, up to the first free place."""
        assert self._rows is not None
        row = self._rows[-1]
        while (held := self._below.get(len(row))) and held[1] < len(self._rows) - 1:
            left, above = held
            text = self._rows[above][len(row)]
            if left > 1:
                self._below[len(row)] = left - 1, len(self._rows) - 1
            else:
                del self._below[len(row)]
            self._put(row, text)

    def _put(self, row: list[str], text: str) -> None:
        """Put a cell into a row. Raises ValueError for too many."""
        row.append(text)
        self._cells += _weight((text,))
        _bound(self._cells, len(row))


def _span(text: str | None) -> int:
    return min(max(int(text), 1), _MOST_SPAN) if text and text.isascii() and text.isdigit() else 1
