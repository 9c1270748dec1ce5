"""What is asked of servers before there is a lock: short texts, sizes, and files whose hash nobody knows yet."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.client import http_client
from tsuishi.artifacts.network import Network, failures, file_of, paced, public_url, reason
from tsuishi.base.errors import UserError
from tsuishi.base.files import temporary_folder
from tsuishi.base.screen import Say
from tsuishi.base.settings import mirrored_url

if TYPE_CHECKING:
    from httpx2 import Response
    from unearth.fetchers.sync import PyPIClient

# A key, or a page of an index; not a file to be kept.
_LONGEST_TEXT = 4 << 20


class Servers:
    """The servers of one lock, or what the mirror map has in their place."""

    def __init__(
        self, cache: Cache, network: Network, mirrors: Mapping[str, str], indexes: Sequence[str], say: Say
    ) -> None:
        self.network = network
        self._cache = cache
        self._mirrors = mirrors
        self._indexes = indexes
        self._say = say

    def place(self, url: str) -> str:
        """Where a URL is taken from."""
        return mirrored_url(url, self._mirrors)

    def text(self, url: str) -> bytes:
        """What is at a URL. Raises UserError where it cannot be had."""
        body = b""
        with self._asking(url) as response:
            for chunk in paced(response.iter_bytes(), self.network):
                body += chunk
                if len(body) > _LONGEST_TEXT:
                    raise UserError(f"{public_url(url)}: it sends more than {_LONGEST_TEXT} bytes")
        return body

    def why_not(self, index: str) -> str:
        """Why a package index is out of reach; empty where it answers, if only that it does not have that page."""
        page = f"{self.place(index).rstrip('/')}/pip/"
        if folder := local(self.place(index)):
            return "" if folder.exists() else "there is no such folder"
        try:
            with self._client.stream("GET", page) as response:
                return f"{response.status_code} {response.reason_phrase}" if response.is_server_error else ""
        except failures() as error:
            return reason(error, page, self.network)

    def size(self, url: str) -> int | None:
        """Bytes of a file, as its server states them; None where it does not."""
        if file := local(url):
            return file.stat().st_size
        try:
            response = self._client.head(self.place(url), headers={"Accept-Encoding": "identity"})
        except failures():
            return None
        stated = response.headers.get("Content-Length", "") if response.is_success else ""
        return int(stated) if re.fullmatch("[0-9]{1,15}", stated) else None

    def take(self, urls: Sequence[str]) -> Path:
        """The file at the first of these URLs that gives it, in the cache. Raises UserError naming every one."""
        problems = []
        for url in urls:
            try:
                return self._take(url)
            except UserError as error:
                problems.append(str(error))
        raise UserError("; nor ".join(problems))

    def _take(self, url: str) -> Path:
        name = file_of(url)
        digest = hashlib.sha256()
        with (
            temporary_folder(self._cache.root, ".unseen-") as folder,
            (folder / "part").open("wb") as part,
        ):
            with self._asking(url) as response:
                self._say(f"fetching {name}, to see its hash")
                stated = response.headers.get("Content-Length")
                for chunk in paced(response.iter_raw(), self.network):
                    digest.update(chunk)
                    part.write(chunk)
            part.flush()
            if stated and str(part.tell()) != stated:
                raise UserError(f"{public_url(url)}: it sent {part.tell()} of {stated} bytes")
            return self._cache.keep(Path(part.name), name, digest.hexdigest())

    @contextmanager
    def _asking(self, url: str) -> Iterator["Response"]:
        place = self.place(url)
        try:
            with self._client.stream("GET", place, headers={"Accept-Encoding": "identity"}) as response:
                yield response.raise_for_status()
        except failures() as error:
            raise UserError(f"{public_url(place)}: {reason(error, place, self.network)}") from error

    @cached_property
    def _client(self) -> "PyPIClient":
        return http_client(self.network, self._indexes, unlocked=True)


def local(url: str) -> Path | None:
    """What a file URL, or a path, stands for; None for what is on a server."""
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme in ("", "file") else None
