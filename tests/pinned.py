"""A tiny environment: what its lock pins, and where that may be."""

import hashlib

from tsuishi.specs.debian import Deb
from tsuishi.specs.environment import BaseImage, Environment
from tsuishi.specs.lock import Pin

WHEEL = "tiny-1.0-py3-none-any.whl"
CONTENT = bytes(range(256)) * 20_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


def environment(
    pins: tuple[Pin, ...],
    indexes: tuple[str, ...] = (),
    debs: tuple[Deb, ...] = (),
    urls: dict[str, tuple[str, ...]] | None = None,
) -> Environment:
    return Environment(
        name="env",
        title="t",
        framework="torch",
        accelerators=("cpu",),
        python="3.6",
        base=BaseImage(reference="docker.io/library/python:3.6"),
        promises={"torch": "1"},
        pins=pins,
        indexes=indexes,
        debs=debs,
        urls=urls or {},
    )


def pin(*sha256: str, file: str | None = None, size_bytes: int | None = None) -> Pin:
    return Pin("tiny", "1.0", sha256 or (SHA256,), file, size_bytes)
