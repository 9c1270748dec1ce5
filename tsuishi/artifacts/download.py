"""One file on its way from a server: gone on from where it stopped, and held to what is known of it.

<part>        what there is of it, whatever ended it, and from whichever server
<part>.json   which version of which URL the part is of, for If-Range (RFC 9110, 13.1.5)
"""

import errno
import fcntl
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from tsuishi.artifacts.cache import sha256_of
from tsuishi.artifacts.network import Network, failures, paced, shown, why
from tsuishi.base import files, threads
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Momentary, Progress, Say

if TYPE_CHECKING:
    from httpx2 import Response
    from unearth.fetchers.sync import PyPIClient

_PAGE = (b"<!doctype html", b"<html")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOCK_POLL_S = 0.1


class SourceFailed(UserError):
    """One place does not give what is wanted; another may."""


@dataclass(frozen=True)
class Wanted:
    """What is known of a file: its name, the hashes any of which it may have, and perhaps its size."""

    file: str
    sha256: tuple[str, ...]
    size_bytes: int | None = None


class Download:
    """One file on its way to its part."""

    def __init__(
        self, wanted: Wanted, part: Path, client: "PyPIClient", network: Network, say: Say, progress: Progress
    ) -> None:
        self._wanted = wanted
        self._part = part
        self._version = _version_file(part)
        self._client = client
        self._network = network
        self._say = say
        self._progress = progress
        self._counted = 0

    def run(self, url: str) -> str:
        """Fetch what is missing of the part and verify it; its sha256.

        Raises SourceFailed where the URL does not give what is wanted, and UserError where this machine cannot keep
        it; a part that may be gone on from is left there.
        """
        try:
            went_on = self._receive(url)
        except SourceFailed:
            self._count(-self._counted)  # another source will count what is kept
            raise
        actual = sha256_of(self._part)
        if actual in self._wanted.sha256:
            self._version.unlink(missing_ok=True)
            return actual
        instead = _what_it_is(self._part)
        self._forget()
        if not went_on:
            expected = " or ".join(self._wanted.sha256[:2])
            raise SourceFailed(f"{shown(url)}: sha256 is {actual}, expected {expected}: that is {instead}")
        self._say(f"what was there of {self._wanted.file} does not fit what {shown(url)} has: starting over")
        return self.run(url)

    def _receive(self, url: str) -> bool:
        """Bring the part to its full length; whether something of an earlier time is in it."""
        kept = self._kept()
        if self._wanted.size_bytes and kept >= self._wanted.size_bytes:
            return True
        try:
            with self._client.stream("GET", url, headers=self._headers(url, kept)) as response:
                if response.status_code == 416 and kept and not self._wanted.size_bytes:
                    return True
                self._refuse_another(url, response, kept)
                goes_on = response.status_code == 206
                if goes_on and not kept:
                    raise SourceFailed(f"{shown(url)}: it gives a part of the file where all of it was asked for")
                if goes_on and _first_byte(response) != kept:
                    self._forget()  # other bytes than asked for: all of them, then
                    return self._receive(url)
                response.raise_for_status()
                doing = "going on with" if goes_on else "fetching"
                self._say(Momentary(f"{doing} {self._wanted.file} from {_place(url)}"))
                self._write(url, response, kept if goes_on else 0)
                return goes_on
        except failures() as error:
            raise SourceFailed(f"{shown(url)}: {why(error, url, self._network)}{self._what_is_kept()}") from error
        except OSError as error:
            advice = "free some room" if error.errno in _FULL else "mend that"
            raise UserError(
                f"{error.filename or self._part}: {error.strerror or error}{self._what_is_kept()}: {advice}, then "
                "start it again"
            ) from error

    def _refuse_another(self, url: str, response: "Response", kept: int) -> None:
        """What has another size is not waited for, and what is kept not given up for it."""
        stated = response.headers.get("Content-Length") if response.status_code == 200 else None
        size = f"at most {kept}" if response.status_code == 416 and kept else stated
        if self._wanted.size_bytes and size not in (None, str(self._wanted.size_bytes)):
            page = " (an HTML page)" if response.headers.get("Content-Type", "").startswith("text/html") else ""
            raise SourceFailed(
                f"{shown(url)}: it has {size} bytes{page}, and {self._wanted.file} {self._wanted.size_bytes}"
                f"{self._what_is_kept()}"
            )

    def _write(self, url: str, response: "Response", begin: int) -> None:
        """Put a body where it belongs; its version is noted before its first byte."""
        if not begin:
            self._forget()
            files.write_json(self._version, {"url": shown(url), "version": _version(response.headers)})
        size = begin
        self._count(begin)
        limit = self._wanted.size_bytes or math.inf
        with self._part.open("ab") as file:
            # Raw: what a server takes for an encoding is the file itself.
            for chunk in paced(response.iter_raw(), self._network):
                size += len(chunk)
                if size > limit:
                    break
                file.write(chunk)
                self._count(len(chunk))
            file.flush()
            os.fsync(file.fileno())
        if size > limit:  # told once the file is closed, which would write what it had not yet written
            self._forget()
            raise SourceFailed(f"{shown(url)}: it sends more than the {limit} bytes of {self._wanted.file}")

    def _headers(self, url: str, kept: int) -> dict[str, str]:
        """Ask for the bytes as they are, from those kept on; for all of them, if the version has changed."""
        headers = {"Accept-Encoding": "identity"}
        if kept:
            headers["Range"] = f"bytes={kept}-"
            known = files.read_json(self._version) if self._version.exists() else {}
            if known.get("url") == shown(url) and known.get("version"):
                headers["If-Range"] = known["version"]
        return headers

    def _kept(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _what_is_kept(self) -> str:
        of = f" of {self._wanted.size_bytes}" if self._wanted.size_bytes else ""
        return f" ({self._kept()}{of} bytes are kept)" if self._kept() else ""

    def _count(self, size: int) -> None:
        if size:
            self._counted += size
            self._progress(size)

    def _forget(self) -> None:
        """Empty the part: whoever holds it goes on holding it."""
        if self._part.exists():
            os.truncate(self._part, 0)
        self._version.unlink(missing_ok=True)
        self._count(-self._counted)


@contextmanager
def held(part: Path, file: str, say: Say) -> Iterator[None]:
    """Have the part of a file to oneself, after every other thread and process; one that is killed lets go of it.

    What is empty in the end is removed.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with part.open("ab") as opened:
            _lock(opened, f"waiting for another download of {file}", say)
            try:
                ours = os.path.samestat(os.fstat(opened.fileno()), part.stat())
            except FileNotFoundError:
                ours = False
            if not ours:  # whoever had it made it whole, or gave it up
                continue
            try:
                yield
            finally:
                if part.exists() and not part.stat().st_size:
                    part.unlink()
                    _version_file(part).unlink(missing_ok=True)
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


def _version_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _place(url: str) -> str:
    """The server or folder of a URL."""
    parts = urlsplit(shown(url))
    return parts.netloc or parts.path.rpartition("/")[0]


def _what_it_is(file: Path) -> str:
    """What came in place of what was wanted."""
    with file.open("rb") as opened:
        begin = opened.read(512)
    if not begin:
        return "an empty file"
    return "an HTML page" if begin.lstrip().lower().startswith(_PAGE) else "another file"


def _first_byte(response: "Response") -> int | None:
    """Where a partial response begins, by its Content-Range."""
    match = re.match(r"bytes ([0-9]+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _version(headers: Mapping[str, str]) -> str:
    """What If-Range may name: a strong ETag, else the date of the last change; empty where there is neither."""
    etag = headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
