"""The facts of an environment, which is asked for them right after its build. Needs no case.

It fails where GPUs that the host gave are not there.
"""

import platform
import sys
import time

import frameworks
from common import cuda_devices, installed
from common.events import Unsupported


def run(request, emitter):
    emitter.environment(implementation=platform.python_implementation(), executable=sys.executable)
    cuda_devices.given(request.gpus)
    begin = time.perf_counter()
    framework = loaded(request)
    emitter.metric("import_s", time.perf_counter() - begin, "s")
    if framework:
        framework.report(emitter, request, cuda_usable=framework.cuda_usable())
    else:
        emitter.environment(framework=None, python=installed.python_version())
    # A framework may bring a part of another that cannot be imported: TensorFlow 2.12 brings JAX without jaxlib.
    others = installed.importable(*frameworks.names(), *frameworks.packages())
    own = [framework.name] if framework else []
    emitter.environment(versions=dict(others, **installed.versions(*own, "numpy", "scipy")))
    emitter.environment(simulated=False, synthetic=False)
    installed.report(emitter, request.settings.get("container", False))


def loaded(request):
    """The framework; None where the environment promises none and has none: scripts may need NumPy only."""
    try:
        return frameworks.load(request)
    except Unsupported:
        if request.framework:
            raise
        return None
