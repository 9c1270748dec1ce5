"""Catalogues of the languages of a report, brought up to date by `python -m tsuishi.report.output.catalogues`.

New messages are added untranslated; messages that no report has any more are removed. A language begins as an empty
file.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from tsuishi.base.checkout import Checkout
from tsuishi.base.language import CATALOGUES, mark, t

_KEYWORDS = (t.__name__, mark.__name__)


def messages(root: Path) -> Catalog:
    """Every message in tsuishi/, suites/explanations/ and templates, untranslated, in the order of files and lines."""
    catalogue = Catalog()
    folders = (root / "tsuishi", root / "suites" / "explanations")
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        for message in _of_python(path):
            catalogue.add(message)
    for path in sorted((root / "templates").glob("report*.j2")):
        with path.open("rb") as file:
            for _, _, said, _ in babel_extract(file, _KEYWORDS, [], {"silent": "false"}):
                # With fields it is a tuple, of which the message is the first.
                catalogue.add(str(said[0] if isinstance(said, tuple) else said))
    return catalogue


def update(catalogue: Path, root: Path) -> None:
    """Write a catalogue anew: every message with the translation it has. No dates or places, as they often change."""
    with catalogue.open(encoding="utf-8") as file:
        known = read_po(file)
    wanted = messages(root)
    for message in wanted:
        # Babel guesses flags of formats, and takes "95 % interval" for a format.
        message.flags.clear()
        if message.id and message.id in known:
            message.string = known[message.id].string
            message.flags |= known[message.id].flags & {"fuzzy"}
    with catalogue.open("wb") as file:
        write_po(file, wanted, width=120, omit_header=True, no_location=True)


def _of_python(path: Path) -> Iterator[str]:
    """By the syntax tree, as Babel's own way with Python misses messages in the arguments of others."""
    calls = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call) and node.args]
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        what = call.args[0]
        if isinstance(call.func, ast.Name) and call.func.id in _KEYWORDS and isinstance(what, ast.Constant):
            yield str(what.value)


if __name__ == "__main__":
    for path in sorted(CATALOGUES.glob("*.po")):
        update(path, Checkout().root)
