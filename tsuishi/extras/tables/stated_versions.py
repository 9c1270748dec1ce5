"""Versions of software that the files beside a table state; where two files contradict each other, both are named."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tsuishi.base import toml
from tsuishi.base.errors import UserError

_ENDINGS = (".md", ".markdown", ".rst", ".txt")
_NAMES = "cuDNN|CUDA|NCCL|PyTorch|TensorFlow|MXNet|JAX|timm|Python"
# "CUDNN version= `7601`", "CUDA Version : 10.0", "PyTorch 1.4"; no requirement (torch>=1.0), and no part of an address.
# A version has a point, or is an integer as cuDNN's API has it.
_STATED = re.compile(
    rf"(?<![\w/.-])({_NAMES})(?:\s+version)?(?:\s*=\s*|\s*:\s+|\s+)[`'\"]?v?(\d+(?:\.\d+)+|\d{{4,5}})(?![\w.]*[/\w]|-[a-z])",
    re.I,
)


@cache
def contradictions(folder: Path, root: Path) -> tuple[str, ...]:
    """Sentences on versions that files state differently: files of a folder, and of those above it up to `root`.

    A file that states several versions of a package is about several machines, and contradicts nobody.
    """
    stated: dict[str, dict[str, str]] = {}
    for path in _texts(folder, root):
        for name, version in _versions(path).items():
            stated.setdefault(name, {})[path.relative_to(root).as_posix()] = version
    return tuple(
        f"{name} is {' and '.join(f'{version} in {file}' for file, version in of.items())}"
        for name, of in stated.items()
        if not _agree(name, [*of.values()])
    )


def _texts(folder: Path, root: Path) -> Iterator[Path]:
    for each in (folder, *(parent for parent in folder.parents if parent.is_relative_to(root))):
        yield from sorted(path for path in each.iterdir() if path.suffix.lower() in _ENDINGS and path.is_file())


def _versions(path: Path) -> dict[str, str]:
    """The version of each package of which a file states only one."""
    try:
        text = toml.read_text(path)
    except UserError:
        return {}
    names = {name.lower(): name for name in _NAMES.split("|")}
    found: dict[str, set[str]] = {}
    for name, version in _STATED.findall(text):
        found.setdefault(names[name.lower()], set()).add(version)
    return {name: versions.pop() for name, versions in found.items() if len(versions) == 1}


def _agree(name: str, versions: list[str]) -> bool:
    """Whether the versions are one: 1.4 may be 1.4.0, and cuDNN's 7601 is 7.6.1."""
    parts = [_parts(name, version) for version in versions]
    longest = max(parts, key=len)
    return all(longest[: len(each)] == each for each in parts)


def _parts(name: str, version: str) -> list[int]:
    if "." in version or name != "cuDNN":
        return [int(part) for part in version.split(".")]
    number = int(version)
    major, rest = divmod(number, 10_000 if number >= 90_000 else 1_000)
    return [major, rest // 100, rest % 100]
