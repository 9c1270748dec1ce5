"""Which framework there is, where it puts its work, and what it reports about itself."""

import functools
import importlib
import os
import platform
import re

from common import cuda_devices
from common.events import Unsupported

AMPERE = (8, 0)  # the compute capability from which on GPUs have TF32 and BF16
FRAMEWORKS = ("torch", "tensorflow")  # in the order they are tried when none is asked for


def load(request):
    """(name, module) of the framework asked for, or of the first that is installed.

    Raises Unsupported when there is none; an installed framework that does not import raises its own ImportError.
    """
    if request.accelerator == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # TensorFlow takes every GPU it sees, asked or not
    names = (request.framework,) if request.framework else FRAMEWORKS
    for name in names:
        module = import_if_installed(name)
        if module:
            return name, module
    raise Unsupported("none of {} is installed in this environment".format(", ".join(names)))


def import_if_installed(name):
    """The module, or None when it is not installed. A broken installation raises: it is not an absent one."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name == name:
            return None
        raise


def placement(request, count):
    """Where `count` towers or replicas go: a list of GPU indices, or of None for the CPU.

    With fewer GPUs than asked for they share them in turn. Raises Unsupported when CUDA is asked for and no GPU there.
    """
    if request.accelerator == "cpu":
        return [None] * count
    gpus = len(cuda_devices.names())
    if not gpus:
        raise Unsupported("accelerator 'cuda' asked for, but the driver lists no GPU; accelerator 'cpu' would run")
    return [index % gpus for index in range(count)]


def simulated(places):
    """Whether several devices were asked for and they are not all distinct GPUs."""
    return len(places) > 1 and (None in places or len(set(places)) < len(places))


def report(events, name, module, request, **flags):
    """Emits one environment event: versions, CUDA, cuDNN, devices and flags, without starting a device."""
    facts = {"torch": torch_facts, "tensorflow": tensorflow_facts}[name](module)
    facts["flags"].update(flags)
    events.environment(framework=name, python=python_version(), devices=devices(request.accelerator), **facts)


def python_version():
    return platform.python_version()


def devices(accelerator):
    """What computes: the CPU, and with accelerator "cuda" the GPUs the driver lists."""
    gpus = cuda_devices.names() if accelerator == "cuda" else []
    return [{"kind": "cpu", "name": _cpu_name()}] + [{"kind": "gpu", "name": name} for name in gpus]


def _cpu_name():
    with open("/proc/cpuinfo") as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def versions(*names):
    """{name: version} of those of `names` that are installed."""
    modules = {name: import_if_installed(name) for name in names}
    return {name: module.__version__ for name, module in modules.items() if module}


def torch_facts(torch):
    """Facts of an environment event; flags as they are now, so report after setting them."""
    cudnn = torch.backends.cudnn
    return {
        "versions": versions("torch", "numpy", "scipy"),
        "cuda": torch.version.cuda,
        "cudnn": str(cudnn.version()) if torch.version.cuda else None,
        "flags": {
            "cudnn_benchmark": cudnn.benchmark,
            "deterministic": cudnn.deterministic,
            "tf32": getattr(cudnn, "allow_tf32", False),  # torch before 1.7 has no TF32
            "threads": torch.get_num_threads(),
        },
    }


def tensorflow_facts(tf):
    """Facts of an environment event, as torch_facts."""
    build = tf.sysconfig.get_build_info() if hasattr(tf.sysconfig, "get_build_info") else {}
    return {
        "versions": versions("tensorflow", "numpy", "scipy"),
        "cuda": build.get("cuda_version") or _loaded_library("libcudart"),
        "cudnn": build.get("cudnn_version") or _loaded_library("libcudnn"),
        "flags": {
            "cudnn_benchmark": os.environ.get("TF_CUDNN_USE_AUTOTUNE", "1") != "0",
            "deterministic": os.environ.get("TF_DETERMINISTIC_OPS", "0") in ("1", "true"),
            "tf32": _tensorflow_tf32(tf),
            # TensorFlow does not tell; this is what it takes by default (NumSchedulableCPUs).
            "threads": len(os.sched_getaffinity(0)),
        },
    }


def _tensorflow_tf32(tf):
    """TensorFlow before 2.4 has no TF32."""
    experimental = getattr(getattr(tf, "config", None), "experimental", None)
    enabled = getattr(experimental, "tensor_float_32_execution_enabled", lambda: False)
    return enabled()


def _loaded_library(name):
    """Version in the file name of a shared library this process has mapped, for frameworks that do not say; or None."""
    with open("/proc/self/maps") as lines:
        found = re.search(re.escape(name) + r"\.so\.([0-9.]*[0-9])", lines.read())
    return found.group(1) if found else None


def check_tf32(wanted, places):
    """Raises Unsupported where TF32 is wanted and the first of `places` has none. Needs no framework."""
    if wanted and places[0] is None:
        raise Unsupported("precision 'tf32': a mode of NVIDIA GPUs since 2020, and this is a CPU; 'fp32' would run")
    if wanted and cuda_devices.compute_capability(places[0]) < AMPERE:
        raise Unsupported(
            "precision 'tf32': this GPU has none (compute capability 8.0 and newer have); 'fp32' would run"
        )


def require_tf32(name, module, wanted):
    """Raises Unsupported where TF32 is wanted and the framework does not know it."""
    if wanted and _tf32_switches(name, module) is None:
        raise Unsupported("precision 'tf32': {} {} has no such mode; 'fp32' would run".format(name, module.__version__))


def set_tf32(name, module, wanted):
    """TF32 on, or off: computes in FP32 as the sources did; GPUs since 2020 otherwise round the factors to 10 bits."""
    for switch in _tf32_switches(name, module) or ():
        switch(wanted)


def _tf32_switches(name, module):
    """Functions of True or False; None where the framework does not know the mode."""
    if name == "tensorflow":
        experimental = getattr(getattr(module, "config", None), "experimental", None)
        enable = getattr(experimental, "enable_tensor_float_32_execution", None)
        return enable and [enable]
    if not hasattr(module.backends.cudnn, "allow_tf32"):
        return None
    return [
        functools.partial(setattr, one, "allow_tf32") for one in (module.backends.cudnn, module.backends.cuda.matmul)
    ]
