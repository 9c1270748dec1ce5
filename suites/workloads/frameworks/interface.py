"""What a framework offers to experiments, written down once: what it does not offer is Unsupported, with the reason.

A framework is a folder, named as the module it is about. It holds
    __init__.py           RANK (of all that are installed, the lowest is taken when none is asked for) and PACKAGES
                          (what else belongs to it, whose versions an environment reports); imports nothing
    facts.py              a class Framework
    strategies/<name>.py  a class Strategy for every way to share a batch among devices; `none` is for one device
    <part>.py             what an experiment needs of it: conv2d.py with a class Conv2d, limits.py with Limits,
                          pipelines.py with Pipelines, self_check.py with SelfCheck
each a subclass of the class of that name, here or in parts.py.
"""

import contextlib
import importlib
import os

import frameworks
from common import devices, installed
from common.events import Unsupported


class Framework:
    """A framework that is installed.

    name: of its folder and its module. module: imported. layout: the one it takes where none is asked for,
    "channels_first" or "channels_last".
    """

    name = None
    module = None
    layout = None

    def facts(self):
        """{"versions", "cuda", "cudnn", "flags"} of an environment event, without starting a device.

        versions: {package: version}; cuda, cudnn: versions, or None; flags: as they are now, so report after setting
        them.
        """
        raise NotImplementedError

    def cuda_usable(self):
        """Whether the framework itself finds a GPU it can use; starts the device."""
        return False

    def tf32_switches(self):
        """Functions of True or False that allow TF32; None where the framework does not know the mode."""

    def layout_refusal(self, error):
        """The words in which an error says that this device has no kernel for the layout; None where it does not."""

    def report(self, emitter, request, **flags):
        """Emits one environment event: versions, CUDA, cuDNN, devices and flags, without starting a device."""
        facts = self.facts()
        facts["flags"].update(flags)
        emitter.environment(
            framework=self.name,
            python=installed.python_version(),
            devices=devices.described(request.accelerator),
            **facts,
        )

    def require_tf32(self, wanted):
        """Raises Unsupported where TF32 is wanted and the framework does not know it."""
        if wanted and self.tf32_switches() is None:
            raise Unsupported(
                "precision 'tf32': {} {} has no such mode; 'fp32' would run".format(self.name, self.module.__version__)
            )

    def set_tf32(self, wanted):
        """TF32 on, or off: computes in FP32 as the sources did; GPUs since 2020 otherwise round factors to 10 bits."""
        for switch in self.tf32_switches() or ():
            switch(wanted)

    @contextlib.contextmanager
    def layout_may_be_refused(self, layout, accelerator):
        """Raises Unsupported for an error that says this device has no kernel for the layout."""
        try:
            yield
        except Exception as error:
            refusal = self.layout_refusal(error)
            if not refusal:
                raise
            raise Unsupported(
                "layout {!r} on {}: {} {} says: {}; {!r} would run".format(
                    layout, accelerator, self.name, self.module.__version__, refusal, self.layout
                )
            ) from error

    def part(self, name):
        """The module frameworks/<framework>/<name>.py. Raises Unsupported where there is none."""
        if not os.path.isfile(os.path.join(frameworks.HERE, self.name, name + ".py")):
            raise Unsupported("{0} has no part {1!r}: there is no frameworks/{0}/{1}.py".format(self.name, name))
        return importlib.import_module("frameworks.{}.{}".format(self.name, name))

    def strategy(self, name):
        """The Strategy of that name. Raises Unsupported where there is none."""
        known = frameworks.strategies(self.name)
        if name not in known:
            able = ", ".join(sorted(set(known) - {"none"})) or "none"
            raise Unsupported("strategy {!r} is none of {}'s; these are: {}".format(name, self.name, able))
        return importlib.import_module("frameworks.{}.strategies.{}".format(self.name, name)).Strategy()


class Strategy:
    """How a batch is shared among devices.

    steady, literal: the Trainer of each protocol, a class that takes a jobs.Job; literal is None where no source
    trained so.
    """

    steady = None
    literal = None

    def check(self, job, protocol):
        """Raises Unsupported for what this framework, or this device, cannot do. The job has no data yet."""

    def prepare(self, job, protocol):
        """Sets the flags of the protocol, before anything is built."""

    def tries(self, job):
        """What has to be tried to know more: (function, arguments) of each, as experiments/possible.py wants it."""
        return []


class Trainer:
    """A network on its devices, with the initial weights that all frameworks share. Made with a jobs.Job."""

    def __init__(self, job):
        self.job = job

    def step(self):
        """Of protocol steady: one step on the batch, which is on its devices; returns the loss before it."""
        raise NotImplementedError

    def parts(self):
        """Of protocol steady: (name of a phase, callable) of parts of a training step, each without an update.

        They are forward (pass) and forward_backward; none where a step is one operation.
        """
        return ()

    def fit(self, emitter, probe):
        """Of protocol literal: trains epoch by epoch, a sample and phase `epoch` each; the mean loss of the last epoch.

        probe: a timing.EpochProbe, which is told the end of every step.
        """
        raise NotImplementedError

    def announce(self, steps):
        """Says that so many steps follow before the next synchronise()."""

    def synchronise(self):
        """Returns when the devices have done all they were given; at once where step() itself does."""

    def mean_losses(self, losses):
        """[the first loss, the last loss] of step() as floats, of the whole batch."""
        return [float(loss) for loss in losses]

    def parameter_count(self):
        """How many trainable parameters the network has."""
        raise NotImplementedError

    def weights(self):
        """The trainable weights: float32 arrays in the canonical order of common/networks.py."""
        raise NotImplementedError

    def logits(self, images):
        """(N, height, width, channels) float32 to (N, classes), with the moving statistics of batch normalisation."""
        raise NotImplementedError

    def peak_device_memory_mib(self):
        """MiB that tensors took at most on any device; None where the framework does not tell, or on a CPU."""

    def transposes(self):
        """How many Transpose operations the graph has that ran; None where there is no graph at hand."""

    def replicas(self):
        """On how many of several devices the network really computes; None where the framework does not tell."""

    def close(self):
        """Ends all that still runs."""
