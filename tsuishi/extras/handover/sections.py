"""Runs that replay other runs of the report: how fast each case is there and here, and which claims hold where."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.estimates.contrasts import days_of
from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast, Term
from tsuishi.estimates.ratios import as_ratio, mean_ratio
from tsuishi.report.parts.blocks import Block, Bullets, Heading, Text, View
from tsuishi.report.parts.declarations import ENVIRONMENT, QUANTITY, WHERE, Column, Tables, interval, ratio_columns
from tsuishi.report.parts.two_sides import times
from tsuishi.report.parts.wording import Cell, Table, label, ratio_cell, text_cell
from tsuishi.report.sections.claim_words import TONES
from tsuishi.report.sections.pairs import Matchup
from tsuishi.specs.claims import Verdict
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Judgement

TABLES: Tables = {
    "replayed": (
        *(WHERE, QUANTITY, ENVIRONMENT),
        Column("reference", "string", "the same environment in the original run"),
        Column("cases", "integer", "that both have"),
        *interval("ratio", "geometric mean over these cases of the speed in the replay over that in the original run"),
    )
}
# Means nearer to 1 than this are "about as fast": no interval says more.
_ABOUT_AS_FAST = 1.05


@dataclass(frozen=True)
class _Replayed:
    """A run and its replay, by their ids. `columns`: the replay's label of each environment, by the original's."""

    original: str
    replay: str
    columns: Mapping[str, str]


# A source, its claim, and the environments (of the original run) that it was tested in.
_Tested = tuple[str, str, str]


@dataclass
class _Claims:
    """The claims that were tested on either side, with their verdicts there and here."""

    there: dict[_Tested, Verdict] = field(default_factory=dict)
    here: dict[_Tested, Verdict] = field(default_factory=dict)

    @property
    def every(self) -> list[_Tested]:
        return [*dict.fromkeys((*self.there, *self.here))]

    def sentences(self) -> Iterator[str]:
        """Which claims hold on both sides, and on which side alone; then those that no side decides."""
        holds = _sides(self, "reproduced")
        against = _sides(self, "contradicted")
        kinds = (
            (mark("Claims that hold on both: {claims}."), holds[0] & holds[1]),
            (mark("Claims that hold only there: {claims}."), holds[0] - holds[1]),
            (mark("Claims that hold only here: {claims}."), holds[1] - holds[0]),
            (mark("Claims that are contradicted on both: {claims}."), against[0] & against[1]),
        )
        for sentence, found in kinds:
            if found:
                yield t(sentence, claims=in_words(_named(key) for key in self.every if key in found))
        if not any((*holds, *against)):
            yield t("No claim is decided on either side.")


def _sides(claims: _Claims, verdict: Verdict) -> tuple[set[_Tested], set[_Tested]]:
    """The claims with this verdict there, and here."""
    there, here = ({key for key, found in side.items() if found == verdict} for side in (claims.there, claims.here))
    return there, here


def summary_views(evidence: Evidence, compared: Sequence[Matchup], judgements: Sequence[Judgement]) -> Iterator[View]:
    """A view for each run that replays another run of the report."""
    for pair in _pairs(evidence):
        yield _view(evidence, pair, compared, judgements)


def _pairs(evidence: Evidence) -> Iterator[_Replayed]:
    columns: dict[str, dict[str, str]] = {}
    trials = evidence.results.trials[["run_id", "environment", "column"]].drop_duplicates()
    for run_id, environment, column in trials.itertuples(index=False):
        columns.setdefault(run_id, {})[environment] = column
    for run_id, run in evidence.results.runs.items():
        if run.replays and run.replays.run_id in evidence.results.runs:
            there, here = columns.get(run.replays.run_id, {}), columns.get(run_id, {})
            both = {there[name]: here[name] for name in there if name in here and there[name] != here[name]}
            yield _Replayed(run.replays.run_id, run_id, both)


def _view(evidence: Evidence, pair: _Replayed, compared: Sequence[Matchup], judgements: Sequence[Judgement]) -> View:
    about = t(
        "Run {replay} measured the cases of run {original} again, by the same protocols.",
        replay=pair.replay, original=pair.original,
    )  # fmt: skip
    blocks: list[Block] = [Heading(t("Replayed")), Text(about)]
    found: list[str] = []
    table: list[list[Cell]] = []
    rows: list[dict[str, Any]] = []
    for there, here in pair.columns.items():
        every: list[tuple[Term, Term]] = []
        for matchup in compared:
            if pairs := matchup.speeds(here, there):
                every += pairs
                speed = mean_ratio(pairs)
                cells = [
                    text_cell(text)
                    for text in (here, matchup.suite_cases.title, label(matchup.quantity), str(len(pairs)))
                ]
                table.append([*cells, ratio_cell(speed, ())])
                about_row = {**matchup.suite_cases.where, "quantity": matchup.quantity, "environment": here}
                rows.append({**about_row, "reference": there, "cases": len(pairs), **ratio_columns(speed)})
        if every:
            found.append(_sentence(here, there, every))
    blocks += [Bullets(tuple(found))] if found else [Text(t("No case has a number on both sides."))]
    claims = _claims(pair, judgements)
    blocks.append(Text(prose(claims.sentences())))
    if table:
        columns = [t("environment"), t("suite"), t("quantity"), t("cases"), t("times as fast here")]
        title = t("Times as fast as there, by geometric means")
        blocks.append(Table(columns, table, title=title, folded=True, filters=(0, 1)))
    if claims.every:
        blocks.append(_claims_table(claims))
    return View(tuple(blocks), {"replayed": rows})


def _sentence(here: str, there: str, pairs: Sequence[tuple[Term, Term]]) -> str:
    """How much faster all cases are on the average, with the interval, or why there is none."""
    speed = mean_ratio(pairs)
    words = {"here": here, "there": there}
    if abs(speed.value) < math.log(_ABOUT_AS_FAST):
        sentence = t("{here} is about as fast as {there}", **words)
    else:
        words["times"] = times(math.exp(abs(speed.value)))
        faster = mark("{here} is about {times} as fast as {there}")
        slower = mark("{here} takes about {times} as long as {there}")
        sentence = t(faster if speed.value > 0 else slower, **words)
    compared = t("numbers compared: {count}", count=len(pairs))
    return "; ".join(filter(None, (sentence, compared, _certainty(speed, pairs)))) + "."


def _certainty(speed: Contrast, pairs: Sequence[tuple[Term, Term]]) -> str:
    ratio = as_ratio(speed)
    if ratio.low is not None and ratio.high is not None:
        ends = (ratio.low, ratio.high) if speed.value > 0 else (1 / ratio.high, 1 / ratio.low)
        return t("95 % interval {low} to {high}", low=f"{ends[0]:.3g}", high=f"{ends[1]:.3g}")
    days = [min(len(days_of(side)) for side in sides) for sides in zip(*pairs, strict=True)]
    if min(days) < FEWEST_TRIALS:
        return t(
            "days: {there} there and {here} here; an interval needs {needed} on each side",
            there=days[0], here=days[1], needed=FEWEST_TRIALS,
        )  # fmt: skip
    return ""


def _claims(pair: _Replayed, judgements: Sequence[Judgement]) -> _Claims:
    claims = _Claims()
    back = {here: there for there, here in pair.columns.items()}
    for judgement in judgements:
        if judgement.verdict == "not tested" or judgement.subject is None:
            continue
        names = judgement.subject.environments
        if {*names} <= pair.columns.keys():
            claims.there[judgement.source, judgement.claim.id, " / ".join(names)] = judgement.verdict
        elif {*names} <= back.keys():
            named = " / ".join(back[name] for name in names)
            claims.here[judgement.source, judgement.claim.id, named] = judgement.verdict
    return claims


def _named(key: _Tested) -> str:
    source, claim, environments = key
    return t("{source} {claim} ({environments})", source=source, claim=claim, environments=environments)


def _claims_table(claims: _Claims) -> Table:
    rows = []
    for key in claims.every:
        verdicts = [_verdict_cell(side.get(key, "not tested")) for side in (claims.there, claims.here)]
        rows.append([*map(text_cell, key), *verdicts])
    columns = [t("source"), t("claim"), t("environment"), t("there"), t("here")]
    return Table(columns, rows, title=t("Claims there and here"), folded=True, filters=(0, 2))


def _verdict_cell(verdict: Verdict) -> Cell:
    return Cell(t(verdict), kind="verdict", tone=TONES[verdict])
