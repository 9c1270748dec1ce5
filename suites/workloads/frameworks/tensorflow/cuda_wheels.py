"""CUDA 11 in NVIDIA's wheels, for TensorFlow 2.12, which looks for its libraries in the system alone.

A library that is loaded already is found by its name, wherever it lies (dlopen(3)). Later releases of TensorFlow look
into the wheels themselves, with CUDA 12.
"""

import ctypes
import importlib.util
import os

# Each after those that it needs itself.
LIBRARIES = (
    "cuda_runtime/lib/libcudart.so.11.0",
    "cublas/lib/libcublasLt.so.11",
    "cublas/lib/libcublas.so.11",
    "cufft/lib/libcufft.so.10",
    "curand/lib/libcurand.so.10",
    "cusparse/lib/libcusparse.so.11",
    "cusolver/lib/libcusolver.so.11",
    "cudnn/lib/libcudnn.so.8",
)


def folder():
    """The folder of the wheels; None where they are not installed."""
    found = importlib.util.find_spec("nvidia")
    places = list(found.submodule_search_locations or ()) if found else []
    return next((place for place in places if os.path.exists(os.path.join(place, LIBRARIES[0]))), None)


def load():
    """Loads the libraries, where the wheels are installed and the request is not for a CPU."""
    place = folder()
    if place and os.environ.get("CUDA_VISIBLE_DEVICES") != "-1":
        for library in LIBRARIES:
            ctypes.CDLL(os.path.join(place, library), ctypes.RTLD_GLOBAL)


def compiler():
    """The folder of ptxas and libdevice, which XLA needs; None where they are not installed."""
    place = folder()
    return place and os.path.join(place, "cuda_nvcc")
