"""The numbers that both sides give: found by patterns in what the command prints, or in the lines of launcher.py."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tsuishi.base import printable
from tsuishi.extras.ab.launcher import MARK, WALL, digest
from tsuishi.extras.scripts.proposals import Doubt, Proposal, is_speed, lines_of, proposals
from tsuishi.specs import numerals

_LINE = re.compile(rf"{MARK} (?P<digest>[0-9a-f]{{16}}) \S+ s (?P<name>\".*)$")
_LONGEST_LABEL = 200


@dataclass(frozen=True)
class FoundNumbers:
    """What the first run of each side gave. compared: what both gave. only: names of one side, by the side's name.

    others: names of numbers that both print, and that are neither times nor rates. by_launcher: whether the launcher
    prints what is compared.
    """

    compared: tuple[Proposal, ...]
    only: dict[str, tuple[str, ...]]
    others: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    by_launcher: bool = False


def found_numbers(outputs: dict[str, tuple[bytes, float]], taken: Iterable[str], *, of_file: bool) -> FoundNumbers:
    """The numbers of both sides. outputs: by the side's name, its output and its seconds. taken: names of quantities.

    of_file: the command writes its numbers into a file, and what it prints is not read. Without any time or rate, the
    time of the whole command is compared.
    """
    lines = {side: lines_of(output) for side, (output, _) in outputs.items()}
    printed = {side: [line for line in of if not _LINE.match(line)] for side, of in lines.items()}
    known = {*taken}
    if of_file:
        return _by_name({side: _written(of) for side, of in lines.items()})
    proposed, doubts = dict[str, Proposal](), dict[str, Doubt]()
    for side, (_, wall_s) in outputs.items():
        made, doubtful = proposals(printed[side], known, "ab", wall_s)
        proposed |= {each.metric: _as_rate(each) for each in made if each.metric not in proposed}
        doubts |= {doubt.why: doubt for doubt in doubtful}
    matches = {side: [each for each in proposed.values() if _finds(each, of)] for side, of in printed.items()}
    both = [each for each in proposed.values() if all(each in of_side for of_side in matches.values())]
    compared = tuple(each for each in both if is_speed(each.unit))
    only = {
        side: tuple(each.label for each in of_side if each not in both and is_speed(each.unit))
        for side, of_side in matches.items()
    }
    others = tuple(each.label for each in both if not is_speed(each.unit))
    is_whole = not compared and not any(only.values())
    if is_whole:
        compared = (_of_line(WALL, digest(WALL), 0),)
    return FoundNumbers(compared, only, others, tuple(doubts.values()), by_launcher=is_whole)


def _as_rate(proposal: Proposal) -> Proposal:
    """The proposal with the unit of a rate where its unit is one by another name: fps, GFLOPS."""
    unit = "frames/s" if proposal.unit.lower() == "fps" else re.sub(r"FLOPS$", "FLOP/s", proposal.unit)
    return replace(proposal, unit=unit)


def _by_name(written: dict[str, dict[str, str]]) -> FoundNumbers:
    """The numbers of files, by the digests of their names, without the time of the whole command."""
    first, *rest = written.values()
    both = [name for name in first if all(name in other for other in rest)]
    only = {side: tuple(label for name, label in names.items() if name not in both) for side, names in written.items()}
    compared = tuple(_of_line(first[name], name, number) for number, name in enumerate(both, 1))
    return FoundNumbers(compared, only, by_launcher=True)


def _written(lines: Iterable[str]) -> dict[str, str]:
    """The names in lines of launcher.py, for a reader, by their digests."""
    found = {match["digest"]: _label(match["name"]) for line in lines if (match := _LINE.match(line))}
    return {name: label for name, label in found.items() if name != digest(WALL)}


def _label(text: str) -> str:
    """A name as JSON, of which the end may be cut off, as a text on one line."""
    try:
        name = str(json.loads(text))
    except ValueError:
        name = text.strip('"')
    return printable.line(name)[:_LONGEST_LABEL]


def _of_line(label: str, name: str, number: int) -> Proposal:
    """The pattern of a line of launcher.py. name: its digest."""
    metric = f"ab_{number}_s"
    pattern = rf"^{MARK} {name} (?P<{metric}>{numerals.NUMBER_IN}) s "
    return Proposal(metric, label, pattern, "s", f"{MARK} {name}", 1)


def _finds(proposal: Proposal, lines: Sequence[str]) -> bool:
    known = numerals.printed_units(proposal.unit)
    expression = re.compile(numerals.line_expression(proposal.line, proposal.decimal, known))
    return any(expression.search(line) for line in lines)


def renamed(proposed: Iterable[Proposal]) -> list[Proposal]:
    """The proposals with labels that tell them apart, as a table needs."""
    counts: dict[str, int] = {}
    made = []
    for each in proposed:
        counts[each.label] = counts.get(each.label, 0) + 1
        more = f" ({counts[each.label]})" if counts[each.label] > 1 else ""
        made.append(replace(each, label=f"{each.label}{more}"))
    return made
