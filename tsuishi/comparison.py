"""Comparison: the cases of one suite under one protocol, by environment, beside what was published of them."""

from collections.abc import Iterator
from typing import Any

from tsuishi.evidence import Evidence
from tsuishi.frames import STATUSES, named_rows
from tsuishi.suite import AXES
from tsuishi.tables import NOT_MEASURED, NOT_PLANNED, Cell, case_text, digits, status_cell


class Comparison:
    """Joined outwards on the case: what one environment has and another lacks is there, and says so."""

    def __init__(self, evidence: Evidence, suite: str, protocol: str) -> None:
        self.evidence, self.suite, self.protocol = evidence, suite, protocol
        outcomes, cases = (
            frame[(frame["suite"] == suite) & (frame["protocol"] == protocol)]
            for frame in (evidence.outcomes, evidence.cases)
        )
        self.cases = cases
        self.environments = sorted(set(outcomes["column"]))
        self.axes = {case_id: evidence.axes[case_id] for case_id in outcomes["case_id"]}
        self.case_ids = sorted(self.axes, key=lambda case_id: _in_order(self.axes[case_id]))
        values = {axis: {axes.get(axis) for axes in self.axes.values()} - {None} for axis in AXES}
        self.varying = [axis for axis in AXES if len(values[axis]) > 1]
        # What all cases have in common, in words.
        self.common = case_text({axis: next(iter(found)) for axis, found in values.items() if len(found) == 1})
        self._found = {(row.case_id, row.column, row.quantity): row for row in named_rows(cases)}
        self._statuses = {
            key: ", ".join(sorted(set(part["status"]), key=STATUSES.index))
            for key, part in outcomes.groupby(["case_id", "column"])
        }

    def cell(self, case_id: str, environment: str, quantity: str) -> Cell:
        """An estimate with its spread, or the word for why there is none: never nothing."""
        row = self._found.get((case_id, environment, quantity))
        status = self.status(case_id, environment)
        if row is None:
            return status_cell(NOT_MEASURED if status == "ok" and quantity else status)
        notes = [f"{digits(row.low, row.unit)} – {digits(row.high, row.unit)}"] if row.spread_kind else []
        notes.append(f"n = {row.n}" + (", within the trial" if row.spread_kind == "blocks" else ""))
        notes += ["simulated"] if row.simulated else []
        notes += [status.removeprefix("ok, ").replace("_", " ")] if status != "ok" else []
        text = digits(row.estimate, row.unit) + ("†" if row.derived else "")
        return Cell(text, row.estimate, tuple(notes), "number")

    def status(self, case_id: str, environment: str) -> str:
        """What became of a case in an environment: the statuses of its repetitions, each once."""
        return self._statuses.get((case_id, environment), NOT_PLANNED)

    def rows(self) -> Iterator[dict[str, Any]]:
        """For cases.csv: a row per case, environment and quantity; a row without quantity where there is none."""
        fields = ("quantity", "unit", "estimate", "n", "low", "high", "spread_kind", "blocks")
        flags = ("simulated", "synthetic", "derived")
        for case_id in self.case_ids:
            axes = {axis: self.axes[case_id].get(axis) for axis in AXES}
            theirs = self.evidence.published(case_id)
            for environment in self.environments:
                status = self.status(case_id, environment)
                base = {"case_id": case_id, **axes, "environment": environment, "status": status}
                mine = self.cases[(self.cases["case_id"] == case_id) & (self.cases["column"] == environment)]
                for row in mine.to_dict("records") or [{}]:
                    ours = {name: row.get(name) for name in (*fields, *flags)}
                    published = {key: theirs.get((key, row.get("quantity", ""))) for key in self.evidence.hardware}
                    yield {**base, **ours, **published}


def _in_order(axes: dict[str, Any]) -> list[tuple[bool, str, Any]]:
    """The key that sorts cases axis by axis, numbers by size."""
    return [(axis in axes, type(axes.get(axis)).__name__, axes.get(axis, "")) for axis in AXES]
