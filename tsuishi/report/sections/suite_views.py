"""The section of a suite: under each protocol the same views in reading order, then what explains them."""

from collections.abc import Callable, Iterable

from tsuishi.base.language import mark, t
from tsuishi.report.charts.bars import energies, limit_fractions, step_parts
from tsuishi.report.charts.curves import curves
from tsuishi.report.explanations.conv2d.diagnosis import diagnose
from tsuishi.report.explanations.conv2d.towers import by_towers
from tsuishi.report.parts.blocks import Block, Heading, Section, Text, View
from tsuishi.report.parts.comparison import Comparison
from tsuishi.report.sections.fits import fitted_lines
from tsuishi.report.sections.loss_distance import parities
from tsuishi.report.sections.memory import memory
from tsuishi.report.sections.quantity_tables import measured
from tsuishi.report.sections.side_by_side import machines
from tsuishi.report.sections.speed_up import scalings
from tsuishi.verdicts.evidence import Evidence

_PROTOCOLS = {
    "literal": mark("As the source did it, with its pitfalls."),
    "steady": mark("Warm, synchronised, repeated."),
}


def suite_section(evidence: Evidence, suite: str, comparisons: Iterable[Comparison]) -> Section:
    """The section of a suite that ran, from its comparisons under each protocol."""
    views = [view(comparison) for comparison in comparisons for view in VIEWS]
    return Section(f"suite-{suite}", suite, (*views, explanation(evidence, suite)))


def opening(comparison: Comparison) -> View:
    """Which protocol, what all cases have in common, and which machine is which."""
    heading = Heading(t("Protocol: {protocol}", protocol=comparison.protocol))
    notes = [t("All cases: {axes}.", axes=comparison.common)] if comparison.common else []
    notes += machines(comparison.evidence)
    return View((heading, Text(t(_PROTOCOLS[comparison.protocol])), *(Text(note, "note") for note in notes)))


def explanation(evidence: Evidence, suite: str) -> View:
    """What a suite's cases together say, by environment, for a suite that has something to explain."""
    found = diagnose(evidence, suite)
    if not found:
        return View()
    text = t("Drawn from the cases above, each environment from its own; nothing that was not measured is in it.")
    blocks: list[Block] = [Heading(t("What explains it")), Text(text)]
    for environment, paragraphs in found.items():
        blocks += [Heading(environment, 4), *(Text(one.text, topic=one.topic) for one in paragraphs)]
    rows = [
        {"suite": suite, "environment": environment, "topic": paragraph.topic, "text": paragraph.text}
        for environment, paragraphs in found.items()
        for paragraph in paragraphs
    ]
    return View(tuple(blocks), {"diagnosis": rows})


# Of a suite under one protocol, in reading order; one that has nothing to show is empty.
VIEWS: tuple[Callable[[Comparison], View], ...] = (
    opening,
    curves,
    by_towers,
    measured,
    step_parts,
    memory,
    fitted_lines,
    scalings,
    limit_fractions,
    energies,
    parities,
)
