"""Source conv2d-gce: one 2-D convolution over many images, split over N devices (towers) and summed on the CPU.

Axes. protocol: `literal` times one cold run as the source did, then later runs; `steady` times transfer, compute and
transfer back apart, warm. implementation: framework, or SciPy as the source ran it (one image over and over on one CPU)
or on all cores (every image once). devices: towers. images, height, width, channels: the input; the filter has
filter_size x filter_size x channels x channels weights, as the source's had as many channels out as in (1). data:
`ones` as the source, or `random` (input and filter). feed: where a run's input comes from, `constant` in the program,
`fed` from the host each run, or `resident` on the device before the clock starts. graph_optimizers: TensorFlow's
`default`, `no_folding` (of constants) or `none`. search: `folding_edge` looks for the largest number of images, up to
`images`, that is folded; without it a case is timed as it is.
"""

import collections
import importlib

import numpy as np

import frameworks
from common import conv2d_work, timing
from common.events import Unsupported

try:
    from frameworks.numpy import all_cores as conv2d_all_cores
    from frameworks.numpy import reference as conv2d_reference
    from frameworks.numpy import scipy_loop as conv2d_scipy
except ImportError:  # no SciPy: said by conv2d(), as an event
    conv2d_scipy = None

SCIPY_AXES = ("protocol", "implementation", "devices", "images", "height", "width", "channels", "filter_size", "data")
IMPLEMENTATIONS = ("framework", "scipy", "scipy_all_cores")
FRAMEWORK_AXES = SCIPY_AXES + ("strategy", "feed", "graph_optimizers")
TOLERANCE = 1e-4  # of the largest value; FP32 sums of a few hundred products differ by some 1e-6

# images: (N, height, width, channels) float32; kernel: (size, size, channels, channels) float32, as TensorFlow lays
# them out; places: for each tower a GPU index, or None for the CPU.
Problem = collections.namedtuple("Problem", "images kernel places feed graph_optimizers settings budget")


def check(request):
    """Raises Unsupported for what no framework here can do."""
    if conv2d_scipy is None:
        raise Unsupported("SciPy is not installed in this environment, and every output is checked against it")
    if request.case.one_of("implementation", IMPLEMENTATIONS) == "framework":
        check_framework_axes(request.case)
        frameworks.placement(request, request.case["devices"])
    else:
        check_scipy_axes(request.case)


def possible(request):
    """Raises Unsupported where the case cannot be. Nothing has to be tried."""
    check(request)
    if request.case["implementation"] == "framework":
        way(request)
    return []


def way(request):
    """(name, module of the framework, module that convolves in it) for a checked case; Unsupported where none can."""
    name, module = frameworks.load(request)
    implementation = importlib.import_module("frameworks.{}.conv2d".format(name))
    implementation.check(request.case)
    return name, module, implementation


def run(request, emitter):
    check(request)
    case = request.case
    runners = {"framework": run_framework, "scipy": run_scipy, "scipy_all_cores": run_scipy_on_all_cores}
    outputs, expected = runners[case["implementation"]](request, emitter)
    error = conv2d_reference.relative_error(outputs, expected)
    emitter.metric("outputs_checked", len(expected), "1")
    emitter.metric("max_relative_error", error, "1")
    if not error <= TOLERANCE:
        raise ArithmeticError(
            "output differs from SciPy by {:.3g} of the largest value; at most {:g} is rounding".format(
                error, TOLERANCE
            )
        )


def check_axes(case, axes):
    """ValueError unless the case has exactly these axes, with values this workload knows."""
    case.require_only(axes)
    case.one_of("protocol", ("literal", "steady"))
    case.one_of("data", ("ones", "random"))
    for axis in ("devices", "images", "height", "width", "channels", "filter_size"):
        case.positive(axis)


def check_framework_axes(case):
    check_axes(case, FRAMEWORK_AXES + (("search",) if "search" in case else ()))
    case.one_of("feed", ("constant", "fed", "resident"))
    case.one_of("graph_optimizers", ("default", "no_folding", "none"))
    if case["images"] % case["devices"]:
        raise ValueError("{} images cannot be split evenly over {} devices".format(case["images"], case["devices"]))
    if case["strategy"] != "towers":
        raise Unsupported("strategy {!r}: conv2d knows 'towers'".format(case["strategy"]))
    if case["protocol"] == "steady" and case["feed"] != "resident":
        raise Unsupported("protocol 'steady' measures feed 'resident'; asked for {!r}".format(case["feed"]))
    if "search" in case:
        case.one_of("search", ("folding_edge",))
        if (case["protocol"], case["devices"], case["feed"]) != ("literal", 1, "constant"):
            raise Unsupported("search 'folding_edge' is for protocol 'literal', 1 device and feed 'constant'")


def check_scipy_axes(case):
    check_axes(case, SCIPY_AXES)
    if case["devices"] != 1:
        raise Unsupported(
            "implementation {!r} runs on 1 device, the CPU; asked for {}".format(
                case["implementation"], case["devices"]
            )
        )


def make_problem(request, places):
    case, settings = request.case, request.settings
    shape = [case[axis] for axis in ("images", "height", "width", "channels")]
    kernel_shape = [case["filter_size"]] * 2 + [case["channels"]] * 2
    if case["data"] == "ones":
        images, kernel = np.ones(shape, np.float32), np.ones(kernel_shape, np.float32)
    else:
        random = np.random.RandomState(settings["seed"])
        images = random.uniform(-1, 1, shape).astype(np.float32)
        kernel = random.uniform(-1, 1, kernel_shape).astype(np.float32)
    budget = timing.Budget(request.budget_s)
    return Problem(images, kernel, places, case.get("feed"), case.get("graph_optimizers"), settings, budget)


def run_scipy(request, emitter):
    """(outputs, expected). SciPy has one way to run, whatever the protocol: from host memory."""
    problem = scipy_problem(request, emitter, processes=1)
    conv2d_work.report_one_image(problem, emitter)
    return conv2d_scipy.run(problem, emitter), conv2d_scipy.expected(problem)


def run_scipy_on_all_cores(request, emitter):
    """(outputs, expected), of the images that are checked. Nothing imports a framework: the processes are forked."""
    problem = scipy_problem(request, emitter, processes=conv2d_all_cores.cores())
    conv2d_work.report(problem, emitter)
    outputs = conv2d_all_cores.run(problem, emitter)
    chosen = conv2d_reference.chosen_images(problem)
    return [outputs[chosen]], conv2d_scipy.expected_of_all_channels(problem, chosen)


def scipy_problem(request, emitter, processes):
    emitter.environment(
        framework=None,
        python=frameworks.python_version(),
        cuda=None,
        cudnn=None,
        flags={"threads": 1, "processes": processes},
        versions=frameworks.versions("numpy", "scipy"),
        devices=frameworks.devices("cpu"),
        simulated=False,
        synthetic=False,
    )
    return make_problem(request, [None])


def run_framework(request, emitter):
    """(outputs, expected), of the images that are checked."""
    case = request.case
    places = frameworks.placement(request, case["devices"])
    name, module, implementation = way(request)
    frameworks.set_tf32(name, module, False)
    frameworks.report(emitter, name, module, request, transfers="copies in host memory" if None in places else "bus")
    # Nothing here stands in for data the source had: its own input was made of ones.
    emitter.environment(simulated=frameworks.simulated(places), synthetic=False)
    problem = make_problem(request, places)
    if "search" in case:
        outputs = implementation.folding_edge(problem, emitter)
    else:
        protocol = implementation.literal if case["protocol"] == "literal" else implementation.steady
        outputs = protocol(problem, emitter)
    chosen = conv2d_reference.chosen_images(problem)
    return [output[chosen] for output in outputs], conv2d_reference.expected_sum(problem, chosen)
