"""HTTP clients: which proxy, certificates and credentials they use, and which redirects they follow.

The proxies are those of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, or pip's `proxy`. Credentials come from a URL,
~/.netrc or a keyring, by unearth, as in pip.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

from tsuishi.artifacts.certificates import verification
from tsuishi.artifacts.network import GivenUp, Network, invalid, message_line, paced, public_url
from tsuishi.artifacts.pip_configuration import pip_proxy
from tsuishi.base.errors import UserError

if TYPE_CHECKING:
    from httpx2 import Response
    from unearth.fetchers.sync import PyPIClient

# The largest pages of PyPI's index have some 30 MB.
_LARGEST_PAGE = 256 << 20


def http_client(network: Network, indexes: Sequence[str] = (), *, unlocked: bool = False) -> "PyPIClient":
    """A client for http, https and file URLs. It follows redirects to http and https only.

    `indexes`: URLs of package indexes, which may hold credentials. `unlocked`: no lock has a hash of the files yet, so
    redirects from https to http are refused. Raises UserError where the configured certificates or proxy are of no use.
    """
    from httpx2 import InvalidURL, Timeout
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    try:
        return PyPIClient(
            verify=verification(network),
            proxy=pip_proxy(),
            auth=MultiDomainBasicAuth(prompting=False, index_urls=indexes),
            follow_redirects=True,
            event_hooks={"response": [_stay_encrypted, _stay_in_the_web] if unlocked else [_stay_in_the_web]},
            timeout=Timeout(network.silence_s, connect=network.connect_s),
        )
    except InvalidURL as error:
        raise UserError(f"{_proxy_at_fault()} is {invalid(error)}") from error
    except (ImportError, ValueError) as error:
        proxies = ", ".join(sorted({public_url(url) for name, url in getproxies().items() if name != "no"}))
        raise UserError(f"the proxy cannot be used ({proxies or 'as pip has it'}): {message_line(error)}") from error


def _proxy_at_fault() -> str:
    """The name of the first setting with the address of a proxy that is not valid."""
    from httpx2 import URL, InvalidURL

    proxies = {f"{name}_proxy".upper(): url for name, url in getproxies().items()}
    for name, url in {"the proxy of pip": pip_proxy() or "", **proxies}.items():
        try:
            URL(url if "://" in url else f"http://{url}")
        except InvalidURL:
            return name
    return "NO_PROXY"


def _stay_in_the_web(response: "Response") -> None:
    """Refuse a redirect to anything but a server, and do not wait for the body of a redirect."""
    from httpx2 import ByteStream, UnsupportedProtocol

    if response.has_redirect_location:
        scheme = urlsplit(response.headers["Location"]).scheme
        if scheme not in ("", "http", "https"):
            raise UnsupportedProtocol(f"it redirects to a {scheme}: address, which is refused")
        response.close()
        response.stream, response.is_closed = ByteStream(b""), False


def _stay_encrypted(response: "Response") -> None:
    """Refuse a redirect from https to http, where a third party could replace a file before it is locked."""
    from httpx2 import UnsupportedProtocol

    if response.has_redirect_location and response.url.scheme == "https":
        location = response.headers["Location"]
        if urlsplit(location).scheme == "http":
            raise UnsupportedProtocol(
                f"it redirects from https to {public_url(location)}; refused: no lock has a hash of this file yet"
            )


class IndexReader:
    """The client that unearth gets. It raises every failure; unearth alone would log it and see an empty index.

    It reads pages over plain http too, because files from them are checked with the hashes of the lock.
    """

    def __init__(self, client: "PyPIClient", network: Network) -> None:
        self._client = client
        self._network = network

    def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> "Response":
        """A whole page. Raises `failures` of the network."""
        from httpx2 import Response
        from unearth.collector import SUPPORTED_CONTENT_TYPES
        from unearth.errors import URLError

        with self._client.stream("GET", url, headers=headers) as response:
            response.raise_for_status()
            kind = response.headers.get("Content-Type", "something of no stated type")
            if not kind.lower().startswith(SUPPORTED_CONTENT_TYPES):
                raise URLError(f"it gives no page of an index, but {kind}")
            body = bytearray()
            for chunk in paced(response.iter_bytes(), self._network):
                body += chunk
                if len(body) > _LARGEST_PAGE:
                    raise GivenUp(f"its page has more than {_LARGEST_PAGE >> 20} MiB")
            # iter_bytes has decoded the body; with this header Response would do it again.
            decoded_headers = {
                name: value for name, value in response.headers.items() if not name.startswith("content-enc")
            }
            return Response(
                response.status_code, headers=decoded_headers, content=bytes(body), request=response.request
            )

    def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> "Response":
        """The headers of a page."""
        return self._client.head(url, headers=headers).raise_for_status()

    def iter_secure_origins(self) -> Iterable[tuple[str, str, str]]:
        """Every origin counts as secure."""
        return [("*", "*", "*")]
