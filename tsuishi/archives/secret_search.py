"""The search for secrets in what enters an archive: what has the form of a secret, and secrets of this user."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.redaction import holds_secret
from tsuishi.base.seals import key_file

# A variable of this name holds a secret, unless its value is too short to be told from a word.
_NAME = re.compile(r"(?i)pass(wd|word|phrase)?$|pwd$|secret|token|credential|(api|access|private|auth)_?key|_auth$")
_SHORTEST = 8
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_NETRC = re.compile(r"(?:^|\s)password\s+(\S+)")
# Files of a user in which programs keep passwords: in URLs, or as netrc has them.
_KEPT = (".netrc", ".git-credentials", ".config/pip/pip.conf", ".pip/pip.conf", ".pypirc", ".config/git/credentials")
_ASSIGNED = re.compile(r"(?im)^\s*[\w.-]*(?:password|token|secret)[\w.-]*\s*[=:]\s*[\"']?([^\s\"',]+)")
# Text that may hold a secret has one of these; most of a run are numbers.
_HINT = re.compile(
    rb"(?i)pass|pwd|secret|token|key|auth|bearer|akia|asia|aiza|gh[oprsu]_|github_pat|glpat|hf_|pypi-|sk-|xox|eyj|://[^/\s]+@"
)
_NEW_LINE = b"\n"
# No secret is longer than that; so much of a piece is read again with the next piece.
_OVERLAP = 4096


class Secrets:
    """Texts that must not enter an archive. values: such texts; names: further texts, in any case, as whole words."""

    def __init__(self, values: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self.values = tuple(sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True))
        self._values = _any_of(self.values)
        self._names = _any_of(names, rb"(?i)(?<![A-Za-z0-9])", rb"(?![A-Za-z0-9])")

    def problem(self, text: str) -> str:
        """Which kind of secret a text holds; empty where it holds none."""
        return self.problem_in([text.encode(errors="replace")])

    def problem_in(self, pieces: Iterable[bytes]) -> str:
        """The same of a text that comes in pieces, with the line."""
        line, overlap = 1, b""
        for piece in pieces:
            text = overlap + piece
            if match := self._found(text):
                what, place = match
                return f"line {line + text[:place].count(_NEW_LINE)} {what}"
            cut = max(0, len(text) - _OVERLAP)
            line, overlap = line + text[:cut].count(_NEW_LINE), text[cut:]
        return ""

    def _found(self, text: bytes) -> tuple[str, int] | None:
        """What was found, and its place."""
        if self._values and (match := self._values.search(text)):
            return "holds a secret of this user, which a variable or a file names so", match.start()
        if self._names and (match := self._names.search(text)):
            return "names a user or a machine", match.start()
        if _HINT.search(text):
            for match in re.finditer(rb"[^\n]+", text):
                if _HINT.search(match[0]) and holds_secret(match[0].decode(errors="replace")):
                    return "has the form of a secret", match.start()
        return None


def _any_of(texts: Iterable[str], before: bytes = b"", after: bytes = b"") -> re.Pattern[bytes] | None:
    wanted = [re.escape(text.encode()) for text in sorted(set(texts), key=len, reverse=True) if text]
    return re.compile(before + rb"(?:" + rb"|".join(wanted) + rb")" + after) if wanted else None


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
        found.update(_spelled(files.read_bytes(key_file(), 64)))
    return frozenset(value for value in found if len(value) >= _SHORTEST and not value.startswith("/"))


def _spelled(key: bytes) -> Iterator[str]:
    yield key.hex()
