"""Source conv2d-gce: a 2-D convolution over many images, split over N devices (towers) and summed on the CPU.

Axes:
    protocol          `literal` times a cold run as the source did, then later runs; `steady` times the transfer to the
                      devices, the computation and the transfer back, each on its own and warm
    implementation    `framework`; `scipy` as the source ran it (the same image again and again on a CPU core); or
                      `scipy_all_cores` (every image once)
    devices           the number of towers
    images, height, width, channels: of the input
    filter_size       the filter has filter_size x filter_size x channels x channels weights: the source's filter too
                      has as many output channels as input channels (1)
    data              of input and filter: `ones` as in the source, or `random`
    feed              where the input of a run comes from: `constant` in the program; `fed` from the host in every run;
                      `resident` on the device before the clock starts
    graph_optimizers  TensorFlow's: `default`, `no_folding` (of constants) or `none`
    search            `folding_edge` searches the largest number of images, up to `images`, whose convolution is folded;
                      without this axis the case is timed
"""

import collections

import numpy as np

import frameworks
from common import devices, installed, timing
from common.events import Unsupported

try:
    from frameworks.numpy import all_cores
    from frameworks.numpy import conv2d as reference
except ImportError:  # no SciPy: check() raises Unsupported
    reference = None

SCIPY_AXES = ("protocol", "implementation", "devices", "images", "height", "width", "channels", "filter_size", "data")
IMPLEMENTATIONS = ("framework", "scipy", "scipy_all_cores")
FRAMEWORK_AXES = SCIPY_AXES + ("strategy", "feed", "graph_optimizers")
FLOAT32 = 4  # bytes
TOLERANCE = 1e-4  # of the largest value; FP32 sums of a few hundred products differ by some 1e-6

# images: (N, height, width, channels) float32; kernel: (size, size, in, out) float32; places: for each tower a GPU
# index, or None for the CPU.
Problem = collections.namedtuple("Problem", "images kernel places feed graph_optimizers settings budget")


def check(request):
    """Raises Unsupported for a case that no framework can run here."""
    if reference is None:
        raise Unsupported("SciPy is not installed in this environment, and every output is checked against it")
    if request.case.one_of("implementation", IMPLEMENTATIONS) == "framework":
        check_framework_axes(request.case)
        devices.placement(request, request.case["devices"])
    else:
        check_scipy_axes(request.case)


def possible(request):
    """Raises Unsupported where the case cannot be run. There is nothing to try."""
    check(request)
    if request.case["implementation"] == "framework":
        frameworks.load_part(request, "conv2d", "Conv2d")
    return []


def run(request, emitter):
    check(request)
    case = request.case
    runners = {"framework": run_framework, "scipy": run_scipy, "scipy_all_cores": run_scipy_on_all_cores}
    outputs, expected = runners[case["implementation"]](request, emitter)
    error = reference.relative_error(outputs, expected)
    emitter.metric("outputs_checked", len(expected), "1")
    emitter.metric("max_relative_error", error, "1")
    if not error <= TOLERANCE:
        raise ArithmeticError(
            "output differs from SciPy by {:.3g} of the largest value; at most {:g} is rounding".format(
                error, TOLERANCE
            )
        )


def check_axes(case, axes):
    """ValueError unless the case has exactly these axes, with values that this experiment knows."""
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
    """(outputs, expected). SciPy computes from host memory under both protocols."""
    problem = scipy_problem(request, emitter, processes=1)
    emit_work_on_one_image(problem, emitter)
    return reference.loop_over_one_image(problem, emitter), reference.expected_of_one_image(problem)


def run_scipy_on_all_cores(request, emitter):
    """(outputs, expected) of the images to check. No framework is imported, as the processes are forked."""
    problem = scipy_problem(request, emitter, processes=all_cores.cores())
    emit_work(problem, emitter)
    outputs = all_cores.run(problem, emitter)
    chosen = reference.chosen_images(problem)
    return [outputs[chosen]], reference.expected_of_all_channels(problem, chosen)


def scipy_problem(request, emitter, processes):
    emitter.environment(
        framework=None,
        python=installed.python_version(),
        cuda=None,
        cudnn=None,
        flags={"threads": 1, "processes": processes},
        versions=installed.versions("numpy", "scipy"),
        devices=devices.described("cpu"),
        simulated=False,
        synthetic=False,
    )
    return make_problem(request, [None])


def run_framework(request, emitter):
    """(outputs, expected) of the images to check."""
    case = request.case
    places = devices.placement(request, case["devices"])
    framework, conv2d = frameworks.load_part(request, "conv2d", "Conv2d")
    framework.set_tf32(False)
    framework.report(emitter, request, transfers="copies in host memory" if None in places else "bus")
    # Not synthetic: the source's own input consists of ones.
    emitter.environment(simulated=devices.simulated(places), synthetic=False)
    problem = make_problem(request, places)
    outputs, share = getattr(conv2d, case.get("search", case["protocol"]))(problem, emitter)
    if share is not None:
        emit_work(problem, emitter, share)
    chosen = reference.chosen_images(problem)
    return [output[chosen] for output in outputs], reference.expected_sum(problem, chosen)


def emit_work(problem, emitter, share=1.0):
    """Emits metrics flops and bytes of a step of `compute`, and of a later run.

    share: the share of the convolutions that the run does. It does not do those that were folded into a constant, or
    merged with those of another tower, before it.
    """
    emitter.metric("flops", share * flops(problem), "1")
    emitter.metric("bytes", share * least_bytes(problem), "B")


def flops(problem):
    """2 x multiply-adds: each of the N x height x width x C outputs takes size x size x C multiply-adds.

    Counted as by He and Sun (CVPR 2015, "Convolutional neural networks at constrained time cost", eq. 1): for every
    pixel of the 'same' output, with the products by the zeros around the image. The sum over towers does not count: it
    is at most 1 addition for every size x size x C multiply-adds.
    """
    return 2 * problem.images.size * problem.kernel[..., 0].size


def least_bytes(problem):
    """Bytes that no cache can save: input and filter are read once, the output (as large as the input) written once.

    The denominator of operational intensity (Williams, Waterman and Patterson 2009, "Roofline"), without the sum over
    towers.
    """
    return FLOAT32 * (2 * problem.images.size + problem.kernel.size)


def emit_work_on_one_image(problem, emitter):
    """As emit_work, for a channel of an image that is convolved N x C x C times: the input counts once, all results."""
    plane = problem.images[0, :, :, 0].size
    convolutions = len(problem.images) * problem.kernel.shape[2] * problem.kernel.shape[3]
    emitter.metric("flops", flops(problem), "1")
    emitter.metric("bytes", FLOAT32 * ((1 + convolutions) * plane + problem.kernel[:, :, 0, 0].size), "B")
