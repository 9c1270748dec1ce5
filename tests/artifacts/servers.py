"""Web servers to fetch from: a package index with its files, whose answers may be wrong in every way there is."""

import base64
import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from tests.pinned import CONTENT, SHA256, WHEEL


@dataclass
class Site:
    """An index as PEP 503 has it: /simple/tiny/ links to the files in /files/."""

    url: str = ""
    projects: tuple[str, ...] = ("tiny",)
    # Files by name; the page links to each with the hash given here, if any.
    files: dict[str, bytes] = field(default_factory=dict)
    stated: dict[str, str] = field(default_factory=dict)
    # What happens instead where a file is asked for, by its name, or where the page is ("simple").
    faults: dict[str, "Fault"] = field(default_factory=dict)
    # As "user:password", where it lets nobody else in.
    login: str = ""
    requests: list[str] = field(default_factory=list)
    ranges: list[str | None] = field(default_factory=list)

    @property
    def index(self) -> str:
        return f"{self.url}/simple"

    @property
    def netloc(self) -> str:
        return self.url.split("/")[2]

    def file(self, name: str) -> str:
        return f"{self.url}/files/{name}"

    def page(self) -> bytes:
        links = "".join(
            f'<a href="/files/{name}{f"#sha256={self.stated[name]}" if name in self.stated else ""}">{name}</a>\n'
            for name in self.files
        )
        return f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


def tiny_site() -> Site:
    """The index that has what tests.pinned pins."""
    return Site(files={WHEEL: CONTENT}, stated={WHEEL: SHA256})


class Handler(BaseHTTPRequestHandler):
    """Answers as its site says."""

    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        site = self.site
        site.requests.append(self.path)
        pages = [f"/simple/{project}/" for project in site.projects]
        name = "simple" if self.path in pages else unquote(self.path.removeprefix("/files/"))
        allowed = f"Basic {base64.b64encode(site.login.encode()).decode()}"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            if site.login and self.headers.get("Authorization") != allowed:
                self.answer(401, b"who are you?", WWW_Authenticate='Basic realm="packages"')
            elif name in site.faults:
                site.faults[name](self, site.files.get(name, b""))
            elif name == "simple":
                self.answer(200, site.page(), Content_Type="text/html")
            elif name in site.files:
                self.give(site.files[name])
            else:
                self.answer(404, b"no such file")

    def do_HEAD(self) -> None:
        self.begin(405, Content_Length="0")

    def give(self, content: bytes) -> None:
        """A file, or what is asked for of it."""
        asked = self.headers.get("Range")
        self.site.ranges.append(asked)
        begin = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if begin:
            stated = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            self.answer(206, content[begin:], Content_Range=stated)
        else:
            self.answer(200, content)

    def answer(self, code: int, body: bytes, sent: int | None = None, **headers: str) -> None:
        """A whole answer, of which only `sent` bytes are sent."""
        headers = {"Content_Length": str(len(body)), "Content_Type": "application/octet-stream", **headers}
        self.begin(code, **headers)
        self.wfile.write(body[:sent])
        if sent is not None:
            self.close_connection = True

    def begin(self, code: int, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


Fault = Callable[[Handler, bytes], None]


def status(code: int) -> Fault:
    """An error page."""
    return lambda handler, content: handler.answer(code, b"no")


def redirected(location: str) -> Fault:
    return lambda handler, content: handler.answer(302, b"", Location=location)


def cut_at(size: int) -> Fault:
    """A connection that ends before the body does."""
    return lambda handler, content: handler.answer(200, content, sent=size)


def chunks_cut_at(size: int) -> Fault:
    """A chunked body without its last chunk."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.begin(200, Transfer_Encoding="chunked")
        handler.wfile.write(f"{size:x}\r\n".encode() + content[:size] + b"\r\n")
        handler.close_connection = True

    return answer


def without_end(handler: Handler, content: bytes) -> None:
    """A body that only a closed connection ends."""
    handler.begin(200, Transfer_Encoding="chunked")
    while True:
        handler.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")


def dripping(size: int, pause_s: float, head: int = 0, kind: str = "application/octet-stream") -> Fault:
    """A body that comes `size` bytes at a time, with pauses, after its first `head` bytes."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.begin(200, Content_Length=str(len(content)), Content_Type=kind)
        handler.wfile.write(content[:head])
        for start in range(head, len(content), size):
            time.sleep(pause_s)
            handler.wfile.write(content[start : start + size])

    return answer


def stalled(seconds: float) -> Fault:
    """Half a body, and then nothing."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.begin(200, Content_Length=str(len(content)))
        handler.wfile.write(content[: len(content) // 2])
        time.sleep(seconds)
        handler.close_connection = True

    return answer


def web_page(text: bytes, stated: bool = True) -> Fault:
    """A page in place of a file, as a proxy gives that wants a login."""
    kind = "text/html; charset=utf-8" if stated else "application/octet-stream"
    return lambda handler, content: handler.answer(200, text, Content_Type=kind)


@contextlib.contextmanager
def served(site: Site, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Site]:
    """The site on a port of its own."""
    server = ThreadingHTTPServer((host, 0), type("Served", (Handler,), {"site": site}))
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    site.url = f"{'https' if tls else 'http'}://{host}:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
