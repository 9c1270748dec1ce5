"""GPUs by CDI with the real engines of Debian 13: they are asked, and the container has the devices of the request.

There is no GPU here: the specification gives /dev/null as nvidia0, a library of four functions as the driver's, and a
hook as NVIDIA's own.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.driver import V100, fake
from tests.engine import local_bases, podman
from tests.job import REAL
from tests.pinned import environment
from tsuishi.base.settings import Settings
from tsuishi.engines.docker import devices
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.interface import Built, Launch, ResourceLimits
from tsuishi.machine.gpus import Gpu, Nvml

pytestmark = pytest.mark.engine

UUID = "GPU-12345678-1234-1234-1234-123456789abc"
# As cuda.h has them; 75 and 76 are the two numbers of the compute capability.
DRIVER = """
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int length, int device) { strncpy(name, "A GPU of a test", length); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 7 : 0; return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)16384 << 20; return 0; }
"""
SPECIFICATION = f"""
cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices:
- name: {UUID}
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      hostPath: /dev/null
      type: c
      major: 1
      minor: 3
containerEdits:
  mounts:
  - hostPath: /opt/driver/libcuda.so.1
    containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.1
    options: [ro, nosuid, nodev, bind]
  hooks:
  - hookName: createContainer
    path: /opt/driver/hook
    args: [hook]
"""
HOOK = "#!/bin/sh\ncat >/opt/driver/state.json\n"
PROGRAM = """
import os, runpy
print(sorted(name for name in os.listdir("/dev") if "nvidia" in name))
runpy.run_path("/devices.py", run_name="__main__")
"""


@pytest.fixture(scope="module")
def trixie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a Debian 13 with engines, a driver and its specification."""
    root = tmp_path_factory.mktemp("trixie")
    try:
        tar = local_bases.debootstrapped("trixie", ["podman", "runc", "docker.io"])
    except local_bases.Failed as failure:
        missing(f"no Debian 13: {failure}")
    local_bases.run("tar", "--extract", "--file", tar, "--numeric-owner", "--preserve-permissions", "-C", root)
    driver = root / "opt" / "driver"
    driver.mkdir(parents=True)
    (driver / "driver.c").write_text(DRIVER)
    options = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o")
    subprocess.run(["gcc", *options, driver / "libcuda.so.1", driver / "driver.c"], check=True)
    (driver / "hook").write_text(HOOK)
    (driver / "hook").chmod(0o755)
    (root / "etc" / "cdi").mkdir(parents=True)
    (root / "etc" / "cdi" / "nvidia.yaml").write_text(SPECIFICATION)
    return root


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that both systems see: the script that asks the driver for its devices, and settings of Docker."""
    folder = tmp_path_factory.mktemp("p")
    shutil.copy(REAL.workloads / "common" / "cuda_devices.py", folder / "devices.py")
    (folder / "cdi").mkdir()
    (folder / "cdi" / "nvidia.yaml").write_text(SPECIFICATION)
    # Docker 25 to 27 takes requests by CDI only where that is switched on.
    settings = {"features": {"cdi": True}, "cdi-spec-dirs": [f"{folder}/cdi"], "bridge": "none", "iptables": False}
    (folder / "docker.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(params=["podman", "docker"])
def engine(
    request: pytest.FixtureRequest, trixie: Path, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DockerEngine]:
    """Podman 5.4 or Docker 26.1, and a machine with one GPU."""
    if why_not := podman.why_not():
        missing(why_not)
    base, socket = settings.mirrors["docker.io/library/python:3.11.13-slim-bookworm"], folder / "docker.sock"
    of_docker = f"dockerd --host unix://{socket} --data-root {folder}/data --exec-root /run/cdi --pidfile /run/cdi.pid"
    of_docker += f" --config-file {folder}/docker.json"
    command = podman.in_another_system(trixie, folder, *of_docker.split())
    serving = (
        podman.service(folder, (base,), system=trixie)
        if request.param == "podman"
        else podman.serving(command, folder, socket, (base,))
    )
    with serving as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        monkeypatch.setattr(devices, "_CDI_FOLDERS", (str(trixie / "etc" / "cdi"),))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, "uuid": UUID}]))
        yield DockerEngine(REAL.dockerfile, settings.mirrors, folder)


def ran(engine: DockerEngine, settings: Settings, folder: Path, gpus: tuple[Gpu, ...]) -> list[str]:
    """What the program writes in a container with these GPUs: names of device files, and the devices of the driver."""
    image = settings.mirrors["docker.io/library/python:3.11.13-slim-bookworm"]
    built = Built(environment(()), "docker", "", "", image, ("python3",))
    limits = ResourceLimits(gpus=gpus)
    process = engine.starter.start(
        built, Launch(("-c", PROGRAM), {folder / "devices.py": "/devices.py"}, f"t-{len(gpus)}", {}, limits)
    )
    output = b"".join(piece for _, piece in process.output()).decode()
    assert process.wait().code == 0, output
    return output.splitlines()


def test_a_container_has_the_gpus_of_its_request_and_lists_them(
    engine: DockerEngine, trixie: Path, settings: Settings, folder: Path
) -> None:
    assert engine.availability().version.startswith(("Podman 5.", "26."))
    nvml = Nvml()
    assert engine.starter.why_no_gpus(nvml.gpus) == ""
    nodes, listed = ran(engine, settings, folder, nvml.gpus)
    assert nodes == "['nvidia0']"
    assert json.loads(listed) == [["A GPU of a test", [7, 0], 16384]]
    assert json.loads((trixie / "opt" / "driver" / "state.json").read_text())["ociVersion"], "the hook was called"


def test_a_container_without_a_request_has_no_gpu(engine: DockerEngine, settings: Settings, folder: Path) -> None:
    assert ran(engine, settings, folder, ()) == ["[]", "[]"]


def test_a_gpu_that_the_specification_lacks_is_refused_before_anything_starts(
    engine: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, "uuid": "GPU-87654321"}]))
    assert "GPU-87654321" in engine.starter.why_no_gpus(Nvml().gpus)
