"""Charts that answer: tooltips and legends that choose series, drawn by Vega where a browser runs scripts.

Expressions are interpreted, not compiled to functions (`ast` in templates/report.js), so the page's
Content-Security-Policy needs no unsafe-eval.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from tsuishi.base.language import mark, t
from tsuishi.report.charts import course
from tsuishi.report.charts.figures import CONFIG

# The names of fields in tooltips; all other fields have the names of their axes.
_FIELDS = {
    "series": mark("series"),
    "environment": mark("environment"),
    "case": mark("case"),
    "part": mark("part"),
    "fate": mark("status"),
    "low": mark("lowest"),
    "high": mark("highest"),
    "device": mark("device"),
    "name": mark("phase"),
    "begin_s": mark("from, s"),
    "end_s": mark("to, s"),
}
# The channels that make legends for series.
_SERIES = ("color", "fill", "stroke", "shape", "strokeDash")
_TOLD = {"point", "circle", "square", "bar", "rect", "rule", "tick"}
_FADED = 0.12
# Vega-Lite's own for these marks; others are opaque.
_OPACITIES = {"point": 0.7, "circle": 0.7, "square": 0.7, "tick": 0.7}


def live(specification: dict[str, Any]) -> dict[str, Any]:
    """The same chart for readers who point: every mark tells its values, every legend entry chooses its series."""
    # A copy in which no part is shared.
    drawn = json.loads(json.dumps({key: part for key, part in specification.items() if key != "datasets"}))
    choosing: dict[str, str] = {}
    for unit in _units(drawn):
        _tell(unit)
        field = _series(unit)
        if not field:
            continue
        if field not in choosing:
            choosing[field] = f"chosen_{len(choosing)}"
            select = {"type": "point", "fields": [field], "toggle": "true"}
            unit.setdefault("params", []).append({"name": choosing[field], "select": select, "bind": "legend"})
        _fade(unit, choosing[field])
    for layers in _layers(drawn):
        layers += _points(layers)
    datasets = {"datasets": specification["datasets"]} if "datasets" in specification else {}
    return {**drawn, **datasets}


def explorer(data: dict[str, Any]) -> dict[str, Any]:
    """What the page needs to draw the telemetry of any trial: the trials, and one chart that gets their data by name.

    `data` as sections/load.py makes it.
    """
    return {"specification": live({**course.panels(data["quantities"]), "config": CONFIG}), "trials": data["trials"]}


def embedded(value: Any) -> Markup:
    """JSON that can stand in a script element: nothing in it ends the element or begins a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704  no markup is left in it


def packed_json(value: Any) -> Markup:
    """JSON, compressed by gzip, as base64: a tenth of the size. The same bytes each time."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii"))  # noqa: S704  base64


def policy_digest(text: str) -> str:
    """An inline script or style as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _units(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every view with a mark, in order."""
    if "mark" in part:
        yield part
    for child in _children(part):
        yield from _units(child)


def _layers(part: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Every list of layers."""
    if "layer" in part:
        yield part["layer"]
    for child in _children(part):
        yield from _layers(child)


def _children(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in ("layer", "hconcat", "vconcat", "concat"):
        yield from part.get(key, [])
    if isinstance(part.get("spec"), dict):
        yield part["spec"]


def _mark(unit: dict[str, Any]) -> dict[str, Any]:
    drawn = unit["mark"]
    return drawn if isinstance(drawn, dict) else {"type": drawn}


def _tell(unit: dict[str, Any]) -> None:
    """A tooltip with all that the mark encodes, where it has none of its own."""
    encoding = unit.get("encoding", {})
    if _mark(unit)["type"] in _TOLD and "tooltip" not in encoding:
        unit["encoding"] = {**encoding, "tooltip": _tooltip(encoding)}


def _tooltip(encoding: dict[str, Any]) -> list[dict[str, Any]]:
    """Every field once, but those that only sort; numbers as in tables, with three digits."""
    fields: dict[str, dict[str, Any]] = {}
    for channel in encoding.values():
        field = channel.get("field", "_")
        if not field.startswith("_"):
            title = t(_FIELDS[field]) if field in _FIELDS else channel.get("title") or field
            number = {"type": "quantitative", "format": ",.3~r"}
            shown = number if channel.get("type", "quantitative") == "quantitative" else {"type": "nominal"}
            fields.setdefault(field, {"field": field, "title": title, **shown})
    return list(fields.values())


def _series(unit: dict[str, Any]) -> str:
    """The field whose values the legend of this unit lists, if there is one."""
    for channel in _SERIES:
        encoding = unit.get("encoding", {}).get(channel, {})
        if encoding.get("type") == "nominal" and encoding.get("field") and encoding.get("legend", {}) is not None:
            return str(encoding["field"])
    return ""


def _fade(unit: dict[str, Any], chosen: str) -> None:
    """Fade what is not chosen; nothing chosen is everything chosen."""
    drawn = _mark(unit)
    own = unit["encoding"].get("opacity", {"value": drawn.get("opacity", _OPACITIES.get(drawn["type"], 1))})
    if "value" in own and "condition" not in own:
        shown = {"condition": {"param": chosen, "value": own["value"]}, "value": own["value"] * _FADED}
        unit["encoding"]["opacity"] = shown


def _points(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Invisible points on lines without points: a line has no value for a tooltip, but its points have."""
    marks = {_mark(layer)["type"] for layer in layers if "mark" in layer}
    if "line" not in marks or "point" in marks:
        return []
    points = []
    for layer in layers:
        if "mark" in layer and _mark(layer)["type"] == "line":
            for encoding in layer["encoding"].values():
                if encoding.get("legend"):
                    encoding["legend"]["symbolType"] = "stroke"
            unseen = {"type": "point", "filled": True, "size": 90}
            encoding = {key: channel for key, channel in layer["encoding"].items() if key != "strokeDash"}
            kept_keys = {key: part for key, part in layer.items() if key not in ("params", "name")}
            points.append(
                {
                    **kept_keys,
                    "mark": unseen,
                    "encoding": {**encoding, "tooltip": _tooltip(encoding), "opacity": {"value": 0}},
                }
            )
    return points
