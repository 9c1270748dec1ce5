"""The language of a report. English is what the code says; other languages are catalogues, languages/<code>.po.

Messages are whole sentences with named fields, so that a translation may order them as its language does:
`t("{count} of {all} trials", count=3, all=8)`. What was recorded (reasons, logs, names) is never translated.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from tsuishi.base.errors import unknown

ENGLISH = "en"
CATALOGUES = Path(__file__).parent / "languages"
_active: ContextVar[str] = ContextVar("language", default=ENGLISH)


def languages() -> tuple[str, ...]:
    """Codes (ISO 639-1) of all languages, English first."""
    return (ENGLISH, *sorted(path.stem for path in CATALOGUES.glob("*.po")))


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Everything said in this block is said in that language. Raises UserError for an unknown one."""
    if language not in languages():
        raise unknown("language", language, languages())
    token = _active.set(language)
    try:
        yield
    finally:
        _active.reset(token)


def active() -> str:
    """The code of the language that is spoken."""
    return _active.get()


def t(message: str, /, **values: Any) -> str:
    """The message in the active language, its fields filled in; in English where there is no translation."""
    translated = message if active() == ENGLISH else _catalogue(active()).get(message) or message
    return translated.format(**values) if values else translated


def in_words(values: Iterable[Any]) -> str:
    """A list as the active language writes it: "1", "1 and 2", "1, 2 and 3"."""
    from babel.lists import format_list

    # American English has a comma before "and".
    return format_list([str(value) for value in values], locale="en_GB" if active() == ENGLISH else active())


def prose(sentences: Iterable[str]) -> str:
    """Sentences as a paragraph, without the empty ones; a full stop as wide as a letter needs no space after it."""
    return " ".join(filter(None, sentences)).replace("。 ", "。")


def mark(message: str) -> str:
    """The message as it is, marked as one for catalogues where it is a constant that `t` gets later."""
    return message


@cache
def _catalogue(language: str) -> dict[str, str]:
    """Translations by message; fuzzy ones are none."""
    from babel.messages.pofile import read_po

    with (CATALOGUES / f"{language}.po").open(encoding="utf-8") as file:
        return {str(message.id): str(message.string) for message in read_po(file) if message.id and not message.fuzzy}
