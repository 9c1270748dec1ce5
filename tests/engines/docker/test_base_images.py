"""The notes in a cache on its base images: typed, and of regular files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tsuishi.base.errors import UserError
from tsuishi.engines.docker.base_images import BaseCache
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
