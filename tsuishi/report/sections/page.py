"""The page: the whole content of a report, section by section, for the templates to typeset."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

from tsuishi import extras
from tsuishi.base.language import t
from tsuishi.report.parts import declarations, suite_cases
from tsuishi.report.parts.blocks import BaselineOutcome, Page, Rows, Section, TableValues
from tsuishi.report.parts.declarations import EVERY_AXIS, Column, Declared, Tables
from tsuishi.report.parts.explanation import Explanations, declared_tables
from tsuishi.report.parts.shortening import shortened_sections
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.report.parts.wording import unit_of
from tsuishi.report.sections import (
    against_baseline,
    beside_published,
    caveats,
    descriptions,
    fits,
    load,
    main_questions,
    memory,
    past_sessions,
    replication,
    side_by_side,
    source_figures,
    speed_up,
    suite_views,
    verdict_rows,
    what_ran,
)
from tsuishi.report.sections.highlights import Opening
from tsuishi.report.sections.pairs import matchups
from tsuishi.report.sections.past_sessions import Past, history_section
from tsuishi.report.sections.verdict_table import Verdicts
from tsuishi.verdicts.baseline import Baseline
from tsuishi.verdicts.evidence import Evidence

_ORIGIN: Declared = (EVERY_AXIS, declarations.SOURCE, declarations.HARDWARE, declarations.QUANTITY)
_READING = Column("reading", "integer", "1, 2, …: in the source's order, of a number that it read several times")
_PRINTED = Column("value", "number", "as printed, in the unit")
_NOTE = Column("note", "string", "what the source says of it; why it is impossible")
TABLES: Tables = {
    "published": (*_ORIGIN, _PRINTED, declarations.UNIT, _NOTE),
    "readings": (*_ORIGIN, _READING, _PRINTED, declarations.UNIT),
}


@cache
def every_table() -> Tables:
    """The tables of all modules, in the order of datapackage.json; those of explanations come last there."""
    every = (
        *(verdict_rows.TABLES, replication.TABLES, side_by_side.TABLES),
        # Sorted by the names of the tables.
        dict(sorted(table for tables in extras.given("sections", "TABLES") for table in tables.items())),
        *(against_baseline.TABLES, past_sessions.TABLES, beside_published.TABLES, suite_cases.TABLES, memory.TABLES),
        *(fits.TABLES, speed_up.TABLES, load.TABLES, suite_views.TABLES, main_questions.TABLES),
        *(what_ran.TABLES, descriptions.TABLES, declarations.TABLES, TABLES),
    )
    return {name: declared for tables in every for name, declared in tables.items()}


def make_page(
    evidence: Evidence, begin: Callable[[Section], None], baseline: Baseline | None = None, past: Past | None = None
) -> Page:
    """The page of a report. begin: gets each section before the next section is made.

    baseline: with these runs. past: the user's runs, for a history.
    """
    sections = []
    verdicts, every = Verdicts(evidence), cases_of_suites(evidence)
    explanations = Explanations(evidence, every_table(), verdicts.conclusions.answers)
    questions = main_questions.Questions(evidence, verdicts.conclusions.answers, explanations)
    compared = matchups(evidence, every, explanations) if len(evidence.environments) > 1 else []
    against = against_baseline.AgainstBaseline(baseline, every, explanations) if baseline else None
    opening = Opening(evidence, verdicts, questions, explanations, every, compared)
    # Without a finding, what a page has to show are the numbers of the only suite: they stand open at its top.
    shows_numbers = not opening.items and len(evidence.suites) == 1

    def of_suites() -> Iterator[Section]:
        for suite in evidence.suites:
            of_suite = [suite_cases for suite_cases in every if suite_cases.suite == suite]
            section = suite_views.suite_section(explanations.of(suite), of_suite, caveats.of_suite(evidence, suite))
            yield replace(section, folded=not shows_numbers)

    def in_order() -> Iterator[Section]:
        further = [
            view
            for views in extras.given("sections", "summary_views")
            for view in views(evidence, compared, verdicts.judgements)
        ]
        first = (opening.view(), *further, *caveats.of_runs(evidence), *questions.views())
        yield Section("summary", t("Summary"), first, folded=False)
        if shows_numbers:
            yield from of_suites()
        if against:
            yield against.section()
        for of_extra in extras.given("sections", "sections"):
            yield from of_extra(evidence, compared)
        yield verdicts.section()
        yield side_by_side.comparison_section(evidence, compared)
        yield source_figures.figures_section(evidence, every)
        if not shows_numbers:
            yield from of_suites()
        yield fits.published_section(evidence)
        if past:
            yield history_section(evidence, past, every, explanations)
        yield load.telemetry_section(evidence)
        yield what_ran.machine_section(evidence)
        yield replication.replication_section(evidence)

    for section in in_order():
        begin(section)
        sections.append(section)
    return Page(
        title=opening.title() or what_ran.named_machines(evidence),
        sections=shortened_sections(sections),
        tables={**_tables(evidence, sections), **_estimated(evidence)},
        verdicts=verdicts.of_claims,
        closing=(*opening.closing(), *([against.summary] if against else [])),
        more=tuple(questions.more()),
        baseline=BaselineOutcome(against.summary, "baseline", against.cases(), against.unchecked) if against else None,
    )


def declared_columns(evidence: Evidence) -> dict[str, declarations.Columns]:
    """The columns of every table of a report."""
    every = every_table()
    of_explanations = declared_tables(evidence.words, every)
    return {name: declarations.columns_of(evidence, some) for name, some in {**every, **of_explanations}.items()}


def _estimated(evidence: Evidence) -> dict[str, TableValues]:
    """The two tables that exist before any section: trials, and the estimates of each trial."""
    frames = {"trials": evidence.results.trials, "estimates": evidence.estimates}
    return {table: {str(name): frame[name] for name in frame} for table, frame in frames.items()}


def _tables(evidence: Evidence, sections: Iterable[Section]) -> dict[str, TableValues]:
    """The tables behind the views, and the numbers that the views start from."""
    declared = declared_columns(evidence)
    rows: Rows = {name: [] for name in declared} | _published(evidence)
    whole: dict[str, TableValues] = {}
    for view in (view for section in sections for view in section.views):
        whole |= view.tables
        for name, more in view.rows.items():
            rows[name] += more
    return {name: declarations.filled(declared[name], some) for name, some in rows.items()} | whole


def _published(evidence: Evidence) -> Rows:
    """The numbers of sources, also of suites that did not run; every reading of those read several times.

    Of a table in a file, those of suites and networks that ran, and of networks that claims name.
    """
    rows: Rows = {"published": [], "readings": []}
    for number in (number for source in evidence.sources for number in source.flat()):
        where = {"source": number.source, "hardware": number.hardware}
        origin = {**number.axes, **where, "quantity": number.quantity, "unit": unit_of(number.quantity)}
        note = f"{number.note}; impossible: {number.impossible}" if number.impossible else number.note
        rows["published"].append({**origin, "value": number.value, "note": note})
        if len(number.readings) > 1:
            readings = enumerate(number.readings, start=1)
            rows["readings"] += [{**origin, "reading": count, "value": value} for count, value in readings]
    return rows
