"""The doubts about the numbers of a source, printed."""

from collections.abc import Iterable, Sequence

from tsuishi.base.screen import Screen
from tsuishi.machine.compatibility import read_table
from tsuishi.plan.session import Session
from tsuishi.specs.printed_table import PrintedNumbers
from tsuishi.specs.source import Hardware, Numbers
from tsuishi.verdicts.doubtful import doubts_about, likely_text

# The most rows of a table; --all shows the others.
_ROWS = 12


def show_doubts(
    session: Session,
    name: str,
    numbers: Iterable[Numbers],
    hardware: Iterable[Hardware],
    whole: bool,
    printed: Iterable[PrintedNumbers] = (),
) -> set[str]:
    """Print the doubts about the numbers of a source, with `whole` all of them; returns the places of these numbers.

    printed: its tables, with the numbers that are no cases here.
    """
    found = doubts_about(numbers, hardware, session.words, read_table(session.checkout.images).data_sheets, printed)
    rows = [(doubt.kind, doubt.cells[0].place, doubt.reason, likely_text(doubt, session.words)) for doubt in found]
    show_rows(session.screen, f"Doubtful numbers of {name}", ("", "where", "why", "likely"), rows, whole)
    return {cell.place for doubt in found for cell in doubt.cells}


def show_rows(
    screen: Screen, title: str, headers: Sequence[str], rows: Sequence[Sequence[object]], whole: bool
) -> None:
    """Print the first rows of a table, or with `whole` all of them; nothing where it has none."""
    shown = rows if whole else rows[:_ROWS]
    if rows:
        screen.table(title, headers, shown)
    if rows[len(shown) :]:
        screen.say(f"and {len(rows) - len(shown)} more rows: --all shows them")
