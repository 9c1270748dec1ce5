"""Transformer decoders as data: every framework builds them from this module, and operations and bytes are counted.

Pre-norm blocks, as in GPT-2 (Radford et al. 2019): embedding of tokens plus embedding of positions, then blocks of
causal self-attention and of two dense layers with GELU between them, each after a layer normalisation and added to its
input; a last normalisation; and a dense layer to the vocabulary, which shares no weights with the embedding.

Weights are lists of float32 arrays in a canonical order:
    tokens (vocabulary, width), positions (length, width);
    of each block: scale and offset (width); kernel (width, 3 width) and bias of query, key and value, in this order and
    each with its heads one after the other; kernel (width, width) and bias of the attention's output; scale and offset;
    kernel (width, 4 width) and bias; kernel (4 width, width) and bias;
    scale and offset (width), and the kernel to the vocabulary (width, vocabulary), which has no bias.
"""

import collections

import numpy as np

NORM_EPSILON = 1e-5
SCATTER = 0.02  # standard deviation of embeddings and kernels at the start
WIDER = 4  # the width between the two dense layers of a block, in widths

# Arrays of a block, in canonical order.
Block = collections.namedtuple(
    "Block",
    "first_scale first_offset qkv_kernel qkv_bias out_kernel out_bias second_scale second_offset up_kernel up_bias "
    "down_kernel down_bias",
)
# All arrays; blocks: a list of Block.
Weights = collections.namedtuple("Weights", "tokens positions blocks scale offset head")


class Decoder(collections.namedtuple("Decoder", "name vocabulary width heads blocks length")):
    """A decoder for sequences of `length` tokens; length is None before a case says it."""

    __slots__ = ()

    @property
    def parameters(self):
        """How many trainable parameters every framework must have."""
        return sum(int(np.prod(shape)) for shape in weight_shapes(self))


DECODERS = {
    decoder.name: decoder
    for decoder in (
        Decoder("decoder_tiny", 256, 64, 4, 2, None),
        Decoder("decoder_small", 4096, 256, 8, 4, None),
        Decoder("decoder_gpt2", 50304, 768, 12, 12, None),  # GPT-2's smallest, its vocabulary a multiple of 64
    )
}


def weight_shapes(decoder):
    """Shapes of the weights, in canonical order."""
    return [shape for shape, _ in _weights(decoder)]


def _weights(decoder):
    """(shape, initial value) of each weight; a standard deviation where the value is drawn: a tuple of one number."""
    width, wide = decoder.width, WIDER * decoder.width
    drawn = (SCATTER,)
    added = (SCATTER / (2.0 * decoder.blocks) ** 0.5,)  # so that the sum over all blocks scatters as one (GPT-2)
    norm = [((width,), 1), ((width,), 0)]
    block = norm + [((width, 3 * width), drawn), ((3 * width,), 0), ((width, width), added), ((width,), 0)]
    block += norm + [((width, wide), drawn), ((wide,), 0), ((wide, width), added), ((width,), 0)]
    embeddings = [((decoder.vocabulary, width), drawn), ((decoder.length, width), drawn)]
    return embeddings + decoder.blocks * block + norm + [((width, decoder.vocabulary), drawn)]


def initial_weights(decoder, seed):
    """The weights that all frameworks start from, in canonical order."""
    random = np.random.RandomState(seed)
    return [
        random.normal(0, value[0], shape).astype(np.float32)
        if isinstance(value, tuple)
        else np.full(shape, value, np.float32)
        for shape, value in _weights(decoder)
    ]


def named(weights):
    """The Weights of a canonical list, of any kind of arrays."""
    size = len(Block._fields)
    blocks = [Block(*weights[first : first + size]) for first in range(2, len(weights) - 3, size)]
    return Weights(weights[0], weights[1], blocks, *weights[-3:])


def made_up(decoder, sequences, seed):
    """(tokens, targets) of a batch, each (sequences, length) int64: the target of a token is the next token."""
    random = np.random.RandomState(seed)
    text = random.randint(0, decoder.vocabulary, (sequences, decoder.length + 1)).astype(np.int64)
    return np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])


def multiply_adds(decoder):
    """Multiply-adds of a sequence's forward pass in dense layers and attention.

    A token attends to itself and to those before it: only these products count, though plain attention computes those
    with later tokens too, before it masks them.
    """
    length, width = decoder.length, decoder.width
    dense = decoder.blocks * (4 + 2 * WIDER) * width**2 + width * decoder.vocabulary
    pairs = length * (length + 1) // 2
    return length * dense + decoder.blocks * 2 * pairs * width


def flops(decoder, sequences, training):
    """Floating-point operations of a step, counted as those of common/networks.py."""
    return 2 * multiply_adds(decoder) * sequences * (3 if training else 1)


def least_bytes(decoder, sequences, training, value_bytes=4):
    """The least bytes that a step moves, counted as those of common/networks.py: nothing of the scores is written."""
    widths = 1 + decoder.blocks * (6 + WIDER)  # embedding; query, key, value, attention, its output, up and down
    values = decoder.length * (widths * decoder.width + decoder.vocabulary)
    activations, weights = (5, 8) if training else (2, 1)
    return value_bytes * sequences * activations * values + 4 * weights * decoder.parameters
