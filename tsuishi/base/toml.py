"""Reads TOML files into frozen, typed objects. An error is one line with the file, the key and a remedy."""

import difflib
import hashlib
import json
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from tsuishi.base import files
from tsuishi.base.errors import UserError


class Spec(BaseModel):
    """Base of every object that is read from a file. It is immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    # Keys whose texts may have several lines: they are for readers, never part of a name, a command or another file.
    prose: ClassVar[frozenset[str]] = frozenset()


# The largest whole number that JSON, pandas and JavaScript hold alike; beyond any count, size or time.
MOST = 1 << 53


class Record(BaseModel):
    """Base of the records of a run. Unknown keys are kept, and ignored: a later tsuishi may write more."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False, defer_build=True)

    def content(self) -> dict[str, Any]:
        """The record as JSON: the keys that it was made with."""
        return self.model_dump(mode="json", exclude_unset=True)


def _fit(name: str) -> str:
    if why := files.unfit(name):
        raise ValueError(why)
    return name


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# An image, its config or a layer, by its SHA-256.
ImageDigest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
# A name that also is part of image tags and of folders' names.
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$"), AfterValidator(_fit)]
# Times and counts are finite; what is far beyond any measurement is a slip of the pen. A time in seconds is 115 days.
Seconds = Annotated[float, Field(ge=0, le=1e7)]
Above0Seconds = Annotated[float, Field(gt=0, le=1e7)]
Count = Annotated[int, Field(ge=1, le=10**9)]


def _by_language(given: Any) -> Any:
    return {"en": given} if isinstance(given, str) else given


def _in_english_too(texts: dict[str, str]) -> dict[str, str]:
    if not texts.get("en"):
        raise ValueError('no English text; add en = "…"')
    return texts


# Texts by language (ISO 639-1). English is required; a plain string is the English text.
Texts = Annotated[dict[str, str], BeforeValidator(_by_language), AfterValidator(_in_english_too)]

S = TypeVar("S", bound=Spec)

# The longest lock has half a megabyte. Parsers take some ten times as much memory.
MOST_TEXT_BYTES = 8 << 20
# TOML's own numbers, and more levels than any spec has: hexadecimal numbers and levels have no end in tomllib.
_LARGEST, _DEEPEST = 2**63 - 1, 50
# Unicode's categories of invisible characters: controls, formatting, line separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def read(path: Path) -> dict[str, Any]:
    """The values of a TOML file, in the order of the file; not to be changed. Raises UserError naming the file."""
    text = read_text(path)
    try:
        return _values(text)
    except RecursionError:
        raise UserError(f"{path}: more than {_DEEPEST} levels deep") from None
    except ValueError as error:  # also for a number of thousands of digits, which is no TOMLDecodeError
        raise UserError(f"{path}: not valid TOML: {error}") from error


def read_text(path: Path, what: str = "") -> str:
    """The text of a spec or a lock. Raises UserError where it cannot be read, or is larger than MOST_TEXT_BYTES.

    what: the file in the words of the error.
    """
    try:
        return read_content(path, what).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: {what}cannot be read: {error}") from error


def read_content(path: Path, what: str = "") -> bytes:
    """The bytes of such a file. Raises UserError as read_text does."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_TEXT_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: {what}cannot be read: {error}") from error
    if len(content) > MOST_TEXT_BYTES:
        raise UserError(f"{path}: larger than {MOST_TEXT_BYTES >> 20} MiB, the most that is read")
    return content


@lru_cache(maxsize=32)
def _values(text: str) -> dict[str, Any]:
    """The values in a text. The vocabulary and the suite both read the file of a suite: it is parsed once.

    Raises RecursionError for values too deep for the functions here, ValueError for other values that are not taken.
    """
    values = tomllib.loads(text)
    _check(values, _DEEPEST)
    return values


def _check(value: Any, levels: int) -> None:
    if not levels:
        raise RecursionError
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise ValueError(f"a number of {value.bit_length()} bits; {_LARGEST.bit_length()} are the most")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check(inner, levels - 1)


def load(path: Path, model: type[S], context: Any = None, **extra: Any) -> S:
    """The file at `path` as a `model`; the fields `extra` are not from the file (its name, say).

    `context`: more data that the model's validators need. Raises UserError that names the file, the key, the
    known values and a remedy.
    """
    values = read(path)
    for key in extra.keys() & values.keys():
        raise UserError(f"{path}: key '{key}' is not allowed in this file; remove it")
    return made(str(path), {**values, **extra}, model, context)


def made(where: str, values: dict[str, Any], model: type[S], context: Any = None) -> S:
    """Values of a file, or of a table in it, as `model`. Raises UserError that begins with `where`."""
    for location, text in _texts(values):
        if problem := _unseen(text, "\n\t" if model.prose.intersection(location) else ""):
            raise UserError(f"{where}: key '{_key(location)}' holds {problem}; write it without, on one line")
    try:
        # By way of JSON, since strict mode takes an array of JSON, but no list, for a tuple.
        return model.model_validate_json(json.dumps(values, default=str), context=context)
    except ValidationError as error:
        raise UserError(f"{where}: {explain(error, model)}") from error


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem of a validation in one line, and the number of further problems."""
    # A misspelt key gives two problems, an unknown key and a missing key: the first says more.
    # A wrong item is not counted: "too short" may only be its consequence.
    problems = [problem for problem in error.errors() if problem["type"] != "too_short"] or error.errors()
    problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return _explanation(problems[0], model) + more


def canonical_json(value: Any) -> str:
    """JSON in a fixed spelling: keys in the given order, no blanks, ASCII only."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: Any, length: int = 12) -> str:
    """First `length` hexadecimal digits of the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def _texts(value: Any, location: tuple[int | str, ...] = ()) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Every text and every key in a TOML value, with its location."""
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield location, key
            yield from _texts(inner, (*location, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*location, index))


def _unseen(text: str, allowed: str) -> str:
    """The first invisible character of a text, as U+000A; empty where there is none."""
    if text.isprintable():  # no letter of these categories; nearly every text
        return ""
    unseen = (letter for letter in text if unicodedata.category(letter) in _UNSEEN and letter not in allowed)
    return next((f"U+{ord(letter):04X}" for letter in unseen), "")


def _explanation(problem: ErrorDetails, model: type[BaseModel]) -> str:
    location, key = problem["loc"], _key(problem["loc"])
    if problem["type"] == "extra_forbidden":
        known = _known_keys(model, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        return f"unknown key '{key}'; {hint}known here: {', '.join(known)}"
    if problem["type"] == "missing":
        return f"key '{key}' is missing; add it"
    where = f"key '{key}': " if location else ""
    message = problem["msg"].removeprefix("Value error, ")
    given = "" if problem["type"] == "value_error" else f"; given: {_shorten(problem['input'])}"
    return f"{where}{message[0].lower()}{message[1:]}{given}"


def _key(location: tuple[int | str, ...]) -> str:
    """A location as people write it: ('groups', 0, 'axes') as groups[0].axes."""
    # pydantic adds "[key]" after the key of a table.
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]"]
    return "".join(parts).lstrip(".")


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The field names of the model at a location inside `model`."""
    current: Any = model
    for part in location:
        if isinstance(part, str) and isinstance(current, type) and issubclass(current, BaseModel):
            current = current.model_fields[part].annotation if part in current.model_fields else current
        current = _inner_model(current) or current
    return list(current.model_fields) if hasattr(current, "model_fields") else []


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model inside tuple[Model, ...], dict[str, Model] or Model | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for argument in get_args(annotation) if (model := _inner_model(argument))), None)


def _shorten(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
