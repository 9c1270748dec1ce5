"""Proposals of patterns, from texts like `name: number unit` in a script's lines. A person has to judge them.

A proposal stands for all lines in which its pattern finds a number, so these lines decide together: whether a comma is
the decimal sign, whether the number counts 1, 2, 3, and whether its unit fits it. Where two readings are left,
nothing is proposed, and a doubt names the line. Lines of different kinds (kinds.py) have a proposal each.

A framework's own log differs between releases and is not a result: its lines, which name their place in a source file
of C or C++, are left out.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice, pairwise
from typing import NamedTuple

import tomlkit
from tomlkit.items import AoT

from tsuishi.extras.scripts.kinds import Kind, Reading, kinds, shape_of
from tsuishi.extras.scripts.printed_numbers import PrintedNumber, printed_numbers
from tsuishi.specs import numerals
from tsuishi.specs.case import PROTOCOL
from tsuishi.specs.experiment import INDEX, WORKLOAD, Experiment
from tsuishi.specs.numerals import SECONDS, Decimal

# As suites/workloads/common/lines.py does, but of a line that is drawn over itself only the last state counts.
LINE_CHARACTERS = 2000
# So many of the first and of the last lines are read.
_EACH_END = 5000
_BREAK, _STATES, _COLOUR = re.compile(r"\r*\n"), re.compile(r"[\r\b]+"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# The format of glog, of TensorFlow and of PyTorch: maybe a date, the level, maybe a time, file and line of the source.
_FRAMEWORKS_LOG = re.compile(
    r"(?:[-\d]+ [:.\d]+: |(?:\[rank\d+\]:)?\[)?[IWEF](?:\d{3,4} [ :.\d]+)? [^\s\]]+\.(?:c|cc|cpp|cu|cuh|h|hpp):\d+\] "
)
# The quantity of suites/quantities.toml that every script has, and the protocol of all scripts.
_WHOLE, _PROTOCOL = "script_s", "literal"
MOST = 20
_MOST_SERIES = 60
_ANY = "any"
_SILENT = "silent"
_LONGEST_NAME = 60
_SHOWN = 100
_LONGEST_S = 1e8  # three years: a longer time is a date
# A clock of the script and ours may differ; a number may be rounded.
_CLOCKS = 1.1
# A rate may be of other moments than the time beside it.
_ODDS = 3.0
# With more kinds of lines a person is lost.
_MOST_KINDS = 12
_FEW = 3  # numbers that a doubt shows
_LONGEST_EXPRESSION = 1000
_SETTING = re.compile(r"(?i)(?<![^\W_])(?:target|limit|timeout|deadline|budget|(?:min|max)_duration)(?![^\W_])")
_Expression = Callable[[str], str]


@dataclass
class Proposal:
    """A pattern for a number. `example`: the line that it was made from. `count`: of the lines that it finds.

    label: the name as it is printed. scale: by which the number becomes one of `unit`.
    """

    metric: str
    label: str
    line: str
    unit: str
    example: str
    count: int
    scale: float = 1.0
    decimal: Decimal = "."


class Doubt(NamedTuple):
    """A line with a number that is not proposed, and why."""

    line: str
    why: str


def lines_of(output: bytes) -> list[str]:
    """The lines of an output that are not empty, without colours, each of bounded length."""
    text = output.decode(errors="replace")
    states = ([state for state in _STATES.split(line) if state.strip()] for line in _BREAK.split(text))
    return [_COLOUR.sub("", drawn[-1][:LINE_CHARACTERS]) for drawn in states if drawn]


def proposals(
    lines: Sequence[str], taken: Collection[str], prefix: str, wall_s: float = math.inf
) -> tuple[list[Proposal], list[Doubt]]:
    """A proposal for each name, unit and kind, in the order of the lines, at most MOST; and what is in doubt.

    taken: names of other quantities; a metric of such a name gets the prefix. wall_s: how long the script took.
    """
    read = [line for line in _ends(lines) if not _FRAMEWORKS_LOG.match(line)]
    series = _series(read)
    elsewhere = {decimal for one in series for decimal in one.evidence}
    right, doubts = list[tuple[_Series, Decimal]](), list[Doubt]()
    for one in series:
        decimal = one.decimal(elsewhere)
        if one.candidate.doubt:
            doubts.append(Doubt(one.candidate.line, one.candidate.doubt))
        elif decimal is None:
            doubts.append(one.ambiguous)
        elif why := one.doubt(decimal, wall_s):
            doubts += [Doubt(one.candidate.line, why)] if why != _SILENT else []
        else:
            right.append((one, decimal))
    # Of too many, those of a speed.
    right = right if len(right) <= MOST else sorted(right, key=lambda each: not is_speed(each[0].candidate.unit))
    made = list[Proposal]()
    for one, decimal in right[:MOST]:
        used = {*taken, INDEX, numerals.UNIT, *(proposal.metric for proposal in made)}
        made.append(one.proposal(_metric(one.candidate, used, prefix), decimal))
    if more := right[MOST:]:
        why = f"{MOST} numbers are proposed, and not {len(more)} others, the first of them"
        doubts.insert(0, Doubt(more[0][0].candidate.line, why))
    return made, doubts


def is_speed(unit: str) -> bool:
    """Whether a unit is of a time or of a rate: the subject of a question about speed."""
    first, _, second = unit.partition("/")
    return first in SECONDS or second in SECONDS


def _ends(lines: Sequence[str]) -> Sequence[str]:
    return lines if len(lines) <= 2 * _EACH_END else [*lines[:_EACH_END], *lines[-_EACH_END:]]


def _series(lines: Sequence[str]) -> list["_Series"]:
    """The series of all candidates, each of one kind of lines. A rate and its inverse without a name are one name."""
    found: dict[tuple[str, str], PrintedNumber] = {}
    shapes = set[str]()
    for line in lines:
        shape = shape_of(line)
        if shape in shapes or len(found) >= _MOST_SERIES:
            continue
        shapes.add(shape)
        for candidate in printed_numbers(line):
            found.setdefault((candidate.name, "/".join(sorted(candidate.unit.split("/")))), candidate)
    names = {name for name, _ in found}
    longer = {
        name: [other.removesuffix(name) for other in names if other.endswith(f" {name}")] for name in names if name
    }
    made, read = list[_Series](), set[tuple[str, int]]()
    families: dict[tuple[str, str, bool], list[PrintedNumber]] = {}
    for (name, unit), candidate in found.items():
        families.setdefault((re.sub(r"\d+", "0", name), unit, candidate.takes_unit), []).append(candidate)
    for several in families.values():
        if len(several) > _MOST_KINDS:  # names that differ in numbers: layer1 forward, layer2 forward
            readings = [one for each in several for one in _readings(each, each.expression, lines)]
            made.append(_Series(several[0], several[0].expression, readings, len(several)))
            read |= {(one.match.string, one.at) for one in readings}
    for (name, _), candidate in found.items():
        # Of a name that is also the end of a longer one: total images/sec, and images/sec.
        whole = partial(candidate.expression, unless_behind=tuple(sorted(longer.get(name, ()))))
        readings = [] if candidate.doubt else _readings(candidate, whole, lines)
        places = {(one.match.string, one.at) for one in readings}
        own = (candidate.line, candidate.place[0])
        if candidate.doubt or (own in places and own not in read):
            made += _of_kinds(candidate, whole, readings, lines)
            read |= places
    return made


def _readings(candidate: PrintedNumber, expression: _Expression, lines: Sequence[str]) -> list[Reading]:
    """All numbers that the expression of a candidate finds; without a name only the first of a line."""
    searched = _compiled(candidate, expression)
    # Looking for the name first is much faster where a line has many others.
    name = "" if re.search(r"\d", candidate.name) else candidate.name
    some = ((place, line) for place, line in enumerate(lines) if name in line)
    found = ((place, match) for place, line in some for match in islice(searched.finditer(line), None if name else 1))
    return [
        Reading(match, place, match.start(_ANY))
        for place, match in found
        if candidate.is_duration or numerals.forms(_number(match))
    ]


def _of_kinds(
    candidate: PrintedNumber, whole: _Expression, readings: Sequence[Reading], lines: Sequence[str]
) -> list["_Series"]:
    """A series for each kind of the readings of a candidate; one with a doubt where nothing parts them."""
    several = kinds(readings, lines)
    number = len(several) if len(several) > 1 else sum(kind.number(lines) for kind in several)
    if number > 1 and candidate.unit == "1" and all(_number(one.match).isdecimal() for one in readings):
        return []  # settings, or counts
    if len(several) < 2 or number > _MOST_KINDS:
        return [_Series(candidate, whole, readings, number)]
    return [_alone(kind, candidate, readings, kind.number(lines)) for kind in several]


def _alone(kind: Kind, of: PrintedNumber, readings: Sequence[Reading], number: int) -> "_Series":
    """The series of a kind, with an expression that finds its lines alone; with a doubt where none does."""
    line, at = kind.first.match.string, kind.first.at
    here = next((one for one in printed_numbers(line) if one.place[0] == at), of)
    name = " ".join(filter(None, (kind.words, here.name or (kind.words and _nameless(here.unit)))))
    one = replace(here, name=name, line=line, place=(at, at + len(_number(kind.first.match))))

    def expression(metric: str) -> str:
        return f"{kind.before}(?P<{metric}>{one.group}){one.behind}{kind.behind}"

    searched = _compiled(one, expression)
    found = [
        Reading(match, other.line, match.start(_ANY))
        for other in {other.line: other for other in readings}.values()
        if (match := searched.search(other.match.string))
    ]
    own = [(other.line, other.at) for other in kind.readings]
    if [(other.line, other.at) for other in found] != own or len(expression(one.name)) > _LONGEST_EXPRESSION:
        one = replace(one, doubt="nothing in the line tells its number from others")
    return _Series(one, expression, found, number)


def _compiled(candidate: PrintedNumber, expression: _Expression) -> re.Pattern[str]:
    return re.compile(numerals.line_expression(expression(_ANY), None, numerals.printed_units(candidate.unit)))


def _number(match: re.Match[str]) -> str:
    return match[_ANY].rstrip(",'’_")


def _nameless(unit: str) -> str:
    return "rate" if unit.endswith("/s") else "time" + unit[1:].replace("/", " per ")


class _Series:
    """The readings of a candidate, and what follows from them together. kinds: of how many kinds they may be."""

    def __init__(
        self, candidate: PrintedNumber, expression: _Expression, readings: Sequence[Reading], kinds: int
    ) -> None:
        self.candidate, self.expression, self.kinds = candidate, expression, kinds
        self._found = [(one.match, _number(one.match)) for one in readings]

    @property
    def _texts(self) -> list[str]:
        return [text for _, text in self._found]

    @property
    def evidence(self) -> set[Decimal]:
        """The decimal signs without which one of the numbers would be none."""
        told = [text for text in self._texts if "," in text or " " not in text]
        return {known[0] for text in told if len(known := numerals.forms(text)) == 1}

    def decimal(self, elsewhere: set[Decimal]) -> Decimal | None:
        """The decimal sign; None where two are possible. elsewhere: those of all that the script prints."""
        decimal = "." if self.candidate.is_duration else self._likely(elsewhere)
        is_form = decimal is not None and all(decimal in numerals.forms(text) for text in self._texts)
        return decimal if is_form or self.candidate.is_duration else None

    def _likely(self, elsewhere: set[Decimal]) -> Decimal | None:
        known = self.evidence or elsewhere
        if len(self.evidence) == 2:
            return None
        open_to_both = [text for text in self._texts if _reads_in_two_ways(text)]
        if self.evidence or not open_to_both:
            return min(self.evidence, default=".")
        if len(known) == 1 and not (known == {"."} and any(" " in text for text in open_to_both)):
            return min(known)
        return "." if not known and all("," not in text and " " not in text for text in open_to_both) else None

    @property
    def ambiguous(self) -> Doubt:
        """The first number that can be read in two ways."""
        texts = ((match.string, text) for match, text in self._found if _reads_in_two_ways(text))
        line, text = next(texts, (self.candidate.line, self.candidate.text))
        return Doubt(line, f"'{text}' can be read in two ways")

    def values(self, decimal: Decimal) -> list[float]:
        """The numbers in the unit of the quantity."""
        printed = numerals.printed_units(self.candidate.unit)
        values = []
        for match, text in self._found:
            factor, turned = (
                printed[match[numerals.UNIT]] if self.candidate.takes_unit else (self.candidate.scale, False)
            )
            value = numerals.value(text, decimal)
            values.append(value * factor if not turned else factor / value if value else math.inf)
        return values

    def doubt(self, decimal: Decimal, wall_s: float) -> str:
        """Why the number is not proposed; empty where it is, and `_SILENT` where it is no result of the script."""
        values, unit, line = self.values(decimal), self.candidate.unit, self.candidate.line
        finite = [value for value in values if math.isfinite(value)]
        if _counts(finite) and (unit == "1" or all(map(float.is_integer, finite))):
            return _SILENT if unit == "1" else f"it counts {', '.join(f'{value:g}' for value in finite[:3])}"
        is_setting = all(text.isdecimal() for text in self._texts) and finite == sorted(finite)
        if unit == "1" and finite and is_setting and _has_other_numbers(self.candidate):
            return _SILENT
        if self.candidate.is_phrase and len({*finite}) < 2:
            return _SILENT
        if unit == "s" and max(finite, default=0.0) > _LONGEST_S:
            return "it may be a date"
        if unit == "s" and max(finite, default=0.0) > _CLOCKS * wall_s + self._rounding:
            return f"{max(finite):.4g} s, but the whole script took {wall_s:.3g} s"
        if unit.endswith("/s") and not _fits(line, unit.removesuffix("/s"), values[0]):
            return "the rate times the time is not the count"
        if _SETTING.search(self.candidate.name):
            return "its name is that of a setting" if is_speed(unit) else _SILENT
        return self._mixed if self.kinds > 1 else ""

    @property
    def _mixed(self) -> str:
        """The doubt of lines that may be of several kinds."""
        first = [
            " ".join(match.string[match.start(_ANY) : match.end()].rstrip(",").split())
            for match, _ in self._found[:_FEW]
        ]
        more = ", ..." if len(self._found) > _FEW else ""
        remedy = "print in each line what its number is of" if self.kinds <= _MOST_KINDS else "print fewer"
        return f"{len(self._found)} lines of {self.kinds} kinds: {', '.join(first)}{more}: {remedy}"

    @property
    def _rounding(self) -> float:
        """By how much a whole number of a unit may be rounded."""
        printed, match = numerals.printed_units(self.candidate.unit), self._found[0][0]
        return printed[match[numerals.UNIT]][0] / 2 if self.candidate.takes_unit else self.candidate.scale / 2

    def proposal(self, metric: str, decimal: Decimal) -> Proposal:
        """The proposal of a metric of that name."""
        of = self.candidate
        label = of.name or _nameless(of.unit)
        return Proposal(
            metric, label, self.expression(metric), of.unit, of.line, len(self._found), scale=of.scale, decimal=decimal
        )


def _reads_in_two_ways(text: str) -> bool:
    """Whether it is another number with another decimal sign, or may be two numbers."""
    known = numerals.forms(text)
    return " " in text or (len(known) == 2 and numerals.value(text, ".") != numerals.value(text, ","))


def _counts(values: Sequence[float]) -> bool:
    """Whether three numbers or more rise by equal steps."""
    steps = [after - before for before, after in pairwise(values)]
    return len(steps) > 1 and steps[0] > 0 and all(abs(step - steps[0]) <= 1e-3 * steps[0] for step in steps)


def _fits(line: str, counted: str, rate: float) -> bool:
    """Whether a rate times the only time in its line is near the count beside them, where a line has all three."""
    count = re.search(rf"(?<![\w.,])(\d{{1,15}}) {re.escape(counted)}(?![\w/])", line) if counted else None
    times = [one for one in printed_numbers(line) if one.unit == "s" and not one.is_duration and one.takes_unit]
    if count is None or len(times) != 1 or not numerals.forms(times[0].text):
        return True
    (time,) = times
    unit = re.match(r"\s?(\S+?)(?![^\W\d_])", line[time.place[1] :])
    seconds = SECONDS.get(unit[1] if unit else "", math.nan) * numerals.value(time.text, numerals.forms(time.text)[0])
    ratio = rate * seconds / (float(count[1]) or math.nan)
    return not (ratio < 1 / _ODDS or ratio > _ODDS)


def _has_other_numbers(candidate: PrintedNumber) -> bool:
    """Whether its line has a number with a unit or a fraction too: a whole number beside it is a setting or a count."""
    others = [other for other in printed_numbers(candidate.line) if other.place != candidate.place]
    return any(other.unit != "1" or "." in other.text for other in others)


def suite_text(title: str, experiment: Experiment, proposed: Sequence[Proposal], timeout_s: float) -> str:
    """The file of a suite with these patterns; a comment before each shows the line that it was made from.

    Its question compares releases by the first time or rate that the script prints, or by the time of the whole script.
    """
    document = tomlkit.document()
    document.add("title", tomlkit.item(title))
    document.add("workload", tomlkit.item(WORKLOAD))
    document.add("experiment", tomlkit.item(experiment.model_dump(mode="json", exclude_defaults=True)))
    patterns, quantities = tomlkit.table(is_super_table=True), tomlkit.table(is_super_table=True)
    for proposal in proposed:
        pattern, quantity = tomlkit.table(), tomlkit.table()
        pattern.add(tomlkit.comment(f"proposed, lines joined: {proposal.count}; the first: {_shown(proposal.example)}"))
        pattern.add("line", tomlkit.string(proposal.line, literal="'" not in proposal.line))
        if proposal.decimal != ".":
            pattern.add("decimal", tomlkit.item(proposal.decimal))
        if proposal.scale != 1:
            pattern.add("scale", tomlkit.item({proposal.metric: proposal.scale}))
        patterns.add(proposal.metric, pattern)
        quantity.add("label", tomlkit.item(proposal.label))
        quantity.add("unit", tomlkit.item(proposal.unit))
        quantity.add("from", tomlkit.item(f"metric:{proposal.metric}"))
        quantity.add("take", tomlkit.item("median" if proposal.count > 1 else "last"))
        quantities.add(proposal.metric, quantity)
    if len(patterns):
        document.add("patterns", patterns)
        document.add("new_quantities", quantities)
    questions = AoT([])
    questions.append(
        tomlkit.item(
            {
                "id": "releases",
                "title": f"{title}: oldest release against newest",
                "quantity": next((one.metric for one in proposed if is_speed(one.unit)), _WHOLE),
                "cases": [{PROTOCOL: _PROTOCOL}],
            }
        )
    )
    document.add("questions", questions)
    document.add("profiles", tomlkit.item({"quick": {"repetitions": {"cpu": 3, "cuda": 3}, "timeout_s": timeout_s}}))
    groups = AoT([])
    groups.append(tomlkit.item({"axes": {PROTOCOL: _PROTOCOL}}))
    document.add("groups", groups)
    return tomlkit.dumps(document)


def _metric(candidate: PrintedNumber, taken: Collection[str], prefix: str) -> str:
    """A name for a metric, made of the name and its unit; prefix and number make it a new name."""
    unit = [] if candidate.unit == "1" else _words(candidate.unit.replace("%", "percent"))
    words = _words(candidate.name)
    while unit and words and words[-1] in {*unit, *SECONDS, "per"} - {"min"}:
        words.pop()  # a unit in the name may be another, as in latency_ms; min may be the least
    metric = "_".join([*(words or ["rate" if candidate.unit.endswith("/s") else "time" if unit else "value"]), *unit])[
        :_LONGEST_NAME
    ].strip("_")
    several = chain((metric, f"{prefix}_{metric}"), (f"{prefix}_{metric}_{number}" for number in count(2)))
    return next(name for name in several if name not in taken and name[0].isalpha())


def _words(text: str) -> list[str]:
    """The words of a text in the letters a to z, without accents, and its numbers."""
    plain = "".join(
        letter for letter in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(letter)
    )
    return re.findall("[a-z0-9]+", plain)


def _shown(line: str) -> str:
    """A line in a comment: what no comment of TOML may hold is left out."""
    return "".join(letter for letter in line.strip() if letter.isprintable())[:_SHOWN]
