"""Seals show whether this user wrote a content: they are made with a key that only this user has.

A seal is an HMAC-SHA256. A person who can write to a cache, or hands over a run, can make a digest but no seal.
"""

import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from tsuishi.base import files, home
from tsuishi.base.errors import UserError

_KEY_BYTES = 32


def seal(content: bytes, purpose: str) -> str:
    """The seal of a content for a purpose, in hexadecimal; it does not count for another purpose.

    Raises UserError where the key cannot be made, or where others can read it.
    """
    return _code(content, purpose).hex()


def is_ours(content: bytes, purpose: str, seal: str) -> bool:
    """Whether this user sealed this content for this purpose. Raises UserError as `seal` does."""
    return hmac.compare_digest(_code(content, purpose).hex().encode(), seal.encode(errors="replace"))


def read(path: Path, purpose: str, most: int = files.MOST_BYTES) -> bytes | None:
    """The content of a file that `write` wrote; None where it has no seal of this user for this purpose.

    most: the most bytes of a file that is read. Raises UserError where the file cannot be read, and as `seal` does.
    """
    seal, line_end, content = files.read_bytes(path, most).partition(b"\n")
    return content if line_end and is_ours(content, purpose, seal.decode(errors="replace")) else None


def write(path: Path, content: bytes, purpose: str) -> None:
    """Write a content with its seal before it, on a line of its own. Raises UserError as `seal` does."""
    files.write_bytes(path, f"{seal(content, purpose)}\n".encode() + content)


def _code(content: bytes, purpose: str) -> bytes:
    code = hmac.new(_key(), purpose.encode() + b"\0", "sha256")
    code.update(content)
    return code.digest()


def key_file() -> Path:
    """The path of this user's key."""
    return home.configuration() / "key"


def _key() -> bytes:
    """The key of this user; the first call makes it."""
    path = key_file()
    if not os.path.lexists(path):
        _make(path)
    key = files.read_bytes(path, _KEY_BYTES)
    about = path.stat()
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077 or len(key) != _KEY_BYTES:
        raise UserError(f"{path}: no key that only you can read: remove it, and another is made")
    return key


def _make(path: Path) -> None:
    """Make the key. Of several processes at once only one makes it; no process sees a part of the key."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError), files.replacing(path, 0o600) as file:
            if os.path.lexists(path):  # another process held the lock of the new file before
                raise FileExistsError
            file.buffer.write(secrets.token_bytes(_KEY_BYTES))
    except OSError as error:
        remedy = "make its folder writable, or set XDG_CONFIG_HOME"
        why = error.strerror or error
        raise UserError(f"{path}: the key of this user cannot be made: {why}: {remedy}") from error
