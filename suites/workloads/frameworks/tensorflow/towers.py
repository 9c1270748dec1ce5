"""Training by towers in TensorFlow's graph mode: one graph, a copy of the network for every device, gradients averaged.

As the multi-GPU CIFAR-10 tutorial does it: with several towers the variables live on the host, every tower reads them,
computes the gradients of its share of the batch, and one update takes their mean. Batch normalisation is per tower; the
moving statistics follow the first tower's batches.
"""

import importlib
import re

import tensorflow.compat.v1 as tf

from common import data, jobs, networks
from common.events import Unsupported
from frameworks.tensorflow import graphs_that_ran, networks_graph

HOST = "/cpu:0"
# What a tower's work shows as in the graph that ran, whatever the optimisers fused it with.
HEAVY = re.compile("Conv2D|MatMul")
TOWER = re.compile(r"(?:^|/)tower_(\d+)/")


def prepare(job, protocol):
    """No flag to set."""


class Steady:
    """One batch, split evenly, each share in variables on its tower's device.

    job: network (networks.Network), mode ("training" or "inference"), layout ("channels_first" or "channels_last"),
    places (for each tower a GPU index, or None for a CPU device of its own), batch_size (global), precision, execution,
    train ((N, h, w, c) float32, (N,) int64; the first batch_size are the batch), settings (seed, learning_rate,
    momentum).
    """

    def __init__(self, job):
        self.job = job
        with tf.Graph().as_default():
            self.session = tf.Session(config=session_config(job.places))
            with tf.device(variables_device(job.places)):
                self.model = networks_graph.Model(job.network, job.layout)
            batches = [self._share(tower) for tower in range(len(job.places))]
            settings, optimizer = job.settings, None
            if job.mode == "training":
                optimizer = tf.train.MomentumOptimizer(settings["learning_rate"], settings["momentum"])
            devices = [tower_device(tower, place) for tower, place in enumerate(job.places)]
            with tf.device(variables_device(job.places)):
                self._fetches = step(self.model, batches, devices, optimizer)
            self._images = tf.placeholder(tf.float32, [None] + batches[0][0].shape.as_list()[1:])
            with tf.device(devices[0]):
                self._logits, _ = self.model.apply(self._images, training=False)
            if optimizer:
                self.session.run(tf.variables_initializer(optimizer.variables()))
        self.model.load(self.session, networks.initial_weights(job.network, job.settings["seed"]))
        self._run = self.session.make_callable(self._fetches)

    def _share(self, tower):
        """(images, labels) of a tower's share of the batch, read from variables on its device."""
        size = self.job.batch_size // len(self.job.places)
        chosen = slice(tower * size, (tower + 1) * size)
        images, labels = self.job.train
        arrays = [networks_graph.laid_out(images[chosen], self.job.layout), labels[chosen]]
        with tf.device(tower_device(tower, self.job.places[tower])):
            variables = [
                networks_graph.loadable("%s%d" % (name, tower), array.shape, array.dtype)
                for name, array in zip(("images", "labels"), arrays)
            ]
            networks_graph.load(self.session, variables, arrays)
            return [variable.read_value() for variable in variables]

    def step(self):
        """Returns the loss before the step, the mean over the batch."""
        return float(self._run()[0])

    def synchronise(self):
        """Nothing to wait for: a session's run returns when its devices are done."""

    def announce(self, steps):
        """Nothing to prepare for so many steps."""

    def mean_losses(self, losses):
        """Losses of steps, of the whole batch: they are that already."""
        return losses

    def parts(self):
        """None, where a step is one operation."""
        return ()

    def transposes(self):
        """How many Transpose operations the graph has that ran."""
        return graphs_that_ran.transposes(graphs_that_ran.run_and_look(tf, self.session, self._fetches)[1])

    def parameter_count(self):
        return self.model.parameter_count()

    def weights(self):
        """Float32 arrays in canonical order."""
        return self.model.weights(self.session)

    def logits(self, images):
        """(N, h, w, c) float32 to (N, classes), with the moving statistics of batch normalisation."""
        return self.session.run(self._logits, {self._images: networks_graph.laid_out(images, self.job.layout)})

    def peak_device_memory_mib(self):
        """None: TensorFlow takes all the memory there is, which says nothing about the network."""

    def replicas(self):
        """How many towers compute: runs one more step, and counts them in the graph that ran."""
        return len(executed_towers(self.session, self._fetches))

    def close(self):
        self.session.close()


def step(model, batches, devices, optimizer):
    """What a step fetches: [loss, training operation], or only [loss] where there is no optimizer (inference).

    batches, devices: for each tower (images, labels) and a device, or None for wherever TensorFlow puts it. loss: the
    mean over all batches, before the step.
    """
    losses, gradients, updates = [], [], []
    for tower, ((images, labels), device) in enumerate(zip(batches, devices)):
        with tf.device(device), tf.name_scope("tower_%d" % tower):
            logits, moved = model.apply(images, training=optimizer is not None)
            losses.append(networks_graph.mean_loss(logits, labels))
            if optimizer:
                gradients.append(tf.gradients(losses[-1], model.variables))
        updates = updates or moved
    loss = tf.add_n(losses) / len(losses)
    if not optimizer:
        return [loss]
    apply = optimizer.apply_gradients(zip(mean_gradients(gradients), model.variables))
    return [loss, tf.group(apply, *updates)]


def check(job, protocol):
    """Raises Unsupported for what towers cannot do, ValueError for a batch that cannot be split evenly."""
    if job.precision not in ("fp32", "tf32") or job.execution != "native":
        raise Unsupported(
            "strategy 'towers' with precision {!r} and execution {!r}: towers compute in fp32 or tf32, natively".format(
                job.precision, job.execution
            )
        )
    if job.batch_size % len(job.places):
        raise ValueError("a batch of {} cannot be split evenly over {} towers".format(job.batch_size, len(job.places)))


def tries(job):
    """On a CPU, whether there are kernels for the layout."""
    usual = job.layout == jobs.NATIVE_LAYOUT["tensorflow"]
    return [(try_layout, (job.layout, job.mode, job.network.name))] if None in job.places and not usual else []


def try_layout(layout, mode, model):
    """One step of a small network with layers of the same kinds, as it is the first of them that is refused."""
    network = networks.small(networks.NETWORKS[model])
    settings = {"seed": 0, "learning_rate": 0.01, "momentum": 0.9}
    (images, labels), _ = data.synthetic(1, 0, 0, network.shape)
    train = data.normalise(images), labels
    job = jobs.Job(network, mode, layout, "none", [None], 1, "fp32", "native", train, None, settings)
    with jobs.layout_may_be_refused(layout, "cpu", importlib.import_module("tensorflow")):
        trainer = Steady(job)
        trainer.step()
        trainer.close()


def session_config(places):
    """A session with a CPU device for every tower on the CPU; what has no GPU kernel falls back to the host."""
    cpus = max(1, places.count(None))
    return tf.ConfigProto(device_count={"CPU": cpus}, allow_soft_placement=True)


def tower_device(tower, place):
    """place: GPU index, or None for the tower's own CPU device."""
    return "/cpu:%d" % tower if place is None else "/gpu:%d" % place


def variables_device(places):
    """The host when several towers share them, otherwise the only tower's device."""
    return HOST if len(places) > 1 else tower_device(0, places[0])


def mean_gradients(gradients):
    """The mean over towers; gradients: for every tower, its gradients in the order of the variables."""
    if len(gradients) == 1:
        return gradients[0]
    return [tf.reduce_mean(tf.stack(of_towers), axis=0) for of_towers in zip(*gradients)]


def executed_towers(session, fetches):
    """{tower: device} of the towers whose convolutions (or matrix products) are in the graph that ran.

    Not in the graph that was built: towers that compute the same are merged, what nobody needs is dropped.
    """
    found = [(TOWER.search(node.name), node.device) for node in heavy_nodes(session, fetches)]
    return {int(tower.group(1)): device for tower, device in found if tower}


def working_devices(session, fetches):
    """The devices that compute convolutions or matrix products in the graph that ran."""
    return {node.device for node in heavy_nodes(session, fetches)}


def heavy_nodes(session, fetches):
    _, graphs = graphs_that_ran.run_and_look(tf, session, fetches)
    return [node for graph in graphs for node in graph.node if HEAVY.search(node.op)]
