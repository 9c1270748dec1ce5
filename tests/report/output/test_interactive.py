"""Charts that answer: what is added to a chart for it, and how data get into a page unharmed."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tsuishi.report.output.interactive import explorer, live, packed_json, policy_digest
from tsuishi.report.output.typesetting import _environment, html

SERIES = {"field": "series", "type": "nominal", "legend": {"orient": "bottom"}}
LINE: dict[str, Any] = {
    "mark": {"type": "line"},
    "encoding": {"x": {"field": "x"}, "y": {"field": "y"}, "color": SERIES},
}
BAND = {"mark": {"type": "rect", "opacity": 0.2}, "encoding": {"x": {"field": "begin"}, "x2": {"field": "end"}}}
POINT = {"mark": {"type": "point", "opacity": 1}, "encoding": {**LINE["encoding"], "shape": SERIES}}


def units(chart: dict[str, Any]) -> list[dict[str, Any]]:
    return list(chart["layer"])


def test_the_chart_that_is_drawn_stays_as_it_is() -> None:
    chart = {"layer": [LINE, POINT], "datasets": {"a": [{"x": 1}]}}
    before = json.dumps(chart)
    live(chart)
    assert json.dumps(chart) == before


def test_one_legend_chooses_the_series_of_every_layer() -> None:
    line, point = units(live({"layer": [LINE, POINT]}))
    chosen = [one["name"] for unit in (line, point) for one in unit.get("params", [])]
    assert chosen == ["chosen_0"]
    assert line["params"][0]["select"]["fields"] == ["series"]
    for unit in (line, point):
        assert unit["encoding"]["opacity"] == {"condition": {"param": "chosen_0", "value": 1}, "value": 0.12}


def test_panels_that_share_their_series_share_the_choice() -> None:
    chart = live({"vconcat": [{"layer": [LINE, POINT]}, {"layer": [LINE, POINT]}]})
    first, second = (panel["layer"] for panel in chart["vconcat"])
    assert "params" in first[0]
    assert "params" not in second[0]
    assert second[0]["encoding"]["opacity"]["condition"]["param"] == "chosen_0"


def test_a_unit_inside_a_facet_answers_too() -> None:
    chart = live({"facet": {"field": "panel"}, "spec": {"layer": [LINE, POINT]}})
    assert [told["title"] for told in chart["spec"]["layer"][1]["encoding"]["tooltip"]] == ["x", "y", "series"]


def test_marks_tell_their_values_unless_they_say_something_of_their_own() -> None:
    own = {"mark": "bar", "encoding": {"x": {"field": "x"}, "tooltip": {"field": "words"}}}
    bar = {"mark": "bar", "encoding": {"x": {"field": "x"}}}
    kept_own, told = (unit["encoding"]["tooltip"] for unit in units(live({"layer": [own, bar]})))
    assert kept_own == {"field": "words"}
    assert told == [{"field": "x", "title": "x", "type": "quantitative", "format": ",.3~r"}]


def test_lines_without_points_get_points_that_are_not_seen_and_legends_stay_lines() -> None:
    band, line, unseen = units(live({"layer": [BAND, LINE]}))
    assert "legend" not in band["encoding"]["x"]
    assert unseen["encoding"]["opacity"] == {"value": 0}
    assert [told["field"] for told in unseen["encoding"]["tooltip"]] == ["x", "y", "series"]
    assert [told["title"] for told in band["encoding"]["tooltip"]] == ["begin", "end"]
    for layer in (line, unseen):
        assert layer["encoding"]["color"]["legend"]["symbolType"] == "stroke"
    assert len(units(live({"layer": [LINE, POINT]}))) == 2


def test_a_legend_that_is_off_chooses_nothing() -> None:
    silent = {**LINE, "encoding": {**LINE["encoding"], "color": {**SERIES, "legend": None}}}
    line, *_ = units(live({"layer": [silent]}))
    assert "params" not in line


def test_the_explorer_has_a_panel_a_quantity_under_its_name() -> None:
    found = explorer({"quantities": {"power_w": "power, W", "utilisation_percent": "load, %"}, "trials": [{"id": "a"}]})
    panels = found["specification"]["vconcat"]
    assert [panel["name"] for panel in panels] == ["power_w", "utilisation_percent"]
    assert [panel["layer"][1]["encoding"]["y"]["title"] for panel in panels] == ["power, W", "load, %"]
    assert found["trials"] == [{"id": "a"}]


@pytest.mark.parametrize("text", ["</script>", "<!-- <script>", "a\x00b", "\u2028", "追試"])
def test_embedded_json_is_the_same_value_and_no_markup(text: str) -> None:
    value = {text: [text, None, 1.5]}
    embedded = _environment(Path(), html).from_string("{{ value | tojson }}").render(value=value)
    assert "<" not in embedded
    assert json.loads(embedded) == value
    assert json.loads(gzip.decompress(base64.b64decode(packed_json(value)))) == value
    assert packed_json(value) == packed_json(value)


def test_a_policy_names_a_script_by_its_digest() -> None:
    # printf 'alert(1)' | openssl dgst -sha256 -binary | base64
    assert policy_digest("alert(1)") == "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
