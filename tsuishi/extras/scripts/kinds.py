"""Kinds of readings: which numbers of a name belong together, by all that stands around them.

Numbers are readings of one quantity only where nothing around them differs but counts (epochs, steps), moments, and the
values of other numbers. A whole number without a unit (batch=8, rank 3) is part of the kind, unless each line has
another count: then the lines are the log of one process, and the number is one of its values. Lines without a count, or
whose counts begin anew, belong together only where the same headings stand above them.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, pairwise, takewhile, zip_longest
from typing import NamedTuple

from tsuishi.extras.scripts.printed_numbers import PRINTED_UNIT

_COUNTING = (
    r"(?:epochs?|ep|pass(?:es)?|steps?|iter(?:ation)?s?|its?|rounds?|runs?|trials?|repeat(?:ition)?s?|loops?|updates?"
    r"|episodes?|samples?|inference|batches|measurements|times|frames?|index|idx)"
)
# Before the number that counts: Epoch: [3, 'step': 3, Iter #3, global_step=3, Batch [3, Epoch [3][. Behind it: 3 loops.
_COUNTS_BEFORE = re.compile(
    rf"(?i)(?:(?<![^\W_])(?:{_COUNTING}[\"']?\s{{0,9}}[:=]?\s{{0,9}}[#\[(]?|batch\s?[#\[])|\]\s?\[)\s{{0,9}}$"
)
_COUNTS_BEHIND = re.compile(rf"(?i)\s{{1,4}}{_COUNTING}(?![^\W_])")
# Before a number that is a setting, and behind a word: Region 82, RUN #1. Three parts: a version.
_SETTING = re.compile(
    r"(?i)(?<![^\W_])(?:batch|bs|size|[nmk]|threads?|workers?|clients?|concurrency|processes|nodes?|devices?|gpus?|cpus?"
    r"|ranks?|id|tp|pp|dp|len(?:gth)?|dim|width|height|depth|layers?|heads|channels|level)"
    r"[\"']?\s?[:=]?\s{0,9}$"
)
_FRACTION = re.compile(
    r"(?i)(?<![^\W_])(?:alpha|beta|dropout|ratio|temperature|sparsity|density|threshold)[\"']?\s?[:=]?\s{0,9}$"
)
_BEHIND_WORD, _NAMED = re.compile(r"[^\W\d_] #?$"), re.compile(r"[:=]\s{0,20}[\"']?$")
_VERSION = re.compile(r"\d{1,3}(?:\.\d{1,4}){2,9}$")
_BATCH = re.compile(r"(?i)(?<![^\W_])batch $")
_STATISTIC = re.compile(
    r"(?i)(?<![^\W_])(?:min|max|mean|avg|average|median|std\w*|sum|total|count)[\"']?\s?[:=]\s{0,20}$"
)
# The header of a table whose first column counts, and a heading that only counts.
_COUNTING_COLUMN = re.compile(rf"(?i)\s{{0,9}}{_COUNTING}(?![^\W_])\D*$")
_ONLY_COUNTS = re.compile(rf"(?i)[^\w\0]*(?:{_COUNTING}[^\w\0]*)?\0?[^\w\0]*$")
# A name with its numbers, between separators: 50.00 percentile latency.
_PHRASE = re.compile(r"(?:[^\s,;|\[\]{}\"'=:()<>]{0,40}\w[^\s,;|\[\]{}\"'=:()<>]{0,40} ){0,9}$")
_FIGURE = (
    r"(?<![\w@.])(?<![^\d\s/]/)(?:(?<![^\s=:(\[,|])[-+−])?"
    r"(?:\d+(?P<of>\s{0,4}/\s{0,4}\d+(?![\d.]))|\d+(?:[.,:'’_-]\d+){0,9}\.?(?:[eE][-+]?\d{1,3})?|\.\d+"
    r"|(?i:nan|inf)(?![^\W_]))"
)
_PREFIXED = re.compile(r"(?:%| ?[kKMGT]?i?B(?:ytes)?(?:/s(?:ec)?)?|[kKMG])(?!\w)")
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_MASKED = re.compile(
    rf"(?P<day>{_DAY})|(?P<bar>\|[^|\w]{{0,300}}\||\[[=>.#\s-]{{3,300}}\])|(?P<rule>[━─=*#-]{{3,300}})|{_FIGURE}"
)
# What stands in an expression for a text of that role; a figure may have its unit at once.
_ANY = {"day": r"\w+,? \w+", "bar": r"[|\[][^|\]\w]*[|\]]", "rule": r"[━─=*#-]+", "": r"[-+−]?[.\dnNiI][\w.,:'/%+-]*"}
_ANY_UNIT = r" ?[^\s\d,;|)\]]+"
_WORD = re.compile(r"[\w.+-]*[^\W\d_][\w.+-]*(?: ?[:=]? ?#?$)?")
_SIGN, _PARTING = "\0", ",;:)]|\t"
_LONGEST, _MOST_WORDS, _NEAR = 60, 4, 40


class Part(NamedTuple):
    """A part of a line. role: "text", a key of _ANY, or of a figure "value", "count", "label", "number" and so on.

    label: part of a name. setting: behind the name of one. ordinal: behind another word. number: whole, without a unit.
    column: likewise, the first of its line. batch: behind that word alone. in_name: the role where it is in a name.
    """

    text: str
    start: int
    role: str = "text"
    in_name: str = ""
    expression: str = ""

    @property
    def is_figure(self) -> bool:
        """Whether it is a figure: no text, no day and no drawing."""
        return self.role != "text" and self.role not in _ANY


class PartedLine(NamedTuple):
    """A line in parts. starts: of the parts. signed, free: of each part, by these functions. counts: in their order."""

    parts: tuple[Part, ...]
    starts: tuple[int, ...]
    signed: tuple[str, ...]
    free: tuple[tuple[str, ...], ...]
    counts: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """A number that an expression found. line: its place among all lines. at: the place of the number in its line."""

    match: re.Match[str]
    line: int
    at: int

    @property
    def _here(self) -> tuple[PartedLine, int]:
        """The line, and the place of the part that the number is in."""
        line = in_parts(self.match.string)
        return line, bisect_right(line.starts, self.at) - 1

    @property
    def before(self) -> list[Part]:
        """The parts of its line before the number; in the name it has other roles."""
        line, place = self._here
        text, start = self.match.string, self.match.start()
        phrase = _PHRASE.search(text[max(0, start - _LONGEST) : start])
        name = start - (len(phrase[0]) if phrase else 0)
        found = [
            part._replace(role=part.in_name) if part.in_name and part.start >= name else part
            for part in line.parts[:place]
        ]
        cut = text[line.starts[place] : self.at]
        return [*found, Part(cut, line.starts[place])] if cut else found

    @property
    def figures(self) -> list[Part]:
        """The figures before the number."""
        return [part for part in self.before if part.is_figure]

    @property
    def counts(self) -> tuple[str, ...]:
        """The counts of its line."""
        return in_parts(self.match.string).counts

    @property
    def texts(self) -> tuple[str, ...]:
        """What stands around the number: the text before it with its signs, then the free words behind it."""
        line, place = self._here
        text, end = self.match.string, self.match.end()
        before = "".join(line.signed[:place]) + _signed(Part(text[line.starts[place] : self.at], 0))
        place = bisect_right(line.starts, end) - 1
        cut = line.parts[place]._replace(text=text[end : line.starts[place] + len(line.parts[place].text)])
        first = _free(cut, line.parts[place + 1] if place + 1 < len(line.parts) else None) if cut.role == "text" else ()
        return (before, *first, *chain.from_iterable(line.free[place + 1 :]))


@dataclass
class Kind:
    """Readings that belong together. labels: which of their figures are part of the kind; unsure: which may be.

    words: what tells them from the other kinds of their name, as it is printed; empty where there is none. before,
    behind: expressions of the text around the number, likewise.
    """

    readings: list[Reading]
    labels: tuple[int, ...] = ()
    unsure: tuple[int, ...] = ()
    words: str = ""
    before: str = ""
    behind: str = ""

    @property
    def first(self) -> Reading:
        return self.readings[0]

    def number(self, lines: Sequence[str]) -> int:
        """Of how many kinds the readings may be: 1 where nothing around them differs. lines: all."""
        unsure = {tuple(one.figures[place].text for place in self.unsure) for one in self.readings}
        return max(len(unsure), self._different_headings(lines))

    def _different_headings(self, lines: Sequence[str]) -> int:
        """How many different headings stand above the readings."""
        passes = _passes(self.readings, lines)
        places = [(one[0].line, one[-1].line) for one in passes]
        gaps = [_headings(lines[last + 1 : first]) for (_, last), (first, _) in pairwise(places)]
        if not gaps:
            return 1
        tail = _headings(lines[places[-1][1] + 1 :])
        # Lines that follow every reading are of its own report.
        report = sum(1 for _ in takewhile(lambda several: len(set(several)) == 1, zip(*gaps, tail, strict=False)))
        heads = [gap[report:] for gap in gaps]
        above = _headings(lines[: places[0][0]])
        return len({above[len(above) - len(heads[0]) :] if len(above) >= len(heads[0]) else above, *heads})


@lru_cache(maxsize=1 << 14)
def in_parts(line: str) -> PartedLine:
    """The line in parts."""
    parts = _parts(line)
    free = (_free(part, after) for part, after in zip_longest(parts, parts[1:]))
    counts = (part.text.split("/")[0] for part in parts if part.role == "count")
    return PartedLine(
        parts, tuple(part.start for part in parts), tuple(map(_signed, parts)), tuple(free), tuple(counts)
    )


def _signed(part: Part) -> str:
    """A text without spaces at its ends; a sign for every other part."""
    return " ".join(part.text.split()) if part.role == "text" else _SIGN


def _free(part: Part, after: Part | None) -> tuple[str, ...]:
    """The words of a text that name no figure behind it; a setting behind it with its word: batch=8."""
    words = _words(part.text) if part.role == "text" else ()
    if after is None or not after.is_figure:
        return words
    last = (words[-1] + after.text,) if words else (after.text,)
    return (*words[:-1], *(last if after.role in ("setting", "ordinal", "batch") else ()))


def _parts(line: str) -> tuple[Part, ...]:
    matches, end = list[re.Match[str]](), 0
    for match in _MASKED.finditer(line):
        is_in_word = line[match.end() : match.end() + 1].isalnum() and not _unit(line, match.end())
        if match.lastgroup in _ANY or not is_in_word:
            matches.append(match)
    found = list[Part]()
    for match, after in zip_longest(matches, matches[1:]):
        text = line[end : match.start()]
        if text:
            found.append(Part(text, end))
        end, role = match.end(), match.lastgroup if match.lastgroup in _ANY else ""
        if role:
            found.append(Part(match[0], match.start(), role, expression=_ANY[role]))
            continue
        unit = _unit(line, end)
        end = unit.end() if unit else end
        behind = line[end : min(after.start() if after else len(line), end + _NEAR)]
        sort = (
            "of" if match["of"] else "version" if _VERSION.match(match[0]) else "whole" if match[0].isdecimal() else ""
        )
        sort = sort or ("moment" if re.search(r"[:-]\d", match[0]) else "fraction")
        role, in_name = _roles(
            text[-_NEAR:], sort, unit[0] if unit else "", behind, is_first=len(found) == len(text[:1])
        )
        expression = _ANY[""] + (_ANY_UNIT if unit and unit[0].startswith(" ") else "")
        found.append(Part(line[match.start() : end], match.start(), role, in_name, expression))
    return (*found, Part(line[end:], end)) if end < len(line) else tuple(found)


def _unit(text: str, place: int) -> re.Match[str] | None:
    if text[place : place + 1] in _PARTING:  # much faster than an expression
        return None
    return PRINTED_UNIT.match(text, place) or _PREFIXED.match(text, place)


@lru_cache(maxsize=1 << 12)
def _roles(before: str, sort: str, unit: str, behind: str, is_first: bool) -> tuple[str, str]:
    """The role of a figure, and the role that it has in a name, if it is another.

    before, behind: the text to the next figures. sort: "whole", "fraction", "of", "moment" or "version".
    """
    timed = PRINTED_UNIT.match(unit)
    if sort == "of" or _COUNTS_BEFORE.search(before):
        return "count", ""
    if sort == "whole" and not unit and _BATCH.search(before):
        return "batch", ""
    if sort == "whole" and _SETTING.search(before):
        return "setting", ""
    if sort == "moment" or _STATISTIC.search(before) or (_COUNTS_BEHIND.match(behind) and not unit):
        return "value", ""
    if _FRACTION.search(before):
        return "ordinal", ""
    if timed and timed["kept"] is None:
        return "value", ""
    is_whole = sort == "whole" and not unit
    if _BEHIND_WORD.search(before):
        return "ordinal" if is_whole else "value", ""
    if sort == "version":
        return "label", ""
    in_name = "" if _NAMED.search(before) else "label"
    if not is_whole:
        return "value", in_name
    return "column" if is_first and not before.strip(" \t[(") else "number", in_name


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(re.sub(r"\S*/\S*", " ", text)))


def kinds(readings: Sequence[Reading], lines: Sequence[str]) -> list[Kind]:
    """The kinds of the readings of a name, in the order of their first lines. lines: all."""
    of_texts: dict[tuple[str, ...], list[Reading]] = {}
    for one in readings:
        of_texts.setdefault(one.texts, []).append(one)
    found = list[Kind]()
    for group in of_texts.values():
        labels, unsure = _labels(group, lines)
        of_labels: dict[tuple[str, ...], list[Reading]] = {}
        for one in group:
            of_labels.setdefault(tuple(one.figures[place].text for place in labels), []).append(one)
        found += (Kind(several, labels, unsure) for several in of_labels.values())
    found.sort(key=lambda kind: (kind.first.line, kind.first.at))
    if len(found) > 1:
        _tell_apart(found)
    return found


def shape_of(line: str) -> str:
    """The line with a sign for each figure."""
    return "".join(in_parts(line).signed)


def _labels(group: Sequence[Reading], lines: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The places of the figures that are part of the kind, and of those that may be, of readings with the same text."""
    each_counts = len({one.counts for one in group}) == len(group) and all(one.counts for one in group)
    labels, unsure = list[int](), list[int]()
    if all(part.role in ("value", "count") for part in group[0].figures):
        return (), ()
    for place, several in enumerate(zip(*(one.figures for one in group), strict=True)):
        texts, roles = list(dict.fromkeys(part.text for part in several)), {part.role for part in several}
        if len(texts) < 2 or roles & {"value", "count"}:
            continue
        told = {"label", "setting"} | ({"batch"} if not _is_regular(texts) else set())
        if roles & told or ("ordinal" in roles and not each_counts):
            labels.append(place)
        elif not each_counts and (
            "number" in roles or ("column" in roles and not any(map(_COUNTING_COLUMN.match, lines)))
        ):
            unsure.append(place)
    return tuple(labels), tuple(unsure)


def _is_regular(texts: Sequence[str]) -> bool:
    """Whether three whole numbers or more rise by equal steps."""
    steps = {int(after) - int(before) for before, after in pairwise(texts)} if all(map(str.isdecimal, texts)) else {0}
    return len(texts) > 2 and len(steps) == 1 and min(steps) > 0


def _passes(readings: Sequence[Reading], lines: Sequence[str]) -> list[list[Reading]]:
    """The readings, parted where a count comes again, or where there is none, and other lines stand between them."""
    found, seen = list[list[Reading]](), set[tuple[str, ...]]()
    for one in readings:
        is_again = not one.counts or one.counts in seen
        if not found or (is_again and _headings(lines[found[-1][-1].line + 1 : one.line])):
            found.append([])
            seen = set()
        found[-1].append(one)
        seen.add(one.counts)
    return found


def _headings(lines: Sequence[str]) -> tuple[str, ...]:
    """What lines say without their values and counts, without those that only count; equal neighbours are one."""
    told = map(_heading, lines)
    return tuple(text for text, _ in groupby(text for text in told if not _ONLY_COUNTS.match(text)))


@lru_cache(maxsize=1 << 14)
def _heading(line: str) -> str:
    several = in_parts(line).parts
    roles = {part.role for part in several}
    # The row of a report, or of a log: its whole numbers are values.
    is_row = "count" in roles or ("column" in roles and "value" in roles)
    kept = {"text", "label", "setting", "ordinal"} | (set() if is_row else {"number", "column", "batch"})
    return " ".join("".join(part.text if part.role in kept else _SIGN for part in several).split())


def _tell_apart(several: Sequence[Kind]) -> None:
    """Give each kind of a name its words and its expressions."""
    names = _names([_tokens(kind) for kind in several])
    behind = [kind.first.texts[1:] for kind in several]
    common = set.intersection(*(set(words) for words in behind))
    if len(set(names)) < len(names):
        names = [f"{name} {words}" for name, words in zip(names, _names(behind), strict=True)]
    for kind, name, words in zip(several, names, behind, strict=True):
        kind.words = name.strip()
        kind.before = _expression(kind)
        looks = [("=", word) for word in words if word not in common]
        looks += [("!", word) for others in behind for word in others if word not in words]
        kind.behind = "".join(rf"(?{look}.*(?<!\w){re.escape(word)}(?!\w))" for look, word in dict.fromkeys(looks))


def _tokens(kind: Kind) -> list[str]:
    """The words before the name, with the figures that are part of the kind."""
    text = _written(kind, lambda part: part.text, lambda _: _SIGN, kind.first.match.start())
    return re.sub(rf"\s*([:=])\s*(?={_SIGN})", r"\1", text).split()


def _names(every: Sequence[Sequence[str]]) -> list[str]:
    """The words of each kind, without those that all kinds begin with, or end with."""
    begin = _shared(every)
    end = _shared([words[begin:][::-1] for words in every])
    differing = [words[begin : len(words) - end] for words in every]
    if begin and any(re.match(r"[\d.]+\W*$", words[0]) for words in differing if words):
        begin -= 1  # a number alone is no name
    elif end and (not all(differing) or any(re.match(r"[\d.]+$", words[-1]) for words in differing)):
        end -= 1
    told = [words[begin : len(words) - end] for words in every]
    for most in (_MOST_WORDS, None):
        # Without the names of other numbers, if the rest tells the kinds apart.
        names = [
            [word for word, after in pairwise([*words, ""]) if not most or _SIGN not in word[1:] + after[:1]]
            for words in told
        ]
        names = [[bare for word in words if (bare := _bare(word))] for words in names]
        written = [" ".join(words[-most:] if most else words)[:_LONGEST] for words in names]
        if len(set(written)) == len(written):
            break
    return written


def _expression(kind: Kind) -> str:
    """The expression of all that stands before the number, from the begin of the line."""
    written = _written(kind, _spaced, lambda part: part.expression, kind.first.at)
    return r"^\s*" + written.removeprefix(r"\s*").removeprefix(r"\s+")


def _written(kind: Kind, literal: Callable[[Part], str], other: Callable[[Part], str], end: int) -> str:
    before = kind.first.before
    figures = [part for part in before if part.is_figure]
    labels = {figures[place].start for place in kind.labels}
    written, place = "", 0
    for part in before:
        if place >= end:
            break
        is_kept = part.role == "text" or (part.is_figure and part.start in labels)
        written += literal(part._replace(text=part.text[: end - place])) if is_kept else other(part)
        place += len(part.text)
    return written


def _spaced(part: Part) -> str:
    """The expression of a text; spaces at its ends may be missing where figures of other widths stand beside it.

    Between two figures stands a space: without it, an expression could part one figure in many ways.
    """
    words = r"\s+".join(re.escape(word) for word in part.text.split())
    return words if part.role != "text" else rf"\s*{words}\s*" if words else r"\s+"


def _shared(every: Sequence[Sequence[str]]) -> int:
    """How many tokens all begin with."""
    return sum(1 for _ in takewhile(lambda several: len(set(several)) == 1, zip(*every, strict=False)))


def _bare(token: str) -> str:
    """A token without signs, and without separators at its ends; empty without a letter."""
    bare = token.replace(_SIGN, "").strip(" :=,|;-•>{\"'").rstrip(".")
    return bare if re.search(r"\w", bare) else ""
