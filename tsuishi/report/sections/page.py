"""The page: the whole content of a report, section by section, for the templates to typeset."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tsuishi import extras
from tsuishi.base.language import t
from tsuishi.estimates import roofline
from tsuishi.report.parts import columns, declarations
from tsuishi.report.parts.blocks import BaselineOutcome, Page, Rows, Section, TableValues
from tsuishi.report.parts.comparison import every_comparison
from tsuishi.report.parts.explanation import Explanations, declared_tables
from tsuishi.report.parts.shortening import shortened_sections
from tsuishi.report.parts.wording import unit_of
from tsuishi.report.sections import caveats, fits, load, replication, side_by_side, source_figures, what_ran
from tsuishi.report.sections.against_baseline import AgainstBaseline
from tsuishi.report.sections.highlights import Opening
from tsuishi.report.sections.main_questions import Questions
from tsuishi.report.sections.pairs import matchups
from tsuishi.report.sections.past_sessions import Past, history_section
from tsuishi.report.sections.suite_views import suite_section
from tsuishi.report.sections.verdict_table import Verdicts
from tsuishi.specs.source import Number
from tsuishi.verdicts.baseline import Baseline, Earlier
from tsuishi.verdicts.evidence import Evidence


def make_page(
    evidence: Evidence, begin: Callable[[Section], None], earlier: Earlier | None = None, past: Past | None = None
) -> Page:
    """The page of a report. begin: gets each section before the next section is made.

    earlier: the runs' baseline. past: the user's runs, for a history.
    """
    baseline = Baseline(evidence, earlier) if earlier else None
    sections = []
    explanations, every, verdicts = Explanations(evidence), every_comparison(evidence), Verdicts(evidence)
    questions = Questions(evidence, verdicts.conclusions.answers, explanations)
    compared = matchups(evidence, every, explanations) if len(evidence.environments) > 1 else []
    against = AgainstBaseline(baseline, every, explanations) if baseline else None
    opening = Opening(evidence, verdicts, questions, explanations, every, compared)
    # Without a finding, what a page has to show are the numbers of the only suite: they stand open at its top.
    shows_numbers = not opening.items and len(evidence.suites) == 1

    def of_suites() -> Iterator[Section]:
        for suite in evidence.suites:
            of_suite = [comparison for comparison in every if comparison.suite == suite]
            section = suite_section(explanations.of(suite), of_suite, caveats.of_suite(evidence, suite))
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
        title=what_ran.title(evidence),
        sections=shortened_sections(sections),
        tables={**_tables(evidence, sections), **_estimated(evidence)},
        verdicts=verdicts.of_claims,
        closing=tuple(opening.closing()),
        more=tuple(questions.more()),
        baseline=BaselineOutcome(against.summary, "baseline", against.cases(), against.unchecked) if against else None,
    )


def declared_columns(evidence: Evidence) -> dict[str, declarations.Columns]:
    """The columns of every table of a report."""
    return columns.tables(evidence, declared_tables(evidence.words))


def _estimated(evidence: Evidence) -> dict[str, TableValues]:
    """The two tables that exist before any section: trials, and the estimates of each trial."""
    frames = {"trials": evidence.results.trials, "estimates": evidence.estimates}
    return {table: {str(name): frame[name] for name in frame} for table, frame in frames.items()}


def _tables(evidence: Evidence, sections: Iterable[Section]) -> dict[str, TableValues]:
    """The tables behind the views, and the numbers that the views start from; columns.py describes each table."""
    declared = declared_columns(evidence)
    rows: Rows = {name: [] for name in declared}
    whole: dict[str, TableValues] = {}
    for view in (view for section in sections for view in section.views):
        whole |= view.tables
        for name, more in view.rows.items():
            rows[name] += more
    rows["limits"] += roofline.rows(evidence.limits)
    rows["steadiness"] += _steadiness(evidence)
    rows["published"] += _published(evidence)
    rows["readings"] += _readings(evidence)
    return {name: declarations.filled(declared[name], some) for name, some in rows.items()} | whole


def _steadiness(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """The rows of steadiness.csv."""
    for change in evidence.session_changes:
        row = change._asdict()
        percent = {f"{name}_percent": 100 * row.pop(name) for name in ("change", "low", "high")}
        yield {"environment": row.pop("column"), **row, **percent}


def _published(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """The rows of published.csv: every number of every source, also of suites that did not run."""
    for number in (number for source in evidence.sources for number in source.flat()):
        yield {**_origin(number), "value": number.value, "note": number.note or number.impossible}


def _readings(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """The rows of readings.csv: every reading of the numbers that a source read several times."""
    for number in (number for source in evidence.sources for number in source.flat() if len(number.readings) > 1):
        for count, reading in enumerate(number.readings, start=1):
            yield {**_origin(number), "reading": count, "value": reading}


def _origin(number: Number) -> dict[str, Any]:
    """The cells that say what a published number describes."""
    origin = {"source": number.source, "hardware": number.hardware, "quantity": number.quantity}
    return {**number.axes, **origin, "unit": unit_of(number.quantity)}
