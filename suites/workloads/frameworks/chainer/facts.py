"""Versions and flags of Chainer."""

import chainer
from chainer.backends import cuda

from common import installed
from frameworks import interface


class Framework(interface.Framework):
    name = "chainer"
    module = chainer
    layout = "channels_first"

    def facts(self):
        """CUDA and cuDNN are CuPy's, which no environment has."""
        return {
            "versions": installed.versions("chainer", "numpy", "scipy"),
            "cuda": None,
            "cudnn": None,
            "flags": {"cupy": cuda.available, "use_ideep": str(chainer.config.use_ideep)},
        }
