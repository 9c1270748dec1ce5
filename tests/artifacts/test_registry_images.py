"""Registries that send something else than they announce, over real HTTP: refused in a line, bounded, never a hang."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Request, Response

from tests.artifacts.servers import Site, cut_at, redirected, served, status, without_end
from tests.environments.test_exchange import TAG, before_25, noted
from tsuishi.artifacts.image_archive import write_archive
from tsuishi.artifacts.intake import read_archive
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.oci_registry import Registry
from tsuishi.artifacts.registry_images import fetch_image
from tsuishi.artifacts.registry_login import RegistryLogin
from tsuishi.base.errors import UserError

NAME, SPEC = TAG.removeprefix("tsuishi/").split(":")
MANIFESTS, BLOBS = f"/v2/site/{NAME}/manifests/", f"/v2/site/{NAME}/blobs/"
IN_A_HURRY = Network(connect_s=1, silence_s=0.5, pace_s=0.5, least_bytes=4000)


def described(content: bytes, **more: Any) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return {"mediaType": "application/octet-stream", "digest": digest, "size": len(content), **more}


def notes_of(subject: bytes, notes: dict[str, bytes]) -> dict[str, Any]:
    """The artifact that holds the notes on an image."""
    layers = [described(text, annotations={"org.opencontainers.image.title": name}) for name, text in notes.items()]
    return {"schemaVersion": 2, "config": described(b"{}"), "layers": layers, "subject": described(subject)}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.oci.tar"
    write_archive(path, [before_25()], TAG, noted)
    return path


@pytest.fixture
def site(archive: Path) -> Iterator[Site]:
    """A registry with the image of the archive, as files by their paths."""
    image, content = read_archive(archive), archive.read_bytes()
    *_, manifest = image.descriptions.values()
    blobs = [image.config, *image.notes.values()]
    blobs += [content[layer.offset : layer.offset + layer.size] for layer in image.layers]
    files = {BLOBS + described(blob)["digest"]: blob for blob in blobs}
    files[MANIFESTS + described(manifest)["digest"]] = manifest
    files[f"{MANIFESTS}{SPEC}.tsuishi"] = json.dumps(notes_of(manifest, dict(image.notes))).encode()
    with served(Site(files=files)) as made:
        yield made


def fetched(site: Site, folder: Path) -> Path | None:
    folder.mkdir()
    return fetch_image(Registry(f"{site.url}/site", IN_A_HURRY), NAME, SPEC, folder, silent, silent)


def silent(what: object) -> None:
    """Say nothing."""


def largest(site: Site) -> str:
    """The path of a layer."""
    return max(site.files, key=lambda name: len(site.files[name]))


def changed(site: Site, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the artifact that holds the notes."""
    path = f"{MANIFESTS}{SPEC}.tsuishi"
    content = json.loads(site.files[path])
    change(content)
    site.files[path] = json.dumps(content).encode()


def test_the_parts_become_the_archive_again(site: Site, archive: Path, tmp_path: Path) -> None:
    path = fetched(site, tmp_path / "room")
    assert path is not None
    assert path.read_bytes() == archive.read_bytes()
    del site.files[f"{MANIFESTS}{SPEC}.tsuishi"]
    assert fetched(site, tmp_path / "other room") is None


def altered(site: Site) -> None:
    site.files[largest(site)] = site.files[largest(site)][:-1] + b"!"


def longer(site: Site) -> None:
    site.files[largest(site)] += b"more"


def endless(site: Site) -> None:
    site.faults[largest(site)] = without_end


def endless_manifest(site: Site) -> None:
    site.faults[f"{MANIFESTS}{SPEC}.tsuishi"] = without_end


def cut(site: Site) -> None:
    site.faults[largest(site)] = cut_at(1000)


def gone(site: Site) -> None:
    del site.files[largest(site)]


def on_a_disk(site: Site) -> None:
    site.faults[largest(site)] = redirected("file:///etc/passwd")


def failing(site: Site) -> None:
    site.faults[f"{MANIFESTS}{SPEC}.tsuishi"] = status(500)


def another_image(site: Site) -> None:
    """The digest of a manifest brings another manifest."""
    path = next(name for name in site.files if name.startswith(f"{MANIFESTS}sha256:"))
    site.files[path] = site.files[path].replace(b"}", b" }", 1)


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (altered, "sha256 is "),
        (longer, "and tiny, part "),
        (endless, "it sends more than the "),
        (endless_manifest, "its manifest has more than 4 MiB"),
        (cut, "the connection broke off"),
        (gone, "404 Not Found"),
        (on_a_disk, "it redirects to a file: address, which is refused"),
        (failing, "500 Internal Server Error"),
        (another_image, "its notes are on an image that is not there"),
        (lambda site: changed(site, lambda notes: notes.clear()), "key 'layers' is missing"),
        (lambda site: changed(site, lambda notes: notes.update(layers=11 * notes["layers"])), "layers"),
        (lambda site: changed(site, lambda notes: notes["layers"][0].update(size=17 << 20)), "of notes are more than"),
        (lambda site: changed(site, lambda notes: notes["layers"][0].update(digest="sha256:../x")), "digest"),
        (lambda site: site.files.update({f"{MANIFESTS}{SPEC}.tsuishi": b"["}), "cannot be read"),
    ],
)
def test_what_is_not_as_announced_is_refused(
    attack: Callable[[Site], None], said: str, site: Site, tmp_path: Path
) -> None:
    attack(site)
    with pytest.raises(UserError) as caught:
        fetched(site, tmp_path / "room")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sum(path.stat().st_size for path in (tmp_path / "room").iterdir()) < 8 << 20


def test_a_note_cannot_leave_the_archive(site: Site, tmp_path: Path) -> None:
    def renamed(notes: dict[str, Any]) -> None:
        notes["layers"][0]["annotations"]["org.opencontainers.image.title"] = "../../planted"

    changed(site, renamed)
    path = fetched(site, tmp_path / "room")
    assert path is not None
    with pytest.raises(UserError, match=r"no archive of an image, or not the whole of one"):
        read_archive(path)


def test_a_login_goes_to_its_registry_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"auths": {"registry.example": {"auth": "YWRhOnNlY3JldA=="}}}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    login = RegistryLogin("registry.example")

    def sent(url: str, *answers: Response) -> list[str | None]:
        """The header of each request that is sent for a URL, where these answers come."""
        flow = login.sync_auth_flow(Request("GET", url))
        headers = [next(flow).headers.get("Authorization")]
        for answer in answers:
            try:
                headers.append(flow.send(answer).headers.get("Authorization"))
            except StopIteration:
                break
        return headers

    challenge = Response(401, headers={"WWW-Authenticate": 'Basic realm="here"'})
    for url in ("https://other.example/v2/", "http://registry.example/v2/", "https://registry.example:444/v2/"):
        assert sent(url, challenge) == [None]
    assert sent("https://registry.example/v2/", challenge) == [None, "Basic YWRhOnNlY3JldA=="]
    assert sent("https://registry.example/v2/x", challenge) == ["Basic YWRhOnNlY3JldA=="]
    for url in ("https://other.example/v2/", "http://registry.example/v2/", "https://registry.example:444/v2/"):
        assert sent(url, challenge) == [None]
    plain = Response(401, headers={"WWW-Authenticate": 'Bearer realm="http://tokens.example/",service="a"'})
    assert sent("https://registry.example/v2/x", plain) == ["Basic YWRhOnNlY3JldA=="]
