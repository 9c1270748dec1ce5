"""The manifest of an archive: the SHA-256 of every other file in it, in the form of BagIt (RFC 8493) and of sha256sum.

The SHA-256 of the manifest is the root: one digest that stands for the whole archive. `sha256sum -c` reads the manifest
in the folder into which the archive was unpacked.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping

from tsuishi.extras.handover.archives.member_names import MANIFEST
from tsuishi.extras.handover.archives.zip_container import BadArchive

MOST_BYTES = 256 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def text_of(digests: Mapping[str, str]) -> bytes:
    """The manifest of files, given their SHA-256 by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


def root_of(text: bytes) -> str:
    """The root of the archive that has this manifest."""
    return hashlib.sha256(text).hexdigest()


def differences(text: bytes, digests: Mapping[str, str]) -> Iterator[str]:
    """A line for each file that is not as the manifest says. digests: the SHA-256 of the files that are there.

    Raises BadArchive where the text is no manifest.
    """
    listed = _parsed(text)
    for name in sorted(listed.keys() | digests.keys()):
        if name not in digests:
            yield f"{name}: the manifest lists it, and it is not there"
        elif name not in listed:
            yield f"{name}: added: the manifest does not list it"
        elif listed[name] != digests[name]:
            yield f"{name}: altered: its content is not that of the manifest"


def _parsed(text: bytes) -> dict[str, str]:
    listed: dict[str, str] = {}
    *lines, rest = text.decode("ascii", "replace").split("\n")
    for number, line in enumerate([*lines, *[rest] * bool(rest)], 1):
        match = _LINE.fullmatch(line)
        if not match or match[2] in listed or (listed and match[2] < next(reversed(listed))) or rest:
            raise BadArchive(f"{MANIFEST}: line {number} is not as tsuishi writes it")
        listed[match[2]] = match[1]
    return listed
