"""Shortening: browsers open even the page of a very large run at once; tables/*.csv have the rows left out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tsuishi.base.language import t
from tsuishi.report.parts.blocks import Block, Section, View
from tsuishi.report.parts.wording import Table

# With so many cells, of about a hundred bytes each, a page with charts and scripts has 5 MB.
MOST_CELLS = 20_000
# The verdicts are never shortened.
_WHOLE = ("summary", "claims")


def shortened_sections(sections: Sequence[Section], most_cells: int = MOST_CELLS) -> list[Section]:
    """The sections, unchanged unless their tables have too many cells; then each table with the same most rows."""
    tables = [block for section in sections for block in section.blocks if isinstance(block, Table)]
    rows = _most_rows(tables, most_cells)
    if rows is None:
        return list(sections)
    return [section if section.anchor in _WHOLE else _shortened(section, rows) for section in sections]


def _most_rows(tables: Iterable[Table], most_cells: int) -> int | None:
    """The most rows of a table with which all tables together have at most so many cells; None: no table is cut."""
    sizes = [(len(table.rows), len(table.columns)) for table in tables]

    def cells(most: int) -> int:
        return sum(min(rows, most) * columns for rows, columns in sizes)

    longest = max((rows for rows, _ in sizes), default=0)
    if cells(longest) <= most_cells:
        return None
    return next((most for most in range(longest, 1, -1) if cells(most) <= most_cells), 1)


def _shortened(section: Section, rows: int) -> Section:
    views = [View(tuple(_block(block, rows) for block in view.blocks), view.rows) for view in section.views]
    return replace(section, views=tuple(views))


def _block(block: Block, rows: int) -> Block:
    if not isinstance(block, Table) or len(block.rows) <= rows:
        return block
    note = t("{count} more rows are not on this page, and in tables/*.csv.", count=len(block.rows) - rows)
    return replace(block, rows=block.rows[:rows], notes=[*block.notes, note])
