"""Training and inference in tf.keras, 1.13 to Keras 3: a graph and a session in 1.x, a tf.function in 2.x."""

import math
import time

import tensorflow as tf

import jobs
import networks
import networks_keras
import timing
import training_towers
from events import Unsupported

IS_GRAPH_MODE = tf.__version__.startswith("1.")
POLICIES = {"amp_fp16": "mixed_float16", "amp_bf16": "mixed_bfloat16"}


def prepare(job, protocol):
    """Sets precision and logical devices; Unsupported for what this TensorFlow cannot do."""
    check(job)
    if IS_GRAPH_MODE:
        return
    if job.precision in POLICIES:
        tf.keras.mixed_precision.set_global_policy(POLICIES[job.precision])
    if job.strategy == "mirrored" and None in job.places:
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * len(job.places))


def check(job):
    if job.execution == "cuda_graph":
        raise Unsupported("execution 'cuda_graph': TensorFlow has none to ask for; 'compiled' (XLA) would run in 2.x")
    if job.strategy == "multi_gpu_model" and not IS_GRAPH_MODE:
        raise Unsupported("strategy 'multi_gpu_model': TensorFlow 2.4 and newer have it no more; 'mirrored' would run")
    if IS_GRAPH_MODE:
        unknown = [
            (job.precision in POLICIES, "precision %r" % job.precision),
            (job.execution == "compiled", "execution 'compiled' (XLA for the whole step)"),
        ]
        for asked, what in unknown:
            if asked:
                raise Unsupported("{}: TensorFlow {} has none; 2.x has".format(what, tf.__version__))
        if job.strategy == "mirrored":
            raise Unsupported(
                "strategy 'mirrored': MirroredStrategy of TensorFlow {} trains no batch normalisation; "
                "'multi_gpu_model' and 'towers' are its ways".format(tf.__version__)
            )
    if job.strategy == "mirrored" and None not in job.places and len(set(job.places)) < len(job.places):
        raise Unsupported("strategy 'mirrored' needs {} GPUs: two replicas cannot share one".format(len(job.places)))


def loss_function(labels, logits):
    """Mean softmax cross-entropy. In this form, as Keras's own differ between 1.13 and Keras 3."""
    labels = tf.cast(tf.reshape(labels, [-1]), tf.int64)  # Keras 1.x hands them over as (N, 1) float32
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def transposes(graphs):
    """How many Transpose operations GraphDefs have, in functions too."""
    nodes = [node for graph in graphs for node in graph.node]
    nodes += [node for graph in graphs for function in graph.library.function for node in function.node_def]
    return sum(node.op == "Transpose" for node in nodes)


class Trainer:
    """What all protocols share. Subclasses set `model`."""

    def __init__(self, job):
        self.job = job
        self.layout = job.layout

    def laid_out(self, images):
        """NHWC array to the job's layout, on the host, as the source does."""
        return images if self.layout == "channels_last" else images.transpose(0, 3, 1, 2).copy()

    def build(self, inputs):
        """The Keras model on the Keras tensor `inputs`, with the initial weights all frameworks share."""
        model = networks_keras.build(self.job.network, inputs, self.layout)
        weights = networks.initial_weights(self.job.network, self.job.settings["seed"])
        networks_keras.set_weights(self.job.network, model, weights)
        return model

    def optimizer(self):
        """SGD; under FP16 the loss is scaled up, as small gradients vanish otherwise."""
        settings = self.job.settings
        optimizer = tf.keras.optimizers.SGD(settings["learning_rate"], settings["momentum"])
        if self.job.precision == "amp_fp16":
            return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
        return optimizer

    def announce(self, steps):
        """Nothing to prepare for so many steps."""

    def mean_losses(self, losses):
        """Losses of steps as floats, of the whole batch."""
        return [float(loss) for loss in losses]

    def parts(self):
        """None, where a step is one operation."""
        return ()

    def parameter_count(self):
        return networks_keras.parameter_count(self.model)

    def weights(self):
        """Float32 arrays in canonical order."""
        return networks_keras.get_weights(self.job.network, self.model)

    def logits(self, images):
        """(N, height, width, channels) array to (N, 10), with the moving statistics of batch normalisation."""
        return self.model.predict(self.laid_out(images), batch_size=self.job.batch_size, verbose=0)

    def peak_device_memory_mib(self):
        """None: TensorFlow takes all the memory there is, which says nothing about the network."""

    def transposes(self):
        """None, where the graph is Keras's own and not at hand."""

    def close(self):
        """Nothing is left running."""


class SteadyGraph(Trainer):
    """TensorFlow 1.x: one batch in variables (a constant would be folded), by session.run."""

    def __init__(self, job):
        super().__init__(job)
        training = job.mode == "training"
        tf.keras.backend.set_learning_phase(int(training))
        self.session = tf.keras.backend.get_session()
        images, labels = [_variable(self.session, array) for array in (self.laid_out(job.train[0]), job.train[1])]
        self.model = self.build(tf.keras.Input(tensor=images.read_value()))
        self.replicated = self._replicated()
        self.loss = loss_function(labels, self.replicated.output)
        self.fetches = [self.loss]
        if training:
            settings = job.settings
            optimizer = tf.train.MomentumOptimizer(settings["learning_rate"], settings["momentum"])
            gradients = optimizer.compute_gradients(self.loss, self.model.trainable_weights)
            with tf.control_dependencies(self.model.updates):  # the moving statistics of batch normalisation
                self.fetches = [self.loss, optimizer.apply_gradients(gradients)]
            self.gradients = [gradient for gradient, _ in gradients]
            self.session.run(tf.variables_initializer(optimizer.variables()))
        self._run = self.session.make_callable(self.fetches)

    def _replicated(self):
        """The model itself, or copies that share its weights, each with a slice of the batch."""
        if self.job.strategy != "multi_gpu_model":
            return self.model
        try:
            return tf.keras.utils.multi_gpu_model(self.model, gpus=len(self.job.places))
        except ValueError as error:
            raise Unsupported(
                "strategy 'multi_gpu_model' needs {} GPUs; Keras says: {}".format(len(self.job.places), error)
            ) from error

    def step(self):
        """Returns the loss before the step."""
        return self._run()[0]

    def synchronise(self):
        """Nothing to wait for: a session's run returns when its device is done."""

    def parts(self):
        """(name of a phase, callable): forward pass, and forward with backward pass, each without an update."""
        yield "forward", self.session.make_callable(self.loss)
        # Only run, not fetched: their values stay on the device.
        yield "forward_backward", self.session.make_callable(tf.group(self.loss, *self.gradients))

    def logits(self, images):
        """With the moving statistics: as the model's own input is a variable, its layers are applied once more."""
        arrays = self.laid_out(images)
        inputs = tf.placeholder(tf.float32, arrays.shape)
        tf.keras.backend.set_learning_phase(0)
        logits = self.model(inputs)
        tf.keras.backend.set_learning_phase(int(self.job.mode == "training"))
        return self.session.run(logits, {inputs: arrays})

    def transposes(self):
        return transposes(training_towers.graphs_that_ran(self.session, self.fetches))


class SteadyFunction(Trainer):
    """TensorFlow 2.x: one batch in tensors on the devices, by one tf.function, mirrored or on one device."""

    def __init__(self, job):
        super().__init__(job)
        devices = ["/cpu:%d" % i if place is None else "/gpu:%d" % place for i, place in enumerate(job.places)]
        self.strategy = tf.distribute.MirroredStrategy(devices) if job.strategy == "mirrored" else None
        with self.strategy.scope() if self.strategy else tf.device(devices[0]):
            self.model = self.build(tf.keras.Input(self.laid_out(job.train[0][:1]).shape[1:]))
            self.sgd = self.optimizer()
            self.sgd.build(self.model.trainable_variables)
        self.batch = self._batch(devices)
        self.step = self._function(self._train if job.mode == "training" else self._infer)

    def _batch(self, devices):
        """(images, labels) on their device; with a strategy, a share of the batch on each."""
        shares = []
        for (images, labels), device in zip(jobs.shards(self.job), devices):
            with tf.device(device):
                shares.append((tf.identity(self.laid_out(images)), tf.identity(labels)))
        if not self.strategy:
            return shares[0]
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: shares[context.replica_id_in_sync_group]
        )

    def _function(self, one_replica):
        """A tf.function of one step on the batch: the mean loss over replicas."""

        @tf.function(jit_compile=self.job.execution == "compiled")
        def step():
            if not self.strategy:
                return one_replica(self.batch)
            losses = self.strategy.run(one_replica, (self.batch,))
            return self.strategy.reduce("MEAN", losses, axis=None)

        return step

    def _infer(self, batch):
        images, labels = batch
        return loss_function(labels, self.model(images, training=False))

    def _gradients(self, batch):
        """(loss, gradients) of a replica; the optimizer sums them over replicas, and their mean is wanted."""
        images, labels = batch
        weights = self.model.trainable_variables
        with tf.GradientTape() as tape:
            loss = loss_function(labels, self.model(images, training=True))
            share = loss / len(self.job.places)
            scaled = self.sgd.scale_loss(share) if self.job.precision == "amp_fp16" else share
        return loss, tape.gradient(scaled, weights)

    def _train(self, batch):
        loss, gradients = self._gradients(batch)
        self.sgd.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def parts(self):
        """(name of a phase, callable): forward pass, and forward with backward pass, each without an update."""
        yield "forward", self._function(lambda batch: loss_function(batch[1], self.model(batch[0], training=True)))
        yield "forward_backward", self._function(self._summed_gradients)

    def _summed_gradients(self, batch):
        """A number that needs every gradient, so that none is left out of the graph."""
        _, gradients = self._gradients(batch)
        return tf.add_n([tf.reduce_sum(gradient) for gradient in gradients])

    def synchronise(self):
        """Reads a weight: the copy waits for the updates queued before it, which the loss would not."""
        self.model.trainable_variables[-1].numpy()

    def transposes(self):
        """Of the graphs that ran, after optimisation."""
        from tensorflow.python.eager import context

        context.enable_run_metadata()
        try:
            self.step()
            self.synchronise()
            graphs = [
                graph for graphs in context.export_run_metadata().function_graphs for graph in graphs.partition_graphs
            ]
        finally:
            context.disable_run_metadata()
        return transposes(graphs)

    def replicas(self):
        """How many replicas the strategy runs: each adds 1 to a sum over them."""

        @tf.function
        def count():
            return self.strategy.reduce("SUM", self.strategy.run(lambda: tf.constant(1)), axis=None)

        return int(count())


Steady = SteadyGraph if IS_GRAPH_MODE else SteadyFunction


class Literal(Trainer):
    """Keras's compile and fit, from host arrays, shuffled. Its callbacks see an epoch's begin and end."""

    def __init__(self, job):
        super().__init__(job)
        self.images = self.laid_out(job.train[0])
        strategy = None
        if job.strategy == "mirrored":
            devices = ["/cpu:%d" % i if place is None else "/gpu:%d" % place for i, place in enumerate(job.places)]
            strategy = tf.distribute.MirroredStrategy(devices)
        with strategy.scope() if strategy else tf.name_scope("literal"):
            self.model = self.build(tf.keras.Input(self.images.shape[1:]))
            self.trained = self._replicated()
            # Keras 3 would choose XLA by itself on a GPU, which is another case.
            compilation = {} if IS_GRAPH_MODE else {"jit_compile": job.execution == "compiled"}
            self.trained.compile(self.optimizer(), loss=_keras_loss(), **compilation)

    _replicated = SteadyGraph._replicated

    def fit(self, emitter, probe):
        """Trains epoch by epoch, one sample each; returns the mean loss over the last epoch."""
        history = self.trained.fit(
            self.images,
            self.job.train[1],
            batch_size=self.job.batch_size,
            shuffle=True,
            verbose=0,
            epochs=self.job.settings.positive("epochs"),
            callbacks=[EpochTimer(emitter, len(self.images), self.job, probe)],
        )
        return history.history["loss"][-1]

    def synchronise(self):
        """Nothing to wait for: Keras has read a batch's loss when it calls back."""

    def replicas(self):
        """How many replicas Keras trains."""
        strategy = getattr(self.trained, "distribute_strategy", None)
        return strategy.num_replicas_in_sync if strategy else len(self.job.places)


class EpochTimer(tf.keras.callbacks.Callback):
    """One sample per epoch; the first holds what Keras does at its first batch (tracing, autotuning)."""

    def __init__(self, emitter, images, job, probe):
        super().__init__()
        self.emitter = emitter
        self.images = images
        self.job = job
        self.probe = probe
        self.epochs_s = []

    def on_epoch_begin(self, epoch, logs=None):
        self.emitter.phase_begin("epoch")
        self.begin = time.perf_counter()

    def on_batch_end(self, batch, logs=None):
        if not self.epochs_s:
            self.probe.step_ended()

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch, logs=None):
        self.epochs_s.append(time.perf_counter() - self.begin)
        self.emitter.phase_end("epoch")
        steps = math.ceil(self.images / self.job.batch_size)
        self.emitter.sample("epoch", epoch, steps, self.images, self.epochs_s[-1])
        if timing.epochs_enough(self.epochs_s, self.job.settings):
            self.model.stop_training = True


def _keras_loss():
    """Keras 3 divides a loss of its own by the number of replicas, whose gradients it adds up, and no function's."""
    return loss_function if IS_GRAPH_MODE else tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _variable(session, array):
    """A variable that is not trained and not Keras's, filled with `array` without a constant in the graph."""
    placeholder = tf.placeholder(array.dtype, array.shape)
    variable = tf.Variable(placeholder, trainable=False, use_resource=True)
    session.run(variable.initializer, {placeholder: array})
    return variable
