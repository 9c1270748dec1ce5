"""A small file in the real format of CIFAR-10's python version: pickles as Python 2 wrote them, in a gzipped tarball.

Written opcode by opcode, as Python 3 pickles byte strings and arrays otherwise.
"""

import hashlib
import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = "cifar-10-batches-py"
_ARRAY = (
    b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    b"(K\x01M%sM\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    b"\x89T%s%stb"
)


def batch(images: NDArray[np.uint8], labels: list[int]) -> bytes:
    """One batch, pickled; images: (N, 3072) uint8, their channels one after the other."""
    array = _ARRAY % (struct.pack("<H", len(images)), struct.pack("<I", images.size), images.tobytes())
    numbers = b"".join(b"K" + bytes([label]) for label in labels)
    label = _text(b"batch_label") + _text(b"a batch")
    return b"\x80\x02}(" + label + _text(b"labels") + b"](" + numbers + b"e" + _text(b"data") + array + b"u."


def _text(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text


def random_batches(images: int, seed: int = 0) -> dict[str, tuple[NDArray[np.uint8], list[int]]]:
    """Images and labels for the six members of the real file; `images` in each."""
    random = np.random.default_rng(seed)
    return {
        f"{FOLDER}/{name}": (
            random.integers(0, 256, (images, 3072), np.uint8),
            [int(label) for label in random.integers(0, 10, images)],
        )
        # In the order of the real file.
        for name in ("data_batch_4", "test_batch", "data_batch_3", "data_batch_2", "data_batch_5", "data_batch_1")
    }


def write(path: Path, members: Mapping[str, bytes]) -> str:
    """A gzipped tarball of these members; its SHA-256."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in {f"{FOLDER}/readme.html": b"<html>", **members}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_random(path: Path, images: int = 8) -> str:
    """A whole file with `images` images in each batch; its SHA-256."""
    return write(path, {name: batch(*content) for name, content in random_batches(images).items()})
