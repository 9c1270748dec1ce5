"""The decoders as data, and the plain NumPy that every framework is held to, against sums written out by hand."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from common import decoders
from common.events import Unsupported
from common.request import Request
from experiments import transformer_block
from frameworks.numpy import decoder as reference
from tests.suites.environments import PINNED, REAL, inside, run_inside

TINY = decoders.Decoder("tiny", vocabulary=5, width=4, heads=2, blocks=2, length=3)


def random_weights(decoder, seed=1):
    """Weights of which none is small, so that nothing goes unnoticed."""
    random = np.random.RandomState(seed)
    return [random.uniform(-1, 1, shape).astype(np.float32) for shape in decoders.weight_shapes(decoder)]


def normalised(vector, scale, offset):
    mean = sum(vector) / len(vector)
    variance = sum((value - mean) ** 2 for value in vector) / len(vector)
    pairs = zip(vector, scale, offset, strict=True)
    return [(value - mean) / math.sqrt(variance + 1e-5) * factor + added for value, factor, added in pairs]


def dense(vector, kernel, bias):
    return [sum(vector[i] * kernel[i][j] for i in range(len(vector))) + bias[j] for j in range(len(bias))]


def attended(queries, keys, values, token):
    """What a token gets: a mean of the values of the tokens up to it, by the shares of their scores."""
    scores = [sum(q * k for q, k in zip(queries[token], keys[j], strict=True)) for j in range(token + 1)]
    shares = [math.exp(score / math.sqrt(len(queries[0]))) for score in scores]
    return [sum(share * values[j][of] for j, share in enumerate(shares)) / sum(shares) for of in range(len(values[0]))]


def by_hand(weights, tokens):
    """The logits of a single sequence through TINY, number by number."""
    left = iter([array.astype(float).tolist() for array in weights])
    embedded, positions = next(left), next(left)
    x = [[a + b for a, b in zip(embedded[token], positions[at], strict=True)] for at, token in enumerate(tokens)]
    for _ in range(TINY.blocks):
        norm, qkv_layer, out_layer = ((next(left), next(left)) for _ in range(3))
        qkv = [dense(normalised(vector, *norm), *qkv_layer) for vector in x]
        mixed: list[list[float]] = [[] for _ in x]
        for head in range(TINY.heads):
            query, key, value = ([row[4 * part + 2 * head :][:2] for row in qkv] for part in range(3))
            for token, row in enumerate(mixed):
                row += attended(query, key, value, token)
        x = [[a + b for a, b in zip(u, dense(v, *out_layer), strict=True)] for u, v in zip(x, mixed, strict=True)]
        norm, up, down = ((next(left), next(left)) for _ in range(3))
        for at, vector in enumerate(x):
            inner = dense(normalised(vector, *norm), *up)
            root = math.sqrt(2 / math.pi)
            inner = [0.5 * v * (1 + math.tanh(root * (v + 0.044715 * v**3))) for v in inner]
            x[at] = [a + b for a, b in zip(vector, dense(inner, *down), strict=True)]
    norm, head = (next(left), next(left)), next(left)
    return [dense(normalised(vector, *norm), head, [0.0] * TINY.vocabulary) for vector in x]


def test_a_tiny_decoder_is_what_it_is_by_hand() -> None:
    weights, tokens = random_weights(TINY), np.array([[0, 3, 1], [4, 4, 2]])
    expected = [row for sequence in tokens for row in by_hand(weights, sequence)]
    np.testing.assert_allclose(reference.logits(TINY, weights, tokens), expected, rtol=1e-9, atol=1e-12)


def test_no_token_sees_a_later_one() -> None:
    weights = random_weights(TINY)
    first, second = (reference.logits(TINY, weights, np.array([[0, 3, last]])) for last in (1, 2))
    np.testing.assert_array_equal(first[:2], second[:2])
    assert np.abs(first[2] - second[2]).max() > 0.01


@pytest.mark.parametrize("decoder", decoders.DECODERS.values(), ids=lambda decoder: decoder.name)
def test_parameters_are_counted_array_by_array(decoder: decoders.Decoder) -> None:
    width, of = decoder.width, decoder._replace(length=7)
    block = 2 * 2 * width + 3 * width * (width + 1) + width * (width + 1) + 4 * width * (width + 1) + width
    block += 4 * width * width
    assert of.parameters == (2 * decoder.vocabulary + 7 + 2) * width + decoder.blocks * block


def test_the_gpt2_of_1024_tokens_has_gpt2s_parameters_and_a_head_of_its_own() -> None:
    """GPT-2's smallest has 124,439,808, with a vocabulary of 50,257 that embedding and head share."""
    of = decoders.DECODERS["decoder_gpt2"]._replace(length=1024)
    assert of.parameters == 124439808 + (50304 - 50257) * 768 + 50304 * 768


def test_multiply_adds_are_counted_product_by_product() -> None:
    width, tokens = TINY.width, TINY.length
    of_token = width * 3 * width + width * width + 2 * (width * 4 * width)
    scores = sum(1 for query, key in itertools.product(range(tokens), repeat=2) if key <= query)
    expected = TINY.blocks * (tokens * of_token + 2 * scores * width) + tokens * width * TINY.vocabulary
    assert decoders.multiply_adds(TINY) == expected
    assert decoders.flops(TINY, 8, training=True) == 3 * decoders.flops(TINY, 8, training=False) == 48 * expected


def test_the_least_traffic_is_that_of_weights_and_of_what_products_put_out() -> None:
    width, tokens = TINY.width, TINY.length
    outputs = tokens * (width + TINY.blocks * (3 + 1 + 1 + 4 + 1) * width + TINY.vocabulary)
    assert decoders.least_bytes(TINY, 2, training=False) == 4 * 2 * 2 * outputs + 4 * TINY.parameters
    assert decoders.least_bytes(TINY, 2, True, 2) == 2 * 2 * 5 * outputs + 4 * 8 * TINY.parameters


def test_the_target_of_a_token_is_the_next() -> None:
    tokens, targets = decoders.made_up(TINY, 4, seed=3)
    assert tokens.shape == targets.shape == (4, 3)
    np.testing.assert_array_equal(tokens[:, 1:], targets[:, :-1])
    assert {*tokens.flat, *targets.flat} <= set(range(TINY.vocabulary))


def test_initial_weights_are_drawn_scales_are_1_and_what_is_added_to_a_block_is_smaller() -> None:
    decoder = decoders.DECODERS["decoder_tiny"]._replace(length=32)
    named = decoders.named(decoders.initial_weights(decoder, 0))
    assert len(named.blocks) == decoder.blocks
    for block in named.blocks:
        assert (block.first_scale == 1).all()
        assert (block.qkv_bias == 0).all()
        assert np.std(block.qkv_kernel) == pytest.approx(0.02, rel=0.05)
        assert np.std(block.down_kernel) == pytest.approx(0.01, rel=0.05)  # 0.02 / sqrt(2 * 2 blocks)
    assert named.head.shape == (64, 256)


def test_a_case_of_two_devices_or_of_an_unknown_axis_is_refused() -> None:
    case: dict[str, Any] = {"protocol": "steady", "mode": "training", "model": "decoder_tiny", "context_length": 8}
    case |= {"attention": "plain", "batch_size": 2, "precision": "fp32", "execution": "native"}
    asked: dict[str, Any] = {"framework": None, "accelerator": "cpu", "settings": {}}
    transformer_block.check(Request({**asked, "case": {**case, "devices": 1}}))
    with pytest.raises(Unsupported, match="2 devices: this decoder is of one; 1 would run"):
        transformer_block.check(Request({**asked, "case": {**case, "devices": 2}}))
    with pytest.raises(ValueError, match="unknown 'layout'"):
        transformer_block.check(Request({**asked, "case": {**case, "devices": 1, "layout": "native"}}))


@inside
def test_a_decoder_learns_alike_in_every_framework() -> None:
    """Parity sees one step; from the second on, the momentum of the steps before counts."""
    able = [one for one in PINNED if (REAL.workloads / "frameworks" / one.framework / "decoder.py").is_file()]
    assert {one.framework for one in able} == {"torch", "tensorflow", "jax"}
    found = {one.name: run_inside(one, "check_decoder.py", one.framework) for one in able}
    expected, _ = found["torch2-cpu"]["training"]
    assert expected[0] > expected[-1] + 0.5
    for results in found.values():
        learnt, changed = results["training"]
        assert learnt == pytest.approx(expected, rel=1e-4)
        assert changed
        stayed, changed = results["inference"]
        assert stayed == pytest.approx([expected[0]] * len(stayed), rel=1e-6)
        assert not changed
