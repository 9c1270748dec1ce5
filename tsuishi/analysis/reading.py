"""Files of a run, read: JSON and tables, every string of them made fit to print, so nothing after this needs to ask.

A run has thousands of small files. What is plain ASCII, as nearly all of it is, is recognised as a whole and passed on
as it is; the rest is looked at character by character.
"""

import csv
import io
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

import pandas as pd

from tsuishi import schema
from tsuishi.errors import UserError
from tsuishi.store import parse_json, read_bytes

# The column of a trial's number, where a table has many rows of a trial.
TRIAL = "trial"

_BOOLEANS = {"true": True, "false": False, "none": None, "": None}
_PRINTABLE = bytes([ord("\n"), *range(0x20, 0x7F)])
# Not of a quote, a backslash, a slash, a line's end or a tab.
_ODD_ESCAPE = re.compile(rb'\\[^"\\/nt]')


def read_visible(path: Path) -> dict[str, Any]:
    """A JSON object, made visible. Raises UserError where it cannot be read."""
    text = read_bytes(path)
    value = parse_json(path, text)
    return visible(value) if text.translate(None, _PRINTABLE) or _ODD_ESCAPE.search(text) else value


def visible(value: Any) -> Any:
    """The same JSON value with everything unprintable in its strings made visible.

    Control characters, lone surrogates and characters that turn the direction of what follows become ⟨U+…⟩:
    they break files, or show a reader something other than what is there.
    """
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else "".join(map(_visible_character, value))
    if isinstance(value, dict):
        return {visible(key): visible(entry) for key, entry in value.items()}
    return [visible(entry) for entry in value] if isinstance(value, list) else value


def _visible_character(character: str) -> str:
    odd = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character not in "\n\t"
    return f"⟨U+{ord(character):04X}⟩" if odd else character


class Parts:
    """The parts that trials have of one table, put together; the number of the trial stands in front of every row."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._columns = [name for name in schema.names(table) if name != "trial_id"]
        self._head = f"{','.join(self._columns)}\n".encode()
        self._rows: list[bytes] = []

    def add(self, trial: int, folder: Path) -> None:
        """Read a trial's part; a trial that wrote none has no rows."""
        path = f"{folder}/{self._table}.csv"
        if not os.path.exists(path):  # noqa: PTH110  a Path takes as long as reading a small file
            return
        part = read_bytes(path)
        plain = part.startswith(self._head) and part.endswith(b"\n") and not part.translate(None, _PRINTABLE)
        if not plain or b'"' in part or b"\n\n" in part:
            self._rows.append(self._rewritten(trial, part))
        elif len(part) > len(self._head):
            # Every line is a row.
            rows, number = part[len(self._head) : -1], b"%d," % trial
            self._rows.append(number + rows.replace(b"\n", b"\n" + number) + b"\n")

    def _rewritten(self, trial: int, part: bytes) -> bytes:
        """A part with the table's columns in their order, made visible."""
        rows = csv.DictReader(io.StringIO(part.decode(errors="replace"), newline=""))
        file = io.StringIO()
        columns = [TRIAL, *self._columns]
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writerows({**visible(row), TRIAL: trial} for row in rows)
        return file.getvalue().encode()

    def frame(self) -> pd.DataFrame:
        """All rows, with the schema's types and the trial's number. Raises UserError for a value of another type."""
        types = {column.name: column.type for column in schema.TABLES[self._table] if column.name != "trial_id"}
        numbers = [name for name, kind in types.items() if kind in ("integer", "number")]
        texts = [name for name in types if name not in numbers]
        text = b"".join([f"{TRIAL},".encode(), self._head, *self._rows])
        try:
            frame = pd.read_csv(
                io.BytesIO(text),
                dtype={TRIAL: "int64", **dict.fromkeys(numbers, "float64"), **dict.fromkeys(texts, "object")},
                na_values={name: [""] for name in numbers},
                keep_default_na=False,
            )
            whole = [name for name in numbers if types[name] == "integer"]
            return frame.astype({**dict.fromkeys(whole, "Int64"), **dict.fromkeys(texts, "category")})
        except (TypeError, ValueError):
            # Slower, but it says which value is wrong.
            rows = csv.DictReader(io.StringIO(text.decode(), newline=""))
            return typed(self._table, [{**row, TRIAL: int(row[TRIAL])} for row in rows], TRIAL)


def typed(table: str, rows: list[dict[str, Any]], key: str) -> pd.DataFrame:
    """Rows as a frame of the column `key`, as it is, and the schema's columns with its types; text is never NaN.

    There is no trial_id where `key` is the number of the trial. Raises UserError where a value is not of its type.
    """
    frame = pd.DataFrame({key: pd.Series([row[key] for row in rows], dtype="int64" if key == TRIAL else "object")})
    for column in schema.TABLES[table]:
        name, kind = column.name, column.type
        if key == TRIAL and name == "trial_id":
            continue
        values = [row.get(name) for row in rows]
        try:
            if kind in ("integer", "number"):
                known = [None if value == "" else value for value in values]
                numbers = pd.to_numeric(pd.Series(known, dtype="object"))
                frame[name] = numbers.astype("Int64" if kind == "integer" else "float64")
            elif kind == "boolean":
                frame[name] = pd.Series([_BOOLEANS[str(value).lower()] for value in values], dtype="boolean")
            else:
                frame[name] = pd.Series(["" if value is None else str(value) for value in values], dtype="object")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{table}: column '{name}' should be of type {kind}: {error}; mend the run") from error
    return frame
