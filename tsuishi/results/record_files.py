"""The JSON files of a run, read: a text in, a typed record out. A wrong file becomes a line for the user."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.base.printable import PRINTABLE_ASCII, visible
from tsuishi.base.toml import Record
from tsuishi.results.records import RECORDS, AnyRecord

REMEDY = "copy the run again, or remove what is wrong"
# An escape other than that of a quote, a backslash, a slash, a line's end or a tab.
_ODD_ESCAPE = re.compile(rb'\\[^"\\/nt]')
# What pydantic takes for a number, and JSON does not know.
_NO_NUMBER = re.compile(rb"NaN|Infinity")

R = TypeVar("R", bound=Record)


def json_text(path: Path | str) -> bytes:
    """The JSON text in a file. Raises UserError where the file cannot be read."""
    return files.read_bytes(path, files.MOST_JSON_BYTES)


def read_visible(path: Path | str) -> bytes:
    """The JSON text in a file, made visible. Raises UserError where the file cannot be read, or is odd and no JSON."""
    text = json_text(path)
    if text.translate(None, PRINTABLE_ASCII) or _ODD_ESCAPE.search(text):
        return json.dumps(visible(files.parse_json(path, text))).encode()
    return text


def is_schema(said: object, known: int) -> bool:
    """Whether the schema that a file says is the known one: true and 1.0 equal 1, and are none."""
    return type(said) is int and said == known


def parsed(path: Path | str, text: bytes, model: type[R]) -> R:
    """The record in a JSON text that was read from a path. Raises UserError where the text is no such record."""
    try:
        record = model.model_validate_json(text)
    except ValidationError as error:
        files.parse_json(path, text)
        raise _not_a_record(path, error, model) from error
    if _NO_NUMBER.search(text):
        files.parse_json(path, text)
    return record


def read_record(path: Path, shown: Callable[[Any], Any] = lambda value: value) -> AnyRecord | None:
    """The record in records/<id>.json; None where its kind is unknown. `shown` alters the content.

    Raises UserError where the hash of the content is not that of the id.
    """
    value = files.read_json(path)
    kind, _, digest = path.stem.rpartition("-")
    if not re.fullmatch(r"[a-z]+", kind, re.ASCII) or digest != toml.digest(value):
        raise UserError(f"{path}: its content is not that of its name; {REMEDY}")
    try:
        return RECORDS[kind].model_validate(shown(value)) if kind in RECORDS else None
    except (ValidationError, ValueError) as error:
        raise _not_a_record(path, error, RECORDS[kind]) from error


def _not_a_record(path: Path | str, error: ValidationError | ValueError, model: type[BaseModel]) -> UserError:
    said = toml.explain(error, model) if isinstance(error, ValidationError) else str(error)
    return UserError(f"{path}: {said}; {REMEDY}")
