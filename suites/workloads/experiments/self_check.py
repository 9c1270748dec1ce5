"""Whether this device computes correctly with this framework: for GPUs that are newer than the framework's own code.

It computes a matrix product, a convolution with its gradients, and a training step of a network (parity.py), and
compares each with float64 on the CPU. Metrics are errors relative to the largest magnitude: matmul_relative_error,
convolution_relative_error, convolution_input_gradient_relative_error, convolution_filter_gradient_relative_error, and
those of parity. Raises ArithmeticError at the first error that is more than rounding, and the framework's own exception
where it cannot compute.
"""

import numpy as np

import frameworks
from common import devices
from experiments import parity
from experiments.parity import TOLERANCE, Error, relative

# Large enough that libraries choose the same kernels as for real work.
MATRIX = 512
IMAGES, CHANNELS, PIXELS, FILTERS, FILTER = 8, 16, 24, 32, 3
# The training step.
STEP = {
    "protocol": "steady",
    "mode": "training",
    "model": "cnn10",
    "layout": "native",
    "strategy": "none",
    "devices": 1,
    "nodes": 1,
    "batch_size": 8,
    "precision": "fp32",
    "execution": "native",
}


def run(request, emitter):
    framework = frameworks.load(request)
    framework.set_tf32(False)
    (place,) = devices.placement(request, 1)
    compute = framework.part("self_check").SelfCheck().compute
    operands = make_operands(np.random.RandomState(request.settings["seed"]))
    with emitter.phase("operations"):
        for error in errors(compute(place, *operands), operands):
            emitter.metric(error.name, error.value, "1")
            if not error.value <= error.tolerance:
                raise ArithmeticError("{} is {:.3g}; at most {:g} is rounding".format(*error))
    request.case.update(STEP)
    parity.run(request, emitter)


def make_operands(random):
    """(matrix, matrix, images NCHW, filters OIHW), float32, standard normal."""
    shapes = ((MATRIX, MATRIX),) * 2 + ((IMAGES, CHANNELS, PIXELS, PIXELS), (FILTERS, CHANNELS, FILTER, FILTER))
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def errors(results, operands):
    """Yields the Errors of the results, which are as expected_results returns them."""
    names = ("matmul", "convolution", "convolution_input_gradient", "convolution_filter_gradient")
    for name, result, expected in zip(names, results, expected_results(*operands)):
        yield Error(name + "_relative_error", relative(result, expected), TOLERANCE)


def expected_results(left, right, images, filters):
    """(product, convolution, gradients of half its sum of squares by images and by filters), by NumPy in float64.

    The convolution is a sum of matrix products with shifted windows of the images.
    """
    left, right, images, filters = [array.astype(np.float64) for array in (left, right, images, filters)]
    size = PIXELS - FILTER + 1
    shifts = [(y, x) for y in range(FILTER) for x in range(FILTER)]
    windows = [images[:, :, y : y + size, x : x + size] for y, x in shifts]
    result = sum(np.einsum("nchw,oc->nohw", window, filters[:, :, y, x]) for window, (y, x) in zip(windows, shifts))
    of_images, of_filters = np.zeros_like(images), np.zeros_like(filters)
    for window, (y, x) in zip(windows, shifts):
        of_images[:, :, y : y + size, x : x + size] += np.einsum("nohw,oc->nchw", result, filters[:, :, y, x])
        of_filters[:, :, y, x] = np.einsum("nohw,nchw->oc", result, window)
    return left.dot(right), result, of_images, of_filters
