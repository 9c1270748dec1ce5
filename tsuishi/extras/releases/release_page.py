"""The answer of a search for the release that changed a value: sentences, and a small page with a chart by date."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsuishi.base.files import write_json
from tsuishi.extras.releases.release_changes import ReleaseChange, SearchResult
from tsuishi.report.charts import figures
from tsuishi.report.output.vega import to_svg
from tsuishi.report.parts.two_sides import at_least
from tsuishi.specs.environment import Environment

_WIDTH, _HEIGHT = 640, 280


@dataclass(frozen=True)
class ReleaseAnswer:
    """A finished search. values: of each release, by trial. reasons: why releases cannot run the case.

    quantity: its label. of: the case in words. unit: of the values. counted: by the label of a quantity, the number
    that each release counted in all of its trials. unvisited: what a visit of all releases would take, in words; empty
    where all were visited.
    """

    quantity: str
    of: str
    unit: str
    releases: tuple[Environment, ...]
    values: Mapping[str, Sequence[float]]
    reasons: Mapping[str, str]
    result: SearchResult
    trials: int
    counted: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unvisited: str = ""

    @property
    def what(self) -> str:
        """The value that was searched, in words."""
        return f"{self.quantity} of {self.of}"

    def sentences(self) -> list[str]:
        """The findings, the most important first."""
        result = self.result
        said = [self._verdict()]
        if result.verdict in ("alike", "undecided") and self.unvisited:
            said.append(f"a release between them may still differ: none was visited; {self.unvisited}")
        if result.narrowed:
            said.append(f"narrowed so far: the change lies between {' and '.join(map(self._dated, result.narrowed))}")
        for change in result.changes:
            said += [self._changed(change), *self._counted(change)]
        said += [
            f"{name} cannot run it ({self.reasons.get(name, 'unknown')}): it does not narrow the search"
            for name in result.unable
        ]
        if result.undecided:
            how_long = "not decided yet" if result.verdict == "open" else "undecided after all rounds"
            said.append(f"{how_long}: {'; '.join(result.undecided)}")
        return said

    def _verdict(self) -> str:
        first, last = self.releases[0].name, self.releases[-1].name
        return {
            "changed": f"{self.what} changed between {first} and {last}",
            "alike": f"{self.what}: no change between {first} and {last}: they are alike within 10 %",
            "undecided": f"{self.what}: the trials do not show whether {first} and {last} differ",
            "open": f"{self.what}: the search has not ended; these are the results so far",
        }[self.result.verdict]

    def _changed(self, change: ReleaseChange) -> str:
        older, newer = map(self._dated, (change.older, change.newer))
        between = f", with {', '.join(change.between)} between them" if change.between else ""
        ratio, interval = math.exp(change.size.value), change.interval
        ends = f"{math.exp(interval.low):.3g} to {math.exp(interval.high):.3g}" if interval else "not known"
        if not change.is_certain or interval is None:
            how_much = f"{ratio:.3g} times, which is not certain"
        elif interval.low > 0:
            how_much = f"at least {at_least(math.exp(interval.low))} as {'slow' if self.unit == 's' else 'much'}"
        else:
            how_much = f"at least {at_least(math.exp(-interval.high))} as {'fast' if self.unit == 's' else 'little'}"
        return f"between {older} and {newer}{between}: {how_much} (ratio {ratio:.3g}, interval {ends})"

    def _dated(self, name: str) -> str:
        (release,) = (release for release in self.releases if release.name == name)
        return f"{name} ({release.release}, {release.released})"

    def _counted(self, change: ReleaseChange) -> Iterator[str]:
        """Counts that differ between both releases in all trials: they may be why the value changed."""
        for label, counts in self.counted.items():
            older, newer = counts.get(change.older), counts.get(change.newer)
            if older is not None and newer is not None and older != newer:
                yield f"beside it, in every trial: {label}: {older} in {change.older}, {newer} in {change.newer}"

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """A row for each release: name, version, date, trials, geometric mean or the reason without one."""
        rows = []
        for release in self.releases:
            values = self.values.get(release.name, ())
            mean = math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None
            shown = f"{mean:.4g} {self.unit}" if mean else self.reasons.get(release.name, "not visited")
            rows.append((release.name, release.release, str(release.released), str(len(values)), shown))
        return rows

    def chart(self) -> dict[str, Any]:
        """Every trial by the date of its release, on a logarithmic scale; the intervals of changes as bands behind."""
        dates = {release.name: str(release.released) for release in self.releases}
        points = [
            {"date": dates[name], "value": value, "release": name}
            for name, values in self.values.items()
            for value in values
        ]
        bands = [{"from": dates[change.older], "to": dates[change.newer]} for change in self.result.changes]
        labels = [
            {"date": dates[release.name], "value": max(self.values[release.name]), "release": release.release}
            for release in self.releases
            if release.name in self.values
        ]
        x = {"type": "temporal", "title": "release"}
        y = {"type": "quantitative", "title": f"{self.quantity}, {self.unit}", "scale": {"type": "log"}}
        date, height = {**x, "field": "date"}, {**y, "field": "value"}
        layers: list[dict[str, Any]] = [
            {
                "mark": {"type": "rect", "opacity": 0.2, "color": figures.PALETTE[2]},
                "data": {"values": bands},
                "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}},
            },
            {
                "mark": {"type": "point", "filled": True},
                "data": {"values": points},
                "encoding": {"x": date, "y": height},
            },
            {
                "mark": {"type": "text", "dy": -12, "angle": 315, "align": "left"},
                "data": {"values": labels},
                "encoding": {"x": date, "y": height, "text": {"field": "release"}},
            },
        ]
        return figures.specification({"layer": layers, "width": _WIDTH, "height": _HEIGHT})


def write_answer(folder: Path, answer: ReleaseAnswer) -> Path:
    """Write find.md, find.svg and find.json; the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    first, *others = answer.sentences()
    lines = [f"# {first}", "", *(f"- {line}" for line in others), "", f"{answer.trials} trials.", ""]
    lines += ["![Every trial by the date of its release](find.svg)", ""]
    lines += ["| environment | release | date | trials | geometric mean |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in answer.rows()]
    (folder / "find.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "find.svg").write_text(to_svg(answer.chart(), "find"), encoding="utf-8")
    write_json(folder / "find.json", json.loads(json.dumps(_data(answer))))
    return folder / "find.md"


def _data(answer: ReleaseAnswer) -> dict[str, Any]:
    changes = [
        {
            "older": change.older,
            "newer": change.newer,
            "between": change.between,
            "ratio": math.exp(change.size.value),
            "interval": [math.exp(end) for end in change.interval] if change.interval else None,
            "confidence": 1 - change.level,
        }
        for change in answer.result.changes
    ]
    return {
        "what": answer.what,
        "unit": answer.unit,
        "verdict": answer.result.verdict,
        "changes": changes,
        "unable": dict(answer.reasons),
        "undecided": answer.result.undecided,
        "narrowed": answer.result.narrowed,
        "counted": {label: dict(counts) for label, counts in answer.counted.items()},
        "trials": answer.trials,
        "values": {name: list(values) for name, values in answer.values.items()},
    }
