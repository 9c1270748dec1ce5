"""Numbers in a line with a name, or with a unit of time or of a rate; each with an expression to find it.

A number is found first, then the text before and behind it, within bounded distances: a line of any content is read
in a time that grows with its length alone. A number that can be read in two ways has no candidate, or has a `doubt`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tsuishi.specs import numerals
from tsuishi.specs.numerals import DURATION_IN, NUMBER_IN, SECONDS, UNIT_IN

WITHOUT_UNIT = r"(?![\w%])"  # behind a number
MOST_NUMBERS = 60  # of a line: a line with more is a table of values, or no text
_BEFORE, _BEHIND = 200, 40
_MOST_WORDS, _WORDS_OF_PROSE = 7, 3

# A number with everything that may belong to it; then a date, a time of the day or a version is not a number.
_NUMERAL = re.compile(
    rf"(?<![\w.,@/\\-])(?<!\d[:'’])(?:(?P<duration>{numerals.DURATION})|(?P<number>{numerals.ANY_NUMBER})(?![:\-−]?\d))"
)
_TIME = "|".join(sorted(map(re.escape, SECONDS), key=len, reverse=True))
_KEPT = "|".join(sorted(map(re.escape, numerals.KEPT), key=len, reverse=True))
_WORD = r"[^\W\d_]{1,20}"
_PREFIX = r"(?:[kKMG](?!i?B) ?)?"
PRINTED_UNIT = re.compile(
    rf"[ \u00a0\u202f]?(?:(?P<rate>{_PREFIX}(?P<counted>(?:{_WORD})?)(?:/| per )(?:s|S|sec|seconds?|min|minute|h|hour))"
    rf"|(?P<taken>{_TIME})/(?P<of>{_WORD})|(?P<time>{_TIME})|(?P<kept>{_KEPT}))(?![\w/%])"
)
# A unit of a name: (ms), [s], images/sec, latency_ms, tokens_per_second, time in seconds.
_IN_NAME = re.compile(
    r"(?:(?P<space>\s?)[(\[](?P<bracket>[^()\[\]]{1,20})[)\]]"
    rf"|(?P<written>(?<![^\W\d_])(?<!/){_WORD}(?:/|[ _]per[ _]){_WORD}|_{_WORD}| in {_WORD}))$"
)
_SEPARATOR = re.compile(
    r"(?P<colon>(?P<quote>[\"']?)[ \t]{0,80}[:=：][ \t]{0,80}(?P<open>[\"']?))$"
    r"|(?P<bar>[ \t]{0,20}\|[ \t]{0,20})$|(?P<gap>\s{1,20})$"
)
_VALUE_OF_KEY = re.compile(r"\"key\": ?\"(?P<name>[\w.-]{1,60})\", ?\"value\": ?$")
_PART = r"[^\s,;|\[\]{}\"'=:：<>()]{1,80}"
_NAME = re.compile(rf"(?P<name>(?:{_PART} ){{0,{_MOST_WORDS - 1}}}{_PART})(?P<aside>(?: ?\([^()]{{1,20}}\))?)$")
# A phrase of at most three words, before its number and behind it: iter 3000: loss 4.2490, time 35392.33ms.
_PHRASE = re.compile(rf"(?:^|[,;:] {{1,4}}){_WORD}(?: {_WORD}){{0,2}}$")
_PHRASE_ENDS = re.compile(r"[,;]\s|\s{0,4}$")
# A number that counts the named thing: Epoch 3/10, Iter #0.
_COUNT = r"\s?[#\[]?\d+(?:/\d+)?\]?"
_COUNTED = re.compile(r"(?:^|(?<=\s))(?:#?\d{1,9}(?:/\d{1,9})?|\[\d{1,9}(?:/\d{1,9})?\])$")
_SPREAD_BEHIND = rf"\s*(?:±|\+/?-)\s*[\d.,]+\s*{_WORD}"
_WORDS_BEHIND = re.compile(
    rf"(?P<spread>(?:\s{{0,4}}(?:±|\+/?-)\s{{0,4}}[\d.,]{{1,20}}\s{{0,4}}{_WORD})?)"
    rf"\s{{1,8}}(?P<name>(?:per )?{_WORD}(?:[ -]{_WORD}){{0,2}})(?![\w:=/]| [^\W\d_])"
)
_LETTER = re.compile(r"[^\W\d_]")
_JOINING = ("±", "+-", "&", "/")
_PREPOSITIONS = ("on", "of", "for", "at", "in", "with", "over", "across")
# Words of a name for a time that is still to come, or for a place in a list.
_NOT_MEASURED = re.compile(r"(?i)(?<![^\W\d])(?:eta|remaining|left)(?![^\W\d])")
_OF_TIME = re.compile(r"(?i)time|elapsed|latency|duration|runtime|wall|took|cost|dauer|zeit|durée|temps")
_IS_TIME = re.compile(rf"(?i)(?:{_OF_TIME.pattern[4:]}|(?:^| )in$)")
_PROGRESS = re.compile(r"%(?:\||\s{1,4}\d+/\d)")
_FILLERS = {*("a", "about", "after", "an", "and", "at", "by", "each", "every", "for", "in", "is", "of", "or", "than")}
_FILLERS |= {"the", "to", "was", "with"}
_SPREAD = re.compile(r"(?:±|\+/?-|#|\.\.|…|–|—|\bto\b|\bbis\b)\s{0,4}$")
_RANGE = re.compile(r"[^\d|;\n]{0,8}?(?:\.\.\.?|…|–|—|\bto\b|\bbis\b)\s{0,4}[-+]?[\d.]")


@dataclass(frozen=True)
class PrintedNumber:
    """A number in a line. `unit`: of its quantity, as printed where it is not a time or a rate; "1" for none.

    place: of the number in the line. behind, before: what the expression has around the number's group. scale: by which
    a number becomes one of the unit, where the unit is part of the name. doubt: why it is not proposed, if so.
    is_phrase: only a space parts name and number, and both fill a phrase between commas: it may be a version.
    """

    name: str
    unit: str
    line: str
    place: tuple[int, int]
    before: str
    behind: str
    is_duration: bool = False
    scale: float = 1.0
    doubt: str = ""
    is_phrase: bool = False

    @property
    def text(self) -> str:
        """The number as it is printed."""
        return self.line[slice(*self.place)]

    @property
    def takes_unit(self) -> bool:
        """Whether the expression takes the unit from the line."""
        return UNIT_IN in self.behind

    @property
    def group(self) -> str:
        """The placeholder of its number."""
        return DURATION_IN if self.is_duration else NUMBER_IN

    def expression(self, metric: str, unless_behind: tuple[str, ...] = ()) -> str:
        """The `line` of a pattern with this metric. unless_behind: texts that make it the end of another name."""
        others = "".join(f"(?<!{re.escape(text)})" for text in unless_behind)
        return f"{others}{self.before}(?P<{metric}>{self.group}){self.behind}"


def printed_numbers(line: str) -> Iterator[PrintedNumber]:
    """The candidates of a line, from left to right."""
    seen: set[tuple[str, str]] = set()
    for number, match in enumerate(_NUMERAL.finditer(line)):
        if number >= MOST_NUMBERS:
            return
        found = _candidate(line, match)
        if found is None or (not found.name and ((found.name, found.unit) in seen or _is_repeated(found, seen))):
            continue
        seen.add((found.name, found.unit))
        yield found


def _is_repeated(found: PrintedNumber, seen: set[tuple[str, str]]) -> bool:
    """Whether a number without a name, in parentheses, has a unit that the line had before: a mean beside a value."""
    before = found.line[: found.place[0]]
    return before.count("(") > before.count(")") and found.unit in {unit for _, unit in seen}


def _candidate(line: str, match: re.Match[str]) -> PrintedNumber | None:
    start, end = match.span()
    is_duration = match["duration"] is not None
    if not is_duration:
        while line[end - 1] in ",'’_":  # they end a phrase, and part no groups
            end -= 1
    behind, before = line[end : end + _BEHIND], line[max(0, start - _BEFORE) : start]
    if _SPREAD.search(before) or (not is_duration and _RANGE.match(behind)) or _PROGRESS.match(behind):
        return None
    unit = None if is_duration else PRINTED_UNIT.match(behind)
    if not is_duration and unit is None and re.match(r"[^\W\d_]", behind):
        letter = behind[0] in "kKMGmB" and not re.match(r"\w", behind[1:])
        return _doubtful(line, (start, end), before) if letter else None
    named = re.match(r"[\"']?\s{0,4}([:=：])", behind[unit.end() :]) if unit else None
    if unit is not None and named and (unit["time"] in (None, "min") or named[1] == "="):
        unit = None  # this word is the name of the next number
    if not is_duration and not numerals.forms(line[start:end]):
        return None
    return _named(line, (start, end), before, unit, is_duration) or _bare(line, (start, end), before, unit)


def _doubtful(line: str, place: tuple[int, int], before: str) -> PrintedNumber | None:
    found = _named(line, place, before, None, False)
    letter = line[place[1]]
    return found and PrintedNumber(found.name, "1", line, place, "", "", doubt=f"'{letter}' may be a prefix or a unit")


def _named(
    line: str, place: tuple[int, int], before: str, unit: re.Match[str] | None, is_duration: bool
) -> PrintedNumber | None:
    """The candidate of a number with a name before it. Without a colon it needs a unit, or a mean in parentheses."""
    if key := _VALUE_OF_KEY.search(before):
        return PrintedNumber(key["name"], "1", line, place, _literal(key[0]), WITHOUT_UNIT)
    separator = _SEPARATOR.search(before)
    has_unit = unit is not None or is_duration
    if separator is None:
        return None
    rest = before[: separator.start()]
    is_phrase = separator["gap"] is not None and not (has_unit or _has_mean(line, place))
    if is_phrase and not ("." in line[slice(*place)] and _PHRASE.search(rest) and _PHRASE_ENDS.match(line, place[1])):
        return None
    counted = _COUNTED.search(rest) if has_unit else None
    own = None if has_unit else _unit_in(rest)
    end = counted.start() if counted else len(rest) - len(own.bracket) if own else len(rest)
    name = _name_of(rest[:end].rstrip(), prose=separator["colon"] is None)
    if (
        not name
        or _NOT_MEASURED.search(name)
        or (is_duration and ":" in line[slice(*place)] and not _IS_TIME.search(name))
    ):
        return None
    if separator[0] == ":" and not has_unit and line[slice(*place)].isdecimal():
        return None  # a port, or a setting
    if own is None and not has_unit:
        own = _Own("s", SECONDS[name]) if name in SECONDS and name != "min" else _rate_in(name)  # min: the least
    begin = (r"(?<![\w.])" if re.match(r"\w", name) else "") + _literal(name)
    middle = _COUNT if counted else _literal(own.bracket) if own else ""
    return PrintedNumber(
        name,
        own.unit if own else "s" if is_duration else _unit_of(unit),
        line,
        place,
        begin + middle + _gap(separator),
        "" if is_duration else _behind(unit),
        is_duration=is_duration,
        scale=own.scale if own else 1.0,
        is_phrase=is_phrase,
    )


def _has_mean(line: str, place: tuple[int, int]) -> bool:
    """Whether it is a value with its mean, as meters print them: Loss 6.98 (7.01)."""
    number = line[slice(*place)]
    return (
        "." in number
        and re.match(r"\s{0,3}\(\s{0,4}[-+]?\d{1,20}\.\d", line[place[1] : place[1] + _BEHIND]) is not None
    )


def _gap(separator: re.Match[str]) -> str:
    if separator["colon"] is not None:
        return rf"{separator['quote']}\s*[:=：]\s*{separator['open']}"
    return r"\s*\|\s*" if separator["bar"] is not None else r"\s+"


def _literal(name: str) -> str:
    """A name in an expression: with any number for each of its numbers."""
    return re.sub(r"(?<![^\s])\d+(?![^\s])", r"\\d+", re.sub(r"\\([ /#%])", r"\1", re.escape(name)))


def _name_of(text: str, prose: bool) -> str:
    """The name at the end of a text; empty where there is none. prose: only spaces or a bar part it from its number."""
    match = _NAME.search(text)
    if match is None:
        return ""
    kept, most = list[str](), _WORDS_OF_PROSE if prose else _MOST_WORDS
    tokens = match["name"].split(" ")
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        joins = kept and place > 0 and (token in _JOINING or tokens[place - 1] in _PREPOSITIONS)
        if len(kept) == most or not (_LETTER.search(token) or joins) or re.search(r"\d\.\d", token):
            break
        if kept and (
            token.endswith(".") or (place and tokens[place - 1][-1:].isdigit() and PRINTED_UNIT.fullmatch(token))
        ):
            break  # the end of a sentence, or the unit of another number
        kept.insert(0, token)
    # A unit with its number, or the end of a sentence, is not the name of the next number.
    if (
        prose
        and kept
        and (
            _FILLERS.issuperset(kept)
            or re.match(r"\d", kept[-1])
            or kept[-1][-1] in ".,"
            or PRINTED_UNIT.fullmatch(kept[-1])
        )
    ):
        return ""
    if len(kept) == 1 and kept[0] in SECONDS and re.search(r"\d\s$", text[: -len(kept[0])]):
        return ""
    while kept and not _LETTER.search(kept[0]):
        kept.pop(0)
    name = " ".join(kept).lstrip("-*#>•·…. ")
    return name + match["aside"] if name else ""


class _Own(NamedTuple):
    """The unit that a name has: of the quantity, the factor to it, and its text in brackets, which is no name."""

    unit: str
    scale: float
    bracket: str = ""


def _unit_in(text: str) -> _Own | None:
    """The unit at the end of a name, as in step time (ms), Elapsed [s], images/sec, latency_ms, tokens_per_second."""
    match = _IN_NAME.search(text)
    if match is None:
        return None
    if (bracket := match["bracket"]) is not None:
        # GPU(s) is a plural.
        is_plural = bracket == "s" and not match["space"] and not _OF_TIME.search(text[: match.start()][-20:])
        unit = None if is_plural else PRINTED_UNIT.fullmatch(bracket)
        return unit and _Own(*_base(unit), match[0])
    written = re.sub("[ _]per[ _]", "/", match["written"].removeprefix("_").removeprefix(" in "))
    unit = PRINTED_UNIT.fullmatch(written)
    return None if unit is None or unit["kept"] else _Own(*_base(unit))


def _rate_in(name: str) -> _Own | None:
    """The unit of a name that has a rate among its words, as in Total img/sec on 4 GPU(s)."""
    rates = [
        unit for token in name.split() if (unit := PRINTED_UNIT.fullmatch(token)) and unit["rate"] and unit["counted"]
    ]
    return _Own(*_base(rates[0])) if len(rates) == 1 else None


def _base(unit: re.Match[str]) -> tuple[str, float]:
    """The unit of a quantity for a unit that a name has, and the factor to it."""
    base = _unit_of(unit)
    return base, numerals.printed_units(base)[unit[0].strip()][0]


def _unit_of(unit: re.Match[str] | None) -> str:
    """The unit of a quantity: s for every time, X/s for every rate, s/X for the time that an X takes."""
    if unit is None:
        return "1"
    if unit["rate"] is not None:
        return f"{unit['counted']}/s"
    if unit["taken"] is not None:
        return f"s/{unit['of']}"
    return "s" if unit["time"] is not None else unit["kept"]


def _behind(unit: re.Match[str] | None) -> str:
    if unit is None:
        return WITHOUT_UNIT
    if unit["kept"] is not None:
        return rf"\s?{_literal(unit['kept'])}(?!\w)"
    return rf"\s?(?P<{numerals.UNIT}>{UNIT_IN})(?![\w/])"


def _bare(line: str, place: tuple[int, int], before: str, unit: re.Match[str] | None) -> PrintedNumber | None:
    """The candidate of a time or a rate without a name before it: named by the words behind it, or not at all."""
    if unit is None or unit["kept"] is not None or _NOT_MEASURED.search(before[-20:]):
        return None
    found_unit, behind = _unit_of(unit), _behind(unit)
    is_first = place[0] <= _BEFORE and not before.strip()
    words = _WORDS_BEHIND.match(line[place[1] + unit.end() :][:_BEHIND])
    if words is not None and (is_first or unit["time"] is not None):
        literal = (_SPREAD_BEHIND if words["spread"] else "") + r"\s+" + _literal(words["name"])
        begin = r"^\s*" if is_first else r"(?<=\s)"
        return PrintedNumber(words["name"], found_unit, line, place, begin, behind + literal)
    if is_first or unit["time"] is None:
        return PrintedNumber("", found_unit, line, place, r"^\s*" if is_first else r"(?<![\w.,])", behind)
    mark = re.search(r"[^\w\s.:(<~]\s{1,2}$", before)
    return mark and PrintedNumber("", found_unit, line, place, re.escape(mark[0][0]) + r"\s+", behind)
