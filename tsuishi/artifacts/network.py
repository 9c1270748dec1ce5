"""Reaching servers: by which proxy, trusting which certificates, with which credentials, and how patiently.

Proxies are those of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, or pip's `proxy`. Credentials are taken from a
URL, ~/.netrc or a keyring, by unearth, as pip takes them; what is said of a URL never holds them.
"""

import os
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tsuishi.artifacts.pip_configuration import pip_options
from tsuishi.base import threads
from tsuishi.base.errors import UserError

if TYPE_CHECKING:
    from httpx2 import Response
    from unearth.fetchers.sync import PyPIClient

# Variables that name certificates in place of the system's; the first that is set counts.
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
# Of OpenSSL's X509_V_ERR_*: the chain ends at a certificate that is not among the trusted ones.
_UNKNOWN_ISSUER = (18, 19, 20, 21)
# How httpx begins to say that a connection ended too early; what else it calls a protocol error is none.
_BROKEN_OFF = ("peer closed", "Server disconnected")
# No page of an index is larger; PyPI's largest have some 30 MB.
_LARGEST_PAGE = 256 << 20


@dataclass(frozen=True)
class Network:
    """How servers are reached, and when one is given up."""

    # Certificates (PEM) trusted in place of the system's.
    ca_bundle: Path | None = None
    connect_s: float = 15.0
    # Without a byte for so long a server is taken to be gone.
    silence_s: float = 60.0
    # One that sends less than this in any `pace_s` would take days.
    least_bytes: int = 60 << 10
    pace_s: float = 60.0


class TooSlow(Exception):
    """A server that sends, but hardly anything."""


class TooLarge(Exception):
    """A server that does not come to an end."""


def http_client(network: Network, indexes: Sequence[str] = (), *, unseen: bool = False) -> "PyPIClient":
    """A client for http, https and file URLs that follows redirects within the web; `indexes` may hold credentials.

    Where what it fetches is `unseen`, its hash not known yet, no redirect leads from https to http. Raises UserError
    where certificates or proxy are configured and no use.
    """
    from httpx2 import Timeout
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    try:
        return PyPIClient(
            verify=_certificates(network),
            proxy=_pips_proxy(),
            auth=MultiDomainBasicAuth(prompting=False, index_urls=indexes),
            follow_redirects=True,
            event_hooks={"response": [_stay_encrypted, _stay_in_the_web] if unseen else [_stay_in_the_web]},
            timeout=Timeout(network.silence_s, connect=network.connect_s),
        )
    except (ImportError, ValueError) as error:
        proxies = ", ".join(sorted({shown(url) for name, url in getproxies().items() if name != "no"}))
        raise UserError(f"the proxy cannot be used ({proxies or 'as pip has it'}): {first_line(error)}") from error


def _certificates(network: Network) -> ssl.SSLContext | bool:
    """What is trusted: tsuishi.ca_bundle, else pip's `cert`, else that of a variable, else the system's."""
    named = _named_certificates(network)
    if not named:
        return True
    name, path = named[0]
    try:
        if folders := _folders(path):
            return ssl.create_default_context(capath=os.pathsep.join(map(str, folders)))
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        why = "holds no certificates in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise UserError(f"{name}: {path}: {why}; give a file of certificates, as in docs/sites.md") from error


def _named_certificates(network: Network) -> list[tuple[str, str | Path]]:
    """Everything that is set to name certificates, the first of which counts, and what set it."""
    named: list[tuple[str, str | Path | None]] = [("tsuishi.ca_bundle", network.ca_bundle)]
    named += [("pip's cert", pip_options().get("cert")), *((name, os.environ.get(name)) for name in _BUNDLES)]
    return [(name, path) for name, path in named if path]


def trusted_certificates(network: Network) -> bytes:
    """What is trusted, as PEM, for programs that reach servers on tsuishi's behalf."""
    import certifi

    system = ssl.get_default_verify_paths().cafile or certifi.where()
    path = next((path for _, path in _named_certificates(network)), system)
    if not (folders := _folders(path)):
        return Path(path).read_bytes()
    return b"\n".join(file.read_bytes() for folder in folders for file in sorted(folder.iterdir()) if file.is_file())


def _folders(path: str | Path) -> list[Path]:
    """The folders of certificates a path names: several with colons between, as in SSL_CERT_DIR; none for a file."""
    return [folder for one in str(path).split(os.pathsep) if one and (folder := Path(one)).is_dir()]


def _stay_in_the_web(response: "Response") -> None:
    """A redirect leads to another server and to nothing else; what comes with it is not waited for."""
    from httpx2 import ByteStream, UnsupportedProtocol

    if response.has_redirect_location:
        scheme = urlsplit(response.headers["Location"]).scheme
        if scheme not in ("", "http", "https"):
            raise UnsupportedProtocol(f"it redirects to a {scheme}: address, which is refused")
        response.close()
        response.stream, response.is_closed = ByteStream(b""), False


def _stay_encrypted(response: "Response") -> None:
    """What anybody on the way could have put in the place of a file would be locked as that file."""
    from httpx2 import UnsupportedProtocol

    if response.has_redirect_location and response.url.scheme == "https":
        location = response.headers["Location"]
        if urlsplit(location).scheme == "http":
            raise UnsupportedProtocol(
                f"it redirects from https to {shown(location)}, which is refused for what no lock has a hash of yet"
            )


class IndexReader:
    """What unearth asks of a client, with every failure raised: it would log them and take the index to be empty.

    Pages by plain http are read as well: what is fetched from them is held to the lock's hashes.
    """

    def __init__(self, client: "PyPIClient", network: Network) -> None:
        self._client = client
        self._network = network

    def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> "Response":
        """A page, whole."""
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
                    raise TooLarge(f"its page has more than {_LARGEST_PAGE >> 20} MiB")
            # The body is decoded by now.
            kept = {name: value for name, value in response.headers.items() if not name.startswith("content-enc")}
            return Response(response.status_code, headers=kept, content=bytes(body), request=response.request)

    def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> "Response":
        """What a page would be, without it."""
        return self._client.head(url, headers=headers).raise_for_status()

    def iter_secure_origins(self) -> Iterable[tuple[str, str, str]]:
        """All of them."""
        return [("*", "*", "*")]


def paced(chunks: Iterable[bytes], network: Network) -> Iterator[bytes]:
    """The chunks as they come. Raises TooSlow where they come too slowly to wait for the end."""
    begun, received = time.monotonic(), 0
    for chunk in chunks:
        threads.check()
        yield chunk
        received += len(chunk)
        elapsed = time.monotonic() - begun
        if elapsed >= network.pace_s:
            if received < network.least_bytes:
                raise TooSlow(f"it sends too slowly ({received} bytes in {elapsed:.0f} s): given up")
            begun, received = time.monotonic(), 0


def failures() -> tuple[type[Exception], ...]:
    """What can go wrong between here and a server."""
    from httpx2 import HTTPError, InvalidURL
    from unearth.errors import URLError

    return HTTPError, InvalidURL, URLError, TooSlow, TooLarge


def out_of_reach(error: BaseException | None) -> bool:
    """Whether the next request to the same server would fail, and wait, just so."""
    from httpx2 import ConnectError, ConnectTimeout, ProxyError

    return isinstance(error, ConnectError | ConnectTimeout | ProxyError)


def not_found(error: Exception) -> bool:
    """Whether a server answered that it does not have what was asked for."""
    from httpx2 import HTTPStatusError

    return isinstance(error, HTTPStatusError) and error.response.status_code == 404


def why(error: Exception, url: str, network: Network) -> str:
    """What went wrong with a URL, in one line: without credentials, and with what mends it where that is known."""
    import httpx2

    if refused := _refused_certificate(error):
        advice = ": set tsuishi.ca_bundle" if refused.verify_code in _UNKNOWN_ISSUER else ""
        return (
            f"the certificate of {urlsplit(url).hostname} is not trusted ({refused.verify_message.rstrip('.')}){advice}"
        )
    match error:
        case httpx2.HTTPStatusError(response=response):
            told = f"{response.status_code} {response.reason_phrase}".strip()
            return f"{told}: credentials for it go into its URL or ~/.netrc" if response.status_code == 401 else told
        case httpx2.TooManyRedirects():
            return "it redirects without end"
        case httpx2.ConnectTimeout():
            return f"no connection within {network.connect_s:g} s{_by_proxy(url)}"
        case httpx2.ConnectError() | httpx2.ProxyError():
            return f"{first_line(error)}{_by_proxy(url)}"
        case httpx2.TimeoutException():
            return f"it sent nothing for {network.silence_s:g} s"
        case httpx2.RemoteProtocolError() if not str(error).startswith(_BROKEN_OFF):
            return f"it speaks no HTTP ({first_line(error)})"
        case httpx2.RemoteProtocolError() | httpx2.ReadError():
            return f"the connection broke off ({first_line(error)})"
    return first_line(error)


def _refused_certificate(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """The reason behind a failed connection, if it is a certificate."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, ssl.SSLCertVerificationError):
            return link
        link = link.__cause__ or link.__context__
    return None


def _by_proxy(url: str) -> str:
    """The proxy a URL is asked for through, to be named where that fails."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and proxy_bypass(parts.hostname or ""):
        proxy = None
    proxy = _pips_proxy() or proxy
    return f", through the proxy {shown(proxy)}" if proxy else ""


def _pips_proxy() -> str | None:
    """What pip is configured with, which it uses for everything; it may leave out the scheme."""
    proxy = pip_options().get("proxy")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def shown(url: str) -> str:
    """A URL as it is told: without credentials, and without a query, which may be a signature.

    >>> shown("https://ada:secret@packages.example/simple/?sig=1#sha256=2")
    'https://packages.example/simple/'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def file_of(url: str) -> str:
    """The name of the file behind a URL."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def first_line(error: Exception) -> str:
    """What an exception says, in one line."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
