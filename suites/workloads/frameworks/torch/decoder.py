"""A transformer decoder in PyTorch, 1.1 to 2.x."""

import math
import time

import torch
import torch.nn.functional as functional
from torch import nn

from common import decoders, jobs
from common.events import Unsupported
from frameworks import parts
from frameworks.torch.strategies.none import compiler_tries
from frameworks.torch.trainer import AMP, Trainer

try:
    from torch._dynamo import callback as _compilation
except ImportError:  # older releases do not call back
    _compilation = None


class Attention(nn.Module):
    """Causal self-attention: (sequences, length, width) to the same shape."""

    def __init__(self, decoder, fused):
        super().__init__()
        self.heads, self.fused = decoder.heads, fused
        self.qkv = nn.Linear(decoder.width, 3 * decoder.width)
        self.out = nn.Linear(decoder.width, decoder.width)
        # A comparison has the type that masked_fill takes, which torch 1.2 changed.
        self.register_buffer("later", torch.triu(torch.ones(decoder.length, decoder.length), 1) > 0)

    def forward(self, x):
        sequences, length, width = x.shape
        qkv = self.qkv(x).view(sequences, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        if self.fused:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query.matmul(key.transpose(-2, -1)) / math.sqrt(width // self.heads)
            mixed = scores.masked_fill(self.later, -math.inf).softmax(dim=-1).matmul(value)
        return self.out(mixed.transpose(1, 2).reshape(sequences, length, width))


class Block(nn.Module):
    """Attention and two dense layers, each after a normalisation and added to its input."""

    def __init__(self, decoder, fused):
        super().__init__()
        width, wide = decoder.width, decoders.WIDER * decoder.width
        self.first = nn.LayerNorm(width, decoders.NORM_EPSILON)
        self.attention = Attention(decoder, fused)
        self.second = nn.LayerNorm(width, decoders.NORM_EPSILON)
        self.up = nn.Linear(width, wide)
        self.down = nn.Linear(wide, width)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(gelu(self.up(self.second(x))))


def gelu(x):
    """GELU by tanh, as a single function where PyTorch has it (1.12)."""
    if _HAS_GELU:
        return functional.gelu(x, approximate="tanh")
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _has_gelu():
    try:
        functional.gelu(torch.zeros(1), approximate="tanh")
    except (AttributeError, TypeError):
        return False
    return True


_HAS_GELU = _has_gelu()


class Network(nn.Module):
    """From (sequences, length) tokens to logits (sequences * length, vocabulary).

    Its parameters are in canonical order, but for the attention's and dense layers' kernels: these are (out, in).
    """

    def __init__(self, decoder, fused):
        super().__init__()
        self.tokens = nn.Embedding(decoder.vocabulary, decoder.width)
        self.positions = nn.Parameter(torch.zeros(decoder.length, decoder.width))
        self.blocks = nn.ModuleList([Block(decoder, fused) for _ in range(decoder.blocks)])
        self.norm = nn.LayerNorm(decoder.width, decoders.NORM_EPSILON)
        self.head = nn.Linear(decoder.width, decoder.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits.view(-1, logits.shape[-1])

    def canonical(self):
        """Yields (parameter, whether it is a transposed kernel) in canonical order."""
        yield self.tokens.weight, False
        yield self.positions, False
        for module in (module for block in self.blocks for module in _with_weights(block)):
            yield module.weight, isinstance(module, nn.Linear)
            yield module.bias, False
        yield self.norm.weight, False
        yield self.norm.bias, False
        yield self.head.weight, True


def _with_weights(block):
    return block.first, block.attention.qkv, block.attention.out, block.second, block.up, block.down


class Steady(Trainer):
    """Steps on a batch that is on the device from the start."""

    def __init__(self, job):
        super().__init__(job)
        tokens, targets = job.train
        self.tokens = torch.from_numpy(tokens).to(self.device)
        self.targets = torch.from_numpy(targets).to(self.device).view(-1)
        self.model.train(job.mode == "training")
        self.compiling = Compiling(job)

    def built(self):
        network = Network(self.job.network, self.job.attention == jobs.FUSED)
        weights = decoders.initial_weights(self.job.network, self.job.settings["seed"])
        with torch.no_grad():
            for (parameter, transposed), array in zip(network.canonical(), weights):
                parameter.copy_(torch.from_numpy(array.T.copy() if transposed else array))
        return network

    def step(self):
        if self.job.mode == "training":
            return self.train(self.tokens, self.targets)
        with torch.no_grad():
            return self.forward(self.tokens, self.targets)

    def weights(self):
        arrays = [(parameter.detach().cpu().numpy(), transposed) for parameter, transposed in self.network.canonical()]
        return [array.T.copy() if transposed else array.copy() for array, transposed in arrays]

    def logits(self, tokens):
        with torch.no_grad(), self.autocast():
            return self.network(torch.from_numpy(tokens).to(self.device)).float().cpu().numpy()

    def compile_s(self):
        return self.compiling.seconds()

    def close(self):
        self.compiling.stop()


class Compiling:
    """The seconds that torch.compile takes, which calls back when it begins and ends; None for a job without it."""

    def __init__(self, job):
        self._begin, self._total, self._callbacks = None, None, None
        if job.execution == "compiled" and _compilation is not None:
            self._total, self._callbacks = 0.0, _compilation.callback_handler
            self._callbacks.register_start_callback(self._started)
            self._callbacks.register_end_callback(self._ended)

    def seconds(self):
        return self._total

    def stop(self):
        if self._callbacks is not None:
            self._callbacks.remove_start_callback(self._started)
            self._callbacks.remove_end_callback(self._ended)

    def _started(self, *what):
        self._begin = time.perf_counter()

    def _ended(self, *what):
        self._total += time.perf_counter() - self._begin


def _has_fused():
    return hasattr(functional, "scaled_dot_product_attention")


def _enabled(cuda, name):
    return getattr(cuda, name + "_sdp_enabled", lambda: False)()


class Decoder(parts.Decoder):
    steady = Steady

    def check(self, job):
        needs = [
            (job.attention == jobs.FUSED, _has_fused(), "attention 'fused'", "2.0"),
            (job.precision in AMP, hasattr(torch, "autocast"), "precision %r" % job.precision, "1.10"),
            (job.execution == "compiled", hasattr(torch, "compile"), "execution 'compiled'", "2.0"),
        ]
        for asked, there, what, since in needs:
            if asked and not there:
                raise Unsupported("{}: PyTorch {} has none ({} and newer do)".format(what, torch.__version__, since))

    def tries(self, job):
        return compiler_tries(job)

    def kernel(self, job):
        """PyTorch chooses the kernel of its function by itself; the kinds that it may take are said."""
        if job.attention == jobs.PLAIN:
            return "matmul, softmax, matmul"
        if None in job.places:
            return "scaled_dot_product_attention"
        cuda = torch.backends.cuda
        kinds = [name for name in ("flash", "mem_efficient", "math", "cudnn") if _enabled(cuda, name)]
        return "scaled_dot_product_attention of {}".format(", ".join(kinds))
