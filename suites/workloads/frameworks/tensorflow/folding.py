"""Whether TensorFlow folded its constants, by the graph that ran; and a search for the size at which it stops."""

import numpy as np

from common import timing
from frameworks.tensorflow import graphs_that_ran

MIB = 2.0**20
# Operations in this scope of names warmed the device up, and are no part of the case.
WARM_UP = "warm_up"


def share_left(tf, emitter, session, fetches, feed=None):
    """Emits the number of convolutions in the graph that was built, and in the graph that ran; returns their quotient.

    Makes a run outside the clock.
    """
    operations = [operation for operation in session.graph.get_operations() if operation.type == "Conv2D"]
    built = sum(not operation.name.startswith(WARM_UP) for operation in operations)
    emitter.metric("convolutions_in_graph", built, "1")
    _, left = run_and_look(tf, session, fetches, feed)
    emitter.metric("convolutions_left_in_graph", left, "1")
    return left / built


def run_and_look(tf, session, fetches, feed=None):
    """(output, number of convolutions in the graph that ran).

    Optimisers replace convolutions by operations whose names end in Conv2D too (_FusedConv2D, _MklNativeConv2D).
    """
    output, graphs = graphs_that_ran.run_and_look(tf, session, fetches, feed)
    return output, sum(node.op.endswith("Conv2D") for graph in graphs for node in graph.node)


def search_edge(tf, problem, emitter, open_session):
    """Searches the largest number of images, up to len(problem.images), whose convolution is folded.

    It bisects, as a convolution of fewer images is assumed to be folded where a larger is. open_session(problem): a
    context manager that gives (session, fetch) for a new graph of these images. For each side of the edge within the
    bound, it emits the number of images, the size of the input, and later runs in phase largest_folded_run or
    smallest_unfolded_run. Returns the output for every count that was tried; the images beyond the count have the
    output of the run with all images.
    """
    outputs = {}

    def folded(count):
        with open_session(problem._replace(images=problem.images[:count])) as (session, fetch):
            outputs[count], left = run_and_look(tf, session, fetch)
        return left == 0

    bound = len(problem.images)
    largest, smallest = (bound, None) if folded(bound) else _bisect(folded, bound)
    emitter.metric("counts_tried", len(outputs), "1")
    for side, count in (("largest_folded", largest), ("smallest_unfolded", smallest)):
        if count:
            emitter.metric(side + "_images", count, "1")
            emitter.metric(side + "_input_mib", problem.images[:count].nbytes / MIB, "MiB")
            with open_session(problem._replace(images=problem.images[:count])) as (session, fetch):
                _time_later_runs(emitter, side + "_run", lambda: session.run(fetch), count, problem.settings)
    whole = outputs[bound]
    return [np.concatenate([output, whole[count:]]) for count, output in outputs.items()]


def _bisect(folded, bound):
    """(largest folded count, or 0; smallest unfolded count). `bound` must not be folded."""
    low, high = 0, bound
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if folded(middle) else (low, middle)
    return low, high


def _time_later_runs(emitter, phase, run, images, settings):
    run()  # the first run folds
    with emitter.phase(phase):
        for index in range(settings["later_runs"]):
            _, seconds = timing.timed(run)
            emitter.sample(phase, index, 1, images, seconds)
