"""Passes GPUs to containers: by CDI where the engine offers it, else by NVIDIA's runtime or hook.

The engine is asked, and where it does not answer its configuration files on this machine are read. Sources: Docker's
API (CDISpecDirs from Docker 25, DiscoveredDevices from 28.2), moby's daemon/nvidia_linux.go (the hook has to be on the
daemon's PATH), Podman's pkg/api/handlers/compat/containers_create.go (before 5.4 it silently ignores device requests;
since then it ignores all but those of CDI), and NVIDIA's guide to its container toolkit.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tsuishi.base.errors import UserError
from tsuishi.engines.docker.daemon import Daemon
from tsuishi.engines.environment_variables import NVMLS_ORDER, of_gpus
from tsuishi.machine.gpus import Gpu, wsl

_KIND = "nvidia.com/gpu="
_CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
_PODMAN_HOOKS = Path("/usr/share/containers/oci/hooks.d")
_HOOK = "nvidia-container-runtime-hook"
_HOOKS = re.compile(r"nvidia-container-(runtime-hook|toolkit)\b")  # the newer name and the older name
# The PATH of system services; the PATH of a user may lack some of these folders.
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The first version in which Podman's Docker-compatible API accepts requests for CDI devices.
_PODMAN_CDI = (5, 4)
_WRITE_CDI = "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
_CONFIGURE = "`nvidia-ctk runtime configure --runtime=docker`, restart Docker"
_NVML_AND_CUDA = "compute,utility"
_NCCL_SHARED_MEMORY = "8g"

# It overrides the variables of an image, and also works where NVIDIA's runtime is the default runtime.
NO_GPUS = {"environment": {"NVIDIA_VISIBLE_DEVICES": "void"}}

Way = Literal["CDI", "NVIDIA's runtime", "NVIDIA's hook", "NVIDIA's hook for Podman"]


@dataclass(frozen=True)
class Passing:
    """How an engine passes GPUs.

    `names`: those of the GPUs in its CDI specifications. `writable`: whether the container's root must be.
    """

    way: Way
    names: frozenset[str] = frozenset()
    writable: bool = False

    def arguments(self, gpus: Sequence[Gpu]) -> dict[str, Any]:
        """Arguments of containers.create that pass exactly these GPUs.

        Raises UserError where the CDI specifications lack a GPU.
        """
        from docker.types import DeviceRequest

        ids = ["all"] if wsl() else [gpu.id for gpu in gpus]
        environment = {
            "NVIDIA_DRIVER_CAPABILITIES": _NVML_AND_CUDA,
            "NVIDIA_VISIBLE_DEVICES": ",".join(ids),
            # Windows gives all GPUs or none: CUDA has to leave the others out.
            **(of_gpus(gpus) if wsl() else NVMLS_ORDER),
        }
        given: dict[str, Any] = {"environment": environment, "shm_size": _NCCL_SHARED_MEMORY}
        if self.way == "CDI":
            environment["NVIDIA_VISIBLE_DEVICES"] = "void"  # else NVIDIA's runtime, if it is the default, adds GPUs
            names = ["all"] if wsl() else [self._name(gpu) for gpu in gpus]
            given["device_requests"] = [DeviceRequest(driver="cdi", device_ids=[_KIND + name for name in names])]
            given |= {"read_only": False} if self.writable else {}
        elif self.way == "NVIDIA's runtime":
            given["runtime"] = "nvidia"
        elif self.way == "NVIDIA's hook":
            given["device_requests"] = [DeviceRequest(driver="nvidia", device_ids=ids, capabilities=[["gpu"]])]
        return given

    @property
    def remedy(self) -> str:
        """What to do where GPUs that were passed do not arrive."""
        if self.way == "CDI":
            return f"write the CDI specification anew with {_WRITE_CDI}, as after each change of the driver"
        return (
            f"{self.way} passed none: look at `nvidia-container-cli info`, and after `systemctl daemon-reload`, which "
            f"takes GPUs away, use CDI ({_WRITE_CDI})"
        )

    def _name(self, gpu: Gpu) -> str:
        """The GPU's name in the CDI specification: its UUID, or in older specifications its index."""
        for name in (gpu.id, str(gpu.index)):
            if name in self.names:
                return name
        raise UserError(
            f"GPU {gpu.id} is not among the engine's CDI devices ({', '.join(sorted(self.names))}): "
            f"write them anew with {_WRITE_CDI}"
        )


def find_passing(daemon: Daemon) -> Passing:
    """The way in which an engine passes GPUs. Raises UserError with a remedy where it passes none."""
    names = _cdi_names(daemon)
    if names:
        return Passing("CDI", names, daemon.hooks_need_a_writable_root)
    if daemon.name == "Docker":
        if "nvidia" in (daemon.info.get("Runtimes") or {}):
            return Passing("NVIDIA's runtime")
        if shutil.which(_HOOK, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}"):
            return Passing("NVIDIA's hook")
        remedy = _WRITE_CDI if daemon.info.get("CDISpecDirs") else _CONFIGURE
    else:
        if any(_HOOKS.search(text) for text in _read(_PODMAN_HOOKS.glob("*.json"))):
            return Passing("NVIDIA's hook for Podman")
        remedy = _WRITE_CDI
        if daemon.number < _PODMAN_CDI:
            remedy += " and Podman {}.{} or newer".format(*_PODMAN_CDI)
    raise UserError(
        f"{daemon.title} here passes no GPUs: install nvidia-container-toolkit, then {remedy}; or use --engine venv, "
        "or --accelerator cpu"
    )


def groups_of_gpus(folder: Path = Path("/dev")) -> list[str]:
    """The ids of groups whose members alone may use the GPUs, as `video` of some distributions; usually there is none.

    The user of a container is in none of this system's groups.
    """
    devices = [path.stat() for path in folder.glob("nvidia*") if not path.is_dir()]
    shared = (device for device in devices if device.st_mode & 0o006 != 0o006 and device.st_mode & 0o060 == 0o060)
    return sorted({str(device.st_gid) for device in shared if device.st_gid})


def _cdi_names(daemon: Daemon) -> frozenset[str]:
    """The names of NVIDIA's devices in the engine's CDI specifications; empty where it accepts no CDI requests."""
    discovered = daemon.info.get("DiscoveredDevices")
    if discovered is not None:
        ids = [device["ID"] for device in discovered]
        return frozenset(name.removeprefix(_KIND) for name in ids if name.startswith(_KIND))
    folders: Sequence[str] = daemon.info.get("CDISpecDirs") or ()  # Docker: none where CDI is switched off
    if daemon.name == "Podman":
        folders = _CDI_FOLDERS if daemon.number >= _PODMAN_CDI else ()
    files = [file for folder in folders for file in Path(folder).glob("*") if file.suffix in (".yaml", ".json")]
    specifications = [text for text in _read(files) if _KIND[:-1] in _words(text, "kind")]
    return frozenset(name for text in specifications for name in _words(text, "name"))


def _words(text: str, key: str) -> list[str]:
    """The values of a key in a CDI specification, which is YAML or JSON.

    >>> _words('- name: "0"\\n  x: y\\n- name: GPU-1\\n', "name"), _words('{"devices":[{"name":"0"}]}', "name")
    (['0', 'GPU-1'], ['0'])
    """
    return re.findall(rf"""(?m)(?:^|[\s{{,])["']?{key}["']?\s*:\s*["']?([^\s"',}}]+)""", text)


def _read(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        with suppress(OSError):  # only root may read it: then this user's engine cannot use it
            yield file.read_text(encoding="utf-8", errors="replace")
