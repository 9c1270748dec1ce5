"""Training and inference in PyTorch, 1.1 to 2.x: the trainer that all strategies and protocols share."""

import contextlib
import re

import numpy as np
import torch
import torch.nn.functional as functional

from common import networks
from common.events import Unsupported
from frameworks import interface
from frameworks.torch import devices, zoos
from frameworks.torch.networks import build, get_weights, parameter_count

AMP = {"amp_fp16": "float16", "amp_bf16": "bfloat16"}
WHOLE = {"fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}  # the type of everything: weights, images, loss
# The errors of torch.compile where there is no compiler: it needs a C++ compiler, and on GPUs also Triton, which needs
# compute capability 7.0. For CPUs, newer releases hash headers by the program openssl (_inductor/codecache.py).
NO_COMPILER = re.compile(
    r"InvalidCxxCompiler|No working C\+\+ compiler|Failed to find C compiler|TritonMissing|GPUTooOldForTriton"
    r"|No such file or directory: 'openssl'"
)
# What 2.0 says in Python 3.11, 2.1 in 3.12, and 2.4 in 3.13.
NOT_IN_PYTHON = re.compile(r"Python 3\.\d+\+? not yet supported|not supported on Python 3")


class Trainer(interface.Trainer):
    """A network on its device, and its steps of SGD or inference. place: of this process; None is the job's first."""

    def __init__(self, job, place=None):
        super().__init__(job)
        self.place = job.places[0] if place is None else place
        self.device = devices.name(self.place)
        self.dtype = type_of(job.precision)
        self.network = self._laid_out(self.built().to(self.device, self.dtype))
        self.model = self.parallel(self.network)
        if job.execution == "compiled":
            self.model = compiled(self.model)
        self.optimizer = torch.optim.SGD(
            self.network.parameters(), job.settings["learning_rate"], momentum=job.settings["momentum"]
        )
        self.scaler = self._scaler()

    def built(self):
        """The network on the CPU, with the initial weights that all frameworks share; of a library, with its own."""
        if networks.is_of_zoo(self.job.network.name):
            return zoos.build(self.job.network, self.job.settings["seed"])
        return build(self.job.network, networks.initial_weights(self.job.network, self.job.settings["seed"]))

    def parallel(self, network):
        """The module that runs the network under the strategy."""
        return network

    def _scaler(self):
        """The scaler of FP16, whose gradients vanish unless the loss is scaled up; None for other precisions."""
        if self.job.precision != "amp_fp16":
            return None
        kind = self.device.partition(":")[0]
        return torch.amp.GradScaler(kind) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()

    def autocast(self):
        """The context of a forward pass in the job's precision."""
        if self.job.precision not in AMP:
            return no_context()
        return torch.autocast(self.device.partition(":")[0], getattr(torch, AMP[self.job.precision]))

    def forward(self, images, labels):
        """The loss, a scalar tensor on the device."""
        with self.autocast():
            try:
                logits = self.model(images)
                logits = logits[0] if isinstance(logits, tuple) else logits  # Inception has auxiliary logits behind
            except Exception as error:
                raise_if_no_compiler(error)
                raise
        return functional.cross_entropy(logits.float() if self.job.precision in AMP else logits, labels)

    def gradients(self, images, labels):
        """Forward and backward pass; returns the loss."""
        self.optimizer.zero_grad()
        loss = self.forward(images, labels)
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        return loss.detach()

    def train(self, images, labels):
        """A step; returns the loss before it."""
        loss = self.gradients(images, labels)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        return loss

    def to_device(self, images, non_blocking=False):
        """NCHW tensor to the device, in the job's type and memory format."""
        return self._laid_out(images.to(self.device, self.dtype, non_blocking=non_blocking))

    def _laid_out(self, tensor):
        """A tensor or a module in the job's memory format."""
        return tensor.to(memory_format=torch.channels_last) if self.job.layout == "channels_last" else tensor

    def synchronise(self):
        devices.synchronise(self.job.places)

    def parameter_count(self):
        return parameter_count(self.network)

    def multiply_adds(self):
        return zoos.multiply_adds(self.network, self.job.network.shape)

    def weights(self):
        return get_weights(self.network)

    def logits(self, images):
        training = self.network.training
        self.network.eval()
        with torch.no_grad():
            batches = nchw(images).split(self.job.batch_size)
            logits = [self.network(self.to_device(batch)).double().cpu().numpy() for batch in batches]
        self.network.train(training)
        return np.concatenate(logits)

    def peak_device_memory_mib(self):
        return devices.peak_memory_mib(self.job.places)


@contextlib.contextmanager
def no_context():
    yield


def compiled(model):
    """The model under torch.compile. Raises Unsupported where this release does not compile in this Python."""
    try:
        return torch.compile(model)
    except RuntimeError as error:
        if not NOT_IN_PYTHON.search(str(error)):
            raise
        raise Unsupported("execution 'compiled': PyTorch {}: {}".format(torch.__version__, error)) from error


def raise_if_no_compiler(error):
    """Raises Unsupported where the error of torch.compile says that there is no compiler."""
    if NO_COMPILER.search(type(error).__name__ + str(error)):
        raise Unsupported(
            "execution 'compiled': torch.compile found no compiler it can use here (a C++ compiler and the program "
            "openssl for CPUs; for GPUs Triton, a C compiler, and compute capability 7.0); 'native' would run"
        ) from error


def type_of(precision):
    """The type of the weights in a precision. Raises Unsupported where this release has no such type."""
    name = WHOLE.get(precision, "float32")
    if not hasattr(torch, name):
        raise Unsupported("precision {!r}: PyTorch {} has none; 'fp32' would run".format(precision, torch.__version__))
    return getattr(torch, name)


def nchw(images):
    """(N, height, width, channels) array to (N, channels, height, width) tensor."""
    return torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
