"""Which CUDA devices there are, asked of the driver in a process of its own.

Asking a framework would start the devices in the workload's process, and the first timed run would no longer show what
starting them costs. As a script, prints the device names as JSON.
"""

import ctypes
import json
import subprocess
import sys

SUCCESS = 0
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE, cuda.h


def names():
    """Names of the devices this process may use (CUDA_VISIBLE_DEVICES counts), by index; [] without a driver.

    Raises RuntimeError when the driver is there but does not answer.
    """
    done = subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError("cannot list CUDA devices: " + done.stderr.decode("utf-8", "replace").strip())
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
    return [_name(driver, index) for index in range(count.value)]


def _name(driver, index):
    device = ctypes.c_int()
    _call(driver.cuDeviceGet, ctypes.byref(device), index)
    name = ctypes.create_string_buffer(256)
    _call(driver.cuDeviceGetName, name, len(name), device)
    return name.value.decode("ascii", "replace")


def _call(function, *arguments):
    code = function(*arguments)
    if code not in (SUCCESS, NO_DEVICE):
        raise RuntimeError("{} returned CUDA error {}".format(function.__name__, code))
    return code


if __name__ == "__main__":
    json.dump(_from_driver(), sys.stdout)
