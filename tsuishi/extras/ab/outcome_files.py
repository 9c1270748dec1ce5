"""The outcome of a comparison as lines, Markdown, JUnit XML, JSON, CSV, and Bencher's metric format."""

import csv
import html
import io
import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tsuishi.base import files, printable
from tsuishi.base.redaction import redacted
from tsuishi.base.typed import as_typed
from tsuishi.extras.ab.comparison import Comparison
from tsuishi.extras.ab.side_outcome import ComparisonOutcome, Row
from tsuishi.report.output.junit import junit_xml
from tsuishi.report.parts.blocks import BaselineCase
from tsuishi.report.parts.shown_units import readable
from tsuishi.specs.quantities import is_unit_of_rate

SUMMARY = "summary.md"
# Rows of the table in the summary; the other files have all.
_ROWS = 18
_LINES = 6  # before the table
_ORDER = ("slower", "undecided", "not slower")
_CALLS_KEPT = 1000


def lines(outcome: ComparisonOutcome, compared: Comparison) -> Iterator[str]:
    """The outcome for a terminal: what is wrong first."""
    yield from filter(None, [outcome.noise])
    yield from (*outcome.notes, *outcome.failures, *outcome.unclear)
    for row in _rows(outcome):
        base, head = _shown(row)
        said = row.sentence(outcome.limit, outcome.pair_s)
        yield f"{row.name}: {said} ({head} beside {base}, {row.trials} trials of each)"
    yield f"{compared.title}: {outcome.summary}"


def write_outcome(folder: Path, outcome: ComparisonOutcome, compared: Comparison, began: str) -> None:
    """Write summary.md, junit.xml, comparison.json and comparison.csv into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        SUMMARY: _markdown(outcome, compared),
        "junit.xml": _junit(outcome, compared),
        "comparison.json": json.dumps(_json(outcome, compared, began), indent=1, ensure_ascii=False) + "\n",
        "comparison.csv": _csv(outcome, compared, began),
    }
    for name, text in texts.items():
        with files.replacing(folder / name) as file:
            file.write(text)


def write_bencher(path: Path, outcome: ComparisonOutcome) -> None:
    """Write the second side's means in Bencher's metric format: latency in nanoseconds, throughput in a second."""
    metrics: dict[str, Any] = {}
    for row in outcome.rows:
        is_rate = is_unit_of_rate(row.unit)
        value = row.means[1] * (1.0 if is_rate else 1e9)
        metrics[row.name] = {"throughput" if is_rate else "latency": {"value": value}}
    with files.replacing(path) as file:
        json.dump(metrics, file, indent=1)


def read_calls(path: Path) -> list[dict[str, Any]]:
    """The earlier calls, as `add_call` kept them; none where there is no such file, or another."""
    try:
        calls = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [call for call in calls if isinstance(call, dict) and {"versions", "exit_code"} <= call.keys()]


def add_call(path: Path, call: Mapping[str, Any]) -> None:
    """Keep a call, beside the last ones."""
    calls = [*read_calls(path), call][-_CALLS_KEPT:]
    with files.replacing(path) as file:
        json.dump(calls, file)


def _rows(outcome: ComparisonOutcome) -> list[Row]:
    return sorted(outcome.rows, key=lambda row: (_ORDER.index(row.standing), -row.times))


def _shown(row: Row) -> tuple[str, str]:
    """Both means with their unit."""
    unit = readable(row.unit, row.means)
    first, second = (f"{mean * unit.factor:.4g}" for mean in row.means)
    return f"{first} {unit.name}", f"{second} {unit.name}"


def _markdown(outcome: ComparisonOutcome, compared: Comparison) -> str:
    """The summary: at most 30 lines."""
    said = [*filter(None, [outcome.noise]), *outcome.notes, *outcome.failures, *outcome.unclear]
    text = [f"### {_cell(compared.title)}: {outcome.summary}", ""]
    text += [f"- {_cell(each)}" for each in said[:_LINES]]
    text += [f"- and {len(said) - _LINES} others"] if len(said) > _LINES else []
    rows = _rows(outcome)
    text += [""] if said and rows else []
    if rows:
        text += ["| number | BASE | HEAD | times as long | trials | |", "|---|---|---|---|---|---|"]
    most = _ROWS - len(said[:_LINES])
    for row in rows[:most]:
        cells = (row.name, *_shown(row), f"{row.times:.3f}", row.trials, row.sentence(outcome.limit, outcome.pair_s))
        text.append(f"| {' | '.join(_cell(str(cell)) for cell in cells)} |")
    if hidden := rows[most:]:
        text += ["", f"{len(hidden)} more are in comparison.csv."]
    typed = printable.line(redacted(as_typed(f"invoke {shlex.join(_typed())}")))
    fence = "``" if "`" in typed else "`"
    text += ["", f"{fence}{typed}{fence}"]
    return "\n".join(text) + "\n"


def _typed() -> list[str]:
    """The words of the call, without the program and the place of its tasks."""
    return sys.argv[sys.argv.index("ab") :] if "ab" in sys.argv else sys.argv[1:]


def _cell(text: str) -> str:
    return html.escape(printable.line(text), quote=False).replace("|", "\\|")


def _junit(outcome: ComparisonOutcome, compared: Comparison) -> str:
    cases = [
        BaselineCase(
            compared.title,
            row.name,
            "open" if row.standing == "undecided" else row.standing,
            row.sentence(outcome.limit, outcome.pair_s),
        )
        for row in _rows(outcome)
    ]
    cases += [BaselineCase(compared.title, failure, "lost", failure) for failure in outcome.failures]
    cases += [BaselineCase(compared.title, why, "open", why) for why in outcome.unclear]
    return junit_xml(cases, outcome.summary)


def _json(outcome: ComparisonOutcome, compared: Comparison, began: str) -> dict[str, Any]:
    """Ratios are of times: HEAD's over BASE's. An interval that is not known has no ends."""
    return {
        "began_at": began,
        "base": {"given": compared.sides[0].given, "version": compared.sides[0].version},
        "head": {"given": compared.sides[1].given, "version": compared.sides[1].version},
        "limit": outcome.limit,
        "failures": [*outcome.failures],
        "not_judged": [*outcome.unclear],
        "numbers": [
            {
                "name": row.name,
                "unit": row.unit,
                "standing": row.standing,
                "base": row.means[0],
                "head": row.means[1],
                "times_as_long": row.times,
                "interval": [*row.interval] if row.interval[1] < float("inf") else None,
                "trials": row.trials,
            }
            for row in _rows(outcome)
        ],
    }


def _csv(outcome: ComparisonOutcome, compared: Comparison, began: str) -> str:
    """A row for each number. Tools that look for change points read many such files, one behind the other."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(
        [
            "began_at",
            "base",
            "head",
            "number",
            "unit",
            "base_mean",
            "head_mean",
            "times_as_long",
            "low",
            "high",
            "trials",
            "standing",
        ]
    )
    versions = [side.version or side.given for side in compared.sides]
    for row in _rows(outcome):
        ends = row.interval if row.interval[1] < float("inf") else ("", "")
        table.writerow([began, *versions, row.name, row.unit, *row.means, row.times, *ends, row.trials, row.standing])
    return text.getvalue()
