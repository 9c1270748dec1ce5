"""conv2d by SciPy on one CPU, as the source published it: one image, convolved again and again."""

import numpy as np
from scipy.signal import convolve2d

import timing
from conv2d_reference import same_padding


def run(problem, emitter):
    """Times loops of convolutions; returns the last result of the first and last loop, each (1, height, width).

    The source's list comprehension is kept, with all its results in memory. C channels in and C out take C*C
    convolutions per image; all of them are done on the same image and filter, as the source does for its one channel.
    """
    image, kernel = problem.images[0, :, :, 0], problem.kernel[:, :, 0, 0]
    count = len(problem.images) * problem.kernel.shape[2] * problem.kernel.shape[3]

    def loop():
        return [convolve2d(image, kernel, "same") for _ in range(count)][-1:]

    return timing.first_and_later(emitter, loop, problem.settings["later_runs"], len(problem.images))


def expected(problem):
    """(1, height, width) float64: the same without SciPy, by shifting the image once for each weight of the filter."""
    image, kernel = problem.images[0, :, :, 0].astype(np.float64), problem.kernel[:, :, 0, 0]
    after, before = same_padding(len(kernel))  # a convolution looks the other way than a correlation
    padded = np.pad(image, (before, after), "constant")
    height, width = image.shape
    size = len(kernel)
    return np.array(
        [
            sum(
                kernel[size - 1 - y, size - 1 - x] * padded[y : y + height, x : x + width]
                for y in range(size)
                for x in range(size)
            )
        ]
    )
