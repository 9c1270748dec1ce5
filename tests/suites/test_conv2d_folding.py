"""The search for the folding edge, the count of convolutions left, and the work of what ran."""

import collections
import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import conv2d
from frameworks.tensorflow import folding

Problem = collections.namedtuple("Problem", "images kernel settings")
Node = collections.namedtuple("Node", "op")
Graph = collections.namedtuple("Graph", "node")


class FakeTensorFlow:
    """As much of TensorFlow as the search asks for: graphs whose convolution is folded up to `edge` images."""

    def __init__(self, edge):
        self.edge = edge
        self.tried = []

    class RunMetadata:
        partition_graphs = ()

    def RunOptions(self, output_partition_graphs):  # noqa: N802
        assert output_partition_graphs

    @contextlib.contextmanager
    def open_session(self, problem):
        yield Session(self, problem.images), "sum"


class Session:
    def __init__(self, tensorflow, images):
        self.tensorflow = tensorflow
        self.images = images

    def run(self, fetches, feed=None, options=None, run_metadata=None):
        if run_metadata is not None:
            count = len(self.images)
            self.tensorflow.tried.append(count)
            left = [Node("_FusedConv2D")] if count > self.tensorflow.edge else []
            run_metadata.partition_graphs = [Graph([Node("Const"), *left]), Graph([Node("_Retval")])]
        return 2 * self.images


class Recorder:
    def __init__(self):
        self.metrics = {}
        self.samples = []

    def metric(self, name, value, unit):
        self.metrics[name] = value

    @contextlib.contextmanager
    def phase(self, name):
        yield

    def sample(self, *values):
        self.samples.append(values[:4])


def search(edge, bound):
    tensorflow, recorder = FakeTensorFlow(edge), Recorder()
    problem = Problem(np.arange(bound, dtype=np.float32).reshape(bound, 1, 1, 1), None, {"later_runs": 2})
    outputs = folding.search_edge(tensorflow, problem, recorder, tensorflow.open_session)
    return tensorflow, recorder, outputs


@given(st.integers(1, 900).flatmap(lambda bound: st.tuples(st.integers(0, bound - 1), st.just(bound))))
def test_the_edge_is_found_wherever_it_is(edge_and_bound):
    edge, bound = edge_and_bound
    tensorflow, recorder, outputs = search(edge, bound)
    assert recorder.metrics.get("largest_folded_images", 0) == edge
    assert recorder.metrics["smallest_unfolded_images"] == edge + 1
    assert recorder.metrics["counts_tried"] == len(set(tensorflow.tried)) == len(outputs)
    assert len(tensorflow.tried) <= 2 + np.log2(bound)


def test_both_sides_of_the_edge_are_timed_and_every_output_is_given_back_in_full():
    _, recorder, outputs = search(262, 840)
    assert recorder.samples == [
        *[("largest_folded_run", index, 1, 262) for index in range(2)],
        *[("smallest_unfolded_run", index, 1, 263) for index in range(2)],
    ]
    assert recorder.metrics["largest_folded_input_mib"] == 262 * 4 / 2**20
    for output in outputs:
        np.testing.assert_array_equal(output.ravel(), 2 * np.arange(840))


def test_where_everything_is_folded_there_is_no_other_side():
    tensorflow, recorder, _ = search(1000, 840)
    assert tensorflow.tried == [840]
    assert recorder.metrics["largest_folded_images"] == 840
    assert "smallest_unfolded_images" not in recorder.metrics
    assert {sample[0] for sample in recorder.samples} == {"largest_folded_run"}


def test_convolutions_are_known_by_any_name_optimisers_give_them():
    names = ["Conv2D", "_FusedConv2D", "_MklNativeConv2D", "Const", "Conv2DBackpropInput", "AddN"]

    class Renaming(Session):
        def run(self, fetches, feed=None, options=None, run_metadata=None):
            run_metadata.partition_graphs = [Graph([Node(name) for name in names])]

    assert folding.run_and_look(FakeTensorFlow(0), Renaming(None, None), "sum")[1] == 3


def counted(images, kernel):
    """Multiply-adds by going through the loops of a convolution."""
    return sum(1 for _ in np.ndindex(*images.shape[:3], kernel.shape[3], *kernel.shape[:3]))


@pytest.mark.parametrize(("size", "channels"), [(1, 1), (3, 2), (4, 3)])
def test_flops_are_twice_the_multiply_adds_and_bytes_what_must_move(size, channels):
    images, kernel = np.zeros((3, 5, 4, channels), np.float32), np.zeros((size, size, channels, channels), np.float32)
    problem = Problem(images, kernel, None)
    assert conv2d.flops(problem) == 2 * counted(images, kernel)
    assert conv2d.least_bytes(problem) == 2 * images.nbytes + kernel.nbytes


def test_what_was_folded_or_merged_is_no_work():
    problem = Problem(np.zeros((6, 100, 100, 1), np.float32), np.zeros((3, 3, 1, 1), np.float32), None)
    recorder = Recorder()
    conv2d.emit_work(problem, recorder, share=1 / 3)
    assert recorder.metrics["flops"] == pytest.approx(2 * 6 * 10_000 * 9 / 3)
    conv2d.emit_work(problem, recorder, share=0)
    assert recorder.metrics == {"flops": 0, "bytes": 0}


def test_one_image_over_and_over_is_read_once_and_its_results_are_all_written():
    problem = Problem(np.zeros((6, 100, 100, 2), np.float32), np.zeros((3, 3, 2, 2), np.float32), None)
    recorder = Recorder()
    conv2d.emit_work_on_one_image(problem, recorder)
    assert recorder.metrics == {"flops": 2 * 6 * 4 * 10_000 * 9, "bytes": 4 * (10_000 + 6 * 4 * 10_000 + 9)}
