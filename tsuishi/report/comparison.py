"""Comparison: the cases of one suite under one protocol, by environment, beside what was published of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tsuishi.analysis.evidence import Evidence
from tsuishi.analysis.frames import STATUSES, named_rows
from tsuishi.report.tables import NOT_MEASURED, NOT_PLANNED, Cell, case_text, digits, status_cell
from tsuishi.suite import AXES


class Known(NamedTuple):
    """What is known of one case in one environment, or on published hardware: its values by quantity."""

    series: str
    case_id: str | None
    axes: dict[str, Any]
    values: dict[str, float]
    simulated: bool


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
        # An axis that few cases have tells these from the others, whatever its value.
        rare = {axis for axis in AXES if 0 < 2 * sum(axis in axes for axes in self.axes.values()) < len(self.axes)}
        self.varying = [axis for axis in AXES if axis in rare or axis in differing(self.axes.values())]
        # What all cases have in common, in words.
        common = {axis: next(iter(found)) for axis, found in values.items() if len(found) == 1 and axis not in rare}
        self.common = case_text(common)
        # Of limits; None where no limit was measured.
        fractions = [row for row in evidence.fractions if (row["suite"], row["protocol"]) == (suite, protocol)]
        self.fractions: list[float | None] = [row["value"] for row in fractions]
        self._bounds = {(row["case_id"], row["column"]): row["bound"] for row in fractions}
        self.quantities = {*cases["quantity"], *(row["quantity"] for row in fractions)}
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
        notes += [f"of {self._bounds[case_id, environment]}"] if quantity == "fraction_of_limit" else []
        notes += ["simulated"] if row.simulated else []
        notes += [status.removeprefix("ok, ").replace("_", " ")] if status != "ok" else []
        text = digits(row.estimate, row.unit) + ("†" if row.derived and row.unit == "s" else "")
        return Cell(text, row.estimate, tuple(notes), "number")

    def status(self, case_id: str, environment: str) -> str:
        """What became of a case in an environment: the statuses of its repetitions, each once."""
        return self._statuses.get((case_id, environment), NOT_PLANNED)

    def rows(self) -> Iterator[dict[str, Any]]:
        """For cases.csv: a row per case, environment and quantity; a row without quantity where there is none.

        `bound` is the limit a fraction_of_limit is of.
        """
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
                    limited = row.get("quantity") == "fraction_of_limit"
                    ours["bound"] = self._bounds[case_id, environment] if limited else None
                    published = {key: theirs.get((key, row.get("quantity", ""))) for key in self.evidence.hardware}
                    yield {**base, **ours, **published}

    @property
    def where(self) -> dict[str, str]:
        return {"suite": self.suite, "protocol": self.protocol}

    def ours(self) -> Iterator[Known]:
        """Every case that has estimates, environment by environment."""
        parts = dict(iter(self.cases.groupby(["column", "case_id"])))
        for key in ((environment, case_id) for environment in self.environments for case_id in self.case_ids):
            if key in parts:
                values = dict(zip(parts[key]["quantity"], parts[key]["estimate"], strict=True))
                yield Known(*key, self.axes[key[1]], values, bool(parts[key]["simulated"].any()))

    def theirs(self) -> list[Known]:
        """Every case that numbers of this suite were published of."""
        found: dict[tuple[str, str], Known] = {}
        for number in self.evidence.numbers:
            if number.axes["suite"] == self.suite:
                series = f"{self.evidence.hardware[number.key].title} (published)"
                key = number.key, str(sorted(number.axes.items()))
                known = found.setdefault(key, Known(series, None, dict(number.axes), {}, False))
                known.values[number.quantity] = number.value
        return list(found.values())


def differing(several: Iterable[Mapping[str, Any]]) -> list[str]:
    """The axes in which these differ, in canonical order; one that some lack is no difference."""
    axes = list(several)
    return [axis for axis in AXES if len({one[axis] for one in axes if axis in one}) > 1]


def _in_order(axes: dict[str, Any]) -> list[tuple[bool, str, Any]]:
    """The key that sorts cases axis by axis, numbers by size."""
    return [(axis in axes, type(axes.get(axis)).__name__, axes.get(axis, "")) for axis in AXES]
