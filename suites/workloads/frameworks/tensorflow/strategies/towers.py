"""Training by towers in graph mode, without Keras; see frameworks/tensorflow/towers.py."""

from common import data, jobs, networks
from common.events import Unsupported
from frameworks import interface
from frameworks.tensorflow import graph_api, graphs_that_ran, memory, networks_graph, towers
from frameworks.tensorflow.facts import Framework
from frameworks.tensorflow.graph_api import tf


class Steady(interface.Trainer):
    """A fixed batch, split evenly; each share is in variables on its tower's device."""

    def __init__(self, job):
        super().__init__(job)
        with tf.Graph().as_default():
            self.session = tf.Session(config=towers.session_config(job.places))
            with tf.device(towers.variables_device(job.places)):
                self.model = networks_graph.Model(job.network, job.layout)
            batches = [self._share(tower) for tower in range(len(job.places))]
            settings, optimizer = job.settings, None
            if job.mode == "training":
                optimizer = tf.train.MomentumOptimizer(settings["learning_rate"], settings["momentum"])
            devices = [towers.tower_device(tower, place) for tower, place in enumerate(job.places)]
            with tf.device(towers.variables_device(job.places)):
                self._fetches = towers.step(self.model, batches, devices, optimizer)
            self._images = tf.placeholder(tf.float32, [None] + batches[0][0].shape.as_list()[1:])
            with tf.device(devices[0]):
                self._logits, _ = self.model.apply(self._images, training=False)
            if optimizer:
                self.session.run(graph_api.initial_slots(optimizer, self.model.variables))
        self.model.load(self.session, networks.initial_weights(job.network, job.settings["seed"]))
        self._run = self.session.make_callable(self._fetches)

    def _share(self, tower):
        """(images, labels) of a tower's share of the batch, read from variables on its device."""
        size = self.job.batch_size // len(self.job.places)
        chosen = slice(tower * size, (tower + 1) * size)
        images, labels = self.job.train
        arrays = [networks_graph.laid_out(images[chosen], self.job.layout), labels[chosen]]
        with tf.device(towers.tower_device(tower, self.job.places[tower])):
            variables = [
                networks_graph.loadable("%s%d" % (name, tower), array.shape, array.dtype)
                for name, array in zip(("images", "labels"), arrays)
            ]
            networks_graph.load(self.session, variables, arrays)
            return [variable.read_value() for variable in variables]

    def step(self):
        """A session's run returns when its devices are done."""
        return float(self._run()[0])

    def transposes(self):
        return graphs_that_ran.transposes(graphs_that_ran.run_and_look(tf, self.session, self._fetches)[1])

    def parameter_count(self):
        return self.model.parameter_count()

    def weights(self):
        return self.model.weights(self.session)

    def logits(self, images):
        return self.session.run(self._logits, {self._images: networks_graph.laid_out(images, self.job.layout)})

    def replicas(self):
        """The number of towers that compute: makes another step, and counts them in the graph that ran."""
        return len(graphs_that_ran.executed_towers(tf, self.session, self._fetches))

    def peak_device_memory_mib(self):
        return memory.peak_mib(self.job.places)

    def close(self):
        self.session.close()


class Strategy(interface.Strategy):
    steady = Steady

    def check(self, job, protocol):
        """ValueError for a batch that cannot be split evenly."""
        graph_api.require_resources("strategy 'towers'")
        if networks.is_of_zoo(job.network.name):
            raise Unsupported(
                "strategy 'towers' with network {!r}: Keras builds it; 'none' would run".format(job.network.name)
            )
        if job.precision not in ("fp32", "tf32") or job.execution != "native":
            raise Unsupported(
                "strategy 'towers' with precision {!r} and execution {!r}: towers compute in fp32 or tf32, "
                "natively".format(job.precision, job.execution)
            )
        if job.batch_size % len(job.places):
            raise ValueError(
                "a batch of {} cannot be split evenly over {} towers".format(job.batch_size, len(job.places))
            )

    def tries(self, job):
        return layout_tries(job)


def layout_tries(job):
    """On a CPU, whether there are kernels for the layout."""
    if None not in job.places or job.layout == Framework.layout:
        return []
    return [(try_layout, (job.layout, job.mode, job.network.name))]


def try_layout(layout, mode, model):
    """A step of a small network with layers of the same kinds: the device refuses the same kind in both networks."""
    network = networks.small(networks.NETWORKS[model])
    settings = {"seed": 0, "learning_rate": 0.01, "momentum": 0.9}
    (images, labels), _ = data.synthetic(1, 0, 0, network.shape)
    train = data.normalise(images), labels
    job = jobs.Job(network, mode, layout, "none", [None], 1, "fp32", "native", train, None, settings)
    with Framework().may_be_refused(layout, "fp32", "cpu"):
        trainer = Steady(job)
        trainer.step()
        trainer.close()
