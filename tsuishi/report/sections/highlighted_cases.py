"""Highlights that no question asked for, so that they are seen, not tested.

Environments that differ in the cases of a suite, a case that runs out of memory in some environments only, a case that
comes near the limit of its device.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from tsuishi.base.language import in_words, t
from tsuishi.estimates.intervals import CONFIDENCE, Contrast
from tsuishi.estimates.ratios import as_ratio
from tsuishi.report.charts import figures
from tsuishi.report.charts.small import ratios_chart
from tsuishi.report.parts.blocks import Highlight
from tsuishi.report.parts.ranking import Candidate, Rank, marked_as_simulated, seen
from tsuishi.report.parts.suite_cases import SuiteCases, differing_axes
from tsuishi.report.parts.two_sides import two_sides
from tsuishi.report.parts.wording import case_text, label
from tsuishi.report.sections.main_questions import Questions
from tsuishi.report.sections.pairs import Matchup
from tsuishi.specs.case import SUITE
from tsuishi.specs.questions import ALIKE
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.evidence import Evidence

# Without an interval, only so large a ratio is worth a reader's time.
_NOTABLE = 2.0
# The share of a device's limit that is near it.
_NEAR = 0.8
_MOST_ROWS = 5
_OUT_OF_MEMORY = "out_of_memory"


def from_cases(
    evidence: Evidence, every: Iterable[SuiteCases], compared: Sequence[Matchup], questions: Questions
) -> Iterator[Candidate]:
    """The candidates of all suites. every: the cases of all suites; compared: their matchups."""
    yield from _environments(compared, questions)
    yield from _memory(every)
    yield from _limits(evidence)


def _environments(compared: Sequence[Matchup], questions: Questions) -> Iterator[Candidate]:
    """Of each suite, the two environments that differ most, if no question compares them."""
    asked = {(answer.asked.suite, *sorted(answer.columns)) for answer in questions.answers if answer.asked.compares}
    largest: dict[str, tuple[float, Matchup, str, Contrast, int]] = {}
    for matchup in compared:
        suite = matchup.suite_cases.suite
        for environment in matchup.others:
            mean = matchup.mean(environment)
            if mean is None or (suite, *sorted((environment, matchup.reference))) in asked or not _is_seen(mean[0]):
                continue
            if mean[0].error is None and _is_beside_others(matchup, environment):
                continue
            size = abs(mean[0].value)
            if suite not in largest or size > largest[suite][0]:
                largest[suite] = (size, matchup, environment, *mean)
    for size, matchup, environment, logarithm, cases in largest.values():
        yield Candidate(Rank.SEEN, size, _difference(matchup, environment, logarithm, cases))


def _is_beside_others(matchup: Matchup, environment: str) -> bool:
    """Whether other programs took many of the cores beside a trial of either side: single trials then say nothing."""
    others = matchup.suite_cases.evidence.of_others
    return any((case, name) in others for case in matchup.case_ids for name in (environment, matchup.reference))


def _is_seen(logarithm: Contrast) -> bool:
    """Whether a ratio is worth a word: clearly apart from 1 by its own interval, or large where there is none."""
    interval = logarithm.interval(CONFIDENCE)
    if interval is None:
        return abs(logarithm.value) >= math.log(_NOTABLE)
    return 0.0 not in interval and abs(logarithm.value) >= math.log(ALIKE)


def _difference(matchup: Matchup, environment: str, logarithm: Contrast, cases: int) -> Highlight:
    title = two_sides((environment, matchup.reference), logarithm, matchup.quantity).seen()
    suite, protocol = matchup.suite_cases.suite, matchup.suite_cases.protocol
    topic = t("{topic}: {words}", topic=matchup.suite_cases.title, words=label(matchup.quantity))
    text = t("The mean over all cases that both have: {count}.", count=cases)
    ratios = {case_id: ratio for case_id in matchup.case_ids if (ratio := matchup.ratio(case_id, environment))}
    shown = [*ratios][:_MOST_ROWS]
    names = _short_names(matchup.suite_cases, shown)
    rows = [{"name": names[each], **as_ratio(ratios[each])._asdict(), "published": False} for each in shown]
    axis = t("{of} over {to}, log scale", of=environment, to=matchup.reference)
    caption = t("{quantity}, case by case; bars: 95 % intervals per comparison.", quantity=label(matchup.quantity))
    chart = figures.block(ratios_chart(rows, axis), topic, f"highlight-{suite}-{protocol}", caption)
    columns = environment, matchup.reference
    simulated = any(matchup.suite_cases.simulated(case_id, name) for case_id in matchup.case_ids for name in columns)
    return Highlight(topic, title, text, "seen", marked_as_simulated(seen(), simulated), "side-by-side", (chart,))


def _short_names(suite_cases: SuiteCases, case_ids: Sequence[str]) -> dict[str, str]:
    """Names of a few cases by the axes in which these differ, as a small chart cuts longer names."""
    differ = {*differing_axes(suite_cases.axes[case_id] for case_id in case_ids)}
    names = {case_id: case_text(suite_cases.axes[case_id], differ, always=True) for case_id in case_ids}
    are_told_apart = all(names.values()) and len({*names.values()}) == len(names)
    return names if are_told_apart else {case_id: suite_cases.name(case_id) for case_id in case_ids}


def _memory(every: Iterable[SuiteCases]) -> Iterator[Candidate]:
    """Of each suite, the first case that fits in memory in some environments only, and the number of such cases."""
    apart: dict[str, list[tuple[str, list[str], list[str]]]] = {}
    for suite_cases in every:
        for case_id in suite_cases.case_ids:
            fits, fails = (
                [name for name in suite_cases.environments if suite_cases.status(case_id, name) == status]
                for status in (OK, _OUT_OF_MEMORY)
            )
            if fits and fails:
                apart.setdefault(suite_cases.suite, []).append((case_text(suite_cases.axes[case_id]), fits, fails))
    for suite, cases in apart.items():
        case, fits, fails = cases[0]
        title = t("{fails} ran out of memory where {fits} did not", fails=in_words(fails), fits=in_words(fits))
        text = t("In {count} cases; the first: {case}.", count=len(cases), case=case)
        yield Candidate(Rank.SEEN, math.log(2), Highlight(suite, title, text, "seen", seen(), f"suite-{suite}"))


def _limits(evidence: Evidence) -> Iterator[Candidate]:
    """The case that comes nearest to the limit of its device, if any comes near."""
    # Where a trial is above its limit, the limit was measured too low: that is no finding on the case.
    near = [row for row in evidence.fractions if row["value"] is not None and _NEAR <= row["value"] <= 1]
    if not near:
        return
    row = max(near, key=lambda each: each["value"])
    suite = str(row[SUITE])
    case = case_text(evidence.axes[row["case_id"]])
    title = t("{case} reaches {percent} % of its device's limit", case=case, percent=round(100 * row["value"]))
    text = t("Its limit is that of arithmetic.") if row["bound"] == "arithmetic" else t("Its limit is that of memory.")
    where = t("{suite}, {environment}", suite=suite, environment=row["column"])
    yield Candidate(Rank.SEEN, 0.3, Highlight(where, title, text, "seen", seen(), f"suite-{suite}"))
