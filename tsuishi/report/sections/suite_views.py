"""The section of a suite: for each protocol the same views in reading order, then the explanation."""

from collections.abc import Callable, Iterable, Iterator

from tsuishi.base.language import in_words, mark, t
from tsuishi.report.charts.bars import energies, limit_fractions, step_parts
from tsuishi.report.charts.curves import curves
from tsuishi.report.parts.blocks import Block, Bullets, Heading, Section, Text, View
from tsuishi.report.parts.comparison import Comparison
from tsuishi.report.parts.explanation import Explanation
from tsuishi.report.sections.fits import fitted_lines
from tsuishi.report.sections.memory import memory
from tsuishi.report.sections.quantity_tables import measured
from tsuishi.report.sections.side_by_side import machines
from tsuishi.report.sections.speed_up import scalings

_PROTOCOLS = {
    "literal": mark("As the source measured, with the pitfalls of its way."),
    "steady": mark("The device is warm and synchronised before each timing, and every measurement is repeated."),
}
# The views after the tables of a protocol, in reading order; each may be empty.
_AFTER_THE_TABLES: tuple[Callable[[Comparison], View], ...] = (
    step_parts,
    memory,
    fitted_lines,
    scalings,
    limit_fractions,
    energies,
)


def suite_section(
    explanation: Explanation, comparisons: Iterable[Comparison], caveats: tuple[str, ...] = ()
) -> Section:
    """The section of a suite that ran, from its explanation, its comparisons under each protocol, and its caveats."""
    every = list(comparisons)
    views = [View((Bullets(caveats, t("Before you read a number")),))] if caveats else []
    views += [view for comparison in every for view in _protocol(explanation, comparison)]
    protocols = in_words(comparison.protocol for comparison in every)
    about = t("cases: {count}; {protocols}", count=sum(len(each.case_ids) for each in every), protocols=protocols)
    if caveats:
        about = t("{about}; warnings: {count}", about=about, count=len(caveats))
    return Section(f"suite-{explanation.suite}", explanation.suite, (*views, _explained(explanation)), about)


def _protocol(explanation: Explanation, comparison: Comparison) -> Iterator[View]:
    yield opening(comparison)
    yield curves(comparison)
    yield from explanation.opening_views(comparison)
    yield measured(comparison, explanation)
    for view in _AFTER_THE_TABLES:
        yield view(comparison)
    yield from explanation.closing_views(comparison)


def opening(comparison: Comparison) -> View:
    """The protocol, the axes that all cases share, and the machines."""
    heading = Heading(t("Protocol: {protocol}", protocol=comparison.protocol))
    notes = [t("All cases: {axes}.", axes=comparison.common)] if comparison.common else []
    notes += machines(comparison.evidence)
    return View((heading, Text(t(_PROTOCOLS[comparison.protocol])), *(Text(note, "note") for note in notes)))


def _explained(explanation: Explanation) -> View:
    """The explanation of all cases of a suite, by environment; empty for a workload without explanation."""
    paragraphs = explanation.paragraphs()
    if not paragraphs:
        return View()
    text = t("Each environment's text follows from its own measurements above, and from nothing else.")
    blocks: list[Block] = [Heading(t("What explains it")), Text(text)]
    for environment, several in paragraphs.items():
        blocks += [Heading(environment, 4), *(Text(paragraph.text, topic=paragraph.topic) for paragraph in several)]
    rows = [
        {"suite": explanation.suite, "environment": environment, "topic": paragraph.topic, "text": paragraph.text}
        for environment, several in paragraphs.items()
        for paragraph in several
    ]
    return View(tuple(blocks), {"diagnosis": rows})
