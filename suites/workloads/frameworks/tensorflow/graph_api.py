"""TensorFlow's graph mode under the name `tf`, from 0.12 to 2.x, and what its releases call by several names.

It is tensorflow.compat.v1, or tensorflow itself, where that part is not there yet (before 1.13). A release is asked for
what it has, not for its number.
"""

import inspect

import tensorflow

try:
    import tensorflow.compat.v1 as tf
except ImportError:
    import tensorflow as tf

from common.events import Unsupported

try:
    from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
except ImportError:  # before Grappler, only the session's older optimiser folds
    RewriterConfig = None


def accepts(function, name):
    """Whether a function has a parameter of this name."""
    return name in inspect.signature(function).parameters


def require_resources(what):
    """Raises Unsupported where variables cannot be resources: only these are read and assigned without a copy."""
    if not accepts(tf.get_variable, "use_resource"):
        raise Unsupported(
            "{}: TensorFlow {} has no resource variables; 1.4 and newer have".format(what, tf.__version__)
        )


def split(values, count):
    """`count` equal parts of a tensor or an array, along its first dimension."""
    if accepts(tf.split, "split_dim"):  # before 1.0
        return tf.split(0, count, values)
    return tf.split(values, count, axis=0)


def assign(variable, value):
    """The operation that gives a resource variable a value. Before 1.8 it also reads the variable."""
    if accepts(variable.assign, "read_value"):
        return variable.assign(value, read_value=False)
    return variable.assign(value).op


def subtract(variable, value):
    """The operation that subtracts a value from a resource variable, as `assign`."""
    if accepts(variable.assign_sub, "read_value"):
        return variable.assign_sub(value, read_value=False)
    return variable.assign_sub(value).op


def initial_slots(optimizer, variables):
    """The operation that fills the variables that an optimizer of tf.train made for `variables`."""
    if hasattr(optimizer, "variables"):
        return tf.variables_initializer(optimizer.variables())
    names = optimizer.get_slot_names()
    return tf.variables_initializer([optimizer.get_slot(variable, name) for name in names for variable in variables])


def grappler_knows(option):
    """Whether the graph optimisers of this release have an option, so that it can be, and has to be, switched."""
    return RewriterConfig is not None and option in RewriterConfig.DESCRIPTOR.fields_by_name


def function(step, compiled):
    """`step` as a tf.function of 2.x, which XLA compiles or not; a release without that choice compiles none."""
    if accepts(tensorflow.function, "jit_compile"):
        return tensorflow.function(step, jit_compile=compiled)
    return tensorflow.function(step)
