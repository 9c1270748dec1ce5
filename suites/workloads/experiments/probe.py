"""What an environment says it is, asked right after it was built. Needs no case."""

import platform
import sys
import time

import frameworks
from common import installed


def run(request, emitter):
    emitter.environment(implementation=platform.python_implementation(), executable=sys.executable)
    begin = time.perf_counter()
    name, module = frameworks.load(request)
    emitter.metric("import_s", time.perf_counter() - begin, "s")
    frameworks.report(emitter, name, module, request, cuda_usable=cuda_usable(name, module))
    emitter.environment(versions=frameworks.versions("torch", "tensorflow", "torchvision", "numpy", "scipy"))
    emitter.environment(simulated=False, synthetic=False)
    installed.report(emitter, request.settings.get("container", False))


def cuda_usable(name, module):
    """Whether the framework itself finds a GPU it can use; starts the device."""
    if name == "torch":
        return module.cuda.is_available()
    return module.test.is_gpu_available()
