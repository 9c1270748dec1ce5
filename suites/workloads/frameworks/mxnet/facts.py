"""Versions and flags of MXNet."""

import os
import re

import mxnet
from mxnet import runtime

from common import installed
from frameworks import interface
from frameworks.mxnet import AUTOTUNE

CUDA_PACKAGE = re.compile(r"mxnet-cu([0-9]+)([0-9])(mkl)?$")


class Framework(interface.Framework):
    name = "mxnet"
    module = mxnet
    layout = "channels_first"

    def facts(self):
        """CUDA's version is that in the name of the package. MXNet does not tell the version of the cuDNN in it."""
        features = runtime.Features()
        return {
            "versions": installed.versions("mxnet", "numpy", "scipy"),
            "cuda": _cuda_version(installed.python_packages()),
            "cudnn": None,
            "flags": {
                "cudnn_autotune": os.environ[AUTOTUNE],
                "mkldnn": features.is_enabled("MKLDNN"),
                "openmp": features.is_enabled("OPENMP"),
            },
        }

    def cuda_usable(self):
        """MXNet without CUDA counts no GPU."""
        return mxnet.context.num_gpus() > 0


def _cuda_version(packages):
    """Of mxnet-cu100, 10.0; None for MXNet without CUDA."""
    found = [match for match in map(CUDA_PACKAGE.match, packages) if match]
    return "{}.{}".format(*found[0].groups()[:2]) if found else None
