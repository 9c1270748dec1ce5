"""The archives that environments travel in: made from whatever an engine saves, and refused where they were changed."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tsuishi import exchange
from tsuishi.console import Screen
from tsuishi.errors import UserError
from tsuishi.oci import read_archive, write_archive
from tsuishi.plan import Choice
from tsuishi.session import Session
from tsuishi.settings import Settings

TAG = "tsuishi/tiny:0123456789abcdef"
# As Docker writes an empty one: two blocks of zeros; and one that is larger than any description.
EMPTY, LARGE = bytes(1024), b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(50_000))
CONFIG = json.dumps({"config": {"Labels": {"io.tsuishi.spec-id": "0123456789abcdef"}}}, indent=3).encode()
IMAGE_ID = "sha256:" + hashlib.sha256(CONFIG).hexdigest()
NOTES = {"environment.json": b"{}\n", "images/tiny.toml": b'title = "tiny"\n'}


def tar(files: Mapping[str, bytes], links: Mapping[str, str] | None = None, mtime: int = 0) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), mtime
            archive.addfile(entry, io.BytesIO(content))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return out.getvalue()


def manifest(config: str, layers: list[str]) -> bytes:
    return json.dumps([{"Config": config, "RepoTags": None, "Layers": layers}]).encode()


def blob(content: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"


def before_25(mtime: int = 0) -> bytes:
    """As Docker writes images before 25: a folder for each layer, a link for one that is there twice."""
    files = {
        f"{IMAGE_ID[7:]}.json": CONFIG,
        "a/VERSION": b"1.0",
        "a/json": b"{}",
        "a/layer.tar": EMPTY,
        "b/json": b"{}",
        "b/layer.tar": LARGE,
        "manifest.json": manifest(f"{IMAGE_ID[7:]}.json", ["a/layer.tar", "b/layer.tar", "c/layer.tar"]),
    }
    return tar(files, {"c/layer.tar": "../a/layer.tar"}, mtime)


def from_25() -> bytes:
    """As Docker writes images from 25 on: an OCI layout, with the older manifest.json."""
    names = [blob(EMPTY), blob(LARGE), blob(EMPTY)]
    files = {"oci-layout": b"{}", "index.json": b"{}", **{blob(one): one for one in (CONFIG, EMPTY, LARGE)}}
    return tar({**files, "manifest.json": manifest(blob(CONFIG), names)})


def pieces(content: bytes, size: int = 10_007) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.oci.tar"
    assert write_archive(path, pieces(before_25()), TAG, NOTES) == IMAGE_ID
    return path


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]


def test_an_archive_is_an_oci_layout_from_the_index_down_to_the_layers(archive: Path) -> None:
    files = members(archive)
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def described(by: dict[str, Any]) -> bytes:
        content = files["blobs/sha256/" + by["digest"].removeprefix("sha256:")]
        assert len(content) == by["size"]
        assert by["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
        return content

    (top,) = json.loads(files["index.json"])["manifests"]
    assert top["annotations"]["org.opencontainers.image.ref.name"] == "0123456789abcdef"
    image = json.loads(described(top))
    assert image["mediaType"] == top["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert described(image["config"]) == CONFIG
    assert [gzip.decompress(described(layer)) for layer in image["layers"]] == [EMPTY, LARGE, EMPTY]
    assert {layer["mediaType"] for layer in image["layers"]} == {"application/vnd.oci.image.layer.v1.tar+gzip"}


def test_an_archive_is_what_older_engines_load_as_well(archive: Path) -> None:
    files = members(archive)
    (image,) = json.loads(files["manifest.json"])
    assert image["RepoTags"] == [TAG]
    assert files[image["Config"]] == CONFIG
    assert [gzip.decompress(files[name]) for name in image["Layers"]] == [EMPTY, LARGE, EMPTY]


def test_the_same_image_gives_the_same_bytes_whichever_engine_saved_it_when(archive: Path, tmp_path: Path) -> None:
    for number, saved in enumerate((before_25(mtime=1_700_000_000), from_25())):
        other = tmp_path / f"{number}.oci.tar"
        assert write_archive(other, pieces(saved), TAG, NOTES) == IMAGE_ID
        assert other.read_bytes() == archive.read_bytes()
    with tarfile.open(archive) as entries:
        assert {(entry.mtime, entry.uid, entry.uname, entry.mode) for entry in entries} == {(0, 0, "", 0o644)}


def test_a_layer_that_an_engine_keeps_compressed_stays_as_it_is(tmp_path: Path) -> None:
    packed = gzip.compress(LARGE, compresslevel=1, mtime=5)
    files = {blob(one): one for one in (CONFIG, packed)}
    path = tmp_path / "tiny.oci.tar"
    write_archive(path, pieces(tar({**files, "manifest.json": manifest(blob(CONFIG), [blob(packed)])})), TAG, NOTES)
    assert members(path)[blob(packed)] == packed


def test_the_checksum_beside_is_as_sha256sum_checks_it(archive: Path) -> None:
    expected = f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  tiny.oci.tar\n"
    assert archive.with_name("tiny.oci.tar.sha256").read_text() == expected


def test_what_was_written_is_read(archive: Path) -> None:
    contents = read_archive(archive)
    assert contents.tag == TAG
    assert contents.labels == {"io.tsuishi.spec-id": "0123456789abcdef"}
    assert contents.notes == NOTES


def test_an_interrupt_leaves_nothing_and_does_not_touch_what_is_there(archive: Path) -> None:
    before = archive.read_bytes()

    def interrupted() -> Iterator[bytes]:
        yield from pieces(before_25()[:1_000_000])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_archive(archive, interrupted(), TAG, NOTES)
    assert sorted(path.name for path in archive.parent.iterdir()) == ["tiny.oci.tar", "tiny.oci.tar.sha256"]
    assert archive.read_bytes() == before


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_archive(path)
    return str(caught.value)


def alter(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_an_altered_archive_is_refused_by_its_checksum(archive: Path) -> None:
    expected = hashlib.sha256(archive.read_bytes()).hexdigest()
    alter(archive, archive.stat().st_size // 2)
    now = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert refusal(archive) == (
        f"{archive}: sha256 is {now}, tiny.oci.tar.sha256 says {expected}: altered or incomplete; copy it again"
    )


def test_without_its_checksum_an_altered_archive_is_refused_by_the_names_of_its_parts(archive: Path) -> None:
    archive.with_name("tiny.oci.tar.sha256").unlink()
    with tarfile.open(archive) as entries:
        layer = max(entries, key=lambda entry: entry.size)
    alter(archive, layer.offset_data + layer.size // 2)
    assert refusal(archive) == f"{archive}: {layer.name} is not what its name says: altered; copy it again"


@pytest.mark.parametrize(("left", "said"), [(0.5, "unexpected end of data"), (0.0, "empty file")])
def test_an_archive_cut_off_is_refused(archive: Path, left: float, said: str) -> None:
    archive.with_name("tiny.oci.tar.sha256").unlink()
    archive.write_bytes(archive.read_bytes()[: int(archive.stat().st_size * left)])
    assert refusal(archive) == f"{archive}: no archive of an image, or not the whole of one: {said}"


def test_an_archive_cut_off_between_two_of_its_parts_is_refused(archive: Path) -> None:
    archive.with_name("tiny.oci.tar.sha256").unlink()
    with tarfile.open(archive) as entries:
        last = entries.getmembers()[-1]
    archive.write_bytes(archive.read_bytes()[: last.offset])
    assert refusal(archive) == f"{archive}: {last.name} is missing: not the whole archive; copy it again"


def test_what_is_no_archive_of_tsuishi_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tar"
    path.write_bytes(before_25())
    assert refusal(path) == f"{path}: not written by `invoke export`; `docker load` takes images of other origin"
    path.write_bytes(b"<html>" * 1000)
    assert refusal(path) == f"{path}: no archive of an image, or not the whole of one: invalid header"


def rewritten(path: Path, change: Callable[[tarfile.TarInfo, bytes], Iterable[tuple[str, bytes]]]) -> None:
    """Write an archive again with every entry replaced, without the checksum beside it."""
    with tarfile.open(path) as archive:
        entries = [(entry, archive.extractfile(entry).read()) for entry in archive]  # type: ignore[union-attr]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in (pair for entry in entries for pair in change(*entry)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(out.getvalue())
    path.with_name(path.name + ".sha256").unlink()


ALTERED = "altered; do not use it, and export it again"


@pytest.mark.parametrize(
    "name",
    ["./manifest.json", "repositories", "blobs/sha256/short", "tsuishi/images/$(id).toml", "tsuishi/images/../a.toml"],
)
def test_a_part_that_no_export_writes_is_refused_by_its_name(archive: Path, name: str) -> None:
    rewritten(archive, lambda entry, content: [(entry.name, content), *[(name, b"[]")] * (entry.name == "index.json")])
    assert refusal(archive) == f"{archive}: {name} is nothing that `invoke export` writes: {ALTERED}"


def test_a_part_that_is_there_twice_is_refused(archive: Path) -> None:
    rewritten(archive, lambda entry, content: [(entry.name, content)] * (1 + (entry.name == "manifest.json")))
    assert refusal(archive) == f"{archive}: manifest.json is there twice: {ALTERED}"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE])
def test_a_part_that_is_no_plain_file_is_refused(archive: Path, kind: bytes) -> None:
    odd = tarfile.TarInfo("tsuishi/images/other.toml")
    odd.type, odd.linkname = kind, "tsuishi/images/tiny.toml"
    archive.write_bytes(odd.tobuf() + archive.read_bytes())
    archive.with_name("tiny.oci.tar.sha256").unlink()
    assert refusal(archive) == f"{archive}: {odd.name} is nothing that `invoke export` writes: {ALTERED}"


def test_a_name_that_only_some_programs_read_in_a_header_is_refused(archive: Path) -> None:
    odd = tarfile.TarInfo("index.json")
    odd.pax_headers = {"path": "tsuishi/images/other.toml"}
    archive.write_bytes(odd.tobuf(tarfile.PAX_FORMAT) + archive.read_bytes())
    archive.with_name("tiny.oci.tar.sha256").unlink()
    assert refusal(archive) == (
        f"{archive}: tsuishi/images/other.toml is nothing that `invoke export` writes: {ALTERED}"
    )


def indexed(change: Callable[[dict[str, Any]], None]) -> Callable[[tarfile.TarInfo, bytes], list[tuple[str, bytes]]]:
    def changed(entry: tarfile.TarInfo, content: bytes) -> list[tuple[str, bytes]]:
        if entry.name == "index.json":
            index = json.loads(content)
            change(index)
            content = json.dumps(index, separators=(",", ":")).encode()
        return [(entry.name, content)]

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.clear(),
        lambda index: index["manifests"].append(index["manifests"][0]),
        lambda index: index["manifests"][0]["annotations"].update({"io.containerd.image.name": "docker.io/a/b:1"}),
        lambda index: index["manifests"][0].update(digest=f"sha256:{'0' * 64}"),
    ],
    ids=["nonsense", "two images", "another name", "another image"],
)
def test_an_index_that_names_another_image_than_the_manifest_is_refused(
    archive: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    rewritten(archive, indexed(change))
    said = "index.json does not describe the image that manifest.json does"
    assert refusal(archive) == f"{archive}: {said}: {ALTERED}"


def test_a_manifest_that_leads_to_other_layers_than_the_index_is_refused(archive: Path) -> None:
    files = members(archive)
    (image,) = json.loads(files["manifest.json"])
    image["Layers"].pop()
    text = json.dumps([image], separators=(",", ":")).encode()
    rewritten(archive, lambda entry, content: [(entry.name, text if entry.name == "manifest.json" else content)])
    said = "index.json does not describe the image that manifest.json does"
    assert refusal(archive) == f"{archive}: {said}: {ALTERED}"


def test_a_note_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiny.oci.tar"
    write_archive(path, pieces(before_25()), TAG, {**NOTES, "images/tiny.lock": bytes((16 << 20) + 1)})
    said = "tsuishi/images/tiny.lock has 16,777,217 bytes, and no such part has over 16,777,216"
    assert refusal(path) == f"{path}: {said}: {ALTERED}"


def work(tmp_path: Path, *names: str, **settings: Any) -> Session:
    given = Settings(cache=tmp_path / "cache", **settings)
    return Session(given, Choice(environments=names), Screen())


def test_only_images_travel(tmp_path: Path, archive: Path) -> None:
    for engine in ("venv", "host"):
        given = work(tmp_path, "tf2-cpu", engine=engine)
        for doing, task in (
            ("export", lambda given=given: exchange.export(given, tmp_path)),
            ("import", lambda given=given: exchange.import_archives(given, [archive])),
        ):
            with pytest.raises(UserError) as caught:
                task()
            assert str(caught.value) == f"engine {engine}: only images can be {doing}ed: leave --engine out"


def test_without_an_engine_nothing_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(UserError, match=r"^export needs a container engine: Docker does not answer: .*; start it or "):
        exchange.export(work(tmp_path, "tf2-cpu"), tmp_path)


def test_what_to_export_and_import_has_to_be_said(tmp_path: Path) -> None:
    for paths, said in (
        ([], "say which archives to import: --archive FILE,FILE"),
        ([tmp_path / "a.tar"], f"there is no file {tmp_path / 'a.tar'}: --archive takes what `invoke export` wrote"),
    ):
        with pytest.raises(UserError) as caught:
            exchange.import_archives(work(tmp_path), paths)
        assert str(caught.value) == said
    with pytest.raises(UserError, match=r"^say which environments to export: --env A,B; `invoke images` shows "):
        exchange.export(work(tmp_path), tmp_path)
    with pytest.raises(UserError, match=r"^unknown environment 'tf2-cup'; did you mean 'tf2-cpu'"):
        exchange.export(work(tmp_path, "tf2-cup"), tmp_path)


def test_the_record_in_an_archive_must_be_that_of_its_image(tmp_path: Path) -> None:
    path = tmp_path / "tiny.oci.tar"
    record = json.dumps({"name": "tiny", "spec_id": "f" * 16}).encode()
    write_archive(path, pieces(before_25()), TAG, {"environment.json": record})
    with pytest.raises(UserError) as caught:
        exchange._record(work(tmp_path), path, read_archive(path))
    assert str(caught.value) == (
        f"{path}: its record is of tsuishi/tiny:{'f' * 16}, and its image is {TAG}, made for spec id 0123456789abcdef: "
        "altered; do not use it, and export it again"
    )


def test_a_file_of_another_environment_does_not_travel(tmp_path: Path) -> None:
    path = tmp_path / "tiny.oci.tar"
    record = json.dumps({"name": "tiny", "spec_id": "0123456789abcdef"}).encode()
    write_archive(path, pieces(before_25()), TAG, {"environment.json": record, "images/torch2-cpu.toml": b""})
    with pytest.raises(UserError) as caught:
        exchange._record(work(tmp_path), path, read_archive(path))
    assert str(caught.value) == f"{path}: images/torch2-cpu.toml is no file of tiny: {ALTERED}"
