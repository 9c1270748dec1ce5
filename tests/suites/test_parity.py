"""Parity's bounds by precision, and the step that it checks: the first, but for those that a scaler skips."""

from typing import Any

import numpy as np
import pytest

from common import jobs, networks
from experiments import parity
from frameworks.numpy import networks as reference
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.specs.suite import read_suite

LAYERS = [networks.Flatten(), networks.Dense(10)]
NETWORK = networks.Network("line", (4, 4, 1), LAYERS, 170)
BATCH = 8


class Trainer:
    """Trains a line of its own as a framework would: by SGD with momentum, in float32.

    error: by which share gradient and loss are wrong. warm_up: the steps of the first call. skips: calls that a scaler
    makes into none.
    """

    def __init__(self, job: Any, error: float = 0.0, warm_up: int = 1, skips: int = 0) -> None:
        self.job, self.error, self.warm_up, self.skips = job, error, warm_up, skips
        self.values = networks.initial_weights(job.network, job.settings["seed"])
        self.velocity = [np.zeros_like(value) for value in self.values]

    def announce(self, steps: int) -> None: ...

    def synchronise(self) -> None: ...

    def close(self) -> None: ...

    def logits(self, images: Any) -> Any:
        return reference.logits(self.job.network, self.values, images, training=False)

    def weights(self) -> list[Any]:
        return [value.copy() for value in self.values]

    def mean_losses(self, losses: list[float]) -> list[float]:
        return losses

    def step(self) -> float:
        losses = [self._one() for _ in range(self.warm_up)]
        self.warm_up = 1
        return losses[0]

    def _one(self) -> float:
        images, labels = self.job.train
        logits = self.logits(images)
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        slopes = (chances - np.eye(10)[labels]) / len(labels)
        gradients = [images.reshape(len(images), -1).T.dot(slopes), slopes.sum(axis=0)]
        self.skips -= 1
        if self.skips < 0:
            for value, velocity, gradient in zip(self.values, self.velocity, gradients, strict=True):
                velocity *= self.job.settings["momentum"]
                velocity += gradient * (1 + self.error)
                value -= self.job.settings["learning_rate"] * velocity
        return reference.loss(logits, labels) * (1 + self.error)


def job_of(precision: str) -> Any:
    random = np.random.RandomState(0)
    train = random.uniform(-1, 1, (BATCH, *NETWORK.shape)).astype(np.float32), random.randint(0, 10, BATCH)
    settings = {"seed": 0, "learning_rate": parity.LEARNING_RATE, "momentum": 0.9}
    return jobs.Job(
        NETWORK, "training", "channels_last", "none", [None], BATCH, precision, "native", train, None, settings
    )


def errors(precision: str = "fp32", **faults: Any) -> dict[str, parity.Error]:
    job, before = job_of(precision), networks.initial_weights(NETWORK, 0)

    class Strategy:
        steady = staticmethod(lambda job: Trainer(job, **faults))

    logits, loss, after, _ = parity.first_step(Strategy, job, before)
    return {error.name: error for error in parity.against_numpy(job, before, logits, loss, after)}


def outside(found: dict[str, parity.Error]) -> set[str]:
    return {name.partition("_")[0] for name, error in found.items() if not error.value <= error.tolerance}


def test_every_network_is_compared_with_numpy_in_training() -> None:
    cases = [case for case, _ in read_suite(Checkout().suites / "parity.toml", WORDS).cases("full", "cpu")]
    assert {*networks.NETWORKS} <= {case.axes["model"] for case in cases if case.axes["mode"] == "training"}


@pytest.mark.parametrize(
    ("precision", "error", "expected"),
    [
        ("fp32", 0.0, set()),
        ("fp32", 2e-3, {"loss", "gradient"}),
        ("tf32", 2e-3, set()),
        ("tf32", 5e-2, {"loss", "gradient"}),
        ("amp_fp16", 2e-3, set()),
        ("amp_fp16", 5e-2, {"loss", "gradient"}),
        ("amp_bf16", 2e-2, set()),
        ("amp_bf16", 0.2, {"loss", "gradient"}),
    ],
)
def test_an_error_is_rounding_by_the_bits_of_its_precision(precision: str, error: float, expected: set[str]) -> None:
    assert outside(errors(precision, error=error)) == expected


def test_a_long_gradient_takes_a_short_finite_difference() -> None:
    """As of deep networks with batch normalisation: the loss bends within 1e-6 of the weights."""
    job = job_of("fp32")
    job = job._replace(train=(job.train[0] * 1e6, job.train[1]))
    trainer = Trainer(job)
    for value in trainer.values:
        value[:] = value.ndim == 1  # of the biases
    before, logits = trainer.weights(), trainer.logits(job.train[0])
    loss = trainer.step()
    found = parity.against_numpy(job, before, logits, loss, trainer.weights())
    assert outside({error.name: error for error in found}) == set()


def test_steps_that_warmed_up_a_graph_and_were_not_taken_back_are_a_wrong_gradient() -> None:
    assert outside(errors()) == set()
    assert "gradient" in outside(errors(warm_up=3))


def test_a_step_that_the_scaler_of_fp16_skips_is_none() -> None:
    assert outside(errors("amp_fp16", skips=4)) == set()


def test_inference_in_fp16_has_no_scaler_and_is_one_step() -> None:
    made: list[Trainer] = []

    class Strategy:
        steady = staticmethod(lambda job: made.append(Trainer(job, skips=100)) or made[-1])  # type: ignore[func-returns-value]

    parity.first_step(Strategy, job_of("amp_fp16")._replace(mode="inference"), networks.initial_weights(NETWORK, 0))
    assert made[0].skips == 99


@pytest.mark.parametrize(("precision", "skips"), [("fp32", 1), ("amp_fp16", 100)])
def test_weights_that_never_change_are_an_error(precision: str, skips: int) -> None:
    with pytest.raises(ArithmeticError, match="the step changed no weight"):
        errors(precision, skips=skips)
