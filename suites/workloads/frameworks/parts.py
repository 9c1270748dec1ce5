"""The parts of a framework, beside training, that experiments can ask for. See interface.py."""

from common import timing
from common.events import Unsupported
from frameworks.interface import Trainer


def lacking(part, what):
    """The Unsupported that says a framework's part does not offer `what`."""
    return Unsupported("{}: frameworks/{} has none".format(what, type(part).__module__.split(".")[1]))


def refuse_graphs(case, folding, optimizers, call):
    """Raises Unsupported for a case of conv2d that needs tf.keras, a graph or a session.

    Why a framework has none, in words. folding: of constants; optimizers: of a graph; call: what it has for a session.
    """
    if case["implementation"] == "keras":
        raise Unsupported("implementation 'keras': tf.keras, which TensorFlow has; 'framework' would run")
    if "search" in case:
        raise Unsupported("search 'folding_edge': {}; TensorFlow has one".format(folding))
    if case["graph_optimizers"] != "default":
        raise Unsupported("graph_optimizers {!r}: {}; 'default' would run".format(case["graph_optimizers"], optimizers))
    if case["call"] != "run":
        raise Unsupported("call {!r}: {}, there is no session; TensorFlow has one".format(case["call"], call))


def time_apart(problem, emitter, synchronise, copy_in, compute, copy_out):
    """Times the phases of a steady conv2d one after the other; all are callables without arguments."""
    for phase, step in (("host_to_device", copy_in), ("compute", compute), ("device_to_host", copy_out)):
        timing.steady(emitter, step, synchronise, len(problem.images), problem.settings, phase, budget=problem.budget)


class Conv2d:
    """A convolution over many images. problem: see experiments/conv2d.py.

    literal, steady, folding_edge and keras return (outputs, share). outputs: for every run to check, the sum over
    towers, an array (N / towers, height, width, channels) float32. share: the share of the convolutions that a later
    run still does; None where no phase is a later run.
    """

    def check(self, case):
        """Raises Unsupported for a case that this framework cannot do."""

    def literal(self, problem, emitter):
        """Times the source's work by timing.first_and_later: split over the places, convolve, add up on the CPU."""
        raise lacking(self, "conv2d with protocol 'literal'")

    def steady(self, problem, emitter):
        """Times phases host_to_device, compute and device_to_host, each on its own and warm, by timing.steady."""
        raise lacking(self, "conv2d with protocol 'steady'")

    def folding_edge(self, problem, emitter):
        """Searches the largest number of images whose convolution is folded into a constant."""
        raise lacking(self, "search 'folding_edge'")

    def keras(self, problem, emitter):
        """The work of `literal` by a Keras model of one layer, whose input is fed in every run."""
        raise lacking(self, "implementation 'keras'")

    def peak_device_memory_mib(self, places):
        """As of a Trainer, for these places: the largest MiB of tensors on any device since the process started."""


class Limits:
    """The highest rates of a device. problem: see experiments/device_limits.py.

    measure(step, synchronise, announce=None) times step(), a callable without arguments, by timing.steady.
    spans_nodes: whether all_reduce can have its devices on several nodes; machines: how many machines these were.
    """

    spans_nodes = False
    machines = 1

    def check(self, case):
        """Raises Unsupported for a case that this framework cannot do. Called before anything is started for it."""

    def matmul(self, problem, measure):
        """Times the product of problem.matrices.

        Returns (rows of the left factor, the right factor, rows of the product), float32 arrays; the rows are
        problem.rows, and the factors are as they were multiplied.
        """
        raise lacking(self, "operation 'matmul'")

    def memory_copy(self, problem, measure):
        """Times a copy of problem.values float32 numbers to another place in the first device's memory."""
        self.copy(problem, measure, 0, 0)

    def host_to_device(self, problem, measure):
        """Times their copy from host memory, pinned where there is a GPU, to the first device."""
        self.copy(problem, measure, None, 0)

    def device_to_host(self, problem, measure):
        """Times their copy from the first device to host memory, pinned where there is a GPU."""
        self.copy(problem, measure, 0, None)

    def device_to_device(self, problem, measure):
        """Times their copy from the first device to the second."""
        self.copy(problem, measure, 0, 1)

    def copy(self, problem, measure, source, target):
        """Times any of these copies. source, target: index into problem.places, or None for host memory."""
        raise lacking(self, "operation {!r}".format(problem.operation))

    def all_reduce(self, problem, measure):
        """Times the sum of problem.values numbers over all devices, on each of them.

        Returns a number of such a sum where every number is 1: the number of devices.
        """
        raise lacking(self, "operation 'all_reduce'")

    def kernel_launch(self, problem, measure):
        """Times steps of problem.launches operations on a single number, each after the other."""
        raise lacking(self, "operation 'kernel_launch'")


class Pipelines:
    """Input pipelines of towers. job: see experiments/input_pipeline.py.

    threads: how many threads or processes prepare images. trainer: a subclass of PipelineTrainer.
    """

    threads = None
    trainer = None

    def check(self, case):
        """Raises Unsupported for a case that this framework cannot do."""

    def prepare(self, job):
        """Sets the flags of the protocol. Called before the trainer is made."""


class PipelineTrainer(Trainer):
    """A network and its input pipeline, trained by Adam."""

    def look(self):
        """Makes a step; returns for each tower the (ids, images) that reached it.

        ids: (n,) array of integers; images: (n, height, width, channels) array.
        """
        raise NotImplementedError

    def devices_used(self):
        """The number of devices that compute the network. Raises AssertionError where a tower is not computed."""
        raise NotImplementedError


class Decoder:
    """A transformer decoder. job: a jobs.Job whose network is a decoders.Decoder; see experiments/transformer_block.py.

    steady: the Trainer class. Its logits() takes (sequences, length) tokens; see frameworks/numpy/decoder.py.
    """

    steady = None

    def check(self, job):
        """Raises Unsupported for a job that this framework, or this device, cannot do. The job has no data yet."""

    def tries(self, job):
        """As of a Strategy: [(function, arguments)] of tries that tell whether the job can run."""
        return []

    def kernel(self, job):
        """What computes the attention of a job: a text for the environment's flags."""
        raise lacking(self, "a decoder")


class SelfCheck:
    """Operations whose results are known."""

    def compute(self, place, left, right, images, filters):
        """Computes in FP32 on a device. place: GPU index, or None for the CPU; all others are float32 arrays.

        left, right: (n, n); images: (N, in, height, width); filters: (out, in, size, size). Returns four arrays: left
        times right; the convolution of the images without padding, (N, out, height - size + 1, width - size + 1); and
        the gradients of half the convolution's sum of squares by images and by filters.
        """
        raise lacking(self, "the self-check")
