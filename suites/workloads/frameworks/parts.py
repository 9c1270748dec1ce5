"""The parts of a framework that experiments ask for, beside training: written down once, as interface.py."""

from common.events import Unsupported
from frameworks.interface import Trainer


def lacking(part, what):
    """The Unsupported of what a framework's part does not offer."""
    return Unsupported("{}: frameworks/{} has none".format(what, type(part).__module__.split(".")[1]))


class Conv2d:
    """One convolution over many images. problem: see experiments/conv2d.py.

    All that run return (outputs, share). outputs: arrays (N / towers, height, width, channels) float32, the towers'
    sums, of every run that is to be checked. share: of the convolutions asked for, those that a later run still does;
    None where no phase is such a run.
    """

    def check(self, case):
        """Raises Unsupported for what this framework cannot do."""

    def literal(self, problem, emitter):
        """What the source did, by timing.first_and_later: split over the places, convolve, add up on the CPU."""
        raise lacking(self, "conv2d with protocol 'literal'")

    def steady(self, problem, emitter):
        """The phases host_to_device, compute and device_to_host, each on its own, warm, by timing.steady."""
        raise lacking(self, "conv2d with protocol 'steady'")

    def folding_edge(self, problem, emitter):
        """Looks for the largest number of images whose convolution is folded into a constant."""
        raise lacking(self, "search 'folding_edge'")


class Limits:
    """What a device can do at most. problem: see experiments/device_limits.py.

    measure(step, synchronise, announce=None) times step(), a callable without arguments, by timing.steady.
    """

    def matmul(self, problem, measure):
        """The product of problem.matrices; returns the rows problem.rows of the left factor, the right factor, and the
        rows of the product: float32 arrays, the factors as they were multiplied."""
        raise lacking(self, "operation 'matmul'")

    def memory_copy(self, problem, measure):
        """problem.values float32 numbers to another place in the first device's memory."""
        raise lacking(self, "operation 'memory_copy'")

    def host_to_device(self, problem, measure):
        """problem.values float32 numbers from host memory, pinned where there is a GPU, to the first device."""
        raise lacking(self, "operation 'host_to_device'")

    def device_to_host(self, problem, measure):
        """The same the other way."""
        raise lacking(self, "operation 'device_to_host'")

    def device_to_device(self, problem, measure):
        """problem.values float32 numbers from the first device to the second."""
        raise lacking(self, "operation 'device_to_device'")

    def all_reduce(self, problem, measure):
        """The sum over all devices, left on each; returns a value of the sum of ones: the number of devices."""
        raise lacking(self, "operation 'all_reduce'")

    def kernel_launch(self, problem, measure):
        """problem.launches operations on one number, one after the other, in every step."""
        raise lacking(self, "operation 'kernel_launch'")


class Pipelines:
    """What feeds the towers. job: see experiments/input_pipeline.py.

    threads: how many threads or processes prepare images. trainer: a class, a PipelineTrainer that takes a job.
    """

    threads = None
    trainer = None

    def check(self, case):
        """Raises Unsupported for what this framework cannot do."""

    def prepare(self, job):
        """Sets the flags of the protocol, before anything is built."""


class PipelineTrainer(Trainer):
    """A network and its input pipeline, trained by Adam."""

    def look(self):
        """One more step; for each tower (ids, images) as it got them: (n,) and (n, height, width, channels) arrays."""
        raise NotImplementedError

    def devices_used(self):
        """On how many devices the network is computed. Raises AssertionError where a tower is not computed."""
        raise NotImplementedError


class SelfCheck:
    """Operations whose results are known."""

    def compute(self, place, left, right, images, filters):
        """On a device, in FP32. place: GPU index, or None for the CPU; the other arguments are float32 arrays.

        left, right: (n, n); images: (N, in, height, width); filters: (out, in, size, size). Returns arrays: left times
        right; the convolution of the images without padding, (N, out, height - size + 1, width - size + 1); and the
        gradients of half its summed squares by images and by filters.
        """
        raise lacking(self, "the self-check")
