"""The text of a file with tables, as the programs of tables write it: UTF-8, UTF-16 with its mark, Windows-1252."""

import codecs
import re

from tsuishi.base.errors import UserError

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# The first bytes of a zip archive, as xlsx and ods are, and of an old xls.
_SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# What Western tables have beyond ASCII: one sign at a time, or two small letters ("Größe"). More in a row are letters
# of another alphabet, or of two bytes each.
_WESTERN = re.compile(r"(?:[\0-\x7f]|(?:[ß-ÿ]{2}|[€…‘’“”•–—™¢£¥§©«®°±²³´µ·¹º»¼½¾À-ÿ\xa0])(?![^\0-\x7f]))*+")


def table_text(name: str, content: bytes) -> tuple[str, str]:
    """The text of a file of that name, and the name of its encoding; empty for UTF-8.

    Raises UserError for a file without text, and for a text in an unknown encoding.
    """
    if content.startswith(_SHEETS):
        raise UserError(f"{name}: a spreadsheet or an archive: save its sheet as CSV (UTF-8), and give that file")
    text, encoding = _decoded(content)
    if not encoding:
        raise UserError(f"{name}: no UTF-8, and nothing tells its encoding: save it as UTF-8, and give that file")
    if "\0" in text:
        raise UserError(f"{name}: no text, it has zero bytes: save its table as CSV (UTF-8), and give that file")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding.removeprefix("UTF-8")


def _decoded(content: bytes) -> tuple[str, str]:
    """The text, and the name of its encoding; both empty where nothing tells it."""
    for encoding in ("UTF-16",) if content.startswith(_MARKS) else ("UTF-8-sig", "Windows-1252"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding != "Windows-1252" or _WESTERN.fullmatch(text):
            return text, encoding.removesuffix("-sig")
    return "", ""
