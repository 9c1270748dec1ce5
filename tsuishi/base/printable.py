"""What others wrote, fit to print: nothing of it moves a cursor, hides, turns text around, or begins a line."""

import unicodedata
from typing import Any, TextIO


def visible(value: Any) -> Any:
    """The same JSON value with everything unprintable in its strings made visible.

    Control characters, lone surrogates and characters that turn the direction of what follows become ⟨U+…⟩:
    they break files, or show a reader something other than what is there. The end of a line and a tab stay.
    """
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else "".join(map(_visible_character, value))
    if isinstance(value, dict):
        return {visible(key): visible(entry) for key, entry in value.items()}
    return [visible(entry) for entry in value] if isinstance(value, list) else value


def line(value: object) -> str:
    """Text as one line: whatever it says, it cannot be taken for another line.

    >>> line("no such file\\nreport: elsewhere")
    'no such file⟨U+000A⟩report: elsewhere'
    """
    return str(visible(str(value))).replace("\n", "⟨U+000A⟩")


class VisibleStream:
    """A text stream that makes visible what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _visible_character(character: str) -> str:
    odd = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character not in "\n\t"
    return f"⟨U+{ord(character):04X}⟩" if odd else character
