"""Source conv2d-gce: a 2-D convolution over many images, split over N devices (towers) and summed on the CPU.

Axes:
    protocol          `literal` times a cold run as the source did, then later runs; `steady` times the transfer to the
                      devices, the computation and the transfer back, each on its own and warm
    implementation    `framework`; `keras`, a model of one Conv2D layer that predicts; `scipy` as the source ran it (the
                      same image again and again on a CPU core); or `scipy_all_cores` (every image once)
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
    chained           of `steady`: so many convolutions in a run of `compute`, the output of each being the input of the
                      next; 1 if not given
    call              of `steady`, how TensorFlow's session is asked: `run`, or `callable` (make_callable); `run` if not
                      given
    warmed            of `literal`, what each device does in the same session before the clock starts, and before there
                      is a graph of the case: `none`; `device`, an addition to a number; `convolution`, of an image with
                      the filter of the case; `none` if not given
    autotune          cuDNN's search for the fastest algorithm: as the framework does it (`default`), or `off`;
                      `default` if not given
    host_memory       of the copies of `steady` on a GPU: as the framework's program has it (`default`), `pageable` or
                      `pinned`; `default` if not given
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
IMPLEMENTATIONS = ("framework", "keras", "scipy", "scipy_all_cores")
# Axes with the value that they have where a case does not give them.
USUAL = (("chained", 1), ("call", "run"), ("warmed", "none"), ("autotune", "default"), ("host_memory", "default"))
FRAMEWORK_AXES = SCIPY_AXES + ("strategy", "feed", "graph_optimizers") + tuple(axis for axis, _ in USUAL)
FLOAT32 = 4  # bytes
TOLERANCE = 1e-4  # of the largest value; FP32 sums of a few hundred products differ by some 1e-6

# images: (N, height, width, channels) float32; kernel: (size, size, in, out) float32; places: for each tower a GPU
# index, or None for the CPU.
Problem = collections.namedtuple(
    "Problem", "images kernel places feed graph_optimizers settings budget chained call warmed host_memory"
)
Problem.__new__.__defaults__ = (1, "run", "none", "default")  # of the last four; Python 3.6 has no `defaults`


def check(request):
    """Raises Unsupported for a case that no framework can run here."""
    if reference is None:
        raise Unsupported("SciPy is not installed in this environment, and every output is checked against it")
    implementation = request.case.one_of("implementation", IMPLEMENTATIONS)
    if implementation == "framework":
        check_framework_axes(request.case)
        check_gpu_axes(request.case, devices.placement(request, request.case["devices"]))
    elif implementation == "keras":
        check_keras_axes(request.case)
        devices.placement(request, 1)
    else:
        check_scipy_axes(request.case)


def possible(request):
    """Raises Unsupported where the case cannot be run. There is nothing to try."""
    check(request)
    if request.case["implementation"] in ("framework", "keras"):
        frameworks.load_part(request, "conv2d", "Conv2d")
    return []


def run(request, emitter):
    check(request)
    case = request.case
    runners = {"scipy": run_scipy, "scipy_all_cores": run_scipy_on_all_cores}
    outputs, expected = runners.get(case["implementation"], run_framework)(request, emitter)
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
    for axis, usual in USUAL:
        case.setdefault(axis, usual)
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
    check_protocol_of_axes(case)


def check_protocol_of_axes(case):
    """ValueError or Unsupported for axes that only one of the protocols has."""
    case.positive("chained")
    case.one_of("call", ("run", "callable"))
    case.one_of("warmed", ("none", "device", "convolution"))
    case.one_of("autotune", ("default", "off"))
    case.one_of("host_memory", ("default", "pageable", "pinned"))
    of_steady = [axis for axis in ("chained", "call", "host_memory") if case[axis] != dict(USUAL)[axis]]
    if of_steady and case["protocol"] != "steady":
        axis = of_steady[0]
        raise Unsupported("{} {!r} is a part of protocol 'steady', which would run".format(axis, case[axis]))
    if case["warmed"] != "none" and (case["protocol"] != "literal" or "search" in case):
        raise Unsupported(
            "warmed {!r} is a part of protocol 'literal', which would run without a search".format(case["warmed"])
        )


def check_gpu_axes(case, places):
    """Raises Unsupported for axes that only a GPU has."""
    if None not in places:
        return
    if case["autotune"] != "default":
        raise Unsupported(
            "autotune {!r}: cuDNN searches on GPUs, and this is a CPU; 'default' would run".format(case["autotune"])
        )
    if case["host_memory"] != "default":
        raise Unsupported(
            "host_memory {!r}: of copies to a GPU, and this is a CPU; 'default' would run".format(case["host_memory"])
        )


def check_keras_axes(case):
    check_axes(case, SCIPY_AXES)
    if (case["protocol"], case["devices"]) != ("literal", 1):
        raise Unsupported(
            "implementation 'keras' predicts by protocol 'literal' on 1 device, which would run; asked for {!r} on "
            "{}".format(case["protocol"], case["devices"])
        )


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
    if case.get("chained", 1) > 1:
        kernel = filter_of_chain(kernel)
    problem = Problem(
        images,
        kernel,
        places,
        case.get("feed"),
        case.get("graph_optimizers"),
        settings,
        timing.Budget(request.budget_s),
    )
    return problem._replace(
        **{axis: case[axis] for axis in ("chained", "call", "warmed", "host_memory") if axis in case}
    )


def filter_of_chain(kernel):
    """A filter that may follow itself as often as one likes: no value overflows, and images do not vanish.

    It is the same from both sides, in space and between channels, so that a filter of odd size moves nothing out of the
    image; and what it passes best it passes unchanged: the largest singular value of its Fourier transform, (in, out)
    at each frequency, is 1.
    """
    alike = (kernel + kernel[::-1, ::-1].transpose(0, 1, 3, 2)) / 2
    gains = np.linalg.norm(np.fft.fft2(alike, (64, 64), axes=(0, 1)), 2, axis=(2, 3))
    return (alike / gains.max()).astype(np.float32)


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
    method = "keras" if case["implementation"] == "keras" else case.get("search", case["protocol"])
    outputs, share = getattr(conv2d, method)(problem, emitter)
    if share is not None:
        emit_work(problem, emitter, problem.chained * share)
    peak_mib = conv2d.peak_device_memory_mib(places)
    if peak_mib is not None:
        emitter.metric("peak_device_memory_mib", peak_mib, "MiB")
    chosen = reference.chosen_images(problem, problem.chained)
    return [output[chosen] for output in outputs], reference.expected_sum(problem, chosen, problem.chained)


def emit_work(problem, emitter, share=1.0):
    """Emits metrics flops and bytes of a step of `compute`, and of a later run.

    share: how often the run convolves each image: less than once where convolutions were folded into a constant, or
    merged with those of another tower, before it; more where they are chained.
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
