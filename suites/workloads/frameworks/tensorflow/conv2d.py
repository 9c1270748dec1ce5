"""conv2d in TensorFlow's graph mode: the same file runs on 0.12 and on 2.x."""

import contextlib

import numpy as np
import tensorflow

from common import timing
from common.events import Unsupported
from frameworks import parts
from frameworks.tensorflow import folding, graph_api, memory, towers
from frameworks.tensorflow.graph_api import RewriterConfig, tf


class Conv2d(parts.Conv2d):
    def check(self, case):
        if case.get("host_memory", "default") != "default":
            raise Unsupported(
                "host_memory {!r}: TensorFlow copies from NumPy's memory and to it, as it likes; 'default' would "
                "run".format(case["host_memory"])
            )
        if case["protocol"] == "steady" or case.get("feed") == "resident":
            graph_api.require_resources("a resident input")
        if case.get("implementation") == "keras" and not hasattr(tensorflow, "keras"):
            raise Unsupported("implementation 'keras': TensorFlow {} has no Keras".format(tensorflow.__version__))
        _check_optimizers(case.get("graph_optimizers", "default"))

    def literal(self, problem, emitter):
        """A graph of towers, a session, and the wall clock around a run.

        As in the source, the session and its devices start before the clock. The first run includes graph optimisation,
        the loading of kernels and autotuning. Only feed `resident` runs an operation before: the transfer into its
        variables. A session gets what was added to its graph at its next run: where a device is warmed before, the
        first run still takes over the whole graph of the towers.
        """
        with tf.Graph().as_default():
            with tf.Session(config=session_config(problem.graph_optimizers)) as session:
                _warm_up(problem, session)
                total, load, feed = _towers(problem)
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
                _assign_convolutions(place, images, result, problem)
                for place, images, result in zip(problem.places, variables, results)
            ]
            fetches = [result.read_value() for result in results]
            operations = [operation for operation, _ in load]
            values = {placeholder: array for _, feed in load for placeholder, array in feed.items()}
            with tf.Session(config=session_config(problem.graph_optimizers)) as session:
                parts.time_apart(
                    problem,
                    emitter,
                    _done,
                    _caller(problem, session, operations, values),
                    _caller(problem, session, compute),
                    _caller(problem, session, fetches),
                )
                share = folding.share_left(tf, emitter, session, compute)
                return [np.sum(session.run(fetches), axis=0)], share

    def keras(self, problem, emitter):
        """A model of one layer is made and gets its filter before the clock; every run predicts all images at once."""
        size, channels = len(problem.kernel), problem.kernel.shape[3]
        convolution = tensorflow.keras.layers.Conv2D(
            channels, size, padding="same", use_bias=False, input_shape=problem.images.shape[1:]
        )
        from frameworks.tensorflow import networks_keras  # not every release has Keras

        model = networks_keras.without_xla(tensorflow.keras.models.Sequential([convolution]))
        model.set_weights([problem.kernel])
        count = len(problem.images)

        def run():
            return model.predict(problem.images, batch_size=count, verbose=0)

        return timing.first_and_later(emitter, run, problem.settings["later_runs"], count, problem.budget), 1

    def peak_device_memory_mib(self, places):
        return memory.peak_mib(places)


def _warm_up(problem, session):
    """Runs an operation on every device, whose input is fed, so that nothing of it is folded."""
    if problem.warmed == "none":
        return
    shape = (1,) + problem.images.shape[1:]
    with tf.name_scope(folding.WARM_UP):
        for place in dict.fromkeys(problem.places):
            with tf.device(towers.device_name(place)):
                number, image = tf.placeholder(tf.float32, ()), tf.placeholder(tf.float32, shape)
                warm = number + 1.0 if problem.warmed == "device" else _convolution(image, problem.kernel)
            session.run(warm, {number: 0.0, image: np.zeros(shape, np.float32)})


def _caller(problem, session, fetches, feed=None):
    """A function without arguments that runs the fetches, by the call of the case."""
    if problem.call == "run":
        return lambda: session.run(fetches, feed)
    function = session.make_callable(fetches, feed_list=list(feed or ()))
    values = list((feed or {}).values())
    return lambda: function(*values)


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
        return graph_api.split(problem.images, count), [], None
    if problem.feed == "fed":
        placeholder = tf.placeholder(tf.float32, problem.images.shape)
        return graph_api.split(placeholder, count), [], {placeholder: problem.images}
    variables, load = _resident(problem)
    return [variable.read_value() for variable in variables], load, None


def _check_optimizers(chosen):
    """Raises Unsupported where Grappler is there and cannot be switched off as a whole."""
    if chosen == "none" and RewriterConfig is not None and not graph_api.grappler_knows("disable_meta_optimizer"):
        raise Unsupported(
            "graph_optimizers 'none': TensorFlow {} cannot switch all of them off; 'no_folding' would run".format(
                tensorflow.__version__
            )
        )


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
    if graph_optimizers == "no_folding" and graph_api.grappler_knows("constant_folding"):
        config.graph_options.rewrite_options.constant_folding = RewriterConfig.OFF
    if graph_optimizers == "none" and RewriterConfig is not None:
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
            load.append((graph_api.assign(variable, placeholder), {placeholder: share}))
        variables.append(variable)
    return variables, load


def _variable(name, shape):
    return tf.get_variable(name, shape, tf.float32, trainable=False, use_resource=True)


def _assign_convolutions(place, variable, result, problem):
    """Convolves the images of a variable, then the result of that, and so on."""
    with tf.device(towers.device_name(place)):
        images = variable.read_value()
        for _ in range(problem.chained):
            images = _convolution(images, problem.kernel)
        return graph_api.assign(result, images)


def _convolution(images, kernel):
    return tf.nn.conv2d(images, tf.constant(kernel), (1, 1, 1, 1), "SAME")
