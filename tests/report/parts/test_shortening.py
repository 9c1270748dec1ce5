"""Pages of very large runs are shortened, and say so."""

from tsuishi.report.parts.blocks import Section, Text, View
from tsuishi.report.parts.shortening import shortened_sections
from tsuishi.report.parts.wording import Table, text_cell


def table(rows: int, columns: int, title: str) -> Table:
    return Table(
        [str(column) for column in range(columns)],
        [[text_cell(f"{title} {row}") for _ in range(columns)] for row in range(rows)],
        title=title,
        notes=["a note"],
    )


def section(anchor: str, *tables: Table) -> Section:
    return Section(anchor, anchor, (View((Text("text"), *tables), {"rows": [{"a": 1}]}),))


def rows(found: list[Section]) -> dict[str, int]:
    return {block.title: len(block.rows) for one in found for block in one.blocks if isinstance(block, Table)}


def test_a_page_that_is_small_enough_stays_as_it_is() -> None:
    sections = [section("a", table(10, 3, "one"), table(5, 2, "two"))]
    assert shortened_sections(sections, 40) == sections


def test_the_longest_tables_of_a_large_page_lose_their_last_rows_and_say_how_many() -> None:
    sections = [section("a", table(100, 3, "long"), table(5, 2, "short")), section("b", table(50, 3, "longish"))]
    found = shortened_sections(sections, 130)
    assert rows(found) == {"long": 20, "short": 5, "longish": 20}
    (long, short), (longish,) = ([one for one in part.blocks if isinstance(one, Table)] for part in found)
    assert long.notes == ["a note", "80 more rows are not on this page, and in tables/*.csv."]
    assert long.rows[-1][0].text == "long 19"
    assert short.notes == ["a note"]
    assert longish.notes[-1].startswith("30 more rows")
    assert found[0].views[0].rows == {"rows": [{"a": 1}]}


def test_verdicts_are_never_cut() -> None:
    found = shortened_sections([section("summary", table(60, 2, "verdicts")), section("a", table(60, 2, "cases"))], 100)
    assert rows(found)["verdicts"] == 60
    assert rows(found)["cases"] < 60
