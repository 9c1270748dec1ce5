"""The reference of conv2d, against sums written out by hand."""

import collections

import numpy as np
import pytest
import scipy.signal

from common.networks import same_padding
from experiments import conv2d as experiment
from frameworks.numpy import conv2d

Problem = collections.namedtuple("Problem", "images kernel places")
RANDOM = np.random.RandomState(0)


def by_hand(image, kernel):
    """A correlation, zero outside the image; 'SAME' starts (size - 1) // 2 before the pixel."""
    size, before = len(kernel), (len(kernel) - 1) // 2
    height, width = image.shape[:2]
    out = np.zeros((height, width, kernel.shape[3]))
    for y, x in np.ndindex(height, width):
        for a, b in np.ndindex(size, size):
            row, column = y + a - before, x + b - before
            if 0 <= row < height and 0 <= column < width:
                out[y, x] += image[row, column] @ kernel[a, b]
    return out


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("channels", [1, 3])
def test_correlate_same_is_the_sum_over_the_window(size, channels):
    image, kernel = RANDOM.randn(7, 6, channels), RANDOM.randn(size, size, channels, channels)
    np.testing.assert_allclose(conv2d.correlate_same(image, kernel), by_hand(image, kernel), atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 10])
def test_where_the_filter_lies_within_the_image_same_padding_is_no_padding(size):
    image, kernel = RANDOM.randn(12, 13, 1), RANDOM.randn(size, size, 1, 1)
    before, after = same_padding(size)
    valid = scipy.signal.correlate2d(image[:, :, 0], kernel[:, :, 0, 0], "valid")
    same = conv2d.correlate_same(image, kernel)[:, :, 0]
    np.testing.assert_allclose(same[before : 12 - after, before : 13 - after], valid, atol=1e-12)


def test_the_expected_sum_is_the_sum_of_the_towers_convolutions():
    images, kernel = RANDOM.randn(6, 5, 4, 1), RANDOM.randn(3, 3, 1, 1)
    problem = Problem(images, kernel, [None] * 3)
    towers = [np.stack([by_hand(image, kernel) for image in tower]) for tower in np.split(images, 3)]
    chosen = conv2d.chosen_images(problem)
    np.testing.assert_allclose(conv2d.expected_sum(problem, chosen), sum(towers), atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("size", "channels"), [(3, 1), (3, 10), (5, 3)])
def test_a_chain_is_each_convolution_after_the_other_and_neither_grows_nor_vanishes(size, channels):
    kernel = experiment.filter_of_chain(RANDOM.randn(size, size, channels, channels))
    problem = Problem(RANDOM.randn(2, 30, 29, channels), kernel.astype(np.float64), [None])
    chained = reference_of_chain(problem, 100)
    np.testing.assert_allclose(conv2d.expected_sum(problem, [0, 1], 100), chained, atol=1e-12)
    norm = np.linalg.norm(problem.images)
    assert 1e-3 * norm < np.linalg.norm(chained) < 1.01 * norm


def reference_of_chain(problem, chained):
    images = problem.images
    for _ in range(chained):
        images = np.stack([conv2d.correlate_same(image, problem.kernel) for image in images])
    return images


def test_fewer_images_of_a_chain_are_checked():
    problem = Problem(np.zeros((840, 100, 100, 1)), np.zeros((3, 3, 1, 1)), [None])
    assert [len(conv2d.chosen_images(problem, chained)) for chained in (1, 10, 100)] == [840, 840, 111]


def test_all_images_of_the_sources_case_are_checked_and_of_a_larger_one_some_with_both_ends():
    image = np.zeros((1, 100, 100, 1))
    source = Problem(np.broadcast_to(image, (840, 100, 100, 1)), np.zeros((10, 10, 1, 1)), [None])
    assert len(conv2d.chosen_images(source)) == 840
    chosen = conv2d.chosen_images(source._replace(kernel=np.zeros((10, 10, 10, 10))))
    assert (len(chosen), chosen[0], chosen[-1]) == (10, 0, 839)


@pytest.mark.parametrize("wrong", [np.nan, 1.0])
def test_an_output_that_is_wrong_in_one_place_shows(wrong):
    expected = np.full((2, 3, 3, 1), 4.0)
    output = expected.copy()
    output[1, 2, 2, 0] = wrong
    assert not conv2d.relative_error([expected, output], expected) <= 0.5


@pytest.mark.parametrize("size", [3, 4, 10])
def test_scipys_own_loop_is_what_shifting_the_image_gives(size):
    problem = Problem(RANDOM.randn(1, 12, 11, 1), RANDOM.randn(size, size, 1, 1), [None])
    output = scipy.signal.convolve2d(problem.images[0, :, :, 0], problem.kernel[:, :, 0, 0], "same")
    np.testing.assert_allclose(conv2d.expected_of_one_image(problem)[0], output, atol=1e-12)
