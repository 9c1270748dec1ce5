"""What experiments can ask of a framework. A framework that cannot do it raises Unsupported with the reason.

A framework is a folder with the name of the framework's module. It has
    __init__.py           RANK (a request that names no framework gets the installed framework of the lowest rank) and
                          PACKAGES (further packages whose versions an environment reports). Where the framework reads
                          variables at its import or start, also a function variables(request): it returns them as
                          {name: text}, and they are set before the import, for every request. Imports no framework
    facts.py              a class Framework
    strategies/<name>.py  a class Strategy for every way to share a batch among devices; `none` is for a single device
    <part>.py             the operations of an experiment: conv2d.py with a class Conv2d, limits.py with Limits,
                          pipelines.py with Pipelines, decoder.py with Decoder, self_check.py with SelfCheck
Each class is a subclass of the class with the same name, here or in parts.py.
"""

import contextlib
import importlib
import os

import frameworks
from common import cuda_devices, devices, installed, jobs
from common.events import Unsupported


class Framework:
    """A framework that is installed.

    name: of its folder and its module. module: the imported module. layout: of the images where a case asks for
    "native"; "channels_first" or "channels_last".
    """

    name = None
    module = None
    layout = None

    def facts(self):
        """{"versions", "cuda", "cudnn", "flags"} of an environment event. Starts no device.

        versions: {package: version}; cuda, cudnn: versions, or None; flags: their present values.
        """
        raise NotImplementedError

    def cuda_usable(self):
        """Whether the framework itself can use a GPU. Starts the device."""
        return False

    def allocators(self):
        """[(MiB that its allocator had taken at most, MiB that it may take)] of GPUs; empty where it does not say."""
        return []

    def tf32_switches(self):
        """Functions that take whether TF32 is allowed; None where the framework does not know the mode."""

    def layout_refusal(self, error):
        """The text of an error that says the device has no kernel for the layout; None for any other error."""

    def precision_refusal(self, error):
        """The text of an error that says the device has no kernel for the precision; None for any other error."""

    def report(self, emitter, request, **flags):
        """Emits an environment event: versions, CUDA, cuDNN, devices and flags. Call it after flags are set.

        Starts no device.
        """
        facts = self.facts()
        if request.accelerator == "cuda":
            flags["cuda_memory_mib"] = cuda_devices.least_memory_mib()
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
        """Switches TF32 on or off. Without the switch, GPUs since 2020 may round factors of FP32 to 10 bits."""
        for switch in self.tf32_switches() or ():
            switch(wanted)

    @contextlib.contextmanager
    def may_be_refused(self, layout, precision, accelerator):
        """Raises Unsupported in place of an error that says the device has no kernel for the layout or precision."""
        try:
            yield
        except Exception as error:
            for axis, value, refusal, instead in (
                ("layout", layout, self.layout_refusal(error), self.layout),
                ("precision", precision, self.precision_refusal(error), "fp32"),
            ):
                if refusal:
                    raise Unsupported(
                        "{} {!r} on {}: {} {} says: {}; {!r} would run".format(
                            axis, value, accelerator, self.name, self.module.__version__, refusal, instead
                        )
                    ) from error
            raise

    def part(self, name):
        """The module frameworks/<framework>/<name>.py. Raises Unsupported where there is none."""
        there = [
            each for each in frameworks.names() if os.path.isfile(os.path.join(frameworks.HERE, each, name + ".py"))
        ]
        if self.name not in there:
            raise Unsupported(
                "{0} has no part {1!r}: there is no frameworks/{0}/{1}.py; would run: {2}".format(
                    self.name, name, ", ".join(there) or "none"
                )
            )
        return importlib.import_module("frameworks.{}.{}".format(self.name, name))

    def strategy(self, name):
        """The Strategy of that name. Raises Unsupported where there is none."""
        known = frameworks.strategies(self.name)
        if name not in known:
            able = ", ".join(sorted(set(known) - {"none"})) or "none"
            raise Unsupported("strategy {!r} is none of {}'s; these are: {}".format(name, self.name, able))
        return importlib.import_module("frameworks.{}.strategies.{}".format(self.name, name)).Strategy()


class Strategy:
    """A way to share a batch among devices.

    steady, literal: the Trainer class of each protocol; literal is None where no source trained with this strategy.
    packaged: the Trainer class of literal inference, which a source's package times; None where no source did so.
    single: the Trainer class of literal passes that are timed one by one (setting `readings`); None as before.
    loaders, batches, tunings: the values of the axes `loader`, `batches` and `convolution_tuning` that it knows.
    whole: the values of the axis `precision` that it knows of those that are the type of everything.
    spans_nodes: whether it has a process for each device, which may be on several nodes.
    """

    steady = None
    literal = None
    packaged = None
    single = None
    loaders = (jobs.TENSORS,)
    batches = (jobs.RESIDENT,)
    tunings = (jobs.TUNED,)
    whole = ()
    spans_nodes = False

    def check(self, job, protocol):
        """Raises Unsupported for a job that this framework, or this device, cannot do. The job has no data yet."""

    def prepare(self, job, protocol):
        """Sets the flags of the protocol. Called before the trainer is made."""

    def tries(self, job):
        """[(function, arguments)] of tries that tell whether the job can run; see experiments/possible.py."""
        return []


class Trainer:
    """A network on its devices, with the initial weights that all frameworks share. job: a jobs.Job."""

    def __init__(self, job):
        self.job = job

    def step(self):
        """Of protocol steady: a step on a batch, as the job's `batches` gives it; returns the loss before it.

        Of literal passes: a pass as the source timed it, whose result is ignored.
        """
        raise NotImplementedError

    def parts(self):
        """Of protocol steady: (name of a phase, callable) for parts of a training step, which update no weight.

        The names are forward, forward_backward, and loading where images come from a pipeline. Empty where a step
        cannot be divided.
        """
        return ()

    def fit(self, emitter, probe):
        """Of protocol literal: trains all epochs; each has a phase `epoch` and a sample.

        probe: a timing.EpochProbe, whose step_ended is called after every step. Returns the mean loss of the last
        epoch.
        """
        raise NotImplementedError

    def infer(self):
        """Of literal inference: (steps, their images, their seconds), as the source's package has timed them."""
        raise NotImplementedError

    def announce(self, steps):
        """Announces that `steps` steps follow before the next synchronise()."""

    def synchronise(self):
        """Waits until the devices have finished all their work; does nothing where step() itself waits."""

    def mean_losses(self, losses):
        """[first loss, last loss] of the whole batch as floats, from the values that step() returned."""
        return [float(loss) for loss in losses]

    def parameter_count(self):
        """The number of trainable parameters of the network."""
        raise NotImplementedError

    def multiply_adds(self):
        """Of an image's forward pass, as the framework counts them; None where it does not. Called after all timing."""

    def weights(self):
        """The trainable weights: float32 arrays in the canonical order of common/networks.py."""
        raise NotImplementedError

    def logits(self, images):
        """(N, height, width, channels) float32 to (N, classes), by the moving statistics of batch normalisation."""
        raise NotImplementedError

    def peak_device_memory_mib(self):
        """The largest MiB of tensors on any device; None where the framework does not know it, and on a CPU."""

    def compile_s(self):
        """Seconds in which the timed step was compiled, a part of its first call; None where nothing is compiled apart.

        They count everything from the function to the program that runs: tracing, lowering and the compiler.
        """

    def transposes(self):
        """The number of Transpose operations in the graph that ran; None where there is no graph."""

    def replicas(self):
        """The number of devices on which the network really computes; None where the framework does not know it."""

    def machines(self):
        """Of a training over several nodes: the number of machines that these are; 1 for any other."""
        return 1

    def close(self):
        """Ends the processes and threads of the trainer, and frees its resources."""
