"""The facts that TensorFlow reports, and its switches."""

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
            "cudnn": build.get("cudnn_version") or _loaded_library("libcudnn"),
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
    with open("/proc/self/maps") as lines:
        match = re.search(re.escape(name) + r"\.so\.([0-9.]*[0-9])", lines.read())
    return match and match.group(1)
