"""A process that draws: JSON lines with a Vega-Lite specification, or a script to bundle with Vega, become JSON lines.

It imports nothing else of tsuishi, so it draws at once, while reports are still reading.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator

import vl_convert


def made(draw: str = "", bundle: str = "") -> str:
    """The SVG of a specification (JSON), or a script with Vega bundled. Raises ValueError where it cannot be."""
    if bundle:
        return str(vl_convert.javascript_bundle(bundle))
    # A chart has all its data in it; what names an address would be asked for.
    return str(vl_convert.vegalite_to_svg(draw, allowed_base_urls=[]))


def answers(lines: Iterable[str]) -> Iterator[str]:
    """A line for every line: {"text": ...}, or {"error": ...}."""
    for line in lines:
        try:
            yield json.dumps({"text": made(**json.loads(line))})
        except ValueError as error:
            yield json.dumps({"error": str(error)})


if __name__ == "__main__":
    # What is drawn can wait: the page is still being made.
    os.nice(19)
    # The first drawing takes longest; it may as well be made before any is asked for.
    made(draw='{"data": {"values": []}, "mark": "point"}')
    for answer in answers(sys.stdin):
        print(answer, flush=True)
