"""A registry that wants a login: by password, and by a token of another server; over TLS, with a real registry."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.engine.registries import registry
from tests.environments.test_exchange import TAG, before_25, noted
from tsuishi.artifacts.image_archive import write_archive
from tsuishi.artifacts.intake import read_archive
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.oci_registry import Registry
from tsuishi.artifacts.registry_images import fetch_image, put_image
from tsuishi.base.errors import UserError

pytestmark = pytest.mark.engine

# `ada:secret` as htpasswd writes it (bcrypt).
PASSWORDS = "ada:$2b$04$Qsv1dHIh3meexOHDbdpKaekWlvOUh/cNbKcbKi.VqYgtRRZWmZRLK\n"
LOGIN = base64.b64encode(b"ada:secret").decode()
NAME, SPEC = TAG.removeprefix("tsuishi/").split(":")


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """An authority, whose certificate is ca.pem, and a server's certificate with its key."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = made.issue_cert("127.0.0.1")
    server.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    return made


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.oci.tar"
    write_archive(path, [before_25()], TAG, noted)
    return path


def logged_in(folder: Path, monkeypatch: pytest.MonkeyPatch, host: str, login: str = LOGIN) -> None:
    """Leave what `docker login` leaves."""
    (folder / "config.json").write_text(json.dumps({"auths": {host: {"auth": login}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))


def tls(folder: Path) -> str:
    return f', tls: {{ certificate: "{folder}/server.pem", key: "{folder}/server.pem" }}'


def silent(what: object) -> None:
    """Say nothing."""


def goes_there_and_back(place: Registry, archive: Path, folder: Path) -> None:
    """What comes back is the archive that was put there, byte for byte."""
    folder.mkdir()
    put_image(place, archive, read_archive(archive), silent)
    back = fetch_image(place, NAME, SPEC, folder, silent, silent)
    assert back is not None
    assert back.read_bytes() == archive.read_bytes()


@pytest.mark.usefixtures("authority")
def test_with_the_password_of_docker_login_an_archive_goes_there_and_back(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "htpasswd").write_text(PASSWORDS)
    more = f'auth: {{ htpasswd: {{ realm: "here", path: "{tmp_path}/htpasswd" }} }}'
    with registry(tmp_path, more, tls(tmp_path)) as host:
        network = Network(tmp_path / "ca.pem")
        for login in ("", base64.b64encode(b"ada:wrong").decode()):
            logged_in(tmp_path, monkeypatch, host if login else "other.example", login or LOGIN)
            with pytest.raises(UserError) as caught:
                Registry(f"{host}/site", network).manifest(NAME, SPEC)
            assert str(caught.value) == f"{host}/site: 401 Unauthorized; `docker login {host}`"
        logged_in(tmp_path, monkeypatch, host)
        goes_there_and_back(Registry(f"{host}/site", network), archive, tmp_path / "back")
        with pytest.raises(UserError, match=r"the certificate of 127.0.0.1 is not trusted"):
            Registry(f"{host}/site", Network()).manifest(NAME, SPEC)


def test_a_password_is_never_sent_unencrypted(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "htpasswd").write_text(PASSWORDS)
    more = f'auth: {{ htpasswd: {{ realm: "here", path: "{tmp_path}/htpasswd" }} }}'
    with registry(tmp_path, more) as host:
        logged_in(tmp_path, monkeypatch, host)
        with pytest.raises(UserError) as caught:
            put_image(Registry(f"http://{host}", Network()), archive, read_archive(archive), silent)
    said = f"http://{host}: 401 Unauthorized, and passwords are sent encrypted only; `docker login {host}`"
    assert str(caught.value) == said


def test_with_a_token_of_the_server_that_the_registry_names(
    authority: trustme.CA, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokens.pem").write_bytes(TOKEN_CERTIFICATE.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with tokens(context) as (realm, scopes):
        more = f"""auth: {{ token: {{ realm: "{realm}", service: "tests", issuer: "tests",
                   rootcertbundle: "{tmp_path}/tokens.pem" }} }}"""
        with registry(tmp_path, more, tls(tmp_path)) as host:
            logged_in(tmp_path, monkeypatch, host)
            goes_there_and_back(Registry(f"{host}/site", Network(tmp_path / "ca.pem")), archive, tmp_path / "back")
    assert scopes
    assert {scope.partition(":")[0] for scope in scopes} == {"repository"}


TOKEN_KEY = ec.generate_private_key(ec.SECP256R1())
_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tokens")])
TOKEN_CERTIFICATE = (
    x509.CertificateBuilder(_NAME, _NAME, TOKEN_KEY.public_key(), x509.random_serial_number())
    .not_valid_before(datetime(2020, 1, 1))
    .not_valid_after(datetime(2100, 1, 1))
    .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    .sign(TOKEN_KEY, hashes.SHA256())
)


@contextmanager
def tokens(context: ssl.SSLContext) -> Iterator[tuple[str, list[str]]]:
    """A server that gives tokens to who has the password; its address, and the scopes that it was asked for."""
    scopes: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            allowed = self.headers.get("Authorization") == f"Basic {LOGIN}" and asked["service"] == ["tests"]
            scopes.extend(asked.get("scope", ()))
            text = json.dumps({"token": token(asked.get("scope", []))} if allowed else {}).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}/token", scopes
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def token(scopes: list[str]) -> str:
    """A JSON Web Token for these scopes, as registries take them (RFC 7519, ES256)."""
    parts = [(*scope.rpartition(":")[0].split(":", 1), scope.rpartition(":")[2]) for scope in scopes]
    access = [{"type": kind, "name": name, "actions": actions.split(",")} for kind, name, actions in parts]
    certificate = base64.b64encode(TOKEN_CERTIFICATE.public_bytes(serialization.Encoding.DER)).decode()
    header = {"typ": "JWT", "alg": "ES256", "x5c": [certificate]}
    now = int(time.time())
    claims = {"iss": "tests", "sub": "ada", "aud": "tests", "iat": now, "nbf": now - 60, "exp": now + 600}
    claims |= {"jti": str(now), "access": access}
    signed = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"
    r, s = decode_dss_signature(TOKEN_KEY.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def encoded(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()
