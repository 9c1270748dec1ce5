"""conv2d in TensorFlow's graph mode, through tensorflow.compat.v1: the same file runs on 1.13 and on 2.x."""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from common import timing
from frameworks import parts
from frameworks.tensorflow import folding, towers


class Conv2d(parts.Conv2d):
    def literal(self, problem, emitter):
        """A graph of towers, a session, and the wall clock around a run.

        As in the source, the session and its devices start before the clock. The first run includes graph optimisation,
        the loading of kernels and autotuning. Only feed `resident` runs an operation before: the transfer into its
        variables.
        """
        with tf.Graph().as_default():
            total, load, feed = _towers(problem)
            with tf.Session(config=session_config(problem.graph_optimizers)) as session:
                for operation, values in load:
                    session.run(operation, values)
                outputs = timing.first_and_later(
                    emitter,
                    lambda: session.run(total, feed),
                    problem.settings["later_runs"],
                    len(problem.images),
                    problem.budget,
                )
                return outputs, folding.share_left(tf, emitter, session, total, feed)

    def folding_edge(self, problem, emitter):
        """An output for every number of images that was tried."""

        @contextlib.contextmanager
        def open_session(part):
            with tf.Graph().as_default():
                total, _, _ = _towers(part)
                with tf.Session(config=session_config(part.graph_optimizers)) as session:
                    yield session, total

        return folding.search_edge(tf, problem, emitter, open_session), None

    def steady(self, problem, emitter):
        """A session's run returns when its devices are done, so that there is nothing to synchronise."""
        with tf.Graph().as_default():
            variables, load = _resident(problem)
            results = []
            for tower, (place, images) in enumerate(zip(problem.places, variables)):
                with tf.device(towers.device_name(place)):
                    results.append(_variable("result%d" % tower, images.shape))
            # Assigned, as the optimisers drop a convolution whose output is unused; the variable takes its buffer over.
            compute = [
                _assign_convolution(place, images, result, problem.kernel)
                for place, images, result in zip(problem.places, variables, results)
            ]
            fetches = [result.read_value() for result in results]
            operations = [operation for operation, _ in load]
            values = {placeholder: array for _, feed in load for placeholder, array in feed.items()}
            with tf.Session(config=session_config(problem.graph_optimizers)) as session:
                steps = (
                    ("host_to_device", lambda: session.run(operations, values)),
                    ("compute", lambda: session.run(compute)),
                    ("device_to_host", lambda: session.run(fetches)),
                )
                for phase, step in steps:
                    timing.steady(
                        emitter, step, _done, len(problem.images), problem.settings, phase, budget=problem.budget
                    )
                share = folding.share_left(tf, emitter, session, compute)
                return [np.sum(session.run(fetches), axis=0)], share


def _towers(problem):
    """(sum of all towers, [(operation, feed)] to run beforehand, feed of every run)."""
    inputs, load, feed = _inputs(problem)
    convolved = []
    for place, images in zip(problem.places, inputs):
        with tf.device(towers.device_name(place)):
            convolved.append(_convolution(images, problem.kernel))
    with tf.device("/cpu:0"):
        return tf.add_n(convolved), load, feed


def _inputs(problem):
    """(the input tensor of each tower, [(operation, feed)] to run beforehand, feed of every run)."""
    count = len(problem.places)
    if problem.feed == "constant":
        return tf.split(problem.images, count, axis=0), [], None
    if problem.feed == "fed":
        placeholder = tf.placeholder(tf.float32, problem.images.shape)
        return tf.split(placeholder, count, axis=0), [], {placeholder: problem.images}
    variables, load = _resident(problem)
    return [variable.read_value() for variable in variables], load, None


def _done():
    """A session's run returns when its devices are done."""


def session_config(graph_optimizers):
    """The source's configuration, which logs the device of every node, with the graph optimisers of the case.

    TensorFlow folds constants in two places: Grappler (rewrite_options) and the session's older optimiser. With only
    one of them switched off, four towers are still folded, on 1.13 and on 2.21. L0 switches the whole older optimiser
    off.
    """
    config = tf.ConfigProto(log_device_placement=True)
    if graph_optimizers != "default":
        config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    if graph_optimizers == "no_folding":
        config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    if graph_optimizers == "none":
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def _resident(problem):
    """(for each tower a variable on its device for its share of the images, [(operation, feed)] that fill them)."""
    variables, load = [], []
    shares = np.split(problem.images, len(problem.places))
    for tower, (place, share) in enumerate(zip(problem.places, shares)):
        placeholder = tf.placeholder(tf.float32, share.shape)
        with tf.device(towers.device_name(place)):
            variable = _variable("images%d" % tower, share.shape)
            load.append((variable.assign(placeholder, read_value=False), {placeholder: share}))
        variables.append(variable)
    return variables, load


def _variable(name, shape):
    return tf.get_variable(name, shape, tf.float32, trainable=False, use_resource=True)


def _assign_convolution(place, images, result, kernel):
    with tf.device(towers.device_name(place)):
        return result.assign(_convolution(images.read_value(), kernel), read_value=False)


def _convolution(images, kernel):
    return tf.nn.conv2d(images, tf.constant(kernel), (1, 1, 1, 1), "SAME")
