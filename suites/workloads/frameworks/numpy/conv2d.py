"""conv2d by SciPy: what the towers' summed convolution must be, in float64, and the source's own loop on one CPU.

problem: see experiments/conv2d.py.
"""

import numpy as np
from scipy.signal import convolve2d

from common import timing
from common.networks import same_padding

# Multiply-adds spent on checking, some seconds: enough for every image of the source's case, and of its 10x10 filter.
BUDGET = 1e9


def relative_error(outputs, expected):
    """Largest difference of `outputs` (shaped as `expected`) over the largest expected value; NaN where one is."""
    return float(np.max([np.abs(output - expected).max() for output in outputs]) / np.abs(expected).max())


def chosen_images(problem):
    """Indices into the output's first axis (N / towers): which images to check.

    All of them within BUDGET; beyond it, images at even steps, the first and the last among them.
    """
    count = len(problem.images) // len(problem.places)
    per_image = problem.images[0, :, :, 0].size * problem.kernel.size
    affordable = max(2, int(BUDGET // per_image))
    return np.unique(np.linspace(0, count - 1, min(count, affordable)).round().astype(int))


def expected_sum(problem, chosen):
    """(len(chosen), height, width, channels) float64.

    As a convolution is linear, the sum over towers is the convolution of the towers' summed images.
    """
    images = problem.images
    towers = images.reshape((len(problem.places), -1) + images.shape[1:])
    summed = towers[:, chosen].sum(axis=0, dtype=np.float64)
    return np.stack([correlate_same(image, problem.kernel.astype(np.float64)) for image in summed])


def correlate_same(image, kernel):
    """image (height, width, in) and kernel (size, size, in, out) to (height, width, out).

    As the frameworks do it: a correlation (SciPy's convolution, with the filter flipped), zero-padded by same_padding.
    """
    padding = same_padding(len(kernel))
    padded = np.pad(image, (padding, padding, (0, 0)), "constant")
    flipped = kernel[::-1, ::-1]
    return np.stack(
        [
            sum(convolve2d(padded[:, :, i], flipped[:, :, i, o], "valid") for i in range(kernel.shape[2]))
            for o in range(kernel.shape[3])
        ],
        axis=-1,
    )


def loop_over_one_image(problem, emitter):
    """Times loops of convolutions; returns the last result of the first and last loop, each (1, height, width).

    As the source published it: one image, convolved again and again, in a list comprehension with all its results in
    memory. C channels in and C out take C*C convolutions per image; all of them are done on the same image and filter,
    as the source does for its one channel.
    """
    image, kernel = problem.images[0, :, :, 0], problem.kernel[:, :, 0, 0]
    count = len(problem.images) * problem.kernel.shape[2] * problem.kernel.shape[3]

    def loop():
        return [convolve2d(image, kernel, "same") for _ in range(count)][-1:]

    return timing.first_and_later(emitter, loop, problem.settings["later_runs"], len(problem.images), problem.budget)


def expected_of_one_image(problem):
    """(1, height, width) float64: the same without SciPy."""
    return shifted(problem.images[:1, :, :, 0], problem.kernel[:, :, 0, 0])


def expected_of_all_channels(problem, chosen):
    """(len(chosen), height, width, channels) float64: the chosen images' convolutions, summed over their channels."""
    images, kernel = problem.images[chosen], problem.kernel
    return np.stack(
        [
            sum(shifted(images[:, :, :, i], kernel[:, :, i, o]) for i in range(kernel.shape[2]))
            for o in range(kernel.shape[3])
        ],
        axis=-1,
    )


def shifted(images, kernel):
    """images (count, height, width) and kernel (size, size): SciPy's 'same', by shifting once for each weight."""
    size = len(kernel)
    after, before = same_padding(size)  # a convolution looks the other way than a correlation
    padded = np.pad(images.astype(np.float64), ((0, 0), (before, after), (before, after)), "constant")
    height, width = images.shape[1:]
    return sum(
        kernel[size - 1 - y, size - 1 - x] * padded[:, y : y + height, x : x + width]
        for y in range(size)
        for x in range(size)
    )
