"""conv2d by SciPy: the correct sum of the towers' convolutions in float64, and the source's own loop on a CPU core.

problem: see experiments/conv2d.py.
"""

import numpy as np
from scipy.signal import convolve2d

from common import timing
from common.networks import same_padding

# Multiply-adds of a check, some seconds: enough for every image of the source's case, with its 10x10 filter too.
BUDGET = 1e9


def relative_error(outputs, expected):
    """The largest difference of `outputs` (each shaped as `expected`) divided by the largest expected value.

    NaN where an output or `expected` has a NaN.
    """
    return float(np.max([np.abs(output - expected).max() for output in outputs]) / np.abs(expected).max())


def chosen_images(problem, chained=1):
    """Indices of the images to check, in the output's first axis (N / towers). chained: see expected_sum.

    These are all images where BUDGET allows it; otherwise images at even steps, with the first and the last.
    """
    count = len(problem.images) // len(problem.places)
    per_image = problem.images[0, :, :, 0].size * problem.kernel.size * chained
    affordable = max(2, int(BUDGET // per_image))
    return np.unique(np.linspace(0, count - 1, min(count, affordable)).round().astype(int))


def expected_sum(problem, chosen, chained=1):
    """The sum over towers of the chosen images' convolutions, (len(chosen), height, width, channels) float64.

    chained: how often an image is convolved, the output being the next input. As a convolution is linear, it is the
    convolution of the sum of the towers' images.
    """
    images = problem.images
    towers = images.reshape((len(problem.places), -1) + images.shape[1:])
    summed = towers[:, chosen].sum(axis=0, dtype=np.float64)
    kernel = problem.kernel.astype(np.float64)
    for _ in range(chained):
        summed = np.stack([correlate_same(image, kernel) for image in summed])
    return summed


def correlate_same(image, kernel):
    """image (height, width, in) and kernel (size, size, in, out) to (height, width, out).

    As in the frameworks: a correlation (SciPy's convolution, the filter flipped), padded with zeros by same_padding.
    """
    padding = same_padding(len(kernel))
    padded = np.pad(image, (padding, padding, (0, 0)), "constant")
    return _over_channels(lambda plane, weights: convolve2d(plane, weights, "valid"), padded, kernel[::-1, ::-1])


def _over_channels(convolve, images, kernel):
    """The sum of convolve(input channel, its filter) over input channels, for each output channel: (..., out)."""
    channels_in, channels_out = kernel.shape[2:]
    return np.stack(
        [sum(convolve(images[..., i], kernel[:, :, i, o]) for i in range(channels_in)) for o in range(channels_out)],
        axis=-1,
    )


def loop_over_one_image(problem, emitter):
    """Times loops of convolutions; returns the last result of the first and of the last loop, each (1, height, width).

    As in the source's published program, a list comprehension convolves the same image again and again, with all
    results in memory. C input and C output channels take C*C convolutions per image; all of them take the same image
    and filter, as the source has only a single channel.
    """
    image, kernel = problem.images[0, :, :, 0], problem.kernel[:, :, 0, 0]
    count = len(problem.images) * problem.kernel.shape[2] * problem.kernel.shape[3]

    def loop():
        return [convolve2d(image, kernel, "same") for _ in range(count)][-1:]

    return timing.first_and_later(emitter, loop, problem.settings["later_runs"], len(problem.images), problem.budget)


def expected_of_one_image(problem):
    """The result that loop_over_one_image should have, without SciPy: (1, height, width) float64."""
    return shifted(problem.images[:1, :, :, 0], problem.kernel[:, :, 0, 0])


def expected_of_all_channels(problem, chosen):
    """The convolutions of the chosen images, without SciPy: (len(chosen), height, width, channels) float64."""
    return _over_channels(shifted, problem.images[chosen], problem.kernel)


def shifted(images, kernel):
    """images (count, height, width) and kernel (size, size): SciPy's mode 'same', as a sum of shifted images."""
    size = len(kernel)
    after, before = same_padding(size)  # swapped, as a convolution flips the filter of a correlation
    padded = np.pad(images.astype(np.float64), ((0, 0), (before, after), (before, after)), "constant")
    height, width = images.shape[1:]
    return sum(
        kernel[size - 1 - y, size - 1 - x] * padded[:, y : y + height, x : x + width]
        for y in range(size)
        for x in range(size)
    )
