"""The synthetic data set is the same bytes everywhere, and can be learned."""

import hashlib

import numpy as np
import pytest

import data


def test_a_seed_gives_these_bytes_in_every_numpy():
    (images, labels), _ = data.synthetic(16, 0, 1)
    digest = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    assert digest == "5f01cfde8fab2404470b3b9ed18bcbc574ae3aa9baa17dac9d548cd00062c875"


def test_images_and_labels_look_like_cifar_10():
    for (images, labels), count in zip(data.synthetic(500, 70, 3), (500, 70), strict=True):
        assert (images.shape, images.dtype) == ((count, 32, 32, 3), np.uint8)
        assert (labels.shape, labels.dtype) == ((count,), np.int64)
        assert set(labels) == set(range(10))


def test_the_nearest_class_mean_of_the_training_set_names_the_test_set():
    (images, labels), (test_images, test_labels) = data.synthetic(500, 100, 3)
    means = np.stack([images[labels == label].mean(axis=0) for label in range(10)])
    distances = ((test_images[:, None] - means) ** 2).sum(axis=(2, 3, 4))
    assert (distances.argmin(axis=1) == test_labels).mean() == 1


def test_more_training_images_than_cifar_10_has_are_refused():
    with pytest.raises(ValueError, match=r"^50001 training images asked for; the set has 50000$"):
        data.synthetic(50001, 0, 1)


def test_normalised_images_reach_from_0_to_1_in_float32():
    scaled = data.normalise(np.array([0, 51, 255], np.uint8))
    assert scaled.dtype == np.float32
    assert scaled.tolist() == [0, np.float32(0.2), 1]


def test_initial_weights_stay_within_glorot_s_limit():
    weights = data.glorot_uniform(np.random.RandomState(1), (3, 3, 64, 128))
    limit = np.sqrt(6 / (9 * (64 + 128)))
    assert weights.dtype == np.float32
    assert 0.999 * limit < np.abs(weights).max() <= limit * (1 + 1e-6)
