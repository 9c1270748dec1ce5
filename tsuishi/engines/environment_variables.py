"""The environment variables of workloads and of pip without a container: a short list of the user's variables.

The user's variables hold tokens, passwords of proxies, and sockets of agents. Variables that set the number of threads
(OMP_NUM_THREADS, ...) or change the computation of a framework are left out too: containers do not get them, and they
would change the measurements.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tsuishi.engines.interface import Built, Launch
from tsuishi.machine.gpus import Gpu

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

# Of every workload, as the template of images sets them too.
OF_PYTHON = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
# By default CUDA puts the fastest GPU first: a trial's first GPU would not be telemetry's first GPU.
NVMLS_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

# The variables that a framework needs, with the reason.
_PASSED = {
    "LD_LIBRARY_PATH": "where the libraries of CUDA and of the interpreter are",
    "CUDA_HOME": "where TensorFlow and Triton look for ptxas and libdevice",
    "CUDA_PATH": "the same, by another name",
    "CUDA_VISIBLE_DEVICES": "which GPUs a scheduler or the user has left to this process",
    "CUDA_DEVICE_ORDER": "how those are counted",
}
_DIGITS = 12
# The variables among them that name folders. A sandbox makes these folders readable.
_FOLDERS = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")


def for_trial(python: Path, home: str, gpus: Sequence[Gpu]) -> dict[str, str]:
    """The variables of a workload, the same as in images. `python` runs it; `home` is a folder for it alone."""
    return {**of_user(_PASSED), **of_gpus(gpus), **for_building(python, home), **OF_PYTHON}


def of_gpus(gpus: Sequence[Gpu]) -> dict[str, str]:
    """The variables by which CUDA leaves a program these GPUs of the machine, in this order; none for no GPUs."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpu.id for gpu in gpus), **NVMLS_ORDER} if gpus else {}


def cuda_cache(built: Built, launch: Launch) -> Path | None:
    """The folder for the code that CUDA compiles, which is made if necessary; None for a program without GPUs."""
    if not launch.limits.gpus or built.cuda_cache is None:
        return None
    built.cuda_cache.mkdir(parents=True, exist_ok=True)
    return built.cuda_cache


def of_cuda_cache(folder: str) -> dict[str, str]:
    """The variables by which CUDA keeps the code that it compiles when it loads it, up to 4 GiB, the most it takes.

    Source: CUDA C++ Programming Guide, environment variables. CUDA tells drivers and GPUs apart itself.
    """
    return {"CUDA_CACHE_PATH": folder, "CUDA_CACHE_MAXSIZE": str(4 << 30)}


def for_building(python: Path, home: str) -> dict[str, str]:
    """The variables of a step of a build. They are few, because the setup.py of an sdist is a program of others."""
    libraries = of_user(("LD_LIBRARY_PATH",))
    return {**libraries, "PATH": f"{python.parent}:{_SYSTEM_PATH}", "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}


def passed() -> tuple[str, ...]:
    """The names of the user's variables that a workload gets."""
    return tuple(of_user(_PASSED))


def folders() -> list[str]:
    """The folders that the user's variables name."""
    named: Mapping[str, str] = of_user(_FOLDERS)
    return [folder for value in named.values() for folder in value.split(os.pathsep) if Path(folder).is_absolute()]


def digests() -> dict[str, str]:
    """A digest of each of the user's variables that names folders, by its name: the text itself may name a user.

    The home folder is `~` in it: else a list of names would find the user's.
    """
    texts = {name: text.replace(str(Path.home()), "~") for name, text in of_user(_FOLDERS).items()}
    return {name: hashlib.sha256(os.fsencode(text)).hexdigest()[:_DIGITS] for name, text in texts.items()}


def of_user(names: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """The user's variables of these names, where there are any."""
    return {name: os.environ[name] for name in names if name in os.environ}
