"""Training and inference in PyTorch, 1.1 to 2.x, on one device or by DataParallel."""

import contextlib
import re

import numpy as np
import torch
import torch.nn.functional as functional
from torch.utils.data import DataLoader, TensorDataset

import frameworks
from common import cuda_devices, networks, timing
from common.events import Unsupported
from frameworks.torch import networks as networks_torch

AMP = {"amp_fp16": "float16", "amp_bf16": "bfloat16"}
# What torch.compile says where it has nothing to compile with: it needs a C++ compiler, on GPUs also Triton, which in
# turn needs compute capability 7.0.
NO_COMPILER = re.compile(
    r"InvalidCxxCompiler|No working C\+\+ compiler|Failed to find C compiler|TritonMissing|GPUTooOldForTriton"
)


def prepare(job, protocol):
    """Sets the flags of the protocol: steady lets cuDNN look for the fastest algorithm, literal leaves the default."""
    if protocol == "steady":
        torch.backends.cudnn.benchmark = True


def check(job, protocol):
    """Raises Unsupported for what this PyTorch, or this device, cannot do."""
    needs = [
        (job.layout == "channels_last", hasattr(torch, "channels_last"), "layout 'channels_last'", "1.5"),
        (job.precision in AMP, hasattr(torch, "autocast"), "precision %r" % job.precision, "1.10"),
        (job.execution == "compiled", hasattr(torch, "compile"), "execution 'compiled'", "2.0"),
        (job.execution == "cuda_graph", hasattr(torch.cuda, "CUDAGraph"), "execution 'cuda_graph'", "1.10"),
    ]
    for asked, there, what, since in needs:
        if asked and not there:
            raise Unsupported("{}: PyTorch {} has none ({} and newer do)".format(what, torch.__version__, since))
    if job.execution == "cuda_graph" and None in job.places:
        raise Unsupported("execution 'cuda_graph' needs a GPU, and this is a CPU; 'native' would run")
    if job.precision == "amp_bf16" and None not in job.places:
        refuse_without_bf16(job.places[0])
    if job.strategy == "data_parallel" and (None in job.places or len(set(job.places)) < len(job.places)):
        raise Unsupported(
            "strategy 'data_parallel' needs {} GPUs: on a CPU it does nothing; 'distributed_data_parallel' would "
            "run".format(len(job.places))
        )
    if protocol == "literal" and job.execution == "cuda_graph":
        raise Unsupported("execution 'cuda_graph' with protocol 'literal': batches would change; 'steady' would run")


def tries(job):
    """On a CPU, whether there is a compiler; on a GPU only compiling says so."""
    return [(try_compiler, ())] if job.execution == "compiled" and None in job.places else []


def try_compiler():
    """Looks for a C++ compiler as torch.compile does before it compiles for a CPU."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception as error:
        raise_if_no_compiler(error)
        raise


def refuse_without_bf16(place):
    if cuda_devices.compute_capability(place) < frameworks.AMPERE:
        raise Unsupported(
            "precision 'amp_bf16': {} has no bfloat16 (compute capability 8.0 and newer have); 'amp_fp16' would "
            "run".format(cuda_devices.names()[place])
        )


class Trainer:
    """A network on its device or devices, and one step of SGD, or of inference."""

    def __init__(self, job, place=None):
        self.job = job
        self.place = job.places[0] if place is None else place
        self.device = "cpu" if self.place is None else "cuda:%d" % self.place
        network = networks_torch.build(job.network, networks.initial_weights(job.network, job.settings["seed"]))
        self.network = self._laid_out(network.to(self.device))
        self.model = self._parallel(self.network)
        if job.execution == "compiled":
            self.model = torch.compile(self.model)
        self.optimizer = torch.optim.SGD(
            self.network.parameters(), job.settings["learning_rate"], momentum=job.settings["momentum"]
        )
        self.scaler = self._scaler()

    def _parallel(self, network):
        if self.job.strategy == "data_parallel":
            return torch.nn.DataParallel(network, device_ids=list(self.job.places))
        return network

    def _scaler(self):
        """Gradients of FP16 vanish unless the loss is scaled up; other precisions need no scaler."""
        if self.job.precision != "amp_fp16":
            return None
        kind = self.device.partition(":")[0]
        return torch.amp.GradScaler(kind) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()

    def _autocast(self):
        if self.job.precision not in AMP:
            return no_context()
        return torch.autocast(self.device.partition(":")[0], getattr(torch, AMP[self.job.precision]))

    def forward(self, images, labels):
        """The loss, a scalar tensor on the device."""
        with self._autocast():
            try:
                logits = self.model(images)
            except Exception as error:
                raise_if_no_compiler(error)
                raise
        return functional.cross_entropy(logits.float(), labels)

    def gradients(self, images, labels):
        """Forward and backward pass; returns the loss."""
        self.optimizer.zero_grad()
        loss = self.forward(images, labels)
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        return loss.detach()

    def train(self, images, labels):
        """One step; returns the loss before it."""
        loss = self.gradients(images, labels)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        return loss

    def to_device(self, images):
        """NCHW tensor to the device, in the job's memory format."""
        return self._laid_out(images.to(self.device))

    def _laid_out(self, what):
        if self.job.layout == "channels_last":
            return what.to(memory_format=torch.channels_last)
        return what

    def synchronise(self):
        for place in set(self.job.places) - {None}:
            torch.cuda.synchronize(place)

    def announce(self, steps):
        """Nothing to prepare for so many steps."""

    def mean_losses(self, losses):
        """Losses of steps as floats, of the whole batch."""
        return [float(loss) for loss in losses]

    def parameter_count(self):
        return networks_torch.parameter_count(self.network)

    def weights(self):
        """Float32 arrays in canonical order."""
        return networks_torch.get_weights(self.network)

    def logits(self, images):
        """(N, height, width, channels) array to (N, 10), with the moving statistics of batch normalisation."""
        training = self.network.training
        self.network.eval()
        with torch.no_grad():
            batches = _nchw(images).split(self.job.batch_size)
            logits = [self.network(self.to_device(batch)).float().cpu().numpy() for batch in batches]
        self.network.train(training)
        return np.concatenate(logits)

    def peak_device_memory_mib(self):
        """MiB the tensors took at most on any device (the allocator's count, not the process's); None on a CPU."""
        if None in self.job.places:
            return None
        return max(torch.cuda.max_memory_allocated(place) for place in self.job.places) / 2.0**20

    def transposes(self):
        """None: there is no graph to count them in."""

    def replicas(self):
        """How many devices hold a copy of the network while it runs: those DataParallel scatters to."""
        seen = []
        hook = self.network.register_forward_hook(lambda module, given, output: seen.append(output.device))
        with torch.no_grad():
            self.model(self.to_device(_nchw(self.job.train[0][: self.job.batch_size])))
        hook.remove()
        return len(set(seen))

    def close(self):
        """Nothing is left running."""


class Steady(Trainer):
    """One batch, on the device from the start."""

    def __init__(self, job, place=None, batch=None):
        super().__init__(job, place)
        images, labels = batch or job.train
        self.images = self.to_device(_nchw(images))
        self.labels = torch.from_numpy(labels).to(self.device)
        self.model.train(job.mode == "training")
        self.graph = None

    def step(self):
        """Returns the loss before the step."""
        if self.job.mode == "inference":
            with torch.no_grad():
                return self.forward(self.images, self.labels)
        if self.job.execution == "cuda_graph":
            return self._replay()
        return self.train(self.images, self.labels)

    def parts(self):
        """(name of a phase, callable): forward pass, and forward with backward pass, each without an update."""
        yield "forward", lambda: self.forward(self.images, self.labels)
        yield "forward_backward", lambda: self.gradients(self.images, self.labels)

    def _replay(self):
        """The step as a CUDA graph, recorded at the first call, after the steps PyTorch asks to be run beforehand.

        The first step is therefore three steps and a recording: what has to be paid before the graph can be used.
        """
        if self.graph is None:
            side = torch.cuda.Stream(self.place)
            side.wait_stream(torch.cuda.current_stream(self.place))
            with torch.cuda.stream(side):
                first_loss = self.train(self.images, self.labels).clone()
                for _ in range(2):
                    self.train(self.images, self.labels)
            torch.cuda.current_stream(self.place).wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            self.optimizer.zero_grad(set_to_none=True)
            with torch.cuda.graph(self.graph):
                self.graph_loss = self.train(self.images, self.labels)
            return first_loss
        self.graph.replay()
        return self.graph_loss.clone()


class Literal(Trainer):
    """Epochs over a DataLoader in its default: batches put together by the main process, from shuffled host tensors."""

    def fit(self, emitter, probe):
        """Trains epoch by epoch, one sample each; returns the mean loss over the last epoch."""
        images, labels = self.job.train
        loader = DataLoader(TensorDataset(_nchw(images), torch.from_numpy(labels)), self.job.batch_size, shuffle=True)
        self.model.train()
        epochs_s = []
        while len(epochs_s) < self.job.settings.positive("epochs"):
            with emitter.phase("epoch"):
                (total, steps), seconds = timing.timed(lambda: self._epoch(loader, probe))
            emitter.sample("epoch", len(epochs_s), steps, len(labels), seconds)
            epochs_s.append(seconds)
            if timing.epochs_enough(epochs_s, self.job.settings):
                break
        return total.item() / len(labels)

    def _epoch(self, loader, probe):
        """(sum of the images' losses, steps), synchronised; the sum stays on the device, so no step waits for it."""
        total, steps = torch.zeros((), device=self.device), 0
        for images, labels in loader:
            total += self.train(self.to_device(images), labels.to(self.device)) * len(labels)
            steps += 1
            probe.step_ended()
        self.synchronise()
        return total, steps


@contextlib.contextmanager
def no_context():
    yield


def raise_if_no_compiler(error):
    """Raises Unsupported for an error of torch.compile that says there is nothing to compile with."""
    if NO_COMPILER.search(type(error).__name__ + str(error)):
        raise Unsupported(
            "execution 'compiled': torch.compile found no compiler it can use here (a C++ compiler for CPUs; for GPUs "
            "Triton, a C compiler, and compute capability 7.0); 'native' would run"
        ) from error


def _nchw(images):
    return torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
