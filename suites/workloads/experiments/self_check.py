"""Whether this device computes what it should with this framework: for GPUs newer than the framework's own code.

A matrix product, a convolution with its gradients, and one training step of the case's network (parity.py), each
against float64 on the CPU. Metrics are errors relative to the largest magnitude: matmul_relative_error,
convolution_relative_error, convolution_input_gradient_relative_error, convolution_filter_gradient_relative_error, and
parity's. Raises ArithmeticError at the first that is more than rounding; what does not compute raises its own error.
"""

import numpy as np

import frameworks
from experiments import parity
from experiments.parity import TOLERANCE, Errors, relative

# Large enough that libraries take the kernels they take for real work.
MATRIX = 512
IMAGES, CHANNELS, PIXELS, FILTERS, FILTER = 8, 16, 24, 32, 3


def run(request, emitter):
    name, module = frameworks.load(request)
    frameworks.set_tf32(name, module, False)
    (place,) = frameworks.placement(request, 1)
    compute = {"torch": by_torch, "tensorflow": by_tensorflow}[name]
    operands = make_operands(np.random.RandomState(request.settings["seed"]))
    with emitter.phase("operations"):
        for error in errors(compute(module, place, *operands), operands):
            emitter.metric(error.name, error.value, "1")
            if not error.value <= error.tolerance:
                raise ArithmeticError("{} is {:.3g}; at most {:g} is rounding".format(*error))
    parity.run(request, emitter)


def make_operands(random):
    """(matrix, matrix, images NCHW, filters OIHW), float32, standard normal."""
    shapes = ((MATRIX, MATRIX),) * 2 + ((IMAGES, CHANNELS, PIXELS, PIXELS), (FILTERS, CHANNELS, FILTER, FILTER))
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def errors(found, operands):
    """Errors of (product, convolution, gradients of half its summed squares by images and by filters)."""
    names = ("matmul", "convolution", "convolution_input_gradient", "convolution_filter_gradient")
    for name, one, expected in zip(names, found, expected_results(*operands)):
        yield Errors(name + "_relative_error", relative(one, expected), TOLERANCE)


def expected_results(left, right, images, filters):
    """The same by NumPy in float64: a convolution is a matrix product with every window of the images."""
    left, right, images, filters = [array.astype(np.float64) for array in (left, right, images, filters)]
    size = PIXELS - FILTER + 1
    shifts = [(y, x) for y in range(FILTER) for x in range(FILTER)]
    windows = [images[:, :, y : y + size, x : x + size] for y, x in shifts]
    result = sum(np.einsum("nchw,oc->nohw", one, filters[:, :, y, x]) for one, (y, x) in zip(windows, shifts))
    of_images, of_filters = np.zeros_like(images), np.zeros_like(filters)
    for one, (y, x) in zip(windows, shifts):
        of_images[:, :, y : y + size, x : x + size] += np.einsum("nohw,oc->nchw", result, filters[:, :, y, x])
        of_filters[:, :, y, x] = np.einsum("nohw,nchw->oc", result, one)
    return left.dot(right), result, of_images, of_filters


def by_torch(torch, place, *operands):
    device = torch.device("cpu" if place is None else "cuda:%d" % place)
    left, right, images, filters = [torch.from_numpy(array).to(device) for array in operands]
    images.requires_grad_()
    filters.requires_grad_()
    result = torch.nn.functional.conv2d(images, filters)
    ((result * result).sum() / 2).backward()
    results = (left.matmul(right), result.detach(), images.grad, filters.grad)
    return [one.cpu().numpy() for one in results]


def by_tensorflow(tensorflow, place, *operands):
    """In a graph and session of its own, which TensorFlow 1 and 2 have alike; kernels of the CPU want NHWC."""
    tf = tensorflow.compat.v1 if hasattr(tensorflow.compat, "v1") else tensorflow
    left, right, images, filters = operands
    with tf.Graph().as_default(), tf.device("/cpu:0" if place is None else "/gpu:%d" % place):
        nhwc, hwio = tf.constant(images.transpose(0, 2, 3, 1)), tf.constant(filters.transpose(2, 3, 1, 0))
        result = tf.nn.conv2d(nhwc, hwio, strides=[1, 1, 1, 1], padding="VALID")
        of_images, of_filters = tf.gradients(tf.reduce_sum(result * result) / 2, [nhwc, hwio])
        config = tf.ConfigProto(allow_soft_placement=False)
        config.gpu_options.allow_growth = True
        # Constants would be folded on the CPU: what is to be computed is the device's to compute.
        config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(config=config) as session:
            product, result, of_images, of_filters = session.run(
                [tf.matmul(tf.constant(left), tf.constant(right)), result, of_images, of_filters]
            )
    nchw = (0, 3, 1, 2)
    return [product, result.transpose(nchw), of_images.transpose(nchw), of_filters.transpose(3, 2, 0, 1)]
