"""Servers that misbehave, over real HTTP: each is given up with a reason, in time, and the next source is taken."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.artifacts import servers
from tests.artifacts.servers import Fault, Site
from tests.artifacts.test_fetcher import Host
from tests.conftest import missing
from tests.pinned import (
    CONTENT,
    OTHER,
    SHA256,
    WHEEL,
    environment,
    pin,
)
from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.pip_configuration import Sources
from tsuishi.base.errors import UserError

SIZE = len(CONTENT)
HALF = SIZE // 2
ALTERED = CONTENT[:-1] + b"!"
LOGIN = b"<!DOCTYPE html><html><body>Please log in</body></html>"
IN_A_HURRY = Network(connect_s=1, silence_s=0.5, pace_s=0.5, least_bytes=4000)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Cache(tmp_path / "cache"))


def bare(handler: servers.Handler, content: bytes) -> None:
    """Another file, of which nobody says beforehand how long it is."""
    handler.begin(200, Transfer_Encoding="chunked")
    handler.wfile.write(b"4\r\nelse\r\n0\r\n\r\n")


def hang_up(handler: servers.Handler, said: bytes) -> None:
    """An end without an answer."""
    handler.wfile.write(said)
    handler.close_connection = True


def endless_redirect(handler: servers.Handler, content: bytes) -> None:
    handler.begin(302, Location="http://127.0.0.1:9/gone", Transfer_Encoding="chunked")
    while True:
        handler.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")


# What happens -> what is said of it (after the URL), and how much of the file is kept to go on from.
FAULTS: dict[str, tuple[Fault, str, int]] = {
    "altered byte": (
        lambda handler, content: handler.answer(200, ALTERED),
        f"sha256 is {hashlib.sha256(ALTERED).hexdigest()}, expected {SHA256}: that is another file",
        0,
    ),
    "truncated": (
        servers.cut_at(HALF),
        f"the connection broke off (peer closed connection without sending complete message body (received {HALF} "
        f"bytes, expected {SIZE})) ({HALF} of {SIZE} bytes are kept)",
        HALF,
    ),
    "chunks cut": (
        servers.chunks_cut_at(HALF),
        "the connection broke off (peer closed connection without sending complete message body (incomplete chunked "
        f"read)) ({HALF} of {SIZE} bytes are kept)",
        HALF,
    ),
    "empty": (
        lambda handler, content: handler.answer(200, b""),
        f"it has 0 bytes, and {WHEEL} {SIZE}",
        0,
    ),
    "gone": (servers.status(404), "404 Not Found", 0),
    "forbidden": (servers.status(403), "403 Forbidden", 0),
    "login": (servers.status(401), "401 Unauthorized: credentials for it go into its URL or ~/.netrc", 0),
    "overloaded": (servers.status(503), "503 Service Unavailable", 0),
    "redirect loop": (servers.redirected(f"/files/{WHEEL}"), "it redirects without end", 0),
    "redirect to a file": (
        servers.redirected("file:///etc/passwd"),
        "it redirects to a file: address, which is refused",
        0,
    ),
    "redirect to a file of localhost": (
        servers.redirected("file://localhost/etc/passwd"),
        "it redirects to a file: address, which is refused",
        0,
    ),
    "redirect that never ends": (endless_redirect, "[Errno 111] Connection refused", 0),
    "redirect to nowhere": (servers.redirected("http://127.0.0.1:9/gone"), "[Errno 111] Connection refused", 0),
    "stalled": (servers.stalled(3), f"it sent nothing for 0.5 s ({HALF} of {SIZE} bytes are kept)", HALF),
    "dead": (servers.dripping(1, 3), "it sent nothing for 0.5 s", 0),
    "login page": (
        servers.web_page(LOGIN),
        f"it has {len(LOGIN)} bytes (an HTML page), and {WHEEL} {SIZE}",
        0,
    ),
    "another size": (
        lambda handler, content: handler.answer(200, CONTENT * 2),
        f"it has {2 * SIZE} bytes, and {WHEEL} {SIZE}",
        0,
    ),
    "a part nobody asked for": (
        lambda handler, content: handler.answer(206, content[5:], Content_Range=f"bytes 5-{SIZE - 1}/{SIZE}"),
        "it sends a part, and the whole file was asked for",
        0,
    ),
    "no such range": (servers.status(416), "416 Requested Range Not Satisfiable", 0),
    "no answer": (
        lambda handler, content: hang_up(handler, b""),
        "the connection broke off (Server disconnected without sending a response.)",
        0,
    ),
    "no HTTP": (
        lambda handler, content: hang_up(handler, b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n"),
        "it speaks no HTTP (illegal status line: bytearray(b'SSH-2.0-OpenSSH_9.2p1'))",
        0,
    ),
    "without end": (servers.without_end, f"it sends more than the {SIZE} bytes of {WHEEL}", 0),
}


@pytest.mark.parametrize(("fault", "told", "kept"), FAULTS.values(), ids=FAULTS)
def test_a_server_that_misbehaves_is_given_up_with_the_reason_and_the_next_source_taken(
    host: Host, site: Site, second: Site, fault: Fault, told: str, kept: int
) -> None:
    site.faults = {WHEEL: fault}
    wanted = pin(file=WHEEL, size_bytes=SIZE)
    sources = Sources(indexes=(site.index, second.index))
    (path,) = host.fetch(sources, wanted, network=IN_A_HURRY)
    assert path.read_bytes() == CONTENT
    lines = [line for line in host.said if not line.startswith(("fetching", "going on"))]
    assert lines == [f"{site.file(WHEEL)}: {told}"]
    assert second.ranges == [f"bytes={kept}-" if kept else None]
    assert sum(host.sizes) == SIZE
    assert host.files() == [f"{SHA256}/{WHEEL}"]


@pytest.mark.parametrize(("fault", "told", "kept"), FAULTS.values(), ids=FAULTS)
def test_where_there_is_no_other_source_it_is_one_line_and_nothing_wrong_is_kept(
    host: Host, site: Site, fault: Fault, told: str, kept: int
) -> None:
    site.faults = {WHEEL: fault}
    with pytest.raises(UserError) as caught:
        host.fetch(Sources(indexes=(site.index,)), pin(file=WHEEL, size_bytes=SIZE), network=IN_A_HURRY)
    assert str(caught.value) == (
        f"env: no source gives tiny==1.0 as it is locked: {site.file(WHEEL)}: {told}; correct the lock, or name "
        "another source: docs/sites.md says how"
    )
    part = host.cache.part(WHEEL, [SHA256])
    assert host.files() == ([part.name] if kept else [])
    site.faults = {}
    host.fetch(Sources(indexes=(site.index,)), pin(file=WHEEL, size_bytes=SIZE))
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_a_server_that_drips_is_given_up_with_the_rate_it_had(host: Host, site: Site, second: Site) -> None:
    """A byte now and then is no silence, and would never come to an end."""
    site.faults = {WHEEL: servers.dripping(1, 0.1, head=1000)}
    host.fetch(Sources(indexes=(site.index, second.index)), network=IN_A_HURRY)
    (line,) = (line for line in host.said if not line.startswith(("fetching", "going on")))
    assert line.startswith(f"{site.file(WHEEL)}: it sends too slowly (10")
    assert " bytes in " in line
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_a_server_that_is_slow_but_gets_there_is_waited_for(host: Host, site: Site) -> None:
    site.files[WHEEL] = small = CONTENT[:20_000]
    site.stated[WHEEL] = hashlib.sha256(small).hexdigest()
    site.faults = {WHEEL: servers.dripping(2000, 0.1)}
    host.fetch(Sources(indexes=(site.index,)), pin(site.stated[WHEEL]), network=IN_A_HURRY)
    assert host.files() == [f"{site.stated[WHEEL]}/{WHEEL}"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (servers.status(403), "403 Forbidden"),
        (servers.status(503), "503 Service Unavailable"),
        (servers.redirected("/simple/tiny/"), "it redirects without end"),
        (servers.redirected("file:///etc"), "it redirects to a file: address, which is refused"),
        (servers.stalled(3), "it gives no page of an index, but something of no stated type"),
        (lambda handler, content: servers.dripping(1, 3, 0, "text/html")(handler, LOGIN), "it sent nothing for 0.5 s"),
    ],
)
def test_an_index_that_misbehaves_hides_none_of_the_others(
    host: Host, site: Site, second: Site, fault: Fault, told: str
) -> None:
    site.faults = {"simple": fault}
    host.fetch(Sources(indexes=(site.index, second.index)), network=IN_A_HURRY)
    assert host.said[0] == f"{site.index}: {told}"
    assert host.files() == [f"{SHA256}/{WHEEL}"]


@pytest.mark.parametrize(
    ("fault", "told"), [(servers.status(404), "404 Not Found"), (servers.web_page(LOGIN), "no tiny==1.0")]
)
def test_an_index_that_does_not_have_it_is_told_only_where_none_has_it(
    host: Host, site: Site, second: Site, fault: Fault, told: str
) -> None:
    site.faults = {"simple": fault}
    host.fetch(Sources(indexes=(site.index, second.index)))
    assert host.said == [f"fetching {WHEEL} from {second.netloc}"]
    (host.cache.root / SHA256 / WHEEL).unlink()
    (host.cache.root / SHA256).rmdir()
    assert f" {site.index}: {told}; " in host.refused(Sources(indexes=(site.index,)))


def test_an_index_page_that_drips_is_given_up(host: Host, site: Site, second: Site) -> None:
    site.faults = {"simple": lambda handler, content: servers.dripping(1, 0.1, 0, "text/html")(handler, LOGIN)}
    host.fetch(Sources(indexes=(site.index, second.index)), network=IN_A_HURRY)
    assert host.said[0].startswith(f"{site.index}: it sends too slowly (")


@pytest.mark.parametrize("stated", [True, False])
def test_a_page_in_place_of_a_file_is_told_as_one_where_the_lock_says_no_size(
    host: Host, site: Site, stated: bool
) -> None:
    site.faults = {WHEEL: servers.web_page(LOGIN, stated)}
    told = host.refused(Sources(indexes=(site.index,)))
    actual = hashlib.sha256(LOGIN).hexdigest()
    assert f"{site.file(WHEEL)}: sha256 is {actual}, expected {SHA256}: that is an HTML page; " in told


def test_the_wrong_size_is_refused_before_a_byte_of_it_is_fetched(host: Host, site: Site) -> None:
    site.faults = {WHEEL: lambda handler, content: handler.begin(200, Content_Length=str(10**12))}
    told = host.refused(Sources(indexes=(site.index,)), pin(file=WHEEL, size_bytes=SIZE))
    assert f"{site.file(WHEEL)}: it has 1000000000000 bytes, and {WHEEL} {SIZE}; " in told
    assert host.sizes == []


def test_what_a_server_calls_an_encoding_is_the_file_itself(host: Host, site: Site) -> None:
    """Apache says so of every .tar.gz; unpacked, it would be another file."""
    site.faults = {WHEEL: lambda handler, content: handler.answer(200, content, Content_Encoding="x-gzip")}
    host.fetch(Sources(indexes=(site.index,)), pin(file=WHEEL, size_bytes=SIZE))
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_another_file_of_unknown_length_is_refused_by_its_hash(host: Host, site: Site) -> None:
    site.faults = {WHEEL: bare}
    assert f"sha256 is {hashlib.sha256(b'else').hexdigest()}, expected {SHA256}" in host.refused(
        Sources(indexes=(site.index,))
    )


def test_a_part_of_another_file_is_begun_anew(host: Host, site: Site) -> None:
    part = host.cache.part(WHEEL, [SHA256])
    part.parent.mkdir(parents=True)
    part.write_bytes(b"something else")
    host.fetch(Sources(indexes=(site.index,)))
    assert site.ranges == ["bytes=14-", None]
    assert host.said == [
        f"going on with {WHEEL} from {site.netloc}",
        f"the kept part of {WHEEL} does not fit {site.file(WHEEL)}: starting over",
        f"fetching {WHEEL} from {site.netloc}",
    ]
    assert sum(host.sizes) == SIZE
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_a_file_that_comes_under_a_hash_its_index_states_wrongly_is_refused(host: Host, site: Site) -> None:
    """The index promises what is pinned, and gives something else."""
    site.files[WHEEL] = b"other"
    assert f"sha256 is {OTHER}, expected {SHA256}" in host.refused(Sources(indexes=(site.index,)), pin())


@pytest.mark.system
def test_a_full_disk_is_one_line_no_other_source_is_asked_and_the_part_is_gone_on_from(
    host: Host, site: Site, second: Site
) -> None:
    root = host.cache.root
    root.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        missing("no right to mount a small file system")
    sources = Sources(indexes=(site.index, second.index))
    try:
        with pytest.raises(UserError) as caught:
            host.fetch(sources, pin(file=WHEEL, size_bytes=SIZE))
        part = host.cache.part(WHEEL, [SHA256])
        kept = part.stat().st_size
        assert str(caught.value) == (
            f"{part}: No space left on device ({kept} of {SIZE} bytes are kept): free some room, then start it again"
        )
        assert second.requests == []
        subprocess.run(["mount", "-o", "remount,size=64m", str(root)], check=True)
        host.fetch(sources, pin(file=WHEEL, size_bytes=SIZE))
        assert site.ranges == [None, f"bytes={kept}-"]
        assert host.files() == [f"{SHA256}/{WHEEL}"]
    finally:
        subprocess.run(["umount", str(root)], check=True)


def test_an_environment_with_several_faults_tells_each(host: Host, site: Site, second: Site) -> None:
    site.faults, second.faults = {WHEEL: servers.status(403)}, {WHEEL: servers.web_page(LOGIN)}
    with pytest.raises(UserError) as caught:
        host.fetcher(Sources(indexes=(site.index, second.index))).fetch(
            environment((pin(file=WHEEL, size_bytes=SIZE),))
        )
    assert str(caught.value) == (
        f"env: no source gives tiny==1.0 as it is locked: {site.file(WHEEL)}: 403 Forbidden; {second.file(WHEEL)}: "
        f"it has {len(LOGIN)} bytes (an HTML page), and {WHEEL} {SIZE}; correct the lock, or name another source: "
        "docs/sites.md says how"
    )
