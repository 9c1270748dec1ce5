"""A registry of OCI images: manifests and blobs, by the distribution specification (1.0 and later).

The word of a registry is checked: a blob has the digest and the size that were announced, and a manifest is short.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from tsuishi.artifacts.client import http_client
from tsuishi.artifacts.download import Download, ExpectedFile
from tsuishi.artifacts.image_archive import Blob, FileBlob
from tsuishi.artifacts.network import Network, TooLarge, failures, paced, public_url, reason
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Progress, Say

if TYPE_CHECKING:
    from httpx2 import Response
    from unearth.fetchers.sync import PyPIClient

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_BYTES = "application/octet-stream"
_MOST_MANIFEST = 4 << 20
# A registry reads a blob again after its last byte, and says nothing meanwhile.
_STORING_S = 600.0
_REFUSED = (401, 403)


class Registry:
    """The repositories below an address, as `registry.example.net/tsuishi`; https unless it begins with `http://`.

    Every method raises UserError where the registry cannot be asked, or refuses.
    """

    def __init__(self, address: str, network: Network) -> None:
        self.address = address
        scheme, _, rest = address.rpartition("://")
        self._host, _, self._path = rest.strip("/").partition("/")
        self._scheme = scheme or "https"
        self._network = network

    def manifest(self, name: str, reference: str) -> bytes | None:
        """A manifest by its tag or digest; None where there is none. Only a digest says that it is the right one."""
        url = self._url(name, "manifests", reference)
        with self._asking(url), self._client.stream("GET", url, headers={"Accept": MANIFEST_TYPE}) as response:
            if response.status_code == 404:
                return None
            response.raise_for_status()
            text = bytearray()
            for piece in paced(response.iter_bytes(), self._network):
                text += piece
                if len(text) > _MOST_MANIFEST:
                    raise TooLarge(f"its manifest has more than {_MOST_MANIFEST >> 20} MiB")
        return bytes(text)

    def fetch(self, name: str, blob: Blob, folder: Path, say: Say, progress: Progress) -> FileBlob:
        """Fetch a blob into a folder. progress gets the bytes that come."""
        part = folder / blob.digest
        expected = ExpectedFile(f"{name}, part {blob.digest[:12]}", (blob.digest,), blob.size)
        url = self._url(name, "blobs", f"sha256:{blob.digest}")
        Download(expected, part, self._client, self._network, say, progress).run(url)
        return FileBlob(blob.digest, blob.size, part)

    def put(self, name: str, blob: Blob, content: Callable[[], Iterator[bytes]]) -> None:
        """Put a blob there, unless it is there."""
        url = self._url(name, "blobs", f"sha256:{blob.digest}")
        with self._asking(url):
            if self._client.head(url).is_success:
                return
            begun = self._client.post(self._url(name, "blobs", "uploads/")).raise_for_status()
            place = urljoin(str(begun.url), begun.headers.get("Location", ""))
            if urlsplit(place).scheme != self._scheme:
                raise UserError(f"{self.address}: it takes uploads at {public_url(place)}, which is refused")
            place += ("&" if urlsplit(place).query else "?") + f"digest=sha256:{blob.digest}"
            headers = {"Content-Length": str(blob.size), "Content-Type": _BYTES}
            self._client.put(place, content=content(), headers=headers, timeout=_STORING_S).raise_for_status()

    def put_text(self, name: str, text: bytes) -> Blob:
        """Put a short blob there, unless it is there."""
        blob = Blob(hashlib.sha256(text).hexdigest(), len(text))
        self.put(name, blob, lambda: iter([text]))
        return blob

    def put_manifest(self, name: str, tag: str, text: bytes) -> None:
        """Give a manifest this tag. Its blobs have to be there."""
        url = self._url(name, "manifests", tag)
        with self._asking(url):
            self._client.put(url, content=text, headers={"Content-Type": MANIFEST_TYPE}).raise_for_status()

    def reference(self, name: str, tag: str) -> str:
        """The name by which engines pull what has this tag."""
        return f"{self._host}/{self._repository(name)}:{tag}"

    def _repository(self, name: str) -> str:
        return f"{self._path}/{name}" if self._path else name

    def _url(self, name: str, kind: str, reference: str) -> str:
        return f"{self._scheme}://{self._host}/v2/{self._repository(name)}/{kind}/{reference}"

    @cached_property
    def _client(self) -> "PyPIClient":
        from tsuishi.artifacts.registry_login import RegistryLogin

        client = http_client(self._network)
        client.auth = RegistryLogin(self._host)
        return client

    @contextmanager
    def _asking(self, url: str) -> Iterator[None]:
        """Inside the block a failure of the network becomes UserError."""
        from httpx2 import HTTPStatusError

        try:
            yield
        except failures() as error:
            if isinstance(error, HTTPStatusError) and error.response.status_code in _REFUSED:
                raise UserError(f"{self.address}: {_refusal(error.response)}; `docker login {self._host}`") from error
            raise UserError(f"{self.address}: {reason(error, url, self._network)}") from error


def _refusal(response: "Response") -> str:
    plain = ", and passwords are sent encrypted only" if response.request.url.scheme == "http" else ""
    return f"{response.status_code} {response.reason_phrase}{plain}"
