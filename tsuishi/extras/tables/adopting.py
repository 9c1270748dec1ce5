"""`invoke adopt`: a published table becomes a source and a suite; each column and each cell is accounted for."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tsuishi.artifacts.network import Network
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.commands.chain import Chain
from tsuishi.commands.doubts import show_doubts, show_rows
from tsuishi.extras.tables.adoption import Adoption, Corrections, adopt
from tsuishi.extras.tables.as_printed import as_printed
from tsuishi.extras.tables.open_questions import OpenQuestion, open_questions
from tsuishi.extras.tables.picking import tables_with
from tsuishi.extras.tables.proposed_claims import proposed_claims
from tsuishi.extras.tables.table_files import shown, table_files
from tsuishi.extras.tables.written import write_source
from tsuishi.machine.compatibility import read_table
from tsuishi.specs.case import MODEL, Value
from tsuishi.specs.numerals import Decimal
from tsuishi.specs.printed_table import slug
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.specs.zoo_names import near_names

# The options that say something of tables.
_SAID = ("set", "columns", "hardware", "framework", "decimal", "tables")
# The most examples of a reason; --all shows the others.
_EXAMPLES = 4


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


def adopted(chain: Chain, name: str, row: str = "") -> Adoption:
    """The adoption of the table that the options name, with their corrections, as the source `name`.

    row: questions are asked about tables that have these words alone. Raises UserError for a table that cannot be had,
    and for wrong corrections.
    """
    session, options = chain.session, chain.options
    licence = options.text("licence")
    network = Network(session.settings.ca_bundle)
    found = table_files(options.text("table"), network, Path(licence) if licence else None)
    sheets = read_table(session.checkout.images).data_sheets
    return _answered(
        chain, lambda given: adopt(name, found, session.words, sheets, corrections(given, session.words)), row
    )


def corrections(given: Mapping[str, str], words: Vocabulary) -> Corrections:
    """What a person says by options (set, columns, hardware, framework, per_device, decimal, tables). Raises UserError.

    `2:mode=inference` is said of the second table of a file alone, `vgg16:batch_size=32` of the numbers of vgg16.
    """
    of_tables: dict[int, Corrections] = {}
    cases, columns = (_by_table(_pairs(option, given.get(option, ""))) for option in ("set", "columns"))
    for number in {*cases, *columns} - {0}:
        case, networks = _of_networks(cases.get(number, {}), words)
        of_tables[number] = Corrections(case=case, networks=networks, columns=columns.get(number, {}))
    tables, decimal = given.get("tables", ""), given.get("decimal", "")
    if any(not text.strip().isdecimal() for text in tables.split(",")) and tables:
        raise UserError(f"--tables: numbers of tables, as 1,3; given: {tables}")
    if decimal not in ("", ".", ","):
        raise UserError(f"--decimal: '.' or ','; given: {decimal}")
    case, networks = _of_networks(cases.get(0, {}), words)
    return Corrections(
        case=case,
        networks=networks,
        columns=columns.get(0, {}),
        hardware=given.get("hardware", ""),
        framework=given.get("framework", ""),
        batch_per_device=bool(given.get("per_device")),
        decimal=cast("Decimal", decimal) if decimal else None,
        tables=frozenset(int(text) for text in tables.split(",") if text.strip()),
        of_tables=of_tables,
    )


def _by_table(pairs: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """Pairs by the number of the table before their names, 0 without."""
    found: dict[int, dict[str, str]] = {}
    for name, value in pairs.items():
        of = re.fullmatch(r"(\d{1,5}):(\S.*)", name)
        found.setdefault(int(of[1]) if of else 0, {})[of[2] if of else name] = value
    return found


def _of_networks(pairs: Mapping[str, str], words: Vocabulary) -> tuple[dict[str, Value], dict[str, dict[str, Value]]]:
    """The axes of all numbers, and those of a network by its printed name (`vgg16:batch_size`)."""
    networks: dict[str, dict[str, Value]] = {}
    for name, value in pairs.items():
        network, colon, axis = name.rpartition(":")
        if colon:
            networks.setdefault(network, {}).update(_case("set", {axis: value}, words))
    return _case("set", {name: value for name, value in pairs.items() if ":" not in name}, words), networks


def _answered(chain: Chain, read: Callable[[Mapping[str, str]], Adoption], row: str) -> Adoption:
    """The adoption after the questions that its tables leave open, which are asked in a terminal.

    Elsewhere they stay open; the output lists them. read: the adoption for options by name.
    """
    screen, words, options = chain.session.screen, chain.session.words, chain.options
    given = {name: options.text(name) for name in _SAID if options.text(name)}
    given |= {"per_device": "yes"} if options.has("per_device") else {}
    adoption, skipped, typed = read(given), set[str](), list[str]()
    while screen.can_ask:
        asked = [each for each in questions_about(adoption, words, row) if each.text not in skipped]
        # An option that would change other tables, too, is not asked for.
        asked = [each for each in asked if not any(answer.tables for answer in each.answers)]
        if not asked:
            break
        answer = _ask(screen, asked[0])
        if answer is None:
            skipped.add(asked[0].text)
            continue
        option, value = answer
        option, value = (option, value) if value else ("per_device", "yes")
        before = given.get(option)
        joined = ",".join(filter(None, [before, value])) if option in ("set", "columns") else value
        try:
            adoption = read({**given, option: joined})
        except UserError as error:
            screen.say(str(error))
            continue
        given[option] = joined
        typed.append(option)
    if typed:
        given_now = [f"--{name} {shlex.quote(given[name])}" for name in _SAID if name in given]
        given_now += ["--per-device"] if "per_device" in given else []
        screen.say(f"the same without questions: {' '.join(given_now)}")
    return adoption


def questions_about(adoption: Adoption, words: Vocabulary, row: str) -> list[OpenQuestion]:
    """The open questions; with words of a row, those about tables that have them."""
    tables = tables_with(adoption, row) if row else {table.place for table in adoption.tables}
    return [each for each in open_questions(adoption, words) if tables.intersection(each.tables)]


def _ask(screen: Screen, question: OpenQuestion) -> tuple[str, str] | None:
    """(an option, its value) of the answer of a person; None for none."""
    screen.say(f"{question.where}: {question.said} ({question.numbers} numbers)")
    for number, each in enumerate(question.answers, start=1):
        screen.say(f"  {number}: {each.words}   {each.typed}")
    text = screen.ask("the number of an answer (Enter: leave it open): ")
    chosen, _, rest = text.strip().partition(" ")
    if not chosen.isdecimal() or not 1 <= int(chosen) <= len(question.answers):
        return None
    answer = question.answers[int(chosen) - 1]
    if not answer.value.endswith("="):
        return answer.option, answer.value
    rest = rest.strip() or screen.ask(f"  {answer.words}: ").strip()
    return (answer.option, answer.value.replace("=,", f"={rest},") + rest) if rest else None


def case_of(option: str, text: str, words: Vocabulary) -> dict[str, Value]:
    """The axes and values that an option gives. Raises UserError."""
    return _case(option, _pairs(option, text), words)


def _case(option: str, pairs: Mapping[str, str], words: Vocabulary) -> dict[str, Value]:
    case: dict[str, Value] = {}
    for axis, value in pairs.items():
        try:
            words.known_axis(axis)
            case[axis] = int(value) if words.axes[axis].is_number and value.isdigit() else value
            words.check({axis: case[axis]})
        except ValueError as error:
            raise UserError(f"--{option}: {error}") from error
    return case


def _pairs(option: str, text: str) -> dict[str, str]:
    """`name=value,name=value`; a comma within a name is written \\,. Raises UserError."""
    pairs = [part.rpartition("=") for part in re.split(r"(?<!(?<!\\)\\),", text) if part.strip()]
    for name, equals, value in pairs:
        if not (name.strip() and equals and value.strip()):
            raise UserError(f"--{option}: write name=value, separated by commas; given: {text}")
    return {re.sub(r"\\([,\\])", r"\1", name.strip()): value.strip() for name, _, value in pairs}


def _show(chain: Chain, adoption: Adoption) -> list[dict[str, Any]]:
    """Print the evidence, the count of cells, the reasons of refusals, doubts, and the claims; returns these."""
    screen, whole = chain.session.screen, chain.options.has("all")
    screen.table("The map of the tables", ("in the table", "taken for", "why"), adoption.evidence)
    refused, mapped = adoption.refused(), adoption.mapped()
    total = mapped + sum(refused.values())
    assumed = dict.fromkeys(text for table in adoption.tables for text in table.assumed)
    if assumed:
        screen.say(f"not said by the tables, and assumed: {', '.join(assumed)}")
    joined = adoption.joined()
    more = f"; {joined} of them stand in several rows of one case, as readings of one number" if joined else ""
    screen.say(f"{mapped} of {total} numbers are cases here{more}")
    reasons: dict[str, list[tuple[str, int]]] = {}
    for (why, what), count in refused.most_common():
        reasons.setdefault(why, []).append((what, count))
    rows = []
    for why, whats in reasons.items():
        shown = whats if whole else whats[:_EXAMPLES]
        more = f" and {len(whats) - len(shown)} more (--all shows them)" if whats[len(shown) :] else ""
        near = {what: near_names(what) if why == MODEL else [] for what, _ in shown}
        texts = [f"{what} (as {names[0]}?)" if names else what for what, names in near.items()]
        rows.append((sum(count for _, count in whats), why, ", ".join(texts) + more))
    show_rows(screen, "Not cases here", ("numbers", "because of", "such as"), rows, whole)
    words = chain.session.words
    asked = [
        (each.numbers, each.where, each.said, " | ".join(answer.typed for answer in each.answers))
        for each in open_questions(adoption, words)
    ]
    show_rows(screen, "Open questions", ("numbers", "of", "question", "answers"), asked, whole)
    printed = map(as_printed, adoption.tables)
    doubted = show_doubts(chain.session, adoption.name, adoption.numbers(words), adoption.hardware(), whole, printed)
    for text in adoption.contradictions:
        screen.say(f"in doubt: {text}")
    if claims := proposed_claims(adoption, words, doubted):
        screen.say("Proposed claims, to be corrected or removed by hand in source.toml")
    for claim in claims:
        screen.say(f"{claim['id']}: {claim['text']}")
    return claims


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
