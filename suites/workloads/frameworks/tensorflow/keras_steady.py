"""Steps in tf.keras, on a fixed batch or on the host's next: a graph and a session in 1.x, a tf.function in 2.x."""

import tensorflow as tf

from common import jobs
from frameworks.tensorflow import fed, graph_api, graphs_that_ran, networks_graph
from frameworks.tensorflow.graph_api import function
from frameworks.tensorflow.keras_literal import as_handed
from frameworks.tensorflow.keras_trainer import IS_GRAPH_MODE, Trainer, loss_function
from frameworks.tensorflow.towers import HOST


class SteadyGraph(Trainer):
    """TensorFlow 1.x: the batch is in variables (a constant would be folded), and session.run makes a step."""

    def __init__(self, job):
        super().__init__(job)
        training = job.mode == "training"
        tf.keras.backend.set_learning_phase(training)
        tf.no_op()  # Keras of 1.4 runs the graph at once, which must not be empty
        self.session = tf.keras.backend.get_session()
        self.placeholders, self.fed = [], None
        images, labels = self.batch()
        self.model = self.build(tf.keras.Input(tensor=images))
        self.replicated = self.copies()
        self.loss = loss_function(labels, self.replicated.output)
        self.fetches = [self.loss]
        if training:
            settings = job.settings
            optimizer = tf.train.MomentumOptimizer(settings["learning_rate"], settings["momentum"])
            gradients = optimizer.compute_gradients(self.loss, self.model.trainable_weights)
            with tf.control_dependencies(self.updates()):
                self.fetches = [self.loss, optimizer.apply_gradients(gradients)]
            self.gradients = [gradient for gradient, _ in gradients]
            self.session.run(graph_api.initial_slots(optimizer, self.model.trainable_weights))
        self._run = self.session.make_callable(self.fetches, self.placeholders)

    def batch(self):
        """(images, labels), the tensors of a step's batch."""
        images, labels = self.job.train
        if self.job.batches == jobs.HOST:
            shape = [self.job.batch_size] + list(self.laid_out(images[:1]).shape[1:])
            self.placeholders = [tf.placeholder(tf.float32, shape), tf.placeholder(tf.int64, shape[:1])]
            self.fed = fed.handed(self.job, as_handed(images, self.layout))
            return self.placeholders
        with tf.device(None if self.job.batches == jobs.RESIDENT else HOST):
            arrays = {"images": self.laid_out(images), "labels": labels}
            unique = tf.get_default_graph().unique_name  # Keras has one graph, and a process may have several trainers
            variables = [
                networks_graph.loadable(unique(name, mark_as_used=False), array.shape, array.dtype)
                for name, array in arrays.items()
            ]
            networks_graph.load(self.session, variables, arrays.values())
            of_all = [variable.read_value() for variable in variables]
        if self.job.batches == jobs.RESIDENT:
            return of_all
        batches = fed.made_ahead(self.job, *of_all)
        make = getattr(tf.data, "make_initializable_iterator", type(batches).make_initializable_iterator)
        iterator = make(batches)
        self.session.run(iterator.initializer)
        return iterator.get_next()

    def updates(self):
        """The operations that update the moving statistics of batch normalisation."""
        return self.model.updates

    def step(self):
        """A session's run returns when its device is done."""
        return self._run(*self.next_batch())[0]

    def next_batch(self):
        """What a run is handed: the next batch, where the program makes it."""
        return next(self.fed) if self.fed else ()

    def parts(self):
        if self.job.batches != jobs.RESIDENT:
            return
        yield "forward", self.session.make_callable(self.loss)
        # Run but not fetched, so that the values stay on the device.
        yield "forward_backward", self.session.make_callable(tf.group(self.loss, *self.gradients))

    def logits(self, images):
        """Applies the model's layers to a new input, as the model's own input is a variable."""
        arrays = self.laid_out(images)
        inputs = tf.placeholder(tf.float32, arrays.shape)
        tf.keras.backend.set_learning_phase(False)
        logits = self.model(inputs)
        tf.keras.backend.set_learning_phase(self.job.mode == "training")
        return self.session.run(logits, {inputs: arrays})

    def transposes(self):
        feed = dict(zip(self.placeholders, self.next_batch()))
        return graphs_that_ran.transposes(graphs_that_ran.run_and_look(tf, self.session, self.fetches, feed)[1])


class SteadyFunction(Trainer):
    """TensorFlow 2.x: the batch is in tensors on the devices, or comes from the host; a tf.function makes a step."""

    def __init__(self, job):
        super().__init__(job)
        with self.scope():
            self.model = self.build(tf.keras.Input(self.laid_out(job.train[0][:1]).shape[1:]))
            self.sgd = self.optimizer()
            if hasattr(self.sgd, "build"):  # an older optimizer makes its variables at the first step
                self.sgd.build(self.model.trainable_variables)
        replica_step = self._train if job.mode == "training" else self._infer
        if job.batches == jobs.RESIDENT:
            self.batch = self.placed_batch()
            self.step = self._function(replica_step)
        else:
            fed_step, self.fed = function(replica_step, job.execution == "compiled"), self._fed()
            self.step = lambda: fed_step(next(self.fed))

    def _fed(self):
        """An iterator over the batches of the host."""
        images, labels = self.job.train
        if self.job.batches == jobs.HOST:
            return fed.handed(self.job, as_handed(images, self.layout))
        with tf.device(HOST):
            of_all = tf.constant(self.laid_out(images)), tf.constant(labels)
        return iter(fed.made_ahead(self.job, *of_all))

    def scope(self):
        """Where the model is built."""
        return tf.device(self.devices[0])

    def placed_batch(self):
        """The argument of every replica: its share of the batch, on its device."""
        return self.shares()[0]

    def shares(self):
        """(images, labels) of each device's share of the batch, on that device."""
        shares = []
        for (images, labels), device in zip(jobs.shards(self.job), self.devices):
            with tf.device(device):
                shares.append((tf.identity(self.laid_out(images)), tf.identity(labels)))
        return shares

    def _function(self, replica_step):
        """A tf.function that makes a step of all replicas, and returns the mean loss over them."""

        return function(lambda: self.everywhere(replica_step), self.job.execution == "compiled")

    def everywhere(self, replica_step):
        """The mean of replica_step(share of the batch) over all replicas."""
        return replica_step(self.batch)

    def _infer(self, batch):
        images, labels = batch
        return loss_function(labels, self.model(images, training=False))

    def _gradients(self, batch):
        """(loss, gradients) of a replica, divided by the number of replicas, as the optimizer sums them."""
        images, labels = batch
        weights = self.model.trainable_variables
        with tf.GradientTape() as tape:
            loss = loss_function(labels, self.model(images, training=True))
            share = loss / len(self.job.places)
            scaled = self._scaled(share)
        gradients = tape.gradient(scaled, weights)
        if hasattr(self.sgd, "get_unscaled_gradients"):  # of Keras 2; that of Keras 3 does it in apply_gradients
            gradients = self.sgd.get_unscaled_gradients(gradients)
        return loss, gradients

    def _scaled(self, loss):
        """The loss by the scale of the optimizer, under FP16."""
        if self.job.precision != "amp_fp16":
            return loss
        return getattr(self.sgd, "scale_loss", getattr(self.sgd, "get_scaled_loss", None))(loss)

    def _train(self, batch):
        loss, gradients = self._gradients(batch)
        self.sgd.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def parts(self):
        if self.job.batches != jobs.RESIDENT:
            return
        yield "forward", self._function(lambda batch: loss_function(batch[1], self.model(batch[0], training=True)))
        yield "forward_backward", self._function(self._summed_gradients)

    def _summed_gradients(self, batch):
        """A number that depends on every gradient, so that the graph computes all gradients."""
        _, gradients = self._gradients(batch)
        return tf.add_n([tf.reduce_sum(gradient) for gradient in gradients])

    def synchronise(self):
        """Reads a weight: the copy waits for the updates that were queued before it; a copy of the loss would not."""
        self.model.trainable_variables[-1].numpy()

    def transposes(self):
        """TensorFlow hands a graph out when it prepares it for its first run: so it has to prepare it anew.

        None for XLA, whose program is no graph, and where TensorFlow cannot prepare it anew.
        """
        from tensorflow.python.eager import context

        if self.job.execution == "compiled" or not hasattr(context.context(), "clear_kernel_cache"):
            return None
        context.context().clear_kernel_cache()
        context.enable_run_metadata()
        try:
            self.step()
            self.synchronise()
            graphs = [
                graph for graphs in context.export_run_metadata().function_graphs for graph in graphs.partition_graphs
            ]
        finally:
            context.disable_run_metadata()
        if not graphs:
            raise AssertionError("TensorFlow handed out no graph of the step")
        return graphs_that_ran.transposes(graphs)


Steady = SteadyGraph if IS_GRAPH_MODE else SteadyFunction
