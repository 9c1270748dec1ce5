"""What a report on run folders says: its tables, read again from the text of their files.

`invoke report` would make the same tables of the same folders; charts and pages are left out.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.made_runs import SUITE, Cells, folder, write
from tests.words import WORDS
from tsuishi.report.output import csv_files
from tsuishi.report.parts.wording import worded
from tsuishi.report.sections.page import make_page
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.source import Source, read_sources
from tsuishi.verdicts.evidence import Evidence

# Two sides of a claim.
OVER = {"of": {"framework": "torch"}, "to": {"framework": "tensorflow"}}
_SAID = {"reproduced", "direction only", "contradicted"}

# The rows of a report's tables, by the name of the table.
Tables = Mapping[str, list[dict[str, str]]]


def claim(kind: str, **fields: Any) -> dict[str, Any]:
    """The only check of a claim: of the steps of torch over those of tensorflow, where nothing else is said."""
    case = {"suite": SUITE, **fields.pop("case", {})}
    usual = {} if kind == "presence" or "of" in fields else OVER
    quantity = {} if kind == "presence" else {"quantity": "step_s"}
    return {"kind": kind, "case": case, "why": "made up", **quantity, **usual, **fields}


ORDER = claim("order", over="batch_size", hold={"below": 1.0})
EVERY = claim("order", hold={"below": 1.0})
SIZE = claim("ratio", over="batch_size", hold={"above": 0.85, "below": 0.95}, direction={"below": 1.0})


def reported(cells: Cells, claims: Sequence[Mapping[str, Any]] = (), sessions: Sequence[str] = ()) -> Tables:
    """The tables of a report on a run of these cells."""
    with folder() as path:
        return tables([write(path / "run", cells, sessions)], claims)


def tables(runs: Sequence[RunDirectory], claims: Sequence[Mapping[str, Any]] = ()) -> Tables:
    """The tables that a report on these runs and claims writes, read again."""
    evidence = Evidence(runs, _sources(json.dumps(claims)), WORDS)
    with worded(evidence.words):
        page = make_page(evidence, lambda section: None)
    return {name: [*csv.DictReader(io.StringIO(csv_files.text(values)))] for name, values in page.tables.items()}


@cache
def _sources(claims: str) -> tuple[Source, ...]:
    """A source that publishes these claims (JSON), read from its file."""
    published = [
        {"id": f"c{number}", "text": "Made up.", "checks": [check]} for number, check in enumerate(json.loads(claims))
    ]
    head = {"title": "Made up", "date": "2026", "language": "en", "hardware": [{"name": "none", "title": "none"}]}
    with folder() as path:
        lines = [f"{key} = {_toml(value)}\n" for key, value in {**head, "claims": published}.items()]
        (path / "made-up.toml").write_text("".join(lines), encoding="utf-8")
        return read_sources(path, WORDS)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(member)}' for key, member in value.items())} }}"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else json.dumps(value)


def intervals(found: Tables) -> dict[int, tuple[float, float]]:
    """The interval of each ratio of two environments, by batch size."""
    compared = [row for row in found["side_by_side"] if row["ratio"]]
    return {int(row["batch_size"]): (float(row["ratio_low"]), float(row["ratio_high"])) for row in compared}


def marks(found: Tables) -> int:
    assert found["side_by_side"]
    return sum(row["best"] == "true" for row in found["side_by_side"])


def verdicts(found: Tables) -> set[str]:
    assert found["verdicts"]
    return {row["verdict"] for row in found["verdicts"]}


def says_something(found: Tables) -> bool:
    """Whether a claim has a word for or against it, or a question finds a difference."""
    assert found["questions"]
    differ = (
        row["state"] == "answered" and not float(row["family_low"]) <= 1 <= float(row["family_high"])
        for row in found["questions"]
    )
    return bool(_SAID & verdicts(found)) or any(differ)
