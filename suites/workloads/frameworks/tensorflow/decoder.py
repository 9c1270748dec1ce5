"""A transformer decoder in TensorFlow: raw operations, in a graph and a session in 1.x, a tf.function in 2.x."""

import numpy as np
import tensorflow

from common import decoders, jobs
from common.events import Unsupported
from frameworks import interface, parts
from frameworks.tensorflow import graph_api, memory, networks_graph, towers
from frameworks.tensorflow.graph_api import tf

HAS_FUNCTIONS = hasattr(tensorflow, "function") and not hasattr(tensorflow, "contrib")


def logits(job, weights, tokens):
    """(sequences, length) tokens to (sequences * length, vocabulary) float32. weights: canonical, to be read."""
    decoder, kind = job.network, tf.bfloat16 if job.precision == "amp_bf16" else tf.float32
    arrays = decoders.named(weights)

    def dense(values, kernel, bias=None):
        """A product of matrices, as TensorFlow 1.x multiplies no others by one."""
        flat = tf.reshape(tf.cast(values, kind), [-1, int(kernel.shape[0])])
        product = tf.matmul(flat, tf.cast(kernel, kind))
        return product if bias is None else product + tf.cast(bias, kind)

    x = tf.gather(arrays.tokens, tokens) + arrays.positions
    x = tf.reshape(x, [-1, decoder.width])
    for block in arrays.blocks:
        qkv = dense(_normalised(x, block.first_scale, block.first_offset), block.qkv_kernel, block.qkv_bias)
        mixed = dense(_attention(decoder, qkv), block.out_kernel, block.out_bias)
        x = x + tf.cast(mixed, tf.float32)
        up = dense(_normalised(x, block.second_scale, block.second_offset), block.up_kernel, block.up_bias)
        x = x + tf.cast(dense(_gelu(up), block.down_kernel, block.down_bias), tf.float32)
    return tf.cast(dense(_normalised(x, arrays.scale, arrays.offset), arrays.head), tf.float32)


def _attention(decoder, qkv):
    """(sequences * length, 3 width) to (sequences * length, width)."""
    depth = decoder.width // decoder.heads
    by_head = tf.transpose(tf.reshape(qkv, [-1, decoder.length, 3, decoder.heads, depth]), [2, 0, 3, 1, 4])
    query, key, value = tf.unstack(by_head)
    scores = tf.matmul(query, key, transpose_b=True) / tf.cast(np.sqrt(depth), qkv.dtype)
    later = np.triu(np.full((decoder.length, decoder.length), -1e30, np.float32), 1)
    shares = tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32) + later), qkv.dtype)
    return tf.reshape(tf.transpose(tf.matmul(shares, value), [0, 2, 1, 3]), [-1, decoder.width])


def _gelu(x):
    """GELU by tanh; a function of its own only in 2.4 and newer, which computes just this."""
    root = tf.cast(np.sqrt(2 / np.pi), x.dtype)
    return 0.5 * x * (1 + tf.tanh(root * (x + tf.cast(0.044715, x.dtype) * x * x * x)))


def _normalised(x, scale, offset):
    """Over the last axis, in float32."""
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return (x - mean) * tf.rsqrt(variance + decoders.NORM_EPSILON) * scale + offset


class Trainer(interface.Trainer):
    """What both ways share: variables on the job's device, and SGD with momentum as the other frameworks have it."""

    def __init__(self, job):
        super().__init__(job)
        self.device = towers.tower_device(0, job.places[0])
        self.initial = decoders.initial_weights(job.network, job.settings["seed"])

    def parameter_count(self):
        return sum(int(np.prod([int(size) for size in variable.shape])) for variable in self.variables)

    def peak_device_memory_mib(self):
        return memory.peak_mib(self.job.places)

    def _loss(self, weights, tokens, targets):
        return networks_graph.mean_loss(logits(self.job, weights, tokens), tf.reshape(targets, [-1]))


class SteadyGraph(Trainer):
    """TensorFlow 1.x: the batch is in variables (a constant would be folded), and a session's run makes a step."""

    def __init__(self, job):
        super().__init__(job)
        with tf.Graph().as_default(), tf.device(self.device):
            self.session = tf.Session(config=towers.session_config(job.places))
            self.variables = self._loaded("weight", self.initial, trainable=True)
            self._values = [variable.read_value() for variable in self.variables]
            batch = [variable.read_value() for variable in self._loaded("batch", job.train)]
            loss = self._loss(self._values, *batch)
            fetches = [loss] + (self._updates(loss) if job.mode == "training" else [])
            self._tokens = tf.placeholder(tf.int64, job.train[0].shape)
            self._logits = logits(job, self._values, self._tokens)
        self._run = self.session.make_callable(fetches)

    def _loaded(self, name, arrays, trainable=False):
        """Variables with the values of arrays."""
        variables = [
            networks_graph.loadable("%s%d" % (name, index), array.shape, array.dtype, trainable)
            for index, array in enumerate(arrays)
        ]
        networks_graph.load(self.session, variables, arrays)
        return variables

    def _updates(self, loss):
        settings = self.job.settings
        optimizer = tf.train.MomentumOptimizer(settings["learning_rate"], settings["momentum"])
        # Dense, as in the other frameworks: the update would otherwise be of those rows alone whose tokens are there.
        gradients = [tf.convert_to_tensor(gradient) for gradient in tf.gradients(loss, self._values)]
        apply = optimizer.apply_gradients(zip(gradients, self.variables))
        self.session.run(graph_api.initial_slots(optimizer, self.variables))
        return [apply]

    def step(self):
        """A session's run returns when its device is done."""
        return self._run()[0]

    def weights(self):
        return self.session.run(self._values)

    def logits(self, tokens):
        return self.session.run(self._logits, {self._tokens: tokens})

    def close(self):
        self.session.close()


class SteadyFunction(Trainer):
    """TensorFlow 2.x: the batch is in tensors on the device, and a tf.function makes a step."""

    def __init__(self, job):
        super().__init__(job)
        with tensorflow.device(self.device):
            self.variables = [tensorflow.Variable(array) for array in self.initial]
            self._momenta = [tensorflow.Variable(np.zeros_like(array)) for array in self.initial]
            self._batch = [tensorflow.identity(array) for array in job.train]
        step = self._train if job.mode == "training" else self._infer
        self.step = graph_api.function(step, job.execution == "compiled")

    def _infer(self):
        return self._loss(self.variables, *self._batch)

    def _train(self):
        settings = self.job.settings
        with tensorflow.GradientTape() as tape:
            loss = self._infer()
        gradients = tape.gradient(loss, self.variables)
        for variable, momentum, gradient in zip(self.variables, self._momenta, gradients):
            momentum.assign(settings["momentum"] * momentum + tensorflow.convert_to_tensor(gradient))
            variable.assign_sub(settings["learning_rate"] * momentum)
        return loss

    def synchronise(self):
        """Reads a small weight: the copy waits for the updates that were queued before it."""
        self.variables[-2].numpy()

    def weights(self):
        return [variable.numpy() for variable in self.variables]

    def logits(self, tokens):
        return logits(self.job, self.variables, tokens).numpy()


class Decoder(parts.Decoder):
    steady = SteadyFunction if HAS_FUNCTIONS else SteadyGraph

    def check(self, job):
        graph_api.require_resources("a decoder")
        if job.attention == jobs.FUSED:
            raise Unsupported(
                "attention 'fused': TensorFlow has no function of it, nor a kernel; 'plain' would run, of which XLA "
                "fuses what it can where it is 'compiled'"
            )
        newer = HAS_FUNCTIONS and graph_api.accepts(tensorflow.function, "jit_compile")
        for asked, what in (
            (job.precision == "amp_bf16", "precision 'amp_bf16'"),
            (job.execution == "compiled", "execution 'compiled' (XLA for the whole step)"),
        ):
            if asked and not newer:
                raise Unsupported(
                    "{}: TensorFlow {} has none; newer releases of 2.x have".format(what, tensorflow.__version__)
                )

    def kernel(self, job):
        return "matmul, softmax, matmul"
