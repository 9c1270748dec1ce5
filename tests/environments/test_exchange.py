"""The archives that environments travel in: made from whatever an engine saves, and refused where they were changed."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tsuishi.artifacts import strict_tar
from tsuishi.artifacts.image_archive import write_archive
from tsuishi.artifacts.intake import read_archive
from tsuishi.artifacts.strict_tar import Damaged
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.environments import exchange
from tsuishi.environments.incoming import record_of
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session

TAG = "tsuishi/tiny:0123456789abcdef"
# As Docker writes an empty one: two blocks of zeros; and one that is larger than any description.
EMPTY, LARGE = bytes(1024), b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(50_000))
LABELS = {"io.tsuishi.spec-id": "0123456789abcdef"}


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def config_of(*layers: bytes, **changes: Any) -> bytes:
    """The config of an image of these layers."""
    config = {"config": {"Labels": LABELS}, "rootfs": {"type": "layers", "diff_ids": list(map(sha256, layers))}}
    return json.dumps({**config, **changes}, indent=3).encode()


CONFIG = config_of(EMPTY, LARGE, EMPTY)
IMAGE_ID = sha256(CONFIG)
RECORD: dict[str, Any] = {
    "name": "tiny",
    "spec_id": "0123456789abcdef",
    "realised_id": IMAGE_ID,
    "image": {"layers": list(map(sha256, (EMPTY, LARGE, EMPTY))), "labels": LABELS},
}
NOTES = {"environment.json": json.dumps(RECORD).encode(), "images/tiny.toml": b'title = "tiny"\n'}


def noted(image_id: str) -> dict[str, bytes]:
    """What travels with the image."""
    return NOTES


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
    assert write_archive(path, pieces(before_25()), TAG, noted) == IMAGE_ID
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
        assert write_archive(other, pieces(saved), TAG, noted) == IMAGE_ID
        assert other.read_bytes() == archive.read_bytes()
    with tarfile.open(archive) as entries:
        assert {(entry.mtime, entry.uid, entry.uname, entry.mode) for entry in entries} == {(0, 0, "", 0o644)}


def test_a_layer_that_an_engine_keeps_compressed_stays_as_it_is(tmp_path: Path) -> None:
    packed = gzip.compress(LARGE, compresslevel=1, mtime=5)
    config = config_of(LARGE)
    files = {blob(one): one for one in (config, packed)}
    path = tmp_path / "tiny.oci.tar"
    write_archive(path, pieces(tar({**files, "manifest.json": manifest(blob(config), [blob(packed)])})), TAG, noted)
    assert members(path)[blob(packed)] == packed
    assert read_archive(path).diff_ids == [sha256(LARGE)]


def test_a_layer_that_is_small_once_it_is_compressed_is_in_the_archive_once(tmp_path: Path) -> None:
    shrinks = bytes(3 << 20)
    for number, saved in enumerate((shrinks, gzip.compress(shrinks, mtime=0), gzip.compress(EMPTY, mtime=0))):
        plain = EMPTY if number == 2 else shrinks
        config = config_of(plain)
        files = {blob(one): one for one in (config, saved)}
        path = tmp_path / f"{number}.oci.tar"
        write_archive(path, pieces(tar({**files, "manifest.json": manifest(blob(config), [blob(saved)])})), TAG, noted)
        assert read_archive(path).diff_ids == [sha256(plain)]


def test_the_checksum_beside_is_as_sha256sum_checks_it(archive: Path) -> None:
    expected = f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  tiny.oci.tar\n"
    assert archive.with_name("tiny.oci.tar.sha256").read_text() == expected


def test_what_was_written_is_read(archive: Path) -> None:
    image = read_archive(archive)
    assert image.tag == TAG
    assert image.labels == LABELS
    assert image.notes == NOTES
    assert image.id == IMAGE_ID
    assert image.unpacked_bytes == 2 * len(EMPTY) + len(LARGE)


def test_an_engine_gets_what_is_written_anew_and_nothing_of_the_notes(archive: Path) -> None:
    with archive.open("rb") as file:
        given = b"".join(read_archive(archive).packed(file))
    before = {name: content for name, content in members(archive).items() if not name.startswith("tsuishi/")}
    with tarfile.open(fileobj=io.BytesIO(given)) as packed:
        assert {one.name: packed.extractfile(one).read() for one in packed} == before  # type: ignore[union-attr]


def test_a_layer_that_changes_once_it_was_checked_does_not_get_its_end(archive: Path) -> None:
    image = read_archive(archive)
    layer = max(image.layers, key=lambda one: one.size)
    alter(archive, layer.offset + layer.size // 2)
    given: list[bytes] = []
    with archive.open("rb") as file, pytest.raises(UserError) as caught:
        given.extend(image.packed(file))
    assert str(caught.value) == (
        f"{layer.name} has changed since it was checked: do not use the archive, and copy it again"
    )
    with pytest.raises(Damaged):
        list(strict_tar.members(io.BytesIO(b"".join(given))))


def test_an_interrupt_leaves_nothing_and_does_not_touch_what_is_there(archive: Path) -> None:
    before = archive.read_bytes()

    def interrupted() -> Iterator[bytes]:
        yield from pieces(before_25()[:1_000_000])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_archive(archive, interrupted(), TAG, noted)
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


@pytest.mark.parametrize(("left", "said"), [(0.5, "unexpected end of data"), (0.0, "unexpected end of data")])
def test_an_archive_cut_off_is_refused(archive: Path, left: float, said: str) -> None:
    archive.with_name("tiny.oci.tar.sha256").unlink()
    archive.write_bytes(archive.read_bytes()[: int(archive.stat().st_size * left)])
    assert refusal(archive) == f"{archive}: no archive of an image, or not the whole of one: {said}"


def test_an_archive_cut_off_between_two_of_its_parts_is_refused(archive: Path) -> None:
    archive.with_name("tiny.oci.tar.sha256").unlink()
    with tarfile.open(archive) as entries:
        last = entries.getmembers()[-1]
    content = archive.read_bytes()[: last.offset]
    archive.write_bytes(content)
    assert refusal(archive) == f"{archive}: no archive of an image, or not the whole of one: unexpected end of data"
    archive.write_bytes(content + bytes(1024))
    assert refusal(archive) == f"{archive}: {last.name} is missing: not the whole archive; copy it again"


def test_what_is_no_archive_of_tsuishi_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tar"
    path.write_bytes(before_25())
    assert refusal(path) == f"{path}: not written by `invoke export`; `docker load` takes images of other origin"
    path.write_bytes(b"<html>" * 1000)
    assert (
        refusal(path) == f"{path}: no archive of an image, or not the whole of one: a header is damaged: invalid header"
    )


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
    path.with_name(path.name + ".sha256").unlink(missing_ok=True)


ALTERED = "altered; do not use it, and export it again"


@pytest.mark.parametrize(
    "name",
    ["./manifest.json", "repositories", "blobs/sha256/short", "tsuishi/images/$(id).toml", "tsuishi/images/../a.toml"],
)
def test_a_part_that_no_export_writes_is_refused_by_its_name(archive: Path, name: str) -> None:
    rewritten(archive, lambda entry, content: [(entry.name, content), *[(name, b"[]")] * (entry.name == "index.json")])
    assert refusal(archive) in (
        f"{archive}: {name} is nothing that `invoke export` writes: {ALTERED}",
        f"{archive}: no archive of an image, or not the whole of one: {name!r} is no name of a file in it",
    )


def test_a_part_that_is_there_twice_is_refused(archive: Path) -> None:
    rewritten(archive, lambda entry, content: [(entry.name, content)] * (1 + (entry.name == "manifest.json")))
    assert (
        refusal(archive) == f"{archive}: no archive of an image, or not the whole of one: manifest.json is there twice"
    )


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE])
def test_a_part_that_is_no_plain_file_is_refused(archive: Path, kind: bytes) -> None:
    odd = tarfile.TarInfo("tsuishi/images/other.toml")
    odd.type, odd.linkname = kind, "tsuishi/images/tiny.toml"
    archive.write_bytes(odd.tobuf() + archive.read_bytes())
    archive.with_name("tiny.oci.tar.sha256").unlink()
    assert refusal(archive) in (
        f"{archive}: {odd.name} is nothing that `invoke export` writes: {ALTERED}",
        f"{archive}: no archive of an image, or not the whole of one: {odd.name} is no plain file",
    )


def test_a_name_that_only_some_programs_read_in_a_header_is_refused(archive: Path) -> None:
    odd = tarfile.TarInfo("index.json")
    odd.pax_headers = {"path": "tsuishi/images/other.toml"}
    archive.write_bytes(odd.tobuf(tarfile.PAX_FORMAT) + archive.read_bytes())
    archive.with_name("tiny.oci.tar.sha256").unlink()
    assert refusal(archive) == (
        f"{archive}: tsuishi/images/other.toml is nothing that `invoke export` writes: {ALTERED}"
    )


def entry(name: str, content: bytes, change: Callable[[tarfile.TarInfo], None] = lambda entry: None) -> bytes:
    """An entry of an archive, with its content."""
    made = tarfile.TarInfo(name)
    made.size = len(content)
    change(made)
    return (
        made.tobuf(tarfile.GNU_FORMAT if made.type == b"L" else tarfile.PAX_FORMAT)
        + content
        + bytes(-len(content) % 512)
    )


def damaged(header: bytes) -> bytes:
    """A header at which Python's tarfile ends without a word; to programs in Go it is of a user with a large number."""
    altered = bytearray(header)
    altered[108:116] = b"\x81" + bytes(7)
    altered[148:156] = b" " * 8
    altered[148:156] = b"%06o\0 " % sum(altered[:512])
    return bytes(altered)


def end_of(content: bytes) -> int:
    """Where the zeros begin that end an archive."""
    with tarfile.open(fileobj=io.BytesIO(content)) as entries:
        last = entries.getmembers()[-1]
    return last.offset_data + last.size + -last.size % 512


def with_gzip_bomb(path: Path) -> None:
    """An archive one of whose layers is a gigabyte of zeros, in one megabyte."""
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(1 << 10)), packer.flush()])
    config = config_of(b"")
    files = {blob(one): one for one in (config, bomb)}
    write_archive(path, pieces(tar({**files, "manifest.json": manifest(blob(config), [blob(bomb)])})), TAG, noted)


def pax(text: bytes) -> bytes:
    """An extended header in front of a part that would else be well."""
    extended = entry("x", text, lambda one: setattr(one, "type", tarfile.XHDTYPE))
    return extended + entry("tsuishi/images/tiny.lock", b"")


NOT_WHOLE = "no archive of an image, or not the whole of one: "
IN_FRONT: dict[str, tuple[bytes, str]] = {
    "absolute": (entry("/etc/passwd", b""), "'/etc/passwd' is no name of a file in it"),
    "upwards": (entry("tsuishi/../../x", b""), "'tsuishi/../../x' is no name of a file in it"),
    "escape": (entry("tsuishi/\x1b[2J", b""), r"'tsuishi/\x1b[2J' is no name of a file in it"),
    "block device": (entry("x", b"", lambda one: setattr(one, "type", tarfile.BLKTYPE)), "x is no plain file"),
    "pipe": (entry("x", b"", lambda one: setattr(one, "type", tarfile.FIFOTYPE)), "x is no plain file"),
    "hard link": (entry("x", b"", lambda one: setattr(one, "type", tarfile.LNKTYPE)), "x is no plain file"),
    "unknown kind": (entry("x", b"", lambda one: setattr(one, "type", b"Z")), "x is no plain file"),
    "long name of GNU": (
        entry("x", b"name\0", lambda one: setattr(one, "type", b"L")),
        "a header is of another format",
    ),
    "header of all": (entry("x", b"", lambda one: setattr(one, "type", tarfile.XGLTYPE)), "x is no plain file"),
    "pax bomb": (pax(b"17000 path=" + b"a" * 16988 + b"\n"), "an extended header has 17,000 bytes, and 16,384 are the"),
    "pax without end": (pax(b"99 path=a\n"), "an extended header is damaged, or says what none has to"),
    "pax twice": (pax(b"10 path=a\n" * 2), "an extended header is damaged, or says what none has to"),
    "pax of a sparse file": (pax(b"22 GNU.sparse.size=99\n"), "an extended header is damaged, or says what none has"),
    "pax of Arabic digits": (
        pax("12 size=\u0665\n".encode()),
        "an extended header is damaged, or says what none has to",
    ),
    "pax of a size": (pax(b"21 size=999999999999\n"), "tsuishi/images/tiny.lock has 999,999,999,999 bytes, and"),
    "damaged": (damaged(entry("tsuishi/images/tiny.lock", b"")), "a header is damaged: invalid header"),
    "something in the gap": (entry("tsuishi/images/tiny.lock", b"a")[:-1] + b"b", "something is between its entries"),
}


@pytest.mark.parametrize("name", IN_FRONT)
@pytest.mark.parametrize("place", ["front", "end"])
def test_an_entry_that_programs_read_in_different_ways_is_refused(archive: Path, name: str, place: str) -> None:
    odd, said = IN_FRONT[name]
    content = archive.read_bytes()
    at = end_of(content) if place == "end" else 0
    archive.write_bytes(content[:at] + odd + content[at:])
    archive.with_name("tiny.oci.tar.sha256").unlink()
    assert f"{archive}: {NOT_WHOLE}{said}" in refusal(archive)


@pytest.mark.parametrize("behind", [bytes(511) + b"x", bytes(20480), bytes(1024) + entry("manifest.json", b"[]")])
def test_nothing_is_behind_the_end(archive: Path, behind: bytes) -> None:
    archive.write_bytes(archive.read_bytes() + behind)
    archive.with_name("tiny.oci.tar.sha256").unlink()
    assert refusal(archive) == f"{archive}: {NOT_WHOLE}something is behind its end"


@pytest.mark.long
def test_a_layer_that_becomes_a_hundred_times_what_it_was_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "tiny.oci.tar"
    with_gzip_bomb(path)
    tracemalloc.start()
    said = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert re.search(r"blobs/sha256/\w+ is no layer: [\d,]+ bytes become more than [\d,]+: altered; ", said)
    assert peak < 64 << 20


def test_a_layer_that_is_no_gzip_or_broken_off_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(LARGE, mtime=0)
    for number, (packed, why) in enumerate(
        [
            (whole[:-1000], "it is broken off"),
            (whole + b"more", "it is no gzip: Error -3 while decompressing data: incorrect header check"),
            (b"\x1f\x8b" + LARGE, "it is no gzip: Error -3 while decompressing data: unknown compression method"),
        ]
    ):
        config = config_of(LARGE)
        files = {blob(one): one for one in (config, packed)}
        path = tmp_path / f"{number}.oci.tar"
        write_archive(path, pieces(tar({**files, "manifest.json": manifest(blob(config), [blob(packed)])})), TAG, noted)
        assert refusal(path) == f"{path}: {blob(packed)} is no layer: {why}: {ALTERED}"


def with_config(path: Path, config: bytes, record: Mapping[str, Any] = RECORD) -> None:
    """An archive whose parts all go together, of another config."""
    files = {blob(one): one for one in (config, EMPTY, LARGE)}
    layers = [blob(one) for one in (EMPTY, LARGE, EMPTY)]
    notes = {**NOTES, "environment.json": json.dumps(record).encode()}
    write_archive(path, pieces(tar({**files, "manifest.json": manifest(blob(config), layers)})), TAG, lambda id: notes)


LAYERS = (EMPTY, LARGE, EMPTY)
TWICE = CONFIG.replace(b'"config": {', b'"CONFIG": {"Labels": {"io.tsuishi.spec-id": "another"}}, "config": {', 1)
CONFIGS: dict[str, tuple[bytes, str]] = {
    "of other layers": (config_of(EMPTY, LARGE), "the image's config is of other layers than there are"),
    "of swapped layers": (config_of(LARGE, EMPTY, EMPTY), "the image's config is of other layers than there are"),
    "no JSON": (b"{", "the image's config: cannot be read: Expecting property name"),
    "a list": (b"[]", "the image's config: input should be a valid dictionary"),
    "deep": (b"[" * 100_000, "the image's config: cannot be read: "),
    "said twice": (TWICE, "the image's config: cannot be read: a key is there twice"),
    "without labels": (config_of(*LAYERS, config={}), "the image's config: key 'config.Labels' is missing"),
    "labels of numbers": (config_of(*LAYERS, config={"Labels": {"a": 1}}), "key 'config.Labels.a': input should be a"),
    "an entrypoint": (
        config_of(*LAYERS, config={"Labels": LABELS, "Entrypoint": ["/evil"]}),
        "key 'config.Entrypoint': list should have at most 0 items",
    ),
    "endless history": (config_of(*LAYERS, history=[{}] * 501), "key 'history': list should have at most 500 items"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_is_not_as_ours_are_is_refused(tmp_path: Path, name: str) -> None:
    config, said = CONFIGS[name]
    path = tmp_path / "tiny.oci.tar"
    with_config(path, config)
    assert said in refusal(path)
    assert "\n" not in refusal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"realised_id": f"sha256:{'0' * 64}"}, "its image has another id than its record says"),
        ({"image": {**RECORD["image"], "labels": {}}}, "its image has other labels than its record says"),
        ({"image": {**RECORD["image"], "layers": []}}, "its image has other layers than its record says"),
        ({"name": "../tiny"}, "environment.json: key 'name': string should match pattern"),
        ({"name": "tiny\n"}, "environment.json: key 'name': string should match pattern"),
        ({"spec_id": "0123456789ABCDEF"}, "environment.json: key 'spec_id': string should match pattern"),
        ({"realised_id": 3}, "environment.json: key 'realised_id': input should be a valid string"),
        ({"image": None}, "environment.json: key 'image': input should be a valid dictionary"),
    ],
    ids=["id", "labels", "layers", "upwards", "newline", "capitals", "number", "nothing"],
)
def test_a_record_that_is_not_of_the_image_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "tiny.oci.tar"
    with_config(path, CONFIG, {**RECORD, **change})
    with pytest.raises(UserError, match=re.escape(said)):
        record_of(Checkout(), path, read_archive(path))


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
    write_archive(path, pieces(before_25()), TAG, lambda image_id: {**NOTES, "images/tiny.lock": bytes(16 << 20)})
    said = "tsuishi/images/tiny.lock has 16,777,216 bytes, and such parts have 16,777,216 at most"
    assert refusal(path) == f"{path}: {said}: {ALTERED}"


def work(tmp_path: Path, *names: str, **settings: Any) -> Session:
    given = Settings(cache=tmp_path / "cache", **settings)
    return Session(given, Choice(environments=names), Screen())


def export(work: Session, folder: Path) -> list[Path]:
    return exchange.export(work.builder, work.screen, work.choice.environments, folder)


def import_archives(work: Session, paths: Sequence[Path]) -> None:
    exchange.import_archives(work.builder, work.screen, paths, work.build)


def test_only_images_travel(tmp_path: Path, archive: Path) -> None:
    for engine in ("venv", "host"):
        given = work(tmp_path, "tf2-cpu", engine=engine)
        for doing, task in (
            ("export", lambda given=given: export(given, tmp_path)),
            ("import", lambda given=given: import_archives(given, [archive])),
        ):
            with pytest.raises(UserError) as caught:
                task()
            assert str(caught.value) == f"engine {engine}: only images can be {doing}ed: leave --engine out"


def test_without_an_engine_nothing_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(UserError, match=r"^export needs a container engine: Docker does not answer: .*; start it or "):
        export(work(tmp_path, "tf2-cpu"), tmp_path)


def test_what_to_export_and_import_has_to_be_said(tmp_path: Path) -> None:
    for paths, said in (
        ([], "say which archives to import: --archive FILE,FILE"),
        ([tmp_path / "a.tar"], f"there is no file {tmp_path / 'a.tar'}: --archive takes what `invoke export` wrote"),
    ):
        with pytest.raises(UserError) as caught:
            import_archives(work(tmp_path), paths)
        assert str(caught.value) == said
    with pytest.raises(UserError, match=r"^say which environments to export: --env A,B; `invoke images` shows "):
        export(work(tmp_path), tmp_path)
    with pytest.raises(UserError, match=r"^unknown environment 'tf2-cup'; did you mean 'tf2-cpu'"):
        export(work(tmp_path, "tf2-cup"), tmp_path)


def test_the_record_in_an_archive_must_be_that_of_its_image(tmp_path: Path) -> None:
    path = tmp_path / "tiny.oci.tar"
    record = json.dumps({**RECORD, "spec_id": "f" * 16}).encode()
    write_archive(path, pieces(before_25()), TAG, lambda image_id: {"environment.json": record})
    with pytest.raises(UserError) as caught:
        record_of(Checkout(), path, read_archive(path))
    assert str(caught.value) == (
        f"{path}: its record is of tsuishi/tiny:{'f' * 16}, and its image is {TAG}, made for spec id 0123456789abcdef: "
        "altered; do not use it, and export it again"
    )


def test_a_file_of_another_environment_does_not_travel(tmp_path: Path) -> None:
    path = tmp_path / "tiny.oci.tar"
    brought = {"environment.json": NOTES["environment.json"], "images/torch2-cpu.toml": b""}
    write_archive(path, pieces(before_25()), TAG, lambda image_id: brought)
    with pytest.raises(UserError) as caught:
        record_of(Checkout(), path, read_archive(path))
    assert str(caught.value) == f"{path}: images/torch2-cpu.toml is no file of tiny: {ALTERED}"
