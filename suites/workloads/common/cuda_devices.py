"""The names, compute capabilities and memory of the CUDA devices, which a separate process asks the driver for.

A question to a framework would start the devices in the workload's process. Then the first timed run would not show the
cost of their start, and no process that is forked afterwards could use them. As a script, this module prints them of
every device as JSON.
"""

import ctypes
import functools
import json
import os
import subprocess
import sys

SUCCESS = 0
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE, cuda.h
# CUresult of cuda.h, where a user can do something about it.
ERRORS = {
    802: "CUDA_ERROR_SYSTEM_NOT_READY: on machines with NVSwitch start nvidia-fabricmanager, in the driver's version",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: the driver's library and kernel module differ: restart the machine",
}
LOADING = {1: "eager", 2: "lazy"}  # CUmoduleLoadingMode of cuda.h
COMPUTE_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR, cuda.h


class GpusMissing(RuntimeError):
    """GPUs that this process was given are not there, or their driver fails. Says nothing of the case."""


def names():
    """Names of the devices that CUDA_VISIBLE_DEVICES leaves to this process, by index; [] without a driver.

    Raises GpusMissing when there is a driver but a call of it fails.
    """
    return [name for name, _, _ in _devices()]


def given(count):
    """The number of devices. Raises GpusMissing where they are fewer than the `count` that this process was given."""
    listed = len(names())
    if listed < count:
        raise GpusMissing("given {} GPUs, and CUDA's driver lists {} here".format(count, listed))
    return listed


def compute_capability(index):
    """(major, minor) of a device."""
    return tuple(_devices()[index][1])


def least_memory_mib():
    """The memory of the smallest device as CUDA states it, which frameworks repeat; None without a device.

    Where GPU and CPU share their memory, CUDA counts all of it, and NVML may state none.
    """
    return min((memory for _, _, memory in _devices()), default=None)


def module_loading():
    """How CUDA loads kernels in this process: lazy, when they are first used, or eager, when it starts.

    None where this process has not started CUDA, and from a driver before 515. Libraries of CUDA before 11.7 load
    eagerly, whatever the driver says (CUDA programming guide, Lazy Loading).
    """
    with open("/proc/self/maps") as lines:
        if "/libcuda.so" not in lines.read():
            return None
    mode = ctypes.c_int()
    ask = getattr(ctypes.CDLL("libcuda.so.1"), "cuModuleGetLoadingMode", None)
    return LOADING.get(mode.value) if ask and ask(ctypes.byref(mode)) == SUCCESS else None


def compiled_mib():
    """MiB of code that CUDA compiled for this environment before and kept in CUDA_CACHE_PATH; None without the folder.

    Kernels of which it has nothing are compiled when they are first used: in the warm-up.
    """
    folder = os.environ.get("CUDA_CACHE_PATH")
    if not folder or not os.path.isdir(folder):
        return None
    found = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    return sum(os.path.getsize(path) for path in found if os.path.isfile(path)) / 2.0**20


@functools.lru_cache(maxsize=None)
def _devices():
    """[name, [major, minor], memory in MiB] of every device, by index."""
    done = subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise GpusMissing("CUDA's driver cannot list its devices: " + said.rpartition("\n")[2])
    return json.loads(done.stdout.decode("ascii"))


def _from_driver():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    if _call(driver.cuInit, 0) == NO_DEVICE:
        return []
    count = ctypes.c_int()
    _call(driver.cuDeviceGetCount, ctypes.byref(count))
    return [_describe(driver, index) for index in range(count.value)]


def _describe(driver, index):
    device, number, capability = ctypes.c_int(), ctypes.c_int(), []
    _call(driver.cuDeviceGet, ctypes.byref(device), index)
    for attribute in COMPUTE_CAPABILITY:
        _call(driver.cuDeviceGetAttribute, ctypes.byref(number), attribute, device)
        capability.append(number.value)
    name = ctypes.create_string_buffer(256)
    _call(driver.cuDeviceGetName, name, len(name), device)
    memory = ctypes.c_size_t()
    _call(driver.cuDeviceTotalMem_v2, ctypes.byref(memory), device)
    return name.value.decode("ascii", "replace"), capability, memory.value // 2**20


def _call(function, *arguments):
    code = function(*arguments)
    if code not in (SUCCESS, NO_DEVICE):
        raise RuntimeError("{} returned CUDA error {}".format(function.__name__, ERRORS.get(code, code)))
    return code


if __name__ == "__main__":
    json.dump(_from_driver(), sys.stdout)
