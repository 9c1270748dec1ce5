"""The highest rates of a device: the denominators of the fractions in a report.

Axes. protocol: steady. operation, and its work in a step:
    matmul            C = A B of square matrices of matrix_size n, in a precision; 2 n^3 floating-point operations
    memory_copy       buffer_mib to another place in the device's memory; counts twice, as it is read and written
    host_to_device    buffer_mib from host memory, pinned where there is a GPU; counts once
    device_to_host    the same in the other direction
    device_to_device  buffer_mib from the first device to the second; counts once
    all_reduce        the float32 sum of buffer_mib over all devices, on each of them; counts as the bus carries it.
                      nodes: machines of a cluster that the devices are on, each with as many (common/launch.py)
    kernel_launch     an operation on a single number: the time of the framework and the launch
    host_memory_read  buffer_mib of host memory, read by one core or by all (cores); counts once
    storage_read      buffer_mib of files, read in sequence; counts once. cache: whether they are in the system's page
                      cache (cached) or not (cold)
The last two need no framework, and are of the machine alone: see frameworks/numpy/limits.py.
With accelerator cpu, the "device" is the CPU with its memory: every copy is from host memory to host memory.
"""

import collections

import numpy as np

import frameworks
from common import devices, installed, launch, timing
from common.events import Unsupported
from frameworks.numpy import limits as machine

BUFFER_AXES = ("protocol", "operation", "devices", "buffer_mib")
AXES = {
    "matmul": ("protocol", "operation", "devices", "precision", "matrix_size"),
    "memory_copy": BUFFER_AXES,
    "host_to_device": BUFFER_AXES,
    "device_to_host": BUFFER_AXES,
    "device_to_device": BUFFER_AXES,
    "all_reduce": BUFFER_AXES + ("nodes",),
    "kernel_launch": ("protocol", "operation", "devices"),
}
# Of the machine itself.
MACHINE_AXES = {
    "host_memory_read": ("protocol", "operation", "buffer_mib", "cores"),
    "storage_read": ("protocol", "operation", "buffer_mib", "cache"),
}
CHOICES = {"cores": ("one", "all"), "cache": ("cold", "cached")}
ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
# The largest error as a share of the product's largest value: some unit roundoffs of the type that factors or product
# are rounded to. fp16 needs a few more, as TensorFlow 1.13 also adds up in fp16 on a CPU.
TOLERANCE = {"fp32": 1e-5, "tf32": 2e-3, "fp16": 2e-2, "bf16": 2e-2}
CHECKED_ROWS = 4
# What draws a GPU's full power: these limits are of the clocks that a long training has.
AT_FULL_POWER = ("matmul", "memory_copy")
LAUNCHES = 1000  # in a step, so that the time of the call around them is negligible

# places: for each device a GPU index, or None for the CPU; matrices: the two (n, n) float32 factors of a matmul; rows:
# indices of the product's rows to check; values: how many float32 numbers a buffer has; launches: in a step; settings:
# of the request; nodes: that share `places` evenly. A field that the operation does not need is None.
Problem = collections.namedtuple("Problem", "operation places precision matrices rows values launches settings nodes")
MachineProblem = collections.namedtuple("MachineProblem", "buffer_bytes cores cache")


class PerLaunch:
    """Events whose samples count every launch as a step: the time of a step is then the time of a launch."""

    def __init__(self, emitter):
        self._emitter = emitter

    def __getattr__(self, name):
        return getattr(self._emitter, name)

    def sample(self, phase, index, steps, images, seconds):
        self._emitter.sample(phase, index, steps * LAUNCHES, images, seconds)


def check(request):
    """The places of a case. Raises Unsupported for a case that no framework can run here."""
    case = request.case
    check_axes(case)
    operation = case["operation"]
    nodes = case.get("nodes", 1)
    places = devices.placement(request, case["devices"], nodes)
    if len(places) > 1 and devices.simulated(places, nodes) and None not in places:
        raise Unsupported(
            "operation {!r} between {} devices: there are fewer GPUs ({}); accelerator 'cpu' would simulate "
            "them".format(operation, len(places), len(set(places)))
        )
    devices.check_tf32(case.get("precision") == "tf32", places)
    devices.check_bf16(case.get("precision", ""), places)
    return places


def possible(request):
    """Raises Unsupported where the case cannot be run; returns the tries that tell more."""
    if request.case["operation"] in MACHINE_AXES:
        machine_problem(request.case)
        return []
    places = check(request)
    _, limits = load_limits(request)
    precision = request.case.get("precision")
    return [(try_product, (limits, precision, places[0]))] if precision in ("fp16", "bf16") else []


def load_limits(request):
    """(Framework, the module of its Limits) for a checked case. Raises Unsupported where it cannot run the case."""
    framework = frameworks.load(request)
    framework.require_tf32(request.case.get("precision") == "tf32")
    limits, nodes = framework.part("limits"), request.case.get("nodes", 1)
    if nodes > 1 and not limits.Limits.spans_nodes:
        raise Unsupported(
            "{} nodes: frameworks/{} drives its devices from a single process; 1 node would run".format(
                nodes, framework.name
            )
        )
    limits.Limits().check(request.case)
    return framework, limits


def try_product(limits, precision, place):
    """Multiplies two 2x2 matrices. Raises Unsupported where the device cannot do it in this precision."""
    case = {"operation": "matmul", "precision": precision, "matrix_size": 2}
    problem = make_problem(case, {"seed": 0}, [place])
    limits.Limits().matmul(problem, lambda step, synchronise: step())


def run(request, emitter):
    if request.case["operation"] in MACHINE_AXES:
        run_on_machine(request, emitter)
        return
    launch.check(request.case.get("nodes", 1))
    places, case = check(request), request.case
    operation = case["operation"]
    framework, limits = load_limits(request)
    framework.set_tf32(case.get("precision") == "tf32")
    transfers = {"transfers": "copies in host memory" if None in places else "bus"} if "_to_" in operation else {}
    framework.report(emitter, request, **transfers)
    emitter.environment(simulated=devices.simulated(places, case.get("nodes", 1)), synthetic=False)
    settings = request.settings if operation in AT_FULL_POWER else dict(request.settings, settle_s=0.0)
    problem = make_problem(case, settings, places)
    counting = PerLaunch(emitter) if operation == "kernel_launch" else emitter

    def measure(step, synchronise, announce=None):
        budget = timing.Budget(request.budget_s)
        timing.steady(counting, step, synchronise, 0, problem.settings, budget=budget, announce=announce)

    part = limits.Limits()
    checked = getattr(part, operation)(problem, measure)
    if part.machines < case.get("nodes", 1):
        emitter.environment(simulated=True)  # nodes of a cluster that is a single machine, in a test say
    emit_work(case, emitter)
    if operation == "matmul":
        check_product(checked, case["precision"], emitter)
    if operation == "all_reduce" and checked != len(places):
        raise ArithmeticError("{} ones add up to {}".format(len(places), checked))


def run_on_machine(request, emitter):
    """Times an operation of the machine itself, without a framework."""
    case = request.case
    problem = machine_problem(case)
    threads = machine.cores() if problem.cores == "all" else 1
    emitter.environment(
        framework=None,
        python=installed.python_version(),
        cuda=None,
        cudnn=None,
        flags={"threads": threads},
        versions=installed.versions("numpy"),
        devices=devices.described("cpu"),
        simulated=False,
        synthetic=False,
    )
    # What was read once is in the page cache: there is a step to a block where every step has to be cold.
    settings = dict(request.settings, block_s=0.0) if problem.cache == "cold" else request.settings

    def measure(step, synchronise, announce=None):
        budget = timing.Budget(request.budget_s)
        timing.steady(emitter, step, synchronise, 0, settings, budget=budget, announce=announce)

    done = getattr(machine.Limits(), case["operation"])(problem, measure)
    expected = problem.buffer_bytes if problem.cache else threads
    if done != expected:
        raise ArithmeticError("{} was not read to its end: {} of {}".format(case["operation"], done, expected))
    emitter.metric("bytes", problem.buffer_bytes, "B")


def machine_problem(case):
    """The MachineProblem of a case. ValueError for axes or values that are unknown."""
    case.require_only(MACHINE_AXES[case["operation"]])
    case.one_of("protocol", ("steady",))
    for axis in CHOICES:
        if axis in case:
            case.one_of(axis, CHOICES[axis])
    return MachineProblem(case.positive("buffer_mib") * 2**20, case.get("cores"), case.get("cache"))


def check_axes(case):
    """ValueError for axes or values that are unknown, Unsupported for a number of devices that does not fit."""
    axes = AXES[case.one_of("operation", sorted({**AXES, **MACHINE_AXES}))]
    if "nodes" in axes:
        case.setdefault("nodes", 1)
    case.require_only(axes)
    case.one_of("protocol", ("steady",))
    for axis in ("devices", "nodes", "matrix_size", "buffer_mib"):
        if axis in axes:
            case.positive(axis)
    if case["devices"] % case.get("nodes", 1):
        raise ValueError("{devices} devices cannot be split evenly over {nodes} nodes".format(**case))
    if "precision" in axes:
        case.one_of("precision", sorted(ELEMENT_BYTES))
    operation, devices = case["operation"], case["devices"]
    fits = {"device_to_device": devices == 2, "all_reduce": devices > 1}.get(operation, devices == 1)
    if not fits:
        needed = {"device_to_device": "2 devices", "all_reduce": "2 devices or more"}.get(operation, "1 device")
        raise Unsupported("operation {!r} is one of {}; asked for {}".format(operation, needed, devices))


def make_problem(case, settings, places):
    """The Problem of a case. Its matrices are random, as a GPU multiplies zeros faster and with less power."""
    matrices, rows, values = None, None, None
    if case["operation"] == "matmul":
        size, random = case["matrix_size"], np.random.RandomState(settings["seed"])
        matrices = [random.uniform(-1, 1, (size, size)).astype(np.float32) for _ in range(2)]
        rows = np.unique(np.linspace(0, size - 1, CHECKED_ROWS).astype(int))
    elif "buffer_mib" in case:
        values = case["buffer_mib"] * 2**20 // 4
    nodes = case.get("nodes", 1)
    return Problem(case["operation"], places, case.get("precision"), matrices, rows, values, LAUNCHES, settings, nodes)


def emit_work(case, emitter):
    """Emits metrics flops and bytes of a step.

    A product reads two matrices and writes a third. The bytes of an all-reduce are 2 (n - 1) / n of the buffer: at
    least so many bytes each of n devices has to send. NCCL's tests divide them by the time and call the result bus
    bandwidth; it can be compared with the bandwidth of the link (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
    """
    operation, devices = case["operation"], case["devices"]
    if operation == "matmul":
        size = case["matrix_size"]
        emitter.metric("flops", 2 * size**3, "1")
        emitter.metric("bytes", 3 * size**2 * ELEMENT_BYTES[case["precision"]], "B")
    elif "buffer_mib" in case:
        times = {"memory_copy": 2, "all_reduce": 2.0 * (devices - 1) / devices}.get(operation, 1)
        emitter.metric("bytes", times * case["buffer_mib"] * 2**20, "B")


def check_product(checked, precision, emitter):
    """Emits metric max_relative_error. Raises ArithmeticError where it is above the tolerance.

    checked: (rows of the left factor, the right factor, the same rows of the product), float32 arrays. The factors are
    as they were multiplied: the check is about the product, not about the rounding of its factors.
    """
    left, right, product = [np.asarray(array, np.float64) for array in checked]
    expected = left.dot(right)
    error = float(np.abs(product - expected).max() / np.abs(expected).max())
    emitter.metric("max_relative_error", error, "1")
    if not error <= TOLERANCE[precision]:
        raise ArithmeticError(
            "product differs from NumPy's by {:.3g} of the largest value; at most {:g} is rounding in {}".format(
                error, TOLERANCE[precision], precision
            )
        )
