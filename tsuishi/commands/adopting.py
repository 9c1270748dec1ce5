"""`invoke adopt`: a published table becomes a source and a suite; each column and each cell is accounted for."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tsuishi.adopt.adoption import Adoption, Corrections, adopt
from tsuishi.adopt.as_printed import as_printed
from tsuishi.adopt.proposed_claims import proposed_claims
from tsuishi.adopt.table_files import shown, table_files
from tsuishi.adopt.written import write_source
from tsuishi.artifacts.network import Network
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.commands.chain import Chain
from tsuishi.machine.compatibility import read_table
from tsuishi.plan.session import Session
from tsuishi.specs.case import Value
from tsuishi.specs.printed_table import PrintedNumbers, slug
from tsuishi.specs.source import Hardware, Numbers
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.doubtful import doubts_about, likely_text

# The most rows of the tables of reasons and of doubts, and examples of a reason; --all shows the others.
_ROWS, _EXAMPLES = 12, 4


def adopt_table(chain: Chain) -> None:
    """Show what the tables hold, and write reports/published/<name>/ and suites/<name>.toml; with --plan only show.

    Raises UserError where there is such a source already, where nothing is a case here, and for wrong corrections.
    """
    options = chain.options
    name = slug(options.text("source") or Path(shown(options.text("table")).rstrip("/")).stem)
    adoption = adopted(chain, name)
    claims = _show(chain, adoption)
    if not chain.only_plans:
        _write(chain, adoption, options.text("title") or name, claims)


def adopted(chain: Chain, name: str) -> Adoption:
    """The adoption of the table that the options name, with their corrections, as the source `name`.

    Raises UserError for a table that cannot be had, and for wrong corrections.
    """
    session, options = chain.session, chain.options
    licence = options.text("licence")
    network = Network(session.settings.ca_bundle)
    found = table_files(options.text("table"), network, Path(licence) if licence else None)
    said = Corrections(
        case=case_of("set", options.text("set"), session.words),
        columns=_pairs("columns", options.text("columns")),
        hardware=options.text("hardware"),
        framework=options.text("framework"),
        batch_per_device=options.has("per_device"),
    )
    return adopt(name, found, session.words, read_table(session.checkout.images).data_sheets, said)


def case_of(option: str, text: str, words: Vocabulary) -> dict[str, Value]:
    """The axes and values that an option gives. Raises UserError."""
    case: dict[str, Value] = {}
    for axis, value in _pairs(option, text).items():
        try:
            words.known_axis(axis)
            case[axis] = int(value) if words.axes[axis].is_number and value.isdigit() else value
            words.check({axis: case[axis]})
        except ValueError as error:
            raise UserError(f"--{option}: {error}") from error
    return case


def _pairs(option: str, text: str) -> dict[str, str]:
    """`name=value,name=value`; a comma within a name is written \\,. Raises UserError."""
    pairs = [part.partition("=") for part in re.split(r"(?<!\\),", text) if part.strip()]
    for name, equals, value in pairs:
        if not (name.strip() and equals and value.strip()):
            raise UserError(f"--{option}: write name=value, separated by commas; given: {text}")
    return {name.strip().replace("\\,", ","): value.strip() for name, _, value in pairs}


def _show(chain: Chain, adoption: Adoption) -> list[dict[str, Any]]:
    """Print the evidence, the count of cells, the reasons of refusals, doubts, and the claims; returns these."""
    screen, whole = chain.session.screen, chain.options.has("all")
    screen.table("The map of the tables", ("in the table", "taken for", "why"), adoption.evidence)
    refused, mapped = adoption.refused(), adoption.mapped()
    total = mapped + sum(refused.values())
    assumed = dict.fromkeys(text for table in adoption.tables for text in table.assumed)
    if assumed:
        screen.say(f"not said by the tables, and assumed: {', '.join(assumed)}")
    screen.say(f"{mapped} of {total} numbers are cases here")
    reasons: dict[str, list[tuple[str, int]]] = {}
    for (why, what), count in refused.most_common():
        reasons.setdefault(why, []).append((what, count))
    rows = []
    for why, whats in reasons.items():
        shown = whats if whole else whats[:_EXAMPLES]
        more = f" and {len(whats) - len(shown)} more (--all shows them)" if whats[len(shown) :] else ""
        rows.append((sum(count for _, count in whats), why, ", ".join(what for what, _ in shown) + more))
    _table(screen, "Not cases here", ("numbers", "because of", "such as"), rows, whole)
    words = chain.session.words
    printed = map(as_printed, adoption.tables)
    doubted = show_doubts(chain.session, adoption.name, adoption.numbers(words), adoption.hardware(), whole, printed)
    for text in adoption.contradictions:
        screen.say(f"in doubt: {text}")
    if claims := proposed_claims(adoption, words, doubted):
        screen.say("Proposed claims, to be corrected or removed by hand in source.toml")
    for claim in claims:
        screen.say(f"{claim['id']}: {claim['text']}")
    return claims


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
    _table(session.screen, f"Doubtful numbers of {name}", ("", "where", "why", "likely"), rows, whole)
    return {cell.place for doubt in found for cell in doubt.cells}


def _table(screen: Screen, title: str, headers: Sequence[str], rows: Sequence[Sequence[object]], whole: bool) -> None:
    """Print the first rows of a table, or with `whole` all of them; nothing where it has none."""
    shown = rows if whole else rows[:_ROWS]
    if rows:
        screen.table(title, headers, shown)
    if rows[len(shown) :]:
        screen.say(f"and {len(rows) - len(shown)} more rows: --all shows them")


def _write(chain: Chain, adoption: Adoption, title: str, claims: Sequence[dict[str, Any]]) -> None:
    session, name = chain.session, adoption.name
    checkout, screen = session.checkout, session.screen
    folder, suite = checkout.published / name, checkout.suites / f"{name.replace('-', '_')}.toml"
    if why := files.unfit(name):
        raise UserError(f"--source: {why}")
    for path in (folder, checkout.published / f"{name}.toml", suite):
        if path.exists():
            raise UserError(f"{path}: there already: remove it, or give another --source")
    if not adoption.mapped():
        raise UserError("no number is a case here: nothing is written; --columns and --set correct what was taken")
    source, written = write_source(adoption, title, folder, suite, session.words, claims)
    here = checkout.from_here
    screen.say(f"written: {here(folder.relative_to(checkout.root))}: {len(source.flat())} numbers of cases")
    cases = sum(1 for _ in written.cases("full", "cuda"))
    screen.say(f"written: {here(suite.relative_to(checkout.root))}: {cases} cases")
    screen.say(f"then: invoke build run-suite report --suite {suite.stem}")
