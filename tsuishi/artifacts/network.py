"""How long to wait for a server, and the reasons for a failure in words, without the credentials of a URL."""

import re
import ssl
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tsuishi.artifacts.pip_configuration import pip_proxy
from tsuishi.base import threads
from tsuishi.base.redaction import redacted

# X509_V_ERR_* of OpenSSL: the chain ends at a certificate that is not trusted.
_UNKNOWN_ISSUER = (18, 19, 20, 21)
# httpx begins so when a connection ended too early; its other protocol errors mean that the server speaks no HTTP.
_BROKEN_OFF = ("peer closed", "Server disconnected")


@dataclass(frozen=True)
class Network:
    """How to reach servers, and when to give up a server."""

    # Trusted certificates (PEM) in place of the system's.
    ca_bundle: Path | None = None
    connect_s: float = 15.0
    # A server that sends no byte for so long counts as gone.
    silence_s: float = 60.0
    # A server that sends less than `least_bytes` within `pace_s` would take days.
    least_bytes: int = 60 << 10
    pace_s: float = 60.0


class GivenUp(Exception):
    """A server sends too slowly, or more than it may."""


def paced(chunks: Iterable[bytes], network: Network) -> Iterator[bytes]:
    """The same chunks. Raises GivenUp where they come too slowly to wait for the end."""
    begun, received = time.monotonic(), 0
    for chunk in chunks:
        threads.check()
        yield chunk
        received += len(chunk)
        elapsed = time.monotonic() - begun
        if elapsed >= network.pace_s:
            if received < network.least_bytes:
                raise GivenUp(f"it sends too slowly ({received} bytes in {elapsed:.0f} s): given up")
            begun, received = time.monotonic(), 0


def failures() -> tuple[type[Exception], ...]:
    """The exceptions that a request to a server can raise."""
    from httpx2 import HTTPError, InvalidURL
    from unearth.errors import URLError

    return HTTPError, InvalidURL, URLError, GivenUp


def out_of_reach(error: BaseException | None) -> bool:
    """Whether the next request to the same server would wait and fail in the same way."""
    from httpx2 import ConnectError, ConnectTimeout, ProxyError

    return isinstance(error, ConnectError | ConnectTimeout | ProxyError)


def not_found(error: Exception) -> bool:
    """Whether a server answered that it does not have the file or page (status 404)."""
    from httpx2 import HTTPStatusError

    return isinstance(error, HTTPStatusError) and error.response.status_code == 404


def reason(error: Exception, url: str, network: Network) -> str:
    """Why the request for a URL failed, in one line, with a remedy where it is known."""
    import httpx2

    if refused := _refused_certificate(error):
        advice = ": set tsuishi.ca_bundle" if refused.verify_code in _UNKNOWN_ISSUER else ""
        return (
            f"the certificate of {urlsplit(url).hostname} is not trusted ({refused.verify_message.rstrip('.')}){advice}"
        )
    match error:
        case httpx2.HTTPStatusError(response=response):
            status = f"{response.status_code} {response.reason_phrase}".strip()
            return (
                f"{status}: credentials for it go into its URL or ~/.netrc" if response.status_code == 401 else status
            )
        case httpx2.InvalidURL():
            return f"it is {invalid(error)}"
        case httpx2.TooManyRedirects():
            return "it redirects without end"
        case httpx2.ConnectTimeout():
            return f"no connection within {network.connect_s:g} s{_by_proxy(url)}"
        case httpx2.ConnectError() | httpx2.ProxyError():
            return f"{message_line(error)}{_by_proxy(url)}"
        case httpx2.TimeoutException():
            return f"it sent nothing for {network.silence_s:g} s"
        case httpx2.RemoteProtocolError() if not str(error).startswith(_BROKEN_OFF):
            return f"it speaks no HTTP ({message_line(error)})"
        case httpx2.RemoteProtocolError() | httpx2.ReadError():
            return f"the connection broke off ({message_line(error)})"
    return message_line(error)


def _refused_certificate(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """The refused certificate behind a failed connection; None where another reason is behind it."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, ssl.SSLCertVerificationError):
            return link
        link = link.__cause__ or link.__context__
    return None


def _by_proxy(url: str) -> str:
    """Words that name the proxy of a URL; empty where it has none."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and proxy_bypass(parts.hostname or ""):
        proxy = None
    proxy = pip_proxy() or proxy
    return f", through the proxy {public_url(proxy)}" if proxy else ""


def public_url(url: str) -> str:
    """A URL for people: without credentials, also where it is no valid URL, and without its query, maybe a signature.

    >>> public_url("https://ada:secret@packages.example/simple/?sig=1#sha256=2")
    'https://packages.example/simple/'
    >>> public_url("http://ada:sec/ret#1@proxy.example:3128"), public_url("git@code.example:ada/tables.git")
    ('http://proxy.example:3128', 'git@code.example:ada/tables.git')
    """
    scheme, slashes, rest = url.partition("://")
    if not slashes:  # a proxy, or a remote of git
        return redacted(re.sub(r"\A[^/\s:@]*:.*@", "", url))
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    name, at, _ = rest.rpartition("@")
    if "@" in host:
        rest = rest[host.rfind("@") + 1 :]
    elif at and ":" in host and not name.endswith("/"):  # a "/", "?" or "#" in a password
        rest = rest[len(name) + 1 :]
    return redacted(f"{scheme}://{re.split('[?#]', rest, maxsplit=1)[0]}")


def invalid(error: Exception) -> str:
    """The fault of an address and the remedy, without a word of the address, which may be of a password."""
    what = str(error).partition(":")[0].lower()
    return f"no valid address ({what}): write % codes for # / ? [ in a password, as %23 for #"


def file_of(url: str) -> str:
    """The file name at the end of a URL."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def message_line(error: Exception) -> str:
    """The first line of an exception's message, or its class where the message is empty."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
