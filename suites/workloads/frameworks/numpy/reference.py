"""What the towers' summed convolution must be, by SciPy, in float64."""

import numpy as np
from scipy.signal import convolve2d

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


def same_padding(size):
    """(before, after): TensorFlow's 'SAME' at stride 1; an even filter is padded more at the bottom and right."""
    return (size - 1) // 2, size // 2
