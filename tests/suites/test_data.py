"""CIFAR-10 is read from its real format; the synthetic data set is the same bytes everywhere, and can be learned."""

import hashlib
import pickle

import numpy as np
import pytest

from common import data
from tests import cifar10_file


def test_a_seed_gives_these_bytes_in_every_numpy():
    (images, labels), _ = data.synthetic(16, 0, 1)
    digest = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    assert digest == "5f01cfde8fab2404470b3b9ed18bcbc574ae3aa9baa17dac9d548cd00062c875"


def test_images_and_labels_look_like_cifar_10():
    for (images, labels), count in zip(data.synthetic(500, 70, 3), (500, 70), strict=True):
        assert (images.shape, images.dtype) == ((count, 32, 32, 3), np.uint8)
        assert (labels.shape, labels.dtype) == ((count,), np.int64)
        assert set(labels) == set(range(10))


def test_images_of_another_shape_can_be_had():
    assert data.synthetic(2, 0, 3, shape=(299, 30, 3))[0][0].shape == (2, 299, 30, 3)
    (images, labels), (test_images, _) = data.synthetic(50, 7, 3, shape=(28, 28, 1))
    assert (images.shape, images.dtype) == ((50, 28, 28, 1), np.uint8)
    assert (labels.shape, test_images.shape) == ((50,), (7, 28, 28, 1))


@pytest.mark.parametrize(("shape", "images"), [((32, 32, 3), 50000), ((224, 224, 3), 1020), ((9999, 9999, 3), 1)])
def test_larger_images_are_fewer_and_take_the_memory_of_cifar_10(shape, images):
    assert data.fewer(shape) == images


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


@pytest.fixture
def cifar10(tmp_path):
    """(what a request gives, the members' images and labels) of a small file in the real format."""
    file = tmp_path / "cifar-10-python.tar.gz"
    batches = cifar10_file.random_batches(8)
    sha256 = cifar10_file.write(file, {name: cifar10_file.batch(*content) for name, content in batches.items()})
    return {"file": str(file), "sha256": sha256}, batches


def test_the_first_images_of_the_batches_in_their_order_are_read(cifar10):
    given, batches = cifar10
    (images, labels), (test_images, test_labels), synthetic = data.data_set(given, 20, 3, 0)
    assert not synthetic
    for array, shape, kind in ((images, (20, 32, 32, 3), np.uint8), (test_images, (3, 32, 32, 3), np.uint8)):
        assert (array.shape, array.dtype) == (shape, kind)
    for array, count in ((labels, 20), (test_labels, 3)):
        assert (array.shape, array.dtype) == ((count,), np.int64)
    raw = [batches[data.TRAINING[index]] for index in range(3)]
    assert labels.tolist() == [label for _, some in raw for label in some][:20]
    assert test_labels.tolist() == batches[data.TEST[0]][1][:3]
    for index in (0, 7, 8, 19):  # a row is red, green, blue, each line after line
        row = raw[index // 8][0][index % 8]
        for height, width, channel in ((0, 0, 0), (0, 31, 0), (1, 0, 1), (31, 30, 2)):
            assert images[index, height, width, channel] == row[channel * 1024 + height * 32 + width]


def test_the_small_file_is_a_pickle_as_any_other():
    images, labels = next(iter(cifar10_file.random_batches(4).values()))
    loaded = pickle.loads(cifar10_file.batch(images, labels), encoding="bytes")  # noqa: S301
    assert loaded[b"labels"] == labels
    assert (loaded[b"data"] == images).all()


def test_without_a_file_or_for_another_shape_the_set_is_made_up(cifar10):
    given, _ = cifar10
    (images, _), _, synthetic = data.data_set(None, 20, 3, 1)
    assert synthetic
    assert (images == data.synthetic(20, 3, 1)[0][0]).all()
    (images, _), _, synthetic = data.data_set(given, 20, 3, 1, shape=(28, 28, 1))
    assert synthetic
    assert images.shape == (20, 28, 28, 1)


def test_a_file_with_another_hash_is_refused_with_both_and_the_remedy(cifar10):
    given, _ = cifar10
    other = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(ValueError, match="sha256 is") as error:
        data.data_set({"file": given["file"], "sha256": other}, 1, 1, 0)
    assert str(error.value) == (
        f"cifar-10-python.tar.gz: sha256 is {given['sha256']}, and should be {other}: the file changed, or is another; "
        "get it again with `invoke fetch-data`, or give another --data"
    )


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((41, 1), "41 training images asked for; the set has 40"),
        ((1, 9), "9 test images asked for; the set has 8"),
    ],
)
def test_more_images_than_the_file_has_are_refused(cifar10, counts, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        data.data_set(cifar10[0], *counts, 0)


def test_a_pickle_that_would_run_code_is_refused(tmp_path):
    file = tmp_path / "cifar-10-python.tar.gz"
    marker = tmp_path / "it-ran"
    evil = b"\x80\x02cos\nsystem\nU" + bytes([len(f"touch {marker}")]) + f"touch {marker}".encode() + b"\x85R."
    sha256 = cifar10_file.write(file, {data.TRAINING[0]: evil})
    with pytest.raises(ValueError, match=r"^the file asks for os\.system, which CIFAR-10 has no need of$"):
        data.data_set({"file": str(file), "sha256": sha256}, 1, 0, 0)
    assert not marker.exists()


def test_a_batch_of_another_form_is_refused(tmp_path):
    file = tmp_path / "cifar-10-python.tar.gz"
    images, labels = next(iter(cifar10_file.random_batches(4).values()))
    sha256 = cifar10_file.write(file, {data.TRAINING[0]: cifar10_file.batch(images, labels[:3])})
    with pytest.raises(ValueError, match=r"data_batch_1 holds \(4, 3072\) uint8 for 3 labels$"):
        data.data_set({"file": str(file), "sha256": sha256}, 1, 0, 0)
