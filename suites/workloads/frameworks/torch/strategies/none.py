"""A single device: steps on a batch that is on it from the start or on the next of a DataLoader, or epochs."""

import collections
import functools
import subprocess

import torch

from common import jobs, networks, timing
from common.events import Unsupported
from frameworks import interface
from frameworks.torch import loaders, package
from frameworks.torch.facts import Framework
from frameworks.torch.networks import build, depthwise_gradients_are_right
from frameworks.torch.trainer import AMP, WHOLE, Trainer, nchw, raise_if_no_compiler, type_of


class Steady(Trainer):
    """A fixed batch, on the device from the start; or the next batch from the host in every step."""

    def __init__(self, job, place=None, batch=None, rank=None):
        """batch, rank: of a process that has a share of the batch, (images, labels) and its number."""
        super().__init__(job, place)
        self.fed = None
        if job.batches == jobs.RESIDENT:
            images, labels = batch or job.train
            self.images = self.to_device(nchw(images))
            self.labels = torch.from_numpy(labels).to(self.device)
        else:
            self.fed = loaders.fed(job, rank)
        self.model.train(job.mode == "training")
        self.graph = None

    def step(self):
        if self.fed is not None:
            non_blocking = self.job.batches != jobs.HOST
            images, labels = next(self.fed)
            self.images = self.to_device(images, non_blocking)
            self.labels = labels.to(self.device, non_blocking=non_blocking)
        return self._replay() if self.job.execution == "cuda_graph" else self._step_on_batch()

    def _step_on_batch(self):
        if self.job.mode == "training":
            return self.train(self.images, self.labels)
        with torch.no_grad():
            return self.forward(self.images, self.labels)

    def close(self):
        """Ends the workers."""
        self.fed = None

    def parts(self):
        if self.job.execution == "cuda_graph":  # launched as a whole: what runs eagerly is no part of it
            return
        yield "forward", lambda: self.forward(self.images, self.labels)
        yield "forward_backward", lambda: self.gradients(self.images, self.labels)

    def _replay(self):
        """The step as a CUDA graph, which the first call records: so the first step has the whole cost of the graph."""
        if self.graph is None:
            self._warm_up()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.graph_loss = self._step_on_batch()
        self.graph.replay()
        return self.graph_loss.clone()

    def _warm_up(self):
        """Makes the three steps that PyTorch requires before a graph, on another stream, and takes them back.

        What they have made stays: the state of the optimizer, whose momentum of 0 is as that of a first step, and the
        algorithms that cuDNN has chosen.
        """
        state = [*self.network.parameters(), *self.network.buffers()]
        before = [tensor.detach().to("cpu", copy=True) for tensor in state]
        side, current = torch.cuda.Stream(self.place), torch.cuda.current_stream(self.place)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step_on_batch()
        current.wait_stream(side)
        with torch.no_grad():
            for tensor, value in zip(state, before):
                tensor.copy_(value)
            for momentum in self.optimizer.state.values():
                momentum["momentum_buffer"].zero_()
        self.optimizer.zero_grad(set_to_none=True)


class Single(Steady):
    """Passes on images that each copies from the host, as a source timed them; no weight is updated."""

    def announce(self, steps):
        """Makes the images of the next pass anew in the host's memory, in the type of the weights."""
        self.images = self.images.to("cpu", self.dtype, copy=True)

    def step(self):
        if self.job.mode == "training":
            return self.gradients(self.images, self.labels)
        with torch.no_grad(), self.autocast():
            return self.model(self.to_device(self.images))

    def forward(self, images, labels):
        return super().forward(self.to_device(images), labels)


class Literal(Trainer):
    """Epochs over a DataLoader: by its defaults the main process makes the batches from shuffled host tensors."""

    def fit(self, emitter, probe):
        images = len(self.job.train[1])
        torch.manual_seed(self.job.settings["seed"])  # of the order of the images
        loader = loaders.make(self.job)
        self.model.train()
        epoch = functools.partial(self._epoch, loader, probe)
        loss = timing.timed_epochs(emitter, self.job.settings, images, epoch).item() / images
        with emitter.phase("loading"):
            _, seconds = timing.timed(lambda: collections.deque(loader, maxlen=0))
        emitter.sample("loading", 0, len(loader), images, seconds)
        return loss

    def _epoch(self, loader, probe):
        """(sum of the images' losses, steps), synchronised. The sum is on the device, so that no step waits for it."""
        total, steps = torch.zeros((), device=self.device), 0
        for images, labels in loader:
            total += self.train(self.to_device(images), labels.to(self.device)).float() * len(labels)
            steps += 1
            probe.step_ended()
        self.synchronise()
        return total, steps


class Strategy(interface.Strategy):
    steady = Steady
    literal = Literal
    packaged = package.Packaged
    single = Single
    loaders = tuple(loaders.LOADERS)
    batches = jobs.BATCHES
    tunings = jobs.TUNINGS
    whole = tuple(WHOLE)

    def check(self, job, protocol):
        loaders.check(job)
        single = jobs.is_single(protocol, job.settings)
        if protocol == "literal" and job.mode == "inference" and not single:
            package.check(job)
        if single and job.execution != "native":
            raise Unsupported(
                "execution {!r} with protocol 'literal': the source had 'native', which would run".format(job.execution)
            )
        needs = [
            (job.layout == "channels_last", has_channels_last(), "layout 'channels_last'", "1.5"),
            (job.precision in AMP, hasattr(torch, "autocast"), "precision %r" % job.precision, "1.10"),
            (job.execution == "compiled", hasattr(torch, "compile"), "execution 'compiled'", "2.0"),
            (job.execution == "cuda_graph", hasattr(torch.cuda, "CUDAGraph"), "execution 'cuda_graph'", "1.10"),
        ]
        for asked, there, what, since in needs:
            if asked and not there:
                raise Unsupported("{}: PyTorch {} has none ({} and newer do)".format(what, torch.__version__, since))
        type_of(job.precision)
        if job.execution == "cuda_graph" and None in job.places:
            raise Unsupported("execution 'cuda_graph' needs a GPU, and this is a CPU; 'native' would run")
        if protocol == "literal" and job.execution == "cuda_graph":
            raise Unsupported(
                "execution 'cuda_graph' with protocol 'literal': batches would change; 'steady' would run"
            )
        if job.execution == "cuda_graph" and job.precision == "amp_fp16":
            raise Unsupported(
                "execution 'cuda_graph' with precision 'amp_fp16': the scaler of the loss reads from the GPU in every "
                "step whether the gradients are finite; 'native' would run"
            )
        if job.execution == "cuda_graph" and len(job.places) > 1:
            raise Unsupported(
                "execution 'cuda_graph' with strategy {!r}: a graph here is the step of one device; 'native' would "
                "run".format(job.strategy)
            )

    def prepare(self, job, protocol):
        """In steady, cuDNN searches its fastest algorithm unless the case is untuned; so does the source of `Single`.

        Other literal cases keep the default.
        """
        for function, arguments in depthwise_tries(job):
            function(*arguments)
        if protocol == "steady" or jobs.is_single(protocol, job.settings):
            torch.backends.cudnn.benchmark = job.tuning == jobs.TUNED

    def tries(self, job):
        return depthwise_tries(job) + compiler_tries(job) + precision_tries(job)


def has_depthwise(network):
    """Whether a network, which may be a decoder, has depthwise convolutions."""
    layers = getattr(network, "layers", None)
    steps = networks.walk(layers, network.shape) if isinstance(layers, list) else ()
    return any(isinstance(layer, networks.Conv) and layer.depthwise for layer, _, _ in steps)


def depthwise_tries(job):
    """Of training on a CPU, whether gradients of depthwise convolutions are right."""
    tried = job.mode == "training" and None in job.places and has_depthwise(job.network)
    return [(try_depthwise, (job.network.name,))] if tried else []


def try_depthwise(name):
    """Computes such gradients. Raises Unsupported where they are wrong."""
    if not depthwise_gradients_are_right():
        raise Unsupported(
            "network {!r}: PyTorch {} computes wrong gradients of depthwise convolutions on a CPU; mode 'inference' "
            "would run".format(name, torch.__version__)
        )


def has_channels_last():
    """Whether a network can be laid out so: 1.2 to 1.4 have torch.channels_last, and layers that do not take it."""
    try:
        torch.nn.Conv2d(1, 1, 1).to(memory_format=torch.channels_last)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def compiler_tries(job):
    """On a CPU, whether there is a compiler; on a GPU only compilation itself tells."""
    return [(try_compiler, ())] if job.execution == "compiled" and None in job.places else []


def precision_tries(job):
    """On a CPU, whether there are operators for the type of everything; on a GPU only the step itself tells."""
    tried = job.precision in ("fp16", "bf16") and None in job.places
    return [(try_precision, (job.precision, job.mode))] if tried else []


def try_precision(precision, mode):
    """Passes of a tiny network, as such types are slow. Raises Unsupported where an operator is missing."""
    layers = [networks.Conv(2, 3, 1, True), networks.Norm(), networks.Relu(), networks.MaxPool(2, 2)]
    layers += [networks.GlobalAveragePool(), networks.Dense(10)]
    network, dtype = networks.Network("tiny", (8, 8, 3), layers, None), type_of(precision)
    model = build(network, networks.initial_weights(network, 0)).to("cpu", dtype).train(mode == "training")
    with Framework().may_be_refused("channels_first", precision, "cpu"):
        logits = model(torch.ones(2, 3, 8, 8).to("cpu", dtype))
        loss = torch.nn.functional.cross_entropy(logits, torch.zeros(2, dtype=torch.long))
        if mode == "training":
            loss.backward()


def try_compiler():
    """Searches what torch.compile needs before it compiles for a CPU. Raises Unsupported where something is missing."""
    try:
        from torch._inductor import config
        from torch._inductor.cpp_builder import get_cpp_compiler
    except ImportError:
        return  # releases before 2.4 have it elsewhere: the first step tells

    try:
        get_cpp_compiler()
        if getattr(config, "cpp_cache_precompile_headers", False):
            subprocess.run(["openssl", "version"], stdout=subprocess.DEVNULL)  # noqa: S607
    except Exception as error:
        raise_if_no_compiler(error)
        raise
