"""Versions and flags of JAX, and its switch of TF32."""

import os

import jax

from common import installed
from frameworks import interface


class Framework(interface.Framework):
    name = "jax"
    module = jax
    layout = "channels_last"

    def facts(self):
        """CUDA and cuDNN are the versions of their wheels: the libraries tell theirs only once a device is started."""
        packages = installed.python_packages()
        return {
            "versions": installed.versions("jax", "jaxlib", "numpy", "scipy"),
            "cuda": _version(packages, "nvidia-cuda-runtime", 2),
            "cudnn": _version(packages, "nvidia-cudnn", 3),
            "flags": {
                "matmul_precision": jax.config.jax_default_matmul_precision or "default",
                "gpu_memory_share": _memory_share(),
                "platforms": os.environ["JAX_PLATFORMS"],
                "xla_flags": os.environ["XLA_FLAGS"],
            },
        }

    def cuda_usable(self):
        try:
            return bool(jax.devices("cuda"))
        except RuntimeError:  # JAX finds no GPU
            return False

    def allocators(self):
        """XLA's allocator may take a share of a GPU's memory: see `gpu_memory_share`."""
        stats = [device.memory_stats() for device in jax.devices("cuda")] if self.cuda_usable() else []
        return [(each["peak_bytes_in_use"] / 2.0**20, each["bytes_limit"] / 2.0**20) for each in stats]

    def tf32_switches(self):
        return [_allow_tf32]


def _allow_tf32(wanted):
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if wanted else "float32")


def _memory_share():
    """The share of a GPU's memory that JAX takes at its start; docs.jax.dev, GPU memory allocation."""
    names = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    return float(next((os.environ[name] for name in names if name in os.environ), 0.75))


def _version(packages, name, numbers):
    """The first `numbers` numbers of a package's version; None without the package. Names may end in -cu12 or -cu13."""
    versions = [version for package, version in packages.items() if package in (name, name + "-cu12", name + "-cu13")]
    return ".".join(versions[0].split(".")[:numbers]) if versions else None
