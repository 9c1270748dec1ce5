"""Lock files: pip's requirements format with every package pinned by version and sha256.

`numpy==1.16.6 --hash=sha256:7e…  # numpy-1.16.6-cp36-cp36m-manylinux1_x86_64.whl 17386281`

The comment (file name and bytes of the artefact) is optional: it lets a plan say how much there is to download.
Files made by `pip-compile --generate-hashes` or `uv pip compile --generate-hashes` are read as well.

A hash that is not known yet is written `--hash=sha256:open`. Its environment cannot be built before `invoke lock` has
filled in the hash, on a machine that reaches the package.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from tsuishi.base import toml
from tsuishi.base.errors import UserError

# The packages of a lock that are installed before all others (an sdist needs all three).
BOOTSTRAP = ("pip", "setuptools", "wheel")

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9][A-Za-z0-9.+!_-]*)(?P<rest>(\s.*)?)")
# Stands in place of a hash that is not known yet.
OPEN = "open"
_COMMENT = re.compile(r"\s#")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64}|open)")
_ARTEFACT = re.compile(r"#\s*(?P<file>\S+\.(?:whl|tar\.gz|zip))\s+(?P<bytes>[0-9]{1,15})\s*\Z")
# The name of a file: it has no character that is special in a shell, a Dockerfile, a URL or a requirements file.
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class Pin:
    """A package of a lock. `sha256` holds every accepted hash; it is empty while the hash is open.

    `file` and `size_bytes` are None where the lock does not give them.
    """

    name: str
    version: str
    sha256: tuple[str, ...]
    file: str | None = None
    size_bytes: int | None = None


def read_lock(path: Path) -> tuple[Pin, ...]:
    """The pins of a lock in file order. Raises UserError naming file and line for a package that is not pinned."""
    pins: dict[str, Pin] = {}
    for number, line in logical_lines(toml.read_text(path, "the lock ")):
        pin = _pin(line, f"{path}:{number}")
        if pin.name in pins:
            raise UserError(f"{path}:{number}: '{pin.name}' is pinned twice; keep one line")
        pins[pin.name] = pin
    if not pins:
        raise UserError(f"{path}: the lock pins nothing")
    return tuple(pins.values())


def wrong_name(file: str, name: str, version: str) -> str:
    """Why a file's name is not that of a wheel or sdist of this release; empty where it is.

    >>> wrong_name("pip-26.3-1$(id)-py3-none-any.whl", "pip", "26.3")
    "'pip-26.3-1$(id)-py3-none-any.whl' is no name of a wheel or an sdist of pip 26.3"
    """
    try:
        named = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
        fits = _FILE.fullmatch(file) and named == (canonicalize_name(name), Version(version))
    except ValueError:  # of packaging, or of a number of thousands of digits in a version
        fits = False
    return "" if fits else f"{file!r} is no name of a wheel or an sdist of {name} {version}"


def logical_lines(text: str) -> list[tuple[int, str]]:
    """The lines with their numbers. Continued lines are joined; blank lines and lines of comment are left out."""
    joined: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not pending and (not stripped or stripped.startswith("#")):
            continue
        start = start or number
        if stripped.endswith("\\"):
            pending += stripped[:-1] + " "
            continue
        joined.append((start, pending + stripped))
        pending, start = "", 0
    if pending:
        joined.append((start, pending))
    return joined


def _pin(line: str, where: str) -> Pin:
    match = _PIN.fullmatch(line)
    if not match:
        raise UserError(f"{where}: expected 'name==version --hash=sha256:…', got '{line[:60]}'")
    hashes = []
    for word in _COMMENT.split(match["rest"])[0].split():
        digest = _HASH.fullmatch(word)
        if not digest:
            raise UserError(
                f"{where}: '{match['name']}': cannot read '{word}'; "
                "after the version only --hash=sha256:<64 hexadecimal digits> may follow"
            )
        hashes.append(digest[1])
    if not hashes:
        raise UserError(f"{where}: '{match['name']}' has no --hash=sha256:<64 hexadecimal digits>; every pin needs one")
    artefact = _ARTEFACT.search(match["rest"])
    if artefact and (problem := wrong_name(artefact["file"], match["name"], match["version"])):
        raise UserError(f"{where}: {problem}")
    return Pin(
        name=canonicalize_name(match["name"]),
        version=match["version"],
        sha256=tuple(sha256 for sha256 in hashes if sha256 != OPEN),
        file=artefact["file"] if artefact else None,
        size_bytes=int(artefact["bytes"]) if artefact else None,
    )
