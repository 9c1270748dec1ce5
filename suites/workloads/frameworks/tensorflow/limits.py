"""device_limits in TensorFlow's graph mode, through tensorflow.compat.v1: the same file runs on 1.13 and on 2.x.

What is computed lies in variables: of
constants nothing would be left to compute, and what nobody keeps is not computed at all.
"""

import contextlib

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import collective_ops, nccl_ops

from common.events import Unsupported
from frameworks import parts

KINDS = {"fp16": tf.float16, "bf16": tf.bfloat16}


class Limits(parts.Limits):
    def matmul(self, problem, measure):
        with _graph(problem) as session, tf.device(_device(problem.places, 0)):
            kind = KINDS.get(problem.precision, tf.float32)
            left, right, product = [
                tf.get_variable(name, matrix.shape, kind, tf.zeros_initializer(), use_resource=True)
                for name, matrix in zip(("left", "right", "product"), problem.matrices + problem.matrices[:1])
            ]
            for variable, matrix in zip((left, right), problem.matrices):
                given = tf.placeholder(tf.float32, matrix.shape)
                session.run(variable.assign(tf.cast(given, kind), read_value=False), {given: matrix})
            # The product's memory is taken over, not copied.
            multiply = product.assign(tf.matmul(left.read_value(), right.read_value()), read_value=False)
            try:
                measure(session.make_callable(multiply), _done)
            except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, tf.errors.UnimplementedError) as error:
                if "No OpKernel was registered" not in str(error):
                    raise
                raise Unsupported(
                    "precision {!r}: TensorFlow {} has no MatMul in it for a {}; 'fp32' would run".format(
                        problem.precision, tf.__version__, "CPU" if None in problem.places else "GPU"
                    )
                ) from error
            rows = (
                tf.gather(tf.cast(left, tf.float32), problem.rows),
                tf.gather(tf.cast(product, tf.float32), problem.rows),
            )
            left_rows, product_rows = session.run(rows)
            return left_rows, session.run(tf.cast(right, tf.float32)), product_rows

    def memory_copy(self, problem, measure):
        _copy(problem, measure, _device(problem.places, 0), _device(problem.places, 0))

    def host_to_device(self, problem, measure):
        _copy(problem, measure, "/cpu:0", _device(problem.places, 0))

    def device_to_host(self, problem, measure):
        _copy(problem, measure, _device(problem.places, 0), "/cpu:0")

    def device_to_device(self, problem, measure):
        _copy(problem, measure, _device(problem.places, 0), _device(problem.places, 1))

    def all_reduce(self, problem, measure):
        with _graph(problem) as session:
            buffers, inputs = [], []
            for index in range(len(problem.places)):
                with tf.device(_device(problem.places, index)):
                    buffers.append(_buffer("buffer%d" % index, problem))
                    inputs.append(buffers[-1].read_value())
            session.run(tf.variables_initializer(buffers))
            sums = _ring_sums(inputs) if None in problem.places else nccl_ops.all_sum(inputs)
            # By this number the members of the ring find one another.
            options = tf.RunOptions(experimental=tf.RunOptions.Experimental(collective_graph_key=1))
            step = tf.group(*sums)
            measure(lambda: session.run(step, options=options), _done)
            first_values = [total[0] for total in sums]  # of all: a ring with a member left out would wait for it
            return session.run(first_values, options=options)[0]

    def kernel_launch(self, problem, measure):
        """Additions that wait for one another, so that none is left out and all are in one session's run."""
        with _graph(problem) as session, tf.device(_device(problem.places, 0)):
            number = tf.get_variable("number", [], tf.float32, tf.zeros_initializer(), use_resource=True)
            session.run(number.initializer)
            last = tf.no_op()
            for _ in range(problem.launches):
                with tf.control_dependencies([last]):
                    last = number.assign_add(1.0, read_value=False)
            measure(session.make_callable(last), _done)


def _copy(problem, measure, source_device, target_device):
    """From a variable to another.

    Between different memories the copy is made by the transfer, and a resource variable takes what arrives. Within one
    memory it would take the source's own buffer, and nothing would be copied; a variable of the older kind copies into
    its own.
    """
    in_one_memory = source_device == target_device or problem.places[0] is None
    with _graph(problem) as session:
        variables = []
        for name, device in (("source", source_device), ("target", target_device)):
            with tf.device(device):
                variables.append(_buffer(name, problem, use_resource=not in_one_memory))
        source, target = variables
        session.run(tf.variables_initializer(variables))
        with tf.device(target_device):
            copy = target.assign(source.read_value(), read_value=False)
        measure(session.make_callable(copy), _done)


def _buffer(name, problem, use_resource=True):
    """A variable of ones, made on its device."""
    return tf.get_variable(name, [problem.values], tf.float32, tf.ones_initializer(), use_resource=use_resource)


def _ring_sums(inputs):
    """The sum of all inputs, on the device of each."""
    sums = []
    for one in inputs:
        with tf.device(one.device):
            sums.append(collective_ops.all_reduce(one, len(inputs), 1, 1, "Add", "Id"))
    return sums


@contextlib.contextmanager
def _graph(problem):
    """A graph and its session, with as many logical CPUs as there are simulated devices."""
    cpus = len(problem.places) if None in problem.places else 1
    # Host memory that a GPU reads without a copy in between (pinned).
    options = tf.GPUOptions(force_gpu_compatible=True)
    config = tf.ConfigProto(device_count={"CPU": cpus}, gpu_options=options)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        yield session


def _device(places, index):
    place = places[index]
    return "/cpu:%d" % index if place is None else "/gpu:%d" % place


def _done():
    """A session's run returns when its devices are done."""
