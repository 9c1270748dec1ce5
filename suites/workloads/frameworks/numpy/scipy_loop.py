"""conv2d by SciPy on one CPU, as the source published it: one image, convolved again and again."""

import numpy as np
from scipy.signal import convolve2d

from common import timing
from frameworks.numpy.reference import same_padding


def run(problem, emitter):
    """Times loops of convolutions; returns the last result of the first and last loop, each (1, height, width).

    The source's list comprehension is kept, with all its results in memory. C channels in and C out take C*C
    convolutions per image; all of them are done on the same image and filter, as the source does for its one channel.
    """
    image, kernel = problem.images[0, :, :, 0], problem.kernel[:, :, 0, 0]
    count = len(problem.images) * problem.kernel.shape[2] * problem.kernel.shape[3]

    def loop():
        return [convolve2d(image, kernel, "same") for _ in range(count)][-1:]

    return timing.first_and_later(emitter, loop, problem.settings["later_runs"], len(problem.images), problem.budget)


def expected(problem):
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
