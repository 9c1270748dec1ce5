"""Finds the CPythons of this machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tsuishi.base.home import expanded

# The folders of version managers and distributions; PATH comes before them.
_FOLDERS = (
    "~/.pyenv/versions/*/bin",
    "$PYENV_ROOT/versions/*/bin",
    "~/.local/share/uv/python/*/bin",
    "~/.asdf/installs/python/*/bin",
    "~/.local/share/mise/installs/python/*/bin",
    "~/miniconda3/envs/*/bin",
    "/opt/python/*/bin",
    "/usr/local/bin",
    "/usr/bin",
)
# Variables of the user that lead to an interpreter. The shim of a version manager needs all but the first two.
_VARIABLES = (
    *("PATH", "LD_LIBRARY_PATH", "HOME", "PYENV_ROOT", "PYENV_VERSION"),
    *("ASDF_DATA_DIR", "ASDF_DIR", "MISE_DATA_DIR", "XDG_DATA_HOME"),
)

# The oldest CPython that uv installs.
_OLDEST_OF_UV = (3, 8)
# What an interpreter is. Many interpreters are asked, so it imports nothing, and they start without site-packages.
_WHAT = """
import sys
name = {"cpython": "CPython"}.get(sys.implementation.name, "another")
print(name, "%d.%d.%d" % sys.version_info[:3], sys.executable)
"""


def find_python(version: str, more_folders: Sequence[str] = ()) -> Path | None:
    """The newest CPython of a version (major.minor) that runs; None where there is none."""
    versions = {executable: full for path in _candidates(version, more_folders) for executable, full in _ask(path)}
    matches = [executable for executable, full in versions.items() if full.startswith(f"{version}.")]
    return max(matches, key=lambda path: [int(part) for part in re.findall(r"\d+", versions[path])], default=None)


def python_remedy(version: str) -> str:
    """How a CPython of a version (major.minor) is installed. uv has builds from 3.8 on (uv 0.13.9's own list).

    >>> python_remedy("3.12")
    'pyenv install 3.12, or uv python install 3.12'
    """
    if tuple(map(int, version.split("."))) >= _OLDEST_OF_UV:
        return f"pyenv install {version}, or uv python install {version}"
    folder = f"~/python{version}"
    return (
        f"pyenv install {version}, or conda create --prefix {folder} --channel conda-forge python={version} with "
        f"{folder}/bin in tsuishi.pythons; uv has none"
    )


def has_python(version: str, more_folders: Sequence[str] = ()) -> bool:
    """Whether `find_python` would find a CPython. Starts interpreters only until one is of that version."""
    # The shims of version managers are scripts; each takes many times as long as an interpreter.
    candidates = sorted(_candidates(version, more_folders), key=_is_script)
    return any(full.startswith(f"{version}.") for path in candidates for _, full in _ask(path))


def variables() -> dict[str, str]:
    """The environment variables with which an interpreter is asked what it is: none of the user's secrets."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ} | {"LANG": "C.UTF-8"}


def full_version(python: Path) -> str:
    """The full version of a CPython that runs, as `3.6.15`; empty for any other program."""
    return next((full for _, full in _ask(python)), "")


def real_executable(python: Path) -> Path:
    """The interpreter that a version manager's shim starts; the path itself for any other program."""
    return next((executable for executable, _ in _ask(python)), python)


@cache
def _ask(python: Path) -> tuple[tuple[Path, str], ...]:
    """The real executable behind a path (of a shim, say) and its version; empty where no CPython runs."""
    try:
        result = subprocess.run(
            [str(python), "-I", "-S", "-c", _WHAT],
            env=variables(),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    implementation, _, rest = result.stdout.strip().partition(" ")
    version, _, executable = rest.partition(" ")
    return ((Path(executable), version),) if implementation == "CPython" and executable else ()


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _candidates(version: str, more_folders: Sequence[str]) -> Iterator[Path]:
    name = f"python{version}"
    for folder in more_folders:
        yield from (expanded(folder) / sub / name for sub in ("", "bin"))
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    for pattern in _FOLDERS:
        place = os.path.expanduser(os.path.expandvars(pattern))  # noqa: PTH111  Path.expanduser fails without a home
        if place.startswith("/"):
            yield from sorted(Path("/").glob(f"{place.lstrip('/')}/{name}"))
