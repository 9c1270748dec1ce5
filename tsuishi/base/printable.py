"""Text of others, made safe to print: it cannot move the cursor, hide, turn the direction of text, or add a line."""

import io
import os
import re
import sys
import unicodedata
from typing import Any, TextIO

# The bytes of plain ASCII that need no look at each character; a line's end is among them.
PRINTABLE_ASCII = bytes([ord("\n"), *range(0x20, 0x7F)])


def visible(value: Any) -> Any:
    """The same JSON value with every unprintable character in its strings as ⟨U+…⟩.

    Control characters, lone surrogates and characters that turn the direction of text break files, or deceive the
    reader. Line ends and tabs stay.
    """
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else value.translate(_SHOWN)
    if isinstance(value, dict):
        return {visible(key): visible(entry) for key, entry in value.items()}
    return [visible(entry) for entry in value] if isinstance(value, list) else value


def alphanumerics(text: str) -> str:
    """A text in lower case, its letters and digits of any script: for names that people write in several ways."""
    return re.sub(r"[\W_]+", "", text.casefold())


def line(value: object) -> str:
    """Text on one line, with its line ends made visible: no part can look like a separate line.

    >>> line("no such file\\nreport: elsewhere")
    'no such file⟨U+000A⟩report: elsewhere'
    """
    return str(visible(str(value))).replace("\n", "⟨U+000A⟩")


def open_standard_streams() -> None:
    """Let closed standard streams lead nowhere, and put `?` where the terminal's encoding lacks a character.

    A file that is opened while one of them is closed would have its number, and get all that programs print.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w")
            setattr(sys, name, nowhere)
            setattr(sys, f"__{name}__", nowhere)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


class _UntilClosed(io.FileIO):
    """A file that loses what is written after its reader had enough, as `head` has."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return memoryview(data).nbytes


def answering(stream: TextIO) -> TextIO:
    """The stream for an answer that its reader may close before its end."""
    file = io.BufferedWriter(_UntilClosed(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(file, stream.encoding, "replace", line_buffering=stream.isatty())


class VisibleStream:
    """A text stream that passes everything through `visible`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _visible_character(character: str) -> str:
    odd = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character not in "\n\t"
    return f"⟨U+{ord(character):04X}⟩" if odd else character


class _Shown(dict[int, str]):
    """What is shown of each character, by its number; each is looked up once."""

    def __missing__(self, number: int) -> str:
        return self.setdefault(number, _visible_character(chr(number)))


_SHOWN = _Shown()
