"""A checkout whose environment `tiny` is built as a virtual environment in seconds: pip and a package of one file."""

import ensurepip
import io
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench import least_environment, make_checkout
from tests.conftest import missing
from tests.engine.conftest import add_to_cache
from tsuishi.base.checkout import Checkout
from tsuishi.base.files import sha256_of
from tsuishi.base.settings import Settings

PYTHON = f"3.{sys.version_info.minor}"
PYTHONS = (str(Path(sys.base_prefix) / "bin"),)
# Reports the version of the package, as workloads report those of a framework.
REPORTS_TINY = "emitter.environment(python=platform.python_version(), versions={'tiny': tiny.__version__})"
PROBE = f"""
import platform
from common import installed
import tiny

def run(request, emitter):
    {REPORTS_TINY}
    installed.report(emitter, False)
"""
BEHAVE = f"""
import platform
import tiny

def run(request, emitter):
    {REPORTS_TINY}
    with emitter.phase("measure"):
        emitter.sample("measure", 0, 1, 10, 0.5)
"""
_BACKEND = """
import os, sysconfig, zipfile
from pathlib import Path

def build_wheel(folder, config_settings=None, metadata_directory=None):
    site = Path(sysconfig.get_path("purelib"))
    {does}
    with zipfile.ZipFile(os.path.join(folder, "odd-1.0-py3-none-any.whl"), "w") as wheel:
        about = "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("odd-1.0.dist-info/WHEEL", about)
        wheel.writestr("odd-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: odd\\nVersion: 1.0\\n")
        wheel.writestr("odd-1.0.dist-info/RECORD", "")
    return "odd-1.0-py3-none-any.whl"
"""


def tiny_checkout(root: Path, odd: str = "") -> tuple[Checkout, Settings]:
    """The checkout, and settings whose cache holds all of it.

    `odd`: also a source distribution, whose build runs these statements; `site` is where packages are installed.
    """
    checkout = make_checkout(root, "ok")
    (checkout.workloads / "experiments" / "probe.py").write_text(PROBE)
    (checkout.workloads / "experiments" / "behave.py").write_text(BEHAVE)
    cache = root / "cache"
    add_tiny(root, checkout.images, "tiny", more=[_odd(root, odd)] if odd else [])
    return checkout, Settings(cache=cache, results=root / "results", engine="venv", offline=True, pythons=PYTHONS)


def add_tiny(root: Path, images: Path, name: str, version: str = "1.0", more: Sequence[Path] = ()) -> None:
    """An environment with a version of the package; root / "cache" holds all of it. more: further files of its lock."""
    lock = ""
    for file in (_pip(), tiny_wheel(root, version), *more):
        add_to_cache(root / "cache", file)
        package, release = file.name.removesuffix(".tar.gz").split("-")[:2]
        lock += f"{package}=={release} --hash=sha256:{sha256_of(file)}\n"
    (images / f"{name}.lock").write_text(lock)
    promises = f'promises = {{ python = "{PYTHON}", tiny = "{version}" }}'
    (images / f"{name}.toml").write_text(least_environment(PYTHON, f"docker.io/library/python:{PYTHON}", promises))


def _pip() -> Path:
    """The wheel of pip that comes with this Python."""
    found = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"), None)
    return found or missing("a Python without ensurepip")


def tiny_wheel(root: Path, version: str) -> Path:
    """A wheel of the package in a folder."""
    path = root / f"tiny-{version}-py3-none-any.whl"
    inside = f"tiny-{version}.dist-info"
    about = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents = {
        "tiny/__init__.py": f"__version__ = '{version}'\n",
        f"{inside}/WHEEL": about,
        f"{inside}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n",
        f"{inside}/entry_points.txt": "[console_scripts]\ntiny = tiny:main\n",
    }
    record = "".join(f"{name},,\n" for name in (*contents, f"{inside}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**contents, f"{inside}/RECORD": record}.items():
            wheel.writestr(zipfile.ZipInfo(name), text)
    return path


def _odd(root: Path, does: str) -> Path:
    path = root / "odd-1.0.tar.gz"
    contents = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": _BACKEND.format(does=does),
        "PKG-INFO": "Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n",
    }
    with tarfile.open(path, "w:gz") as sdist:
        for name, text in contents.items():
            member = tarfile.TarInfo(f"odd-1.0/{name}")
            member.size = len(text)
            sdist.addfile(member, io.BytesIO(text.encode()))
    return path
