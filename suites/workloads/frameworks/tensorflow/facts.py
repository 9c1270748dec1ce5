"""The facts that TensorFlow reports, and its switches."""

import ctypes
import os
import re

from frameworks.tensorflow import cuda_wheels

cuda_wheels.load()  # TensorFlow looks for CUDA when it is imported

import tensorflow  # noqa: E402

from common import cuda_devices, installed  # noqa: E402
from frameworks import interface  # noqa: E402

# The error of a CPU kernel that cannot do channels_first. Which kernels can depends on the version of TensorFlow and on
# oneDNN, which depends on the CPU.
LAYOUT_REFUSED = re.compile(r"[^\n]* only supports NHWC[^\n]*")


class Framework(interface.Framework):
    name = "tensorflow"
    module = tensorflow
    layout = "channels_last"

    def facts(self):
        sysconfig = tensorflow.sysconfig
        build = sysconfig.get_build_info() if hasattr(sysconfig, "get_build_info") else {}
        return {
            "versions": installed.versions("tensorflow", "numpy", "scipy"),
            "cuda": build.get("cuda_version") or _loaded_library("libcudart"),
            "cudnn": build.get("cudnn_version") or _loaded_cudnn(),
            "flags": {
                "cudnn_benchmark": os.environ.get("TF_CUDNN_USE_AUTOTUNE", "1") != "0",
                "deterministic": os.environ.get("TF_DETERMINISTIC_OPS", "0") in ("1", "true"),
                "tf32": _experimental("tensor_float_32_execution_enabled", lambda: False)(),
                # The variable, or TensorFlow's default (NumSchedulableCPUs), as it does not report the number.
                "threads": int(os.environ.get("TF_NUM_INTRAOP_THREADS") or len(os.sched_getaffinity(0))),
            },
        }

    def cuda_usable(self):
        return tensorflow.test.is_gpu_available()

    def allocators(self):
        from frameworks.tensorflow import memory

        most_mib = memory.peak_mib(range(len(cuda_devices.names())) or [None])
        return [(most_mib, cuda_devices.least_memory_mib())] if most_mib else []

    def tf32_switches(self):
        enable = _experimental("enable_tensor_float_32_execution", None)
        return enable and [enable]

    def layout_refusal(self, error):
        refusal = LAYOUT_REFUSED.search(str(error))
        return refusal and refusal.group()


def _experimental(name, default):
    """A function of tf.config.experimental, or `default`: TensorFlow before 2.4 has no function for TF32."""
    return getattr(getattr(getattr(tensorflow, "config", None), "experimental", None), name, default)


def _loaded_library(name):
    """The version in the file name of a shared library that this process has loaded; None where it has not."""
    path = _path_of_loaded(name)
    return path and path.rpartition(".so.")[2]


def _loaded_cudnn():
    """The version that the loaded cuDNN tells, as its file name may have the first digit alone; None without one."""
    path = _path_of_loaded("libcudnn")
    if not path:
        return None
    number = ctypes.CDLL(path).cudnnGetVersion()  # 7500: 7.5.0; from cuDNN 9 on 90100: 9.1.0
    major, rest = divmod(number, 10000 if number >= 90000 else 1000)
    return "{}.{}.{}".format(major, rest // 100, rest % 100)


def _path_of_loaded(name):
    """The path of a shared library that this process has loaded; None where it has not."""
    with open("/proc/self/maps") as lines:
        match = re.search(r"/.*/" + re.escape(name) + r"\.so\.[0-9.]*[0-9]", lines.read())
    return match and match.group()
