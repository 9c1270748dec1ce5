"""device_limits in TensorFlow's graph mode, through tensorflow.compat.v1: the same file runs on 1.13 and on 2.x.

Operands and results are in variables, as TensorFlow folds operations on constants, and drops unused results.
"""

import contextlib

from tensorflow.python.ops import collective_ops, nccl_ops

from common.events import Unsupported
from frameworks import parts
from frameworks.tensorflow.graph_api import tf
from frameworks.tensorflow.towers import HOST, tower_device

KINDS = {"fp16": tf.float16, "bf16": tf.bfloat16}
NO_KERNEL = ("No OpKernel was registered", "because no supported kernel for ")


class Limits(parts.Limits):
    def matmul(self, problem, measure):
        device, kind = tower_device(0, problem.places[0]), KINDS.get(problem.precision, tf.float32)
        with _graph(problem) as session, _lacking_kernels(problem), tf.device(device):
            left, right, product = [
                tf.get_variable(name, matrix.shape, kind, tf.zeros_initializer(), use_resource=True)
                for name, matrix in zip(("left", "right", "product"), problem.matrices + problem.matrices[:1])
            ]
            for variable, matrix in zip((left, right), problem.matrices):
                given = tf.placeholder(tf.float32, matrix.shape)
                session.run(variable.assign(tf.cast(given, kind), read_value=False), {given: matrix})
            # The variable takes the product's memory over, without a copy.
            multiply = product.assign(tf.matmul(left.read_value(), right.read_value()), read_value=False)
            measure(session.make_callable(multiply), _done)
            rows = (
                tf.gather(tf.cast(left, tf.float32), problem.rows),
                tf.gather(tf.cast(product, tf.float32), problem.rows),
            )
            left_rows, product_rows = session.run(rows)
            return left_rows, session.run(tf.cast(right, tf.float32)), product_rows

    def copy(self, problem, measure, source, target):
        """From a variable to another.

        Between different memories the transfer itself makes the copy, and a resource variable takes the buffer that
        arrives. Within the same memory a resource variable would take the source's buffer without a copy; a variable of
        the older kind copies into its own buffer.
        """
        devices = [HOST if index is None else tower_device(index, problem.places[index]) for index in (source, target)]
        in_same_memory = source == target or problem.places[0] is None
        with _graph(problem) as session:
            variables = []
            for name, device in zip(("source", "target"), devices):
                with tf.device(device):
                    variables.append(_buffer(name, problem, use_resource=not in_same_memory))
            session.run(tf.variables_initializer(variables))
            with tf.device(devices[1]):
                copy = variables[1].assign(variables[0].read_value(), read_value=False)
            measure(session.make_callable(copy), _done)

    def all_reduce(self, problem, measure):
        with _graph(problem) as session:
            buffers, inputs = [], []
            for index, place in enumerate(problem.places):
                with tf.device(tower_device(index, place)):
                    buffers.append(_buffer("buffer%d" % index, problem))
                    inputs.append(buffers[-1].read_value())
            session.run(tf.variables_initializer(buffers))
            sums = _ring_sums(inputs) if None in problem.places else nccl_ops.all_sum(inputs)
            # The members of the ring find each other by this number.
            options = tf.RunOptions(experimental=tf.RunOptions.Experimental(collective_graph_key=1))
            step = tf.group(*sums)
            measure(lambda: session.run(step, options=options), _done)
            first_values = [total[0] for total in sums]  # of all sums: the ring would wait for a missing member
            return session.run(first_values, options=options)[0]

    def kernel_launch(self, problem, measure):
        """Each addition waits for the addition before it, so that a single run of the session makes them all."""
        with _graph(problem) as session, tf.device(tower_device(0, problem.places[0])):
            number = tf.get_variable("number", [], tf.float32, tf.zeros_initializer(), use_resource=True)
            session.run(number.initializer)
            last = tf.no_op()
            for _ in range(problem.launches):
                with tf.control_dependencies([last]):
                    last = number.assign_add(1.0, read_value=False)
            measure(session.make_callable(last), _done)


def _buffer(name, problem, use_resource=True):
    """A variable filled with 1, which is made on its device."""
    return tf.get_variable(name, [problem.values], tf.float32, tf.ones_initializer(), use_resource=use_resource)


def _ring_sums(inputs):
    """The sum of all inputs, on the device of each."""
    sums = []
    for values in inputs:
        with tf.device(values.device):
            sums.append(collective_ops.all_reduce(values, len(inputs), 1, 1, "Add", "Id"))
    return sums


@contextlib.contextmanager
def _lacking_kernels(problem):
    """Raises Unsupported for an error that says the device has no kernel for the precision.

    The placement of a graph says it in other words than a run: the variables of a GPU have kernels of their own.
    """
    try:
        yield
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, tf.errors.UnimplementedError) as error:
        if not any(text in str(error) for text in NO_KERNEL):
            raise
        raise Unsupported(
            "precision {!r}: TensorFlow {} has no kernel in it for a {}; 'fp32' would run".format(
                problem.precision, tf.__version__, "CPU" if None in problem.places else "GPU"
            )
        ) from error


@contextlib.contextmanager
def _graph(problem):
    """The session of a new graph, with as many logical CPUs as there are simulated devices."""
    cpus = len(problem.places) if None in problem.places else 1
    # Pinned host memory, which a GPU reads without a further copy.
    options = tf.GPUOptions(force_gpu_compatible=True)
    config = tf.ConfigProto(device_count={"CPU": cpus}, gpu_options=options)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        yield session


def _done():
    """A session's run returns when its devices are done."""
