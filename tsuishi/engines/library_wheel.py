"""Makes the wheel of an environment's libraries: files out of wheels that are not installed, and generated stand-ins.

pip installs it beside the others, so that its files are listed, and compared, as those of any package. Equal
specifications give equal bytes.
"""

import base64
import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from packaging.utils import canonicalize_name

from tsuishi.base import toml
from tsuishi.base.errors import BuildError
from tsuishi.base.files import sha256_of
from tsuishi.engines.stand_in_library import stand_in
from tsuishi.specs.environment import Environment
from tsuishi.specs.libraries import Libraries
from tsuishi.specs.lock import Pin

# 1980-01-01, the first day that ZIP archives know.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_PIECE = 1 << 20
# The package of stand-ins that are loaded only where the machine has no library of their name, when Python starts: a
# library that is loaded already serves whatever is linked with its name.
_PACKAGE = "tsuishi_stand_ins"
_LOADER = '''"""Loads libraries that stand in for those that this machine lacks."""

import ctypes
import os

for _name in sorted(os.listdir(os.path.dirname(__file__))):
    if ".so" in _name:
        try:
            ctypes.CDLL(_name)
        except OSError:
            ctypes.CDLL(os.path.join(os.path.dirname(__file__), _name))
'''


def package_name(environment: str) -> str:
    """The name of the package of an environment's libraries."""
    return str(canonicalize_name(f"{environment}-libraries"))


def write_wheel(environment: Environment, wheels: Mapping[str, Path], folder: Path) -> tuple[Path, Pin]:
    """Write the wheel into `folder`; returns it, with its pin. wheels: the file of each carrier, by its package.

    Raises BuildError where a carrier has not a file that it should have.
    """
    assert environment.libraries
    name, version = package_name(environment.made_as), toml.digest(environment.libraries.asked, 8)
    stem = f"{name.replace('-', '_')}-0+{version}"
    path, info = folder / f"{stem}-py3-none-any.whl", f"{stem}.dist-info"
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:

        def add(place: str, content: IO[bytes] | bytes) -> str:
            digest, size = hashlib.sha256(), 0
            with archive.open(zipfile.ZipInfo(place, _LONG_AGO), "w", force_zip64=True) as target:
                for piece in [content] if isinstance(content, bytes) else iter(lambda: content.read(_PIECE), b""):
                    target.write(piece)
                    digest.update(piece)
                    size += len(piece)
            encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
            rows.append(f"{place},sha256={encoded},{size}\n")
            return digest.hexdigest()

        into = environment.libraries.into
        for package, carrier in environment.libraries.carriers.items():
            with _opened(environment.name, wheels[package]) as source:
                for member, sha256 in carrier.takes.items():
                    try:
                        with source.open(member) as content:
                            found = add(f"{into}/{member.rpartition('/')[2]}", content)
                    except KeyError:
                        raise BuildError(f"{environment.name}: {carrier.file} has no {member}") from None
                    if found != sha256:
                        raise BuildError(f"{environment.name}: {member} of {carrier.file} is another file: {found}")
        for place, text in (*_stand_ins(environment.libraries), *_metadata(info, name, f"0+{version}")):
            add(place, text)
        add(f"{info}/RECORD", ("".join(rows) + f"{info}/RECORD,,\n").encode())
    return path, Pin(name, f"0+{version}", (sha256_of(path),), path.name, path.stat().st_size)


def _opened(environment: str, wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except zipfile.BadZipFile as error:
        raise BuildError(f"{environment}: {wheel.name} is no wheel: {error}") from error


def _stand_ins(libraries: Libraries) -> Iterator[tuple[str, bytes]]:
    """The generated libraries, with their places; those for machines that lack them in a package that loads them."""
    for name, given in libraries.stand_ins.items():
        content = stand_in(name, given.symbols, versioned=given.versioned, returns=given.returns, why=given.why)
        yield f"{_PACKAGE if given.only_without else libraries.into}/{name}", content
    if any(given.only_without for given in libraries.stand_ins.values()):
        yield f"{_PACKAGE}/__init__.py", _LOADER.encode()
        yield f"{_PACKAGE}.pth", f"import {_PACKAGE}\n".encode()


def _metadata(info: str, name: str, version: str) -> Iterator[tuple[str, bytes]]:
    yield f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    yield f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: tsuishi\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
