"""What a cache says of base images, and archives of engines that are not here: nothing but the base leaves them."""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_cached_bases import Files, packed, unpacked
from tsuishi.artifacts.strict_tar import Damaged
from tsuishi.base.errors import UserError
from tsuishi.engines.docker import saved_images
from tsuishi.engines.docker.base_cache import BaseCache
from tsuishi.specs.environment import BaseImage

BASE = BaseImage(reference="a/base:1")
NOTE: dict[str, Any] = {
    "reference": BASE.reference,
    "digest": "unpinned",
    "used": BASE.reference,
    "image_id": "sha256:" + "a" * 64,
    "size_bytes": 4,
}


def note(cache: Path, **changes: object) -> Path:
    """What is noted of a kept base."""
    path = cache / "bases" / f"{'a' * 64}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**NOTE, **changes}))
    return path


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"image_id": "tsuishi/torch2-cpu:1"}, "key 'image_id': string should match pattern"),
        ({"digest": "sha256:../../elsewhere"}, "key 'digest.constrained-str': string should match pattern"),
        ({"size_bytes": "4"}, "key 'size_bytes': input should be a valid integer"),
        ({"used": None}, "key 'used': input should be a valid string"),
    ],
)
def test_a_note_of_another_type_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    path = note(tmp_path, **changes)
    with pytest.raises(UserError) as caught:
        BaseCache(tmp_path).find((BASE.reference,))
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert str(caught.value).endswith(": remove it, and get it again with `invoke fetch`")


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", "[" * 100_000])
def test_what_is_no_note_is_refused(tmp_path: Path, text: str) -> None:
    path = note(tmp_path)
    path.write_text(text)
    with pytest.raises(UserError, match=rf"^{path}: .+: remove it, and get it again with `invoke fetch`$"):
        BaseCache(tmp_path).find((BASE.reference,))


def test_only_a_regular_file_is_a_kept_base(tmp_path: Path) -> None:
    tar = note(tmp_path).with_suffix(".tar")
    bases = BaseCache(tmp_path)
    assert bases.find((BASE.reference,)) is None
    tar.write_bytes(b"1234")
    assert bases.find((BASE.reference,)) is not None
    tar.rename(tmp_path / "elsewhere")
    tar.symlink_to(tmp_path / "elsewhere")
    assert bases.find((BASE.reference,)) is None
    tar.unlink()
    os.mkfifo(tar)
    note(tmp_path, size_bytes=0)
    assert bases.find((BASE.reference,)) is None


def blob(files: Files, value: object) -> str:
    """Put it among the files; its digest."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    digest = hashlib.sha256(text).hexdigest()
    files[f"blobs/sha256/{digest}"] = text
    return f"sha256:{digest}"


def by_manifest(layer: bytes = b"layer") -> tuple[Files, str, str]:
    """What an engine saves that calls images by manifests; the ids of an image's manifest, and of an index with it."""
    files: Files = {}
    config, content = blob(files, {"os": "linux"}), blob(files, layer)
    kind = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}
    manifest = blob(files, {**kind, "config": {"digest": config}, "layers": [{"digest": content}]})
    kind["mediaType"] = "application/vnd.oci.image.index.v1+json"
    index = blob(files, {**kind, "manifests": [{"digest": "sha256:" + "0" * 64}, {"digest": manifest}]})
    names = [f"blobs/sha256/{digest.removeprefix('sha256:')}" for digest in (config, content)]
    files["manifest.json"] = json.dumps([{"Config": names[0], "RepoTags": None, "Layers": names[1:]}]).encode()
    return files, manifest, index


def given(files: Files, image_id: str) -> Files:
    """What an engine is given of these files."""
    return unpacked(b"".join(saved_images.repacked(io.BytesIO(packed(files)), image_id)))


@pytest.mark.parametrize("by_index", [False, True])
def test_an_image_that_is_called_by_its_manifest_keeps_it(by_index: bool) -> None:
    files, manifest, index = by_manifest()
    foreign = blob(files, b"foreign")
    files["index.json"] = json.dumps({"manifests": [{"digest": foreign, "annotations": {"io.x": "foreign"}}]}).encode()
    top = index if by_index else manifest
    found = given(files, top)
    (described,) = json.loads(found.pop("index.json"))["manifests"]
    assert (described["digest"], described["annotations"]) == (top, {})
    left_out = {foreign} if by_index else {foreign, index}
    blobs = {name for name in files if name.startswith("blobs/")}
    assert set(found) == {"oci-layout", "manifest.json"} | blobs - {
        f"blobs/sha256/{digest.removeprefix('sha256:')}" for digest in left_out
    }
    assert all(found[name] == files[name] for name in blobs & set(found))


def test_a_manifest_of_another_image_is_none_of_this() -> None:
    files, _, _ = by_manifest()
    others, manifest, index = by_manifest(b"another layer")
    for one in (manifest, index, "sha256:" + "1" * 64):
        with pytest.raises(Damaged, match=r"^it holds another image$"):
            given({**others, **files}, one)
