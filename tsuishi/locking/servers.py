"""Requests to servers before a lock exists: short texts, sizes, and files whose hash is not known yet."""

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

# Bytes of a key or a page of an index. Files are not read as texts.
_LONGEST_TEXT = 4 << 20


class Servers:
    """The servers of a lock, or their mirrors."""

    def __init__(
        self, cache: Cache, network: Network, mirrors: Mapping[str, str], indexes: Sequence[str], say: Say
    ) -> None:
        self.network = network
        self._cache = cache
        self._mirrors = mirrors
        self._indexes = indexes
        self._say = say

    def place(self, url: str) -> str:
        """The URL to use in place of a URL, by the mirror map."""
        return mirrored_url(url, self._mirrors)

    def text(self, url: str, accept: str = "*/*") -> bytes:
        """The content of a URL. Raises UserError where it cannot be had, or has more than 4 MiB.

        `accept`: the media type that is asked for; a server may send another.
        """
        body = b""
        with self._response(url, accept) as response:
            for chunk in paced(response.iter_bytes(), self.network):
                body += chunk
                if len(body) > _LONGEST_TEXT:
                    raise UserError(f"{public_url(url)}: it sends more than {_LONGEST_TEXT} bytes")
        return body

    def why_not(self, index: str) -> str:
        """Why a package index is out of reach; empty where it answers, even with the status 404."""
        page = f"{self.place(index).rstrip('/')}/pip/"
        if folder := local(self.place(index)):
            return "" if folder.exists() else "there is no such folder"
        try:
            with self._client.stream("GET", page) as response:
                return f"{response.status_code} {response.reason_phrase}" if response.is_server_error else ""
        except failures() as error:
            return reason(error, page, self.network)

    def size(self, url: str) -> int | None:
        """The size of a file in bytes, as its server states it; None where the server states none."""
        if file := local(url):
            return file.stat().st_size
        try:
            response = self._client.head(self.place(url), headers={"Accept-Encoding": "identity"})
        except failures():
            return None
        stated = response.headers.get("Content-Length", "") if response.is_success else ""
        return int(stated) if re.fullmatch("[0-9]{1,15}", stated) else None

    def take(self, urls: Sequence[str]) -> Path:
        """The file from the first of these URLs that has it, in the cache. Raises UserError with all problems."""
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
            with self._response(url) as response:
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
    def _response(self, url: str, accept: str = "*/*") -> Iterator["Response"]:
        place = self.place(url)
        try:
            headers = {"Accept": accept, "Accept-Encoding": "identity"}
            with self._client.stream("GET", place, headers=headers) as response:
                yield response.raise_for_status()
        except failures() as error:
            raise UserError(f"{public_url(place)}: {reason(error, place, self.network)}") from error

    @cached_property
    def _client(self) -> "PyPIClient":
        return http_client(self.network, self._indexes, unlocked=True)


def local(url: str) -> Path | None:
    """The path of a file URL, or of a path; None for the URL of a server."""
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme in ("", "file") else None
