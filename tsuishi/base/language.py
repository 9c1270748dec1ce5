"""The language of a report. The code holds English; languages/<code>.po holds the translations.

Messages are whole sentences with named fields, so that a translation may change the order of the fields:
`t("{count} of {all} trials", count=3, all=8)`. Recorded texts (reasons, logs, names) are never translated.
"""

from collections.abc import Iterable, Iterator, Mapping
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
    """Make a language active inside a block. Raises UserError for an unknown language."""
    if language not in languages():
        raise unknown("language", language, languages())
    token = _active.set(language)
    try:
        yield
    finally:
        _active.reset(token)


def active() -> str:
    """The code of the active language."""
    return _active.get()


def t(message: str, /, **values: Any) -> str:
    """The message in the active language, with its fields filled in; English where a translation is missing."""
    translated = message if active() == ENGLISH else _catalogue(active()).get(message) or message
    return translated.format(**values) if values else translated


def in_language(texts: Mapping[str, str]) -> str:
    """The text for the active language, of texts by language; the English text where that language has none."""
    return texts.get(active()) or texts[ENGLISH]


def in_words(values: Iterable[Any]) -> str:
    """A list as the active language writes it: "1", "1 and 2", "1, 2 and 3"."""
    from babel.lists import format_list

    # American English has a comma before "and".
    return format_list([str(value) for value in values], locale="en_GB" if active() == ENGLISH else active())


def prose(sentences: Iterable[str]) -> str:
    """A paragraph of the sentences that are not empty. No space follows a Chinese or Japanese full stop."""
    return " ".join(filter(None, sentences)).replace("。 ", "。")


def mark(message: str) -> str:
    """The message unchanged. The call marks a constant for the catalogues; `t` translates it later."""
    return message


@cache
def _catalogue(language: str) -> dict[str, str]:
    """Translations by message, without those that the catalogue marks as fuzzy."""
    from babel.messages.pofile import read_po

    with (CATALOGUES / f"{language}.po").open(encoding="utf-8") as file:
        return {str(message.id): str(message.string) for message in read_po(file) if message.id and not message.fuzzy}
