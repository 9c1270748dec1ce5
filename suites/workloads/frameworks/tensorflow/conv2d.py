"""conv2d in TensorFlow's graph mode, through tensorflow.compat.v1: the same file runs on 1.13 and on 2.x."""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from common import timing
from frameworks import parts
from frameworks.tensorflow import folding


class Conv2d(parts.Conv2d):
    def literal(self, problem, emitter):
        """What the source did: a graph of towers, one session, the wall clock around one run.

        The source starts the session, and with it the devices, before its clock; so does this. Whatever a first run
        brings with it (graph optimisation, kernel loading, autotuning) is left in. Only feed `resident` runs something
        before: the transfer into its variables.
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
        """What was meant: host to device, compute, and device to host, each on its own, warm.

        A session's run returns when its devices are done, so there is nothing left to synchronise at a block's end.
        """
        with tf.Graph().as_default():
            variables, load = _resident(problem)
            results = []
            for tower, (place, images) in enumerate(zip(problem.places, variables)):
                with tf.device(_device(place)):
                    results.append(_variable("result%d" % tower, images.shape))
            # Assigned, as the graph optimisers drop a convolution whose output nobody keeps; its buffer is taken over.
            compute = [
                _assign_convolution(*tower)
                for tower in zip(problem.places, variables, results, [problem.kernel] * len(results))
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
    """The sum of all towers; the (operation, feed) pairs to run beforehand; the feed of every run."""
    inputs, load, feed = _inputs(problem)
    convolved = []
    for place, images in zip(problem.places, inputs):
        with tf.device(_device(place)):
            convolved.append(_convolution(images, problem.kernel))
    with tf.device("/cpu:0"):
        return tf.add_n(convolved), load, feed


def _inputs(problem):
    """Each tower's input tensor; the (operation, feed) pairs that fill them beforehand; the feed of every run."""
    towers = len(problem.places)
    if problem.feed == "constant":
        return tf.split(problem.images, towers, axis=0), [], None
    if problem.feed == "fed":
        placeholder = tf.placeholder(tf.float32, problem.images.shape)
        return tf.split(placeholder, towers, axis=0), [], {placeholder: problem.images}
    variables, load = _resident(problem)
    return [variable.read_value() for variable in variables], load, None


def _done():
    pass


def session_config(graph_optimizers):
    """As the source, with the device of every node in the log; and the graph optimisers the case asks for.

    TensorFlow folds constants in two places, Grappler (rewrite_options) and the session's older optimiser: with either
    alone switched off, four towers are still folded, on 1.13 and on 2.21. The older one goes as a whole, at L0.
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
    """Each tower's share of the images in a variable on its device, and the (operation, feed) pairs that fill them."""
    variables, load = [], []
    shares = np.split(problem.images, len(problem.places))
    for tower, (place, share) in enumerate(zip(problem.places, shares)):
        placeholder = tf.placeholder(tf.float32, share.shape)
        with tf.device(_device(place)):
            variable = _variable("images%d" % tower, share.shape)
            load.append((variable.assign(placeholder, read_value=False), {placeholder: share}))
        variables.append(variable)
    return variables, load


def _variable(name, shape):
    return tf.get_variable(name, shape, tf.float32, trainable=False, use_resource=True)


def _assign_convolution(place, images, result, kernel):
    with tf.device(_device(place)):
        return result.assign(_convolution(images.read_value(), kernel), read_value=False)


def _convolution(images, kernel):
    return tf.nn.conv2d(images, tf.constant(kernel), (1, 1, 1, 1), "SAME")


def _device(place):
    return "/cpu:0" if place is None else "/gpu:%d" % place
