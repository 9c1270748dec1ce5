"""The manifest of an archive: the SHA-256 of every other file in it, in the form of BagIt (RFC 8493) and of sha256sum.

The SHA-256 of the manifest is the root: one digest that stands for the whole archive. `sha256sum -c` reads the manifest
in the folder into which the archive was unpacked.
"""

import hashlib
from collections.abc import Mapping


def text_of(digests: Mapping[str, str]) -> bytes:
    """The manifest of files, given their SHA-256 by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


def root_of(text: bytes) -> str:
    """The root of the archive that has this manifest."""
    return hashlib.sha256(text).hexdigest()
