"""A process that draws: JSON lines with a Vega-Lite specification, or with nothing, become JSON lines.

Given the name of a file, it writes only the script, to this file.

It imports nothing else of tsuishi, so it draws at once, while reports are still reading.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import vl_convert

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def drawn(draw: str = "") -> str:
    """The SVG of a specification (JSON); without it, the script. Raises ValueError where it cannot be drawn."""
    if not draw:
        return str(vl_convert.javascript_bundle(_SNIPPET))
    # A chart contains all its data; data at an address would be fetched.
    return str(vl_convert.vegalite_to_svg(draw, allowed_base_urls=[]))


def answers(lines: Iterable[str]) -> Iterator[str]:
    """A line for every line: {"text": ...}, or {"error": ...}."""
    for line in lines:
        try:
            yield json.dumps({"text": drawn(**json.loads(line))})
        except ValueError as error:
            yield json.dumps({"error": str(error)})


def main() -> None:
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(drawn(), encoding="utf-8")
        return
    # Drawings can wait: the page is still being made.
    os.nice(19)
    # The first drawing takes longest; so it is made before the first request.
    drawn(draw='{"data": {"values": []}, "mark": "point"}')
    for answer in answers(sys.stdin):
        print(answer, flush=True)


if __name__ == "__main__":
    main()
