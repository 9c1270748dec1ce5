"""Whether TensorFlow folded its constants: by the graph that ran, and by searching for where it stops."""

import numpy as np

from common import timing
from frameworks.tensorflow import graphs_that_ran

MIB = 2.0**20


def share_left(tf, emitter, session, fetches, feed=None):
    """Emits how many convolutions were asked for, and how many the graph that ran still has; returns their quotient.

    Outside the clock.
    """
    asked = sum(operation.type == "Conv2D" for operation in session.graph.get_operations())
    emitter.metric("convolutions_in_graph", asked, "1")
    _, left = run_and_look(tf, session, fetches, feed)
    emitter.metric("convolutions_left_in_graph", left, "1")
    return left / asked


def run_and_look(tf, session, fetches, feed=None):
    """(output, convolutions in what ran).

    Optimisers rename what they replace (_FusedConv2D, _MklNativeConv2D): a convolution's name still ends in Conv2D.
    """
    output, graphs = graphs_that_ran.run_and_look(tf, session, fetches, feed)
    return output, sum(node.op.endswith("Conv2D") for graph in graphs for node in graph.node)


def search_edge(tf, problem, emitter, open_session):
    """Bisects for the largest number of images whose convolution is folded, of at most len(problem.images).

    open_session(problem): a context manager that gives (session, fetch) for a new graph of these images. Takes for
    granted that where so many are folded fewer are too. Emits both sides of the edge, where there is one within the
    bound: images, size of the input, and the phases largest_folded_run and smallest_unfolded_run with later runs.
    Returns the output for every count that was tried, completed to all images by what they give together.
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
    """(largest folded, smallest unfolded), given that `bound` is not; 0 where nothing is."""
    low, high = 0, bound
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if folded(middle) else (low, middle)
    return low, high


def _time_later_runs(emitter, phase, run, images, settings):
    run()  # the first one, which folds
    with emitter.phase(phase):
        for index in range(settings["later_runs"]):
            _, seconds = timing.timed(run)
            emitter.sample(phase, index, 1, images, seconds)
