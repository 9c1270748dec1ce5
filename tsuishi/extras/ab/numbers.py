"""The numbers that both sides give: found by patterns in what the command prints, or in the lines of launcher.py."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tsuishi.extras.ab.launcher import MARK, WALL
from tsuishi.extras.scripts.proposals import Doubt, Proposal, is_speed, lines_of, proposals
from tsuishi.specs import numerals

_LINE = re.compile(rf'{MARK} (?P<name>".*") (?P<value>\S+) s$')


@dataclass(frozen=True)
class FoundNumbers:
    """What the first run of each side gave. compared: what both gave. only: names of one side, by the side's name.

    others: names of numbers that both print, and that are neither times nor rates.
    """

    compared: tuple[Proposal, ...]
    only: dict[str, tuple[str, ...]]
    others: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


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
        proposed |= {each.metric: each for each in made if each.metric not in proposed}
        doubts |= {doubt.why: doubt for doubt in doubtful}
    matches = {side: [each for each in proposed.values() if _finds(each, of)] for side, of in printed.items()}
    both = [each for each in proposed.values() if all(each in of_side for of_side in matches.values())]
    compared = tuple(each for each in both if is_speed(each.unit))
    only = {
        side: tuple(each.label for each in of_side if each not in both and is_speed(each.unit))
        for side, of_side in matches.items()
    }
    others = tuple(each.label for each in both if not is_speed(each.unit))
    if not compared and not any(only.values()):
        compared = (_of_line(WALL, 0),)
    return FoundNumbers(compared, only, others, tuple(doubts.values()))


def _by_name(written: dict[str, list[str]]) -> FoundNumbers:
    """The numbers of files, without the time of the whole command."""
    first, *rest = written.values()
    both = [name for name in first if all(name in other for other in rest)]
    only = {side: tuple(name for name in names if name not in both) for side, names in written.items()}
    return FoundNumbers(tuple(_of_line(name, number) for number, name in enumerate(both, 1)), only)


def _written(lines: Iterable[str]) -> list[str]:
    names = [str(json.loads(match["name"])) for line in lines if (match := _LINE.match(line))]
    return [name for name in dict.fromkeys(names) if name != WALL]


def _of_line(name: str, number: int) -> Proposal:
    """The pattern of a line of launcher.py."""
    metric = f"ab_{number}_s"
    line = rf"^{MARK} {re.escape(json.dumps(name))} (?P<{metric}>{numerals.NUMBER_IN}) s$"
    return Proposal(metric, name, line, "s", f"{MARK} {json.dumps(name)}", 1)


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
