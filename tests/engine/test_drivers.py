"""NVIDIA's own libraries of two drivers on a machine without its GPUs: what NVML and CUDA answer there."""

import ctypes
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.conftest import missing
from tests.engine import local_bases
from tests.job import REAL
from tsuishi.base.files import sha256_of
from tsuishi.specs.environment import read_environment

pytestmark = pytest.mark.engine

PACKAGES = ("libcuda1", "libnvidia-ml1", "libnvidia-ptxjitcompiler1")
OF_NVML = """
import json
from tsuishi.machine import gpus
without = gpus.Nvml()
gpus._has_card = lambda: True
print(json.dumps([len(without), without.why_not, without.remedy, gpus.Nvml().remedy]))
"""


def fetched(address: str) -> bytes:
    try:
        with urlopen(address, timeout=120) as answer:  # noqa: S310
            return bytes(answer.read())
    except OSError as error:
        missing(f"no {address}: {error}")


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the libraries of the driver that a Debian has in its section non-free."""
    mirror = local_bases.mirror().rstrip("/")
    index = fetched(f"{mirror}/dists/{request.param}/non-free/binary-amd64/Packages.xz")
    entries = lzma.decompress(index).decode().split("\n\n")
    known = {entry.partition("\n")[0].removeprefix("Package: "): entry for entry in entries}
    root = tmp_path_factory.mktemp(request.param)
    for name in PACKAGES:
        fields = dict(line.split(": ", 1) for line in known[name].splitlines() if ": " in line and line[0] != " ")
        deb = root / f"{name}.deb"
        deb.write_bytes(fetched(f"{mirror}/{fields['Filename']}"))
        assert sha256_of(deb) == fields["SHA256"]
        local_bases.run("dpkg-deb", "--extract", deb, root)
    (library,) = root.glob("usr/lib/x86_64-linux-gnu/nvidia/*/libcuda.so.1")
    return library.parent


def said(driver: Path, *command: str | Path) -> str:
    environ = {**os.environ, "LD_LIBRARY_PATH": str(driver)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


def test_nvml_says_that_the_driver_is_not_loaded_and_where_a_card_is_what_to_do(driver: Path) -> None:
    count, why_not, remedy, with_card = json.loads(said(driver, sys.executable, "-c", OF_NVML))
    assert (count, why_not, remedy) == (0, "Driver Not Loaded", "")
    assert with_card.startswith("load the driver's kernel module")


def test_cuda_lists_no_device_and_that_is_no_error(driver: Path) -> None:
    assert said(driver, sys.executable, REAL.workloads / "common" / "cuda_devices.py") == "[]"


def test_what_stands_in_for_the_driver_has_no_function_that_the_driver_lacks(driver: Path) -> None:
    """Those are linked at once: a name that no driver has would be a mistake of the specification."""
    libraries = read_environment(REAL.images / "tf1.13-cu100-wheels.toml").libraries
    assert libraries
    of_nvidia = ctypes.CDLL(str(driver / "libcuda.so.1"))
    symbols = libraries.stand_ins["libcuda.so.1"].symbols
    assert [name for name in symbols if not hasattr(of_nvidia, name)] == []
    assert of_nvidia.cuInit(0) == libraries.stand_ins["libcuda.so.1"].returns
