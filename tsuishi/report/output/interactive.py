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
# How JSON is written into a page.
JSON: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
# Vega-Lite's own for these marks; others are opaque.
_OPACITIES = {"point": 0.7, "circle": 0.7, "square": 0.7, "tick": 0.7}


def live(specification: dict[str, Any]) -> dict[str, Any]:
    """The same chart for readers who point: every mark tells its values, every legend entry chooses its series."""
    # A copy in which no part is shared.
    drawn = json.loads(json.dumps({key: part for key, part in specification.items() if key != "datasets"}))
    choosing: dict[str, str] = {}
    views = list(_views(drawn))
    for unit in (view for view in views if "mark" in view):
        _tell(unit)
        field = _series(unit)
        if not field:
            continue
        if field not in choosing:
            choosing[field] = f"chosen_{len(choosing)}"
            select = {"type": "point", "fields": [field], "toggle": "true"}
            unit.setdefault("params", []).append({"name": choosing[field], "select": select, "bind": "legend"})
        _fade(unit, choosing[field])
    for view in views:
        if "layer" in view:
            view["layer"] += _points(view["layer"])
    datasets = {"datasets": specification["datasets"]} if "datasets" in specification else {}
    return {**drawn, **datasets}


def explorer(data: dict[str, Any]) -> dict[str, Any]:
    """What the page needs to draw the telemetry of any trial: the trials, and one chart that gets their data by name.

    `data` as sections/load.py makes it.
    """
    return {"specification": live({**course.panels(data["quantities"]), "config": CONFIG}), "trials": data["trials"]}


def packed_json(value: Any) -> Markup:
    """JSON, compressed by gzip, as base64: a tenth of the size. The same bytes each time."""
    text = json.dumps(value, **JSON)
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii"))  # noqa: S704  base64


def policy_digest(text: str) -> str:
    """An inline script or style as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _views(view: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A view and those inside it, in order."""
    yield view
    for key in ("layer", "hconcat", "vconcat", "concat"):
        for inner in view.get(key, []):
            yield from _views(inner)
    if isinstance(view.get("spec"), dict):
        yield from _views(view["spec"])


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
    kinds = [_mark(layer)["type"] if "mark" in layer else "" for layer in layers]
    points = []
    for layer, kind in zip(layers, kinds, strict=True):
        if kind == "line" and "point" not in kinds:
            for channel in layer["encoding"].values():
                if channel.get("legend"):
                    channel["legend"]["symbolType"] = "stroke"
            kept_keys = {key: part for key, part in layer.items() if key not in ("params", "name")}
            encoding = {key: channel for key, channel in layer["encoding"].items() if key != "strokeDash"}
            unseen = {**encoding, "tooltip": _tooltip(encoding), "opacity": {"value": 0}}
            points.append({**kept_keys, "mark": {"type": "point", "filled": True, "size": 90}, "encoding": unseen})
    return points
