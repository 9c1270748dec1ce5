"""Runs against their baseline: which cases are slower, which are not, what has no match, and what else differs."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.estimates.intervals import FEWEST_TRIALS
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.report.parts.blocks import BaselineCase, Block, Bullets, Heading, Section, Text, View
from tsuishi.report.parts.declarations import CASE_ID, ENVIRONMENT, EVERY_AXIS, FAMILY, QUANTITY, UNIT, Column, Tables
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import (
    NOTHING,
    Cell,
    Table,
    amount,
    case_text,
    is_pace,
    is_rate,
    label,
    no_number_text,
    protocol_words,
    ratio_text,
    status_text,
    text_cell,
    unit_of,
)
from tsuishi.report.sections.other_conditions import differing_conditions
from tsuishi.report.sections.pairs import cases_by_quantity, known_quantities
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.baseline import Baseline, CaseQuantity, Pace, Standing, statuses
from tsuishi.verdicts.family import BASELINE
from tsuishi.verdicts.hypotheses import Missing

TABLES: Tables = {
    "baseline": (
        *(CASE_ID, EVERY_AXIS, ENVIRONMENT, QUANTITY, UNIT),
        Column("verdict", "string", "slower, not slower, open, lost (ok in the baseline alone), or not matched"),
        Column("reason", "string", "why it is lost or not matched"),
        Column("then", "number", "in the baseline: geometric mean over trials, by the days of the last look"),
        Column("now", "number", "in these runs, likewise"),
        Column("days_then", "integer", "of the baseline"),
        Column("days_now", "integer", "of these runs"),
        Column("times_as_long", "number", "time now over time then, or rate then over rate now"),
        *FAMILY,
        Column("threshold", "number", "above which the whole interval lies where a case is slower"),
    )
}
_WORDS: dict[Standing, str] = {"slower": mark("slower"), "not slower": mark("not slower"), "open": mark("open")}
_TONES: dict[Standing, str] = {"slower": "bad", "not slower": "good", "open": "open"}


class AgainstBaseline:
    """The comparison of a report's runs with their baseline, in words."""

    def __init__(self, baseline: Baseline, every: Iterable[SuiteCases], explanations: Explanations) -> None:
        self._baseline = baseline
        self._every_suite = {(suite_cases.suite, suite_cases.protocol): suite_cases for suite_cases in every}
        known = known_quantities(baseline.evidence.terms, baseline.earlier.terms)
        places = [
            CaseQuantity(case_id, column, quantity)
            for suite_cases in self._every_suite.values()
            for quantity, case_ids in cases_by_quantity(suite_cases, known, explanations).items()
            for case_id in case_ids
            for column in suite_cases.environments
        ]
        self._paces = baseline.paces(places, is_rate)
        # The reasons, by case id and environment.
        self._lost = {place: _why(*last) for place, last in baseline.lost().items()}
        self._unmatched = [each for each in self._without_match() if each[:2] not in self._lost]

    def section(self) -> Section:
        """What became slower, then every compared case, what was not compared, and what else differs."""
        slower = [self._sentence(pace) for pace in self._paces if pace.standing == "slower"]
        lost = [self._lost_text(*place) for place in self._lost]
        conditions = differing_conditions(self._baseline)
        blocks: list[Block] = [Heading(t("Against the baseline")), Text(self.summary), Text(self._rule())]
        blocks += [Bullets(tuple(slower), title=t("Slower"), warning=True)] if slower else []
        blocks += [Bullets(tuple(lost), title=t("Lost"), warning=True)] if lost else []
        blocks += [conditions] if conditions.rows else [Text(t("Machines, environments and code are recorded alike."))]
        blocks += [self._table()] if self._paces else []
        if self._unmatched:
            rows = [
                [text_cell(self._case(case_id)), text_cell(column), text_cell(why)]
                for case_id, column, why in self._unmatched
            ]
            columns = [t("case"), t("environment"), t("why")]
            blocks.append(Table(columns, rows, title=t("Without a match"), folded=True, filters=(1, 2)))
        others = [("lost", *place, why) for place, why in self._lost.items()]
        others += [("not matched", *each) for each in self._unmatched]
        rows_of_others = [self._where(*place) | {"verdict": word, "reason": why} for word, *place, why in others]
        view = View(tuple(blocks), {"baseline": [*map(self._row, self._paces), *rows_of_others]})
        return Section("baseline", t("Against the baseline"), (view,), folded=False)

    def cases(self) -> tuple[BaselineCase, ...]:
        """Every case for CI: lost, else slower if any of its quantities is slower, else open if any is open."""
        found: dict[tuple[str, str], list[Pace]] = {}
        for pace in self._paces:
            found.setdefault((pace.place.case_id, pace.place.column), []).append(pace)
        compared = [
            BaselineCase(
                column, self._case(case_id), _worst(paces), prose(f"{self._sentence(pace)}." for pace in paces)
            )
            for (case_id, column), paces in found.items()
            if (case_id, column) not in self._lost
        ]
        lost = [
            BaselineCase(column, self._case(case_id), "lost", self._lost_text(case_id, column))
            for case_id, column in self._lost
        ]
        without = [
            BaselineCase(column, self._case(case_id), "not matched", why) for case_id, column, why in self._unmatched
        ]
        return (*compared, *lost, *without)

    @property
    def unchecked(self) -> str:
        """Why no case could be slower than the baseline, for the command line; else empty."""
        if not self._paces:
            return "no case was compared with the baseline"
        if all(min(pace.days) < FEWEST_TRIALS for pace in self._paces):
            return f"every case is open: it needs {FEWEST_TRIALS} days on each side"
        return ""

    @cached_property
    def summary(self) -> str:
        """The outcome in a sentence."""
        counts = Counter(pace.standing for pace in self._paces if pace.place[:2] not in self._lost)
        return t(
            "Against {baseline}, by a threshold of {threshold}: {slower} slower, {fine} not slower, {open} open, "
            "{lost} lost, {unmatched} without a match.",
            baseline=in_words(self._baseline.earlier.results.runs),
            threshold=f"{self._baseline.threshold:g}",
            slower=counts["slower"], fine=counts["not slower"], open=counts["open"],
            lost=len(self._lost), unmatched=len(self._unmatched),
        )  # fmt: skip

    def _rule(self) -> str:
        rule = t(
            "A case is slower where the whole interval of its time now over its time then lies above {threshold}, and "
            "not slower where it lies below. All compared cases share one error limit: of 100 such comparisons in "
            "which no case is slower than that, at most {percent} name a case.",
            threshold=f"{self._baseline.threshold:g}", percent=f"{100 * BASELINE:g}",
        )  # fmt: skip
        apart = t(
            "Both sides were measured apart, so each day counts as a trial: a case needs {count} days on each side for "
            "an interval.",
            count=FEWEST_TRIALS,
        )
        lost = t(
            "A case is lost where it was ok on the last day of the baseline that tried it, and is not on the last day "
            "here."
        )
        return prose([rule, apart, lost])

    def _table(self) -> Table:
        rows = []
        for pace in self._paces:
            case_id, column, quantity = pace.place
            then, now = (amount(math.exp(side.mean), unit_of(quantity)) for side in (pace.then, pace.now))
            ratio = _ratio(pace)
            notes = (t("days: {then} then, {now} now", then=pace.days[0], now=pace.days[1]),)
            word = Cell(t(_WORDS[pace.standing]), kind="verdict", tone=_TONES[pace.standing])
            cells = [text_cell(text) for text in (self._case(case_id), column, label(quantity), then, now)]
            rows.append([*cells, Cell(ratio_text(ratio), ratio.value, notes, "number"), word])
        columns = [t("case"), t("environment"), t("quantity"), t("then"), t("now"), t("times as long"), t("verdict")]
        notes_below = [t("In brackets: the interval that decides; it is wider than 95 %, for that limit.")]
        return Table(columns, rows, title=t("Every compared case"), folded=True, notes=notes_below, filters=(1, 6))

    def _sentence(self, pace: Pace) -> str:
        case_id, column, quantity = pace.place
        then, now = (amount(math.exp(side.mean), unit_of(quantity)) for side in (pace.then, pace.now))
        return t(
            "{case}, {environment}, {quantity}: {now} now, {then} then; {ratio} times as long ({days}): {verdict}",
            case=self._case(case_id), environment=column, quantity=label(quantity), now=now, then=then,
            ratio=ratio_text(_ratio(pace)), verdict=t(_WORDS[pace.standing]),
            days=t("days: {then} then, {now} now", then=pace.days[0], now=pace.days[1]),
        )  # fmt: skip

    def _case(self, case_id: str) -> str:
        """A case in words: by the axes in which it differs from the others of its suite."""
        axes = self._axes(case_id)
        suite_cases = self._every_suite.get((axes.get(SUITE, ""), axes.get(PROTOCOL, "")))
        name = suite_cases.name(case_id) if suite_cases and case_id in suite_cases.axes else case_text(dict(axes))
        protocol = protocol_words(axes.get(PROTOCOL))
        return t("{suite}, {protocol}: {case}", suite=axes.get(SUITE), protocol=protocol, case=name)

    def _axes(self, case_id: str) -> Mapping[str, Any]:
        return self._baseline.evidence.axes.get(case_id) or self._baseline.earlier.axes.get(case_id, {})

    def _lost_text(self, case_id: str, column: str) -> str:
        why = self._lost[case_id, column]
        return t("{case}, {environment}: {why}", case=self._case(case_id), environment=column, why=why)

    def _without_match(self) -> Iterator[tuple[str, str, str]]:
        """The case id, environment and reason of each case, of either side, that is not compared."""
        baseline = self._baseline
        ours, theirs = statuses(baseline.evidence), statuses(baseline.earlier)
        compared = {(pace.place.case_id, pace.place.column) for pace in self._paces}
        for case_id, column in (place for place in ours if place not in compared):
            its = baseline.columns.get(column)
            if its is None:
                yield case_id, column, _other_environment(baseline.unmatched.get(column, ()))
            else:
                why = self._without_ratio(case_id, column) or self._without_ratio(case_id, its, then=True)
                yield case_id, column, why or _why(theirs.get((case_id, its), ()), ours[case_id, column])
        named = {its: column for column, its in baseline.columns.items()} | {its: its for its in baseline.only_then}
        for case_id, its in theirs:
            if its in named and (case_id, named[its]) not in ours:
                yield case_id, named[its], t("only in the baseline")

    def _without_ratio(self, case_id: str, column: str, then: bool = False) -> str:
        """The first time or rate of 0 or less of a case, if it has any. then: in the baseline."""
        evidence = self._baseline.earlier if then else self._baseline.evidence
        every = ((key, least) for key, least in evidence.without_ratio.items() if key[:2] == (case_id, column))
        found = next(((quantity, least) for (*_, quantity), least in every if is_pace(quantity)), None)
        return no_number_text(Missing("", {}, (OK,), found)) if found else ""

    def _row(self, pace: Pace) -> dict[str, Any]:
        case_id, column, quantity = pace.place
        ratio = _ratio(pace)
        return {
            **self._where(case_id, column), "quantity": quantity, "unit": unit_of(quantity), "verdict": pace.standing,
            "then": math.exp(pace.then.mean), "now": math.exp(pace.now.mean),
            "days_then": pace.days[0], "days_now": pace.days[1],
            "times_as_long": ratio.value, "family_low": ratio.low, "family_high": ratio.high,
            "level": pace.decision.level or None, "threshold": self._baseline.threshold,
        }  # fmt: skip

    def _where(self, case_id: str, column: str) -> dict[str, Any]:
        known, axes = self._baseline.evidence.words.axes, self._axes(case_id)
        return {"case_id": case_id, **{axis: axes.get(axis) for axis in known}, "environment": column}


def _ratio(pace: Pace) -> Ratio:
    """The ratio with the interval that decides; without an interval before the first look."""
    found = as_ratio(pace.ratio, pace.decision.level)
    return found if pace.decision.level else Ratio(found.value, None, None)


def _worst(paces: Iterable[Pace]) -> Standing:
    standings = {pace.standing for pace in paces}
    return next(standing for standing in ("slower", "open", "not slower") if standing in standings)


def _other_environment(realised_ids: Sequence[str]) -> str:
    if realised_ids:
        return t("the baseline has another environment of this name: {ids}", ids=in_words(realised_ids))
    return t("the baseline has no such environment")


def _why(then: Iterable[str], now: Iterable[str]) -> str:
    """Why a case has no number on both sides, by its statuses."""
    there, here = list(then), list(now)
    if not there:
        return t("not in the baseline")
    if OK in there and OK in here:
        return t("no time or rate in common")
    return t("{then} then, {now} now", then=status_text(", ".join(there)) or NOTHING, now=status_text(", ".join(here)))
