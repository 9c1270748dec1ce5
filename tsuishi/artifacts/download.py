"""The download of a file: it continues where an earlier download stopped, and verifies size and hash.

The part holds the bytes so far, from one server or several.
"""

import fcntl
import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from tsuishi.artifacts.network import Network, failures, paced, public_url, reason
from tsuishi.base import threads
from tsuishi.base.errors import UserError
from tsuishi.base.files import advice, sha256_of
from tsuishi.base.screen import Momentary, Progress, Say

if TYPE_CHECKING:
    from httpx2 import Response
    from unearth.fetchers.sync import PyPIClient

_PAGE = (b"<!doctype html", b"<html")
_LOCK_POLL_S = 0.1


class SourceFailed(UserError):
    """A source does not give the expected file; another source may."""


@dataclass(frozen=True)
class ExpectedFile:
    """A file as a lock describes it: its name, its possible hashes, and perhaps its size."""

    file: str
    sha256: tuple[str, ...]
    size_bytes: int | None = None


class Download:
    """The download of a file into its part. The caller holds `part_lock`."""

    def __init__(
        self, expected: ExpectedFile, part: Path, client: "PyPIClient", network: Network, say: Say, progress: Progress
    ) -> None:
        self._expected = expected
        self._part = part
        self._client = client
        self._network = network
        self._say = say
        self._progress = progress
        self._counted = 0

    def run(self, url: str) -> str:
        """Fetch the rest of the part and verify the whole. Returns its SHA-256, in hexadecimal.

        Raises SourceFailed where the URL does not give the expected file, and UserError where this machine cannot
        write it. A part that a later download can continue is left in its place.
        """
        try:
            continued = self._receive(url)
        except SourceFailed:
            self._count(-self._counted)  # the next source counts the kept bytes again
            raise
        actual = sha256_of(self._part)
        if actual in self._expected.sha256:
            return actual
        substitute = _kind(self._part)
        self._forget()
        if not continued:
            expected = " or ".join(self._expected.sha256[:2])
            raise SourceFailed(f"{public_url(url)}: sha256 is {actual}, expected {expected}: that is {substitute}")
        self._say(f"the kept part of {self._expected.file} does not fit {public_url(url)}: starting over")
        return self.run(url)

    def _receive(self, url: str) -> bool:
        """Bring the part to its full length. Returns whether it holds bytes of an earlier download."""
        kept = self._kept()
        if self._expected.size_bytes and kept >= self._expected.size_bytes:
            return True
        try:
            with self._client.stream("GET", url, headers=_headers(kept)) as response:
                if response.status_code == 416 and kept and not self._expected.size_bytes:
                    return True
                self._refuse_another_size(url, response, kept)
                continues = response.status_code == 206
                if continues and not kept:
                    raise SourceFailed(f"{public_url(url)}: it sends a part, and the whole file was asked for")
                if continues and _first_byte(response) != kept:
                    self._forget()  # the server sends other bytes than those asked for: ask for all bytes
                    return self._receive(url)
                response.raise_for_status()
                doing = "going on with" if continues else "fetching"
                self._say(Momentary(f"{doing} {self._expected.file} from {_server(url)}"))
                self._write(url, response, kept if continues else 0)
                return continues
        except failures() as error:
            problem = reason(error, url, self._network)
            raise SourceFailed(f"{public_url(url)}: {problem}{self._kept_bytes()}") from error
        except OSError as error:
            raise UserError(
                f"{error.filename or self._part}: {error.strerror or error}{self._kept_bytes()}: {advice(error)}, then "
                "start it again"
            ) from error

    def _refuse_another_size(self, url: str, response: "Response", kept: int) -> None:
        """Raise SourceFailed for a file of another size, before it is received and before the kept bytes are lost."""
        stated = response.headers.get("Content-Length") if response.status_code == 200 else None
        size = f"at most {kept}" if response.status_code == 416 and kept else stated
        if self._expected.size_bytes and size not in (None, str(self._expected.size_bytes)):
            page = " (an HTML page)" if response.headers.get("Content-Type", "").startswith("text/html") else ""
            raise SourceFailed(
                f"{public_url(url)}: it has {size} bytes{page}, and {self._expected.file} {self._expected.size_bytes}"
                f"{self._kept_bytes()}"
            )

    def _write(self, url: str, response: "Response", begin: int) -> None:
        """Write a body to the part, from byte `begin` on."""
        if not begin:
            self._forget()
        size = begin
        self._count(begin)
        limit = self._expected.size_bytes or math.inf
        with self._part.open("ab") as file:
            # Not decoded: some servers declare the compression of the file itself as an encoding.
            for chunk in paced(response.iter_raw(), self._network):
                size += len(chunk)
                if size > limit:
                    break
                file.write(chunk)
                self._count(len(chunk))
            file.flush()
            os.fsync(file.fileno())
        if size > limit:  # only now, as closing the file would write its buffer after `_forget`
            self._forget()
            raise SourceFailed(f"{public_url(url)}: it sends more than the {limit} bytes of {self._expected.file}")

    def _kept(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _kept_bytes(self) -> str:
        total = f" of {self._expected.size_bytes}" if self._expected.size_bytes else ""
        return f" ({self._kept()}{total} bytes are kept)" if self._kept() else ""

    def _count(self, size: int) -> None:
        if size:
            self._counted += size
            self._progress(size)

    def _forget(self) -> None:
        """Empty the part. It is not removed, because its lock would go with it."""
        if self._part.exists():
            os.truncate(self._part, 0)
        self._count(-self._counted)


@contextmanager
def part_lock(part: Path, file: str, say: Say) -> Iterator[None]:
    """Hold the lock of a file's part, after waiting for other threads and processes. It ends with its process.

    A part that is empty in the end is removed.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with part.open("ab") as stream:
            _lock(stream, f"waiting for another download of {file}", say)
            try:
                still_there = os.path.samestat(os.fstat(stream.fileno()), part.stat())
            except FileNotFoundError:
                still_there = False
            if not still_there:  # its last holder finished the file or removed the part
                continue
            try:
                yield
            finally:
                if part.exists() and not part.stat().st_size:
                    part.unlink()
            return


def _lock(file: IO[bytes], waiting: str, say: Say) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                say(waiting)
            waiting = ""
            threads.check()
            time.sleep(_LOCK_POLL_S)
        else:
            return


def _headers(kept: int) -> dict[str, str]:
    """Headers that ask for the bytes after the kept bytes. Where the file has changed since, the hash tells."""
    return {"Accept-Encoding": "identity"} | ({"Range": f"bytes={kept}-"} if kept else {})


def _server(url: str) -> str:
    """The server of a URL, or its folder where it is a file: URL."""
    parts = urlsplit(public_url(url))
    return parts.netloc or parts.path.rpartition("/")[0]


def _kind(file: Path) -> str:
    """The kind of a file with a wrong hash, in words."""
    with file.open("rb") as stream:
        begin = stream.read(512)
    if not begin:
        return "an empty file"
    return "an HTML page" if begin.lstrip().lower().startswith(_PAGE) else "another file"


def _first_byte(response: "Response") -> int | None:
    """The first byte of a partial response, from its Content-Range; None where it states none."""
    match = re.match(r"bytes ([0-9]+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None
