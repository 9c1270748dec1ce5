"""Proposals of patterns, from what looks like `name: number unit` in a script's lines. A person has to judge them.

The name may have a number of its own, as in `Epoch 3/10: 12.5 s`, where there is a unit: `12:30` is no such line. With
a unit, `took` does for the colon, and a rate (`120 images/sec`) needs no name.

What a framework logs about itself differs between releases and is no result: its lines are left out. They name their
place in a source file of C or C++.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import tomlkit
from tomlkit.items import AoT

from tsuishi.specs.case import PROTOCOL
from tsuishi.specs.experiment import INDEX, WORKLOAD, Experiment

# As suites/workloads/common/lines.py does: each state of a progress bar is a line, of at most so many characters.
LINE_CHARACTERS = 2000
_BREAK, _COLOUR = re.compile(r"[\r\n\b]+"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
_NAMED = re.compile(
    r"(?<![\w.])(?P<name>[^\W\d]+(?:[ _-][^\W\d]+){0,2})(?P<counted> \d+(?:/\d+)?)?"
    r"(?P<between>[\"']?\s*[:=：]\s*|\s+took\s+)"
    rf"(?P<number>{_NUMBER})(?![\w.:]*\d)"
    # A word before another number's colon is that number's name.
    r"(?:\s?(?P<unit>%|[^\W\d_]+(?:/[^\W\d_]+)?)(?!\w)(?![\"']?\s*[:=：]))?"
)
_RATE = re.compile(rf"(?<![\w.])(?P<number>{_NUMBER})\s?(?P<unit>[^\W\d_]+/(?:s|sec|second))(?!\w)")
# The format of glog, of TensorFlow and of PyTorch: maybe a date, the level, maybe a time, file and line of the source.
_FRAMEWORKS_LOG = re.compile(
    r"(?:[-\d]+ [:.\d]+: |(?:\[rank\d+\]:)?\[)?[IWEF](?:\d{3,4} [ :.\d]+)? [^\s\]]+\.(?:c|cc|cpp|cu|cuh|h|hpp):\d+\] "
)
# The units of time, in seconds.
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds", "ミリ秒"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microseconds"), 1e-6),
    "ns": 1e-9,
}
# The quantity of suites/quantities.toml that every script has, and the protocol of all scripts.
_WHOLE, _PROTOCOL = "script_s", "literal"
MOST = 20
_SHOWN = 100


@dataclass
class Proposal:
    """A pattern for a number. `example`: the line that it was made from. `count`: of the lines that it finds.

    scale: by which the number becomes one of `unit`.
    """

    metric: str
    line: str
    unit: str
    example: str
    count: int
    scale: float = 1.0

    @property
    def label(self) -> str:
        """The words of the name, without those of the unit, which stands beside the label everywhere."""
        return self.metric.removesuffix("_" + "_".join(_unit_words(self.unit))).replace("_", " ")


def lines_of(output: bytes) -> list[str]:
    """The lines of an output that are not empty, without colours, each of bounded length."""
    texts = (_COLOUR.sub("", text[:LINE_CHARACTERS]) for text in _BREAK.split(output.decode(errors="replace")))
    return [text for text in texts if text.strip()]


def proposals(lines: Sequence[str], taken: Collection[str], prefix: str) -> list[Proposal]:
    """A proposal for each name and unit, in the order of the lines; at most MOST.

    taken: names of other quantities; a metric of such a name gets the prefix.
    """
    found: dict[tuple[str, str], Proposal] = {}
    for line in lines:
        for match, expression_of in () if _FRAMEWORKS_LOG.match(line) else _matches(line):
            name, unit = match.groupdict().get("name", "rate"), match["unit"] or ""
            if (name, unit) not in found and len(found) < MOST:
                used = {*taken, INDEX, *(known.metric for known in found.values())}
                metric = _metric(name, unit, used, prefix)
                expression = expression_of(match, metric)
                lines_found = sum(re.search(expression, other) is not None for other in lines)
                scale = _SECONDS.get(unit, 1.0)
                found[name, unit] = Proposal(metric, expression, _unit(unit), line, lines_found, scale)
    return list(found.values())


def _matches(line: str) -> Iterator[tuple[re.Match[str], Callable[[re.Match[str], str], str]]]:
    """What looks like a named number, or like a rate, in a line, each with the function for its expression."""
    named = [match for match in _NAMED.finditer(line) if _is_named(match)]
    numbers = {match.start("number") for match in named}
    yield from ((match, _expression) for match in named)
    yield from ((match, _rate) for match in _RATE.finditer(line) if match.start("number") not in numbers)


def _is_named(match: re.Match[str]) -> bool:
    return match["unit"] in _SECONDS if "took" in match["between"] else bool(match["unit"] or not match["counted"])


def _unit(unit: str) -> str:
    """The unit of a quantity: seconds for every time, `/s` for every rate by seconds, 1 where there is none."""
    if unit in _SECONDS:
        return "s"
    counted, per, time = unit.partition("/")
    return f"{counted}/s" if per and _SECONDS.get(time) == 1.0 else unit or "1"


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
        pattern.add(tomlkit.comment(f"proposed, lines: {proposal.count}; the first: {_shown(proposal.example)}"))
        pattern.add("line", tomlkit.string(proposal.line, literal="'" not in proposal.line))
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
                "title": f"{title}: a framework's oldest release against its newest",
                "quantity": next((one.metric for one in proposed if one.unit == "s" or "/s" in one.unit), _WHOLE),
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


def _metric(name: str, unit: str, taken: Collection[str], prefix: str) -> str:
    """A name for a metric, made of the name and the unit in the line; prefix and number make it a new name."""
    words = [*(re.findall("[a-z]+", name.lower()) or ["value"]), *_unit_words(_unit(unit))]
    metric = "_".join(words)
    candidates = chain((metric, f"{prefix}_{metric}"), (f"{prefix}_{metric}_{number}" for number in count(2)))
    return next(name for name in candidates if name not in taken)


def _unit_words(unit: str) -> list[str]:
    return re.findall("[a-z]+", unit.replace("%", "percent").lower())


def _expression(match: re.Match[str], metric: str) -> str:
    quote = match["between"][0] if match["between"][0] in "\"'" else ""
    separator = r"\s+took\s+" if "took" in match["between"] else rf"{quote}\s*[:=：]\s*"
    unit = rf"\s?{re.escape(match['unit'])}(?!\w)" if match["unit"] else r"(?![\w%])"
    name = r"\ ".join(map(re.escape, match["name"].split(" "))).replace(r"\ ", " ")
    counted = r" \d+(?:/\d+)?" if match["counted"] else ""
    return rf"(?<![\w.]){name}{counted}{separator}(?P<{metric}>{_NUMBER}){unit}"


def _rate(match: re.Match[str], metric: str) -> str:
    return rf"(?<![\w.])(?P<{metric}>{_NUMBER})\s?{re.escape(match['unit'])}(?!\w)"


def _shown(line: str) -> str:
    """A line in a comment: what no comment of TOML may hold is left out."""
    return "".join(letter for letter in line.strip() if letter.isprintable())[:_SHOWN]
