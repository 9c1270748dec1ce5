"""The files that environments travel in: written of what any engine saves, and refused where they were changed."""

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.extras.handover import exchange
from tsuishi.extras.handover.incoming import IncomingImage, incoming_image, write_export
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session

TAG = "tsuishi/tiny:0123456789abcdef"
LABELS = {"io.tsuishi.spec-id": "0123456789abcdef"}
# As Docker writes an empty one: two blocks of zeros.
EMPTY, LARGE = bytes(1024), hashlib.sha256(b"").digest() * 10_000
ALTERED = "altered; do not use it, and export it again"


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


CONFIG = json.dumps(
    {
        "config": {"Labels": LABELS, "Env": ["A=1"]},
        "rootfs": {"type": "layers", "diff_ids": [sha256(EMPTY), sha256(LARGE)]},
    }
).encode()
RECORD: dict[str, Any] = {
    "name": "tiny",
    "spec_id": "0123456789abcdef",
    "realised_id": sha256(CONFIG),
    "image": {"layers": [sha256(EMPTY), sha256(LARGE)], "labels": LABELS, "size_bytes": len(LARGE)},
}
SPEC = b'title = "tiny"\n'


def tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def members(path: Path) -> dict[str, bytes]:
    """The files in an export."""
    with tarfile.open(path) as archive:
        return {
            entry.name: archive.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in archive
            if not entry.isdir()
        }


def saved(config: bytes = CONFIG) -> bytes:
    """The image as Docker saves it."""
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [TAG], "Layers": ["a/layer.tar", "b/layer.tar"]}])
    parts = {"a/layer.tar": EMPTY, "b/layer.tar": LARGE, "config.json": config, "manifest.json": manifest.encode()}
    return tar(parts)


def pieces(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), 10_007):
        yield content[start : start + 10_007]


def noted(record: Any = None, **files: bytes) -> dict[str, bytes]:
    """The notes on the image."""
    return {"environment.json": json.dumps(record or RECORD).encode(), "images/tiny.toml": SPEC, **files}


@pytest.fixture
def export_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.tar.gz"
    write_export(path, noted(), pieces(saved()))
    return path


def read(path: Path) -> IncomingImage:
    return incoming_image(Checkout(), path)


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_export_is_what_the_engine_saved_behind_the_notes_and_the_next_is_the_same(
    export_file: Path, tmp_path: Path
) -> None:
    files = members(export_file)
    assert [*files][:2] == ["tsuishi/environment.json", "tsuishi/images/tiny.toml"]
    assert {name: files[name] for name in [*files][2:]} == members_of(saved())
    write_export(tmp_path / "again", noted(), pieces(saved()))
    assert (tmp_path / "again").read_bytes() == export_file.read_bytes()
    incoming = read(export_file)
    assert (incoming.tag, incoming.record.realised_id) == (TAG, RECORD["realised_id"])
    assert incoming.notes == {"images/tiny.toml": SPEC}


def members_of(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
        return {entry.name: entries.extractfile(entry).read() for entry in entries}  # type: ignore[union-attr]


def test_an_export_of_before_that_is_not_compressed_is_read_as_well(tmp_path: Path) -> None:
    old = tmp_path / "tiny.oci.tar"
    old.write_bytes(tar({f"tsuishi/{name}": text for name, text in noted().items()} | members_of(saved())))
    assert read(old).tag == TAG
    assert members(read(old).unpacked(tmp_path, lambda size: None)) == members(old)


def test_the_checksum_beside_is_as_sha256sum_checks_it_and_an_altered_export_is_refused_by_it(
    export_file: Path,
) -> None:
    expected = hashlib.sha256(export_file.read_bytes()).hexdigest()
    assert export_file.with_name("tiny.tar.gz.sha256").read_text() == f"{expected}  tiny.tar.gz\n"
    content = bytearray(export_file.read_bytes())
    content[len(content) // 2] ^= 1
    export_file.write_bytes(content)
    now = hashlib.sha256(content).hexdigest()
    assert refusal(export_file) == (
        f"{export_file}: sha256 is {now}, tiny.tar.gz.sha256 says {expected}: altered or incomplete; copy it again"
    )


def test_an_interrupt_leaves_nothing_and_does_not_touch_what_is_there(export_file: Path) -> None:
    before = export_file.read_bytes()

    def interrupted() -> Iterator[bytes]:
        yield saved()[:100_000]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_export(export_file, noted(), interrupted())
    assert sorted(path.name for path in export_file.parent.iterdir()) == ["tiny.tar.gz", "tiny.tar.gz.sha256"]
    assert export_file.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (saved(), "not written by `invoke export`; `docker load` takes images of other origin"),
        (b"<html>" * 1000, "not an archive of an image, or an incomplete archive: "),
        (b"\x1f\x8b" + b"<html>" * 1000, "cannot be read: Unknown compression method"),
        (b"", "not an archive of an image, or an incomplete archive: "),
        (
            tar({"tsuishi/environment.json": bytes(1000)})[:600],
            "not an archive of an image, or an incomplete archive: ",
        ),
    ],
    ids=["of another program", "a page", "no gzip", "empty", "cut off"],
)
def test_what_is_no_export_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "other.tar"
    path.write_bytes(content)
    assert refusal(path).startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "../tiny"}, "environment.json: key 'name': string should match pattern"),
        ({"name": "tiny\n"}, "environment.json: key 'name': string should match pattern"),
        ({"spec_id": "0123456789ABCDEF"}, "environment.json: key 'spec_id': string should match pattern"),
        ({"realised_id": 3}, "environment.json: key 'realised_id': input should be a valid string"),
        ({"image": None}, "environment.json: key 'image': input should be "),
        (
            {"spec_id": "f" * 16},
            f"its record is of spec id {'f' * 16}, and its image was made for 0123456789abcdef: {ALTERED}",
        ),
    ],
    ids=["upwards", "newline", "capitals", "number", "nothing", "another specification"],
)
def test_a_record_that_is_none_or_of_another_specification_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = tmp_path / "tiny.tar.gz"
    write_export(path, noted({**RECORD, **change}), [saved()])
    assert said in refusal(path)


def test_a_file_of_another_environment_does_not_travel(tmp_path: Path) -> None:
    path = tmp_path / "tiny.tar.gz"
    write_export(path, noted(**{"images/torch2-cpu.toml": b""}), [saved()])
    assert refusal(path) == f"{path}: images/torch2-cpu.toml is no file of tiny: {ALTERED}"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda config: config["rootfs"]["diff_ids"].pop(), "its image has other layers than its record says"),
        (lambda config: config["config"]["Labels"].clear(), "its image has other labels than its record says"),
        (lambda config: config.pop("rootfs"), "not an archive of an image, or an incomplete archive: 'rootfs'"),
    ],
)
def test_an_engine_of_a_cluster_gets_no_other_image_than_the_record_says(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    config = json.loads(CONFIG)
    change(config)
    path = tmp_path / "tiny.tar.gz"
    write_export(path, noted(), [saved(json.dumps(config).encode())])
    with pytest.raises(UserError, match=re.escape(f"{path}: {said}")):
        read(path).unpacked(tmp_path, lambda size: None)


def work(tmp_path: Path, *names: str, **settings: Any) -> Session:
    given = Settings(cache=tmp_path / "cache", **settings)
    return Session(given, Choice(environments=names), Screen())


def export(work: Session, folder: Path) -> list[Path]:
    return exchange.export(work.builder, work.screen, work.choice.environments, folder)


def import_archives(work: Session, paths: Sequence[Path]) -> None:
    exchange.import_archives(work.builder, work.screen, paths, work.build)


def test_only_images_travel(tmp_path: Path, export_file: Path) -> None:
    for engine in ("venv", "host"):
        given = work(tmp_path, "tf2-cpu", engine=engine)
        for doing, task in (
            ("export", lambda given=given: export(given, tmp_path)),
            ("import", lambda given=given: import_archives(given, [export_file])),
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
