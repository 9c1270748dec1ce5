"""The search for secrets in the files of an archive: texts that look like a secret, and secrets of this user."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.redaction import holds_secret
from tsuishi.base.seals import key_file

# A variable of this name holds a secret, unless its value is too short to differ from a word.
_NAME = re.compile(r"(?i)pass(wd|word|phrase)?$|pwd$|secret|token|credential|(api|access|private|auth)_?key|_auth$")
_SHORTEST = 8
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_NETRC = re.compile(r"(?:^|\s)password\s+(\S+)")
# Files of a user in which programs keep passwords: in URLs, or as netrc has them.
_KEPT = (".netrc", ".git-credentials", ".config/pip/pip.conf", ".pip/pip.conf", ".pypirc", ".config/git/credentials")
_ASSIGNED = re.compile(r"(?im)^[^\S\n]*+(?=[\w.-]*?(?:password|token|secret))[\w.-]++\s*+[=:]\s*+[\"']?([^\s\"',]+)")
# A text that has the form of a secret has one of these, in small letters. Most of a run are numbers, and looking for
# words is a hundred times as fast there as looking for forms.
_HINTS = (
    *(
        b"pass",
        b"pwd",
        b"secret",
        b"token",
        b"key",
        b"auth",
        b"bearer",
        b"akia",
        b"asia",
        b"aiza",
        b"gh",
        b"github_pat",
    ),
    *(b"glpat", b"hf_", b"pypi-", b"sk-", b"xox", b"eyj", b"://"),
)
_NEW_LINE = b"\n"
# No secret is longer than that; so much of a piece is read again with the next piece.
_OVERLAP = 4096
_LONG = 1 << 20


class Secrets:
    """Texts that must not enter an archive. values: such texts; names: further texts, in any case, as whole words."""

    def __init__(self, values: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self._values = [value.encode() for value in set(values) if len(value) >= _SHORTEST]
        self._names = [(name.lower().encode(), _whole_word(name)) for name in set(names) if name]

    def problem(self, text: str) -> str:
        """Which kind of secret a text holds; empty where it holds none."""
        return self.problem_in([text.encode(errors="replace")])

    def problem_in(self, pieces: Iterable[bytes]) -> str:
        """The same for a text in pieces, with the line."""
        line, overlap = 1, b""
        for piece in _joined(pieces):
            text = overlap + piece
            if match := self._found(text):
                what, place = match
                return f"line {line + text[:place].count(_NEW_LINE)} {what}"
            cut = max(0, len(text) - _OVERLAP)
            line, overlap = line + text[:cut].count(_NEW_LINE), text[cut:]
        return ""

    def _found(self, text: bytes) -> tuple[str, int] | None:
        """The kind of secret in a text, and its place."""
        for value in self._values:
            if value in text:
                return "holds a secret of this user, from a variable or a file", text.index(value)
        small = text.lower()
        for name, word in self._names:
            if name in small and (match := word.search(text)):
                return "names a user or a machine", match.start()
        if any(hint in small for hint in _HINTS) and holds_secret(text.decode(errors="replace")):
            lines = (
                match for match in re.finditer(rb"[^\n]+", text) if holds_secret(match[0].decode(errors="replace"))
            )
            return "has the form of a secret", next((match.start() for match in lines), 0)
        return None


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same text in pieces that are much longer than the overlap."""
    short = bytearray()
    for piece in pieces:
        short += piece
        if len(short) >= _LONG:
            yield bytes(short)
            short.clear()
    yield bytes(short)


def _whole_word(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?i)(?<![A-Za-z0-9])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9])")


def secrets_here(environ: Mapping[str, str], home: Path, urls: Sequence[str]) -> frozenset[str]:
    """The secrets of this user: in variables, in files of programs, in these URLs, and the key of seals."""
    found = {value for name, value in environ.items() if _NAME.search(name)}
    texts = [*environ.values(), *urls]
    for name in _KEPT:
        with suppress(UserError):
            text = files.read_bytes(home / name, 1 << 20).decode(errors="replace")
            texts.append(text)
            found.update(_NETRC.findall(text), _ASSIGNED.findall(text))
    for text in texts:
        found.update(_URL_PASSWORD.findall(text))
    with suppress(UserError):
        found.add(files.read_bytes(key_file(), 64).hex())
    return frozenset(value for value in found if len(value) >= _SHORTEST and not value.startswith("/"))
