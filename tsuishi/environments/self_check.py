"""The check of an environment without native code for a GPU: whether it computes correct results there."""

from collections.abc import Sequence

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say
from tsuishi.environments.entry import Ready
from tsuishi.environments.probe import ask
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.suite import TimingSettings

_WORKLOAD = "self_check"
# For its first use on a newer GPU, a driver may take many minutes to compile PTX.
_TIMEOUT_S = 1800.0


class SelfCheckFailed(UserError):
    """An environment cannot be used on these GPUs, as it did not pass its self-check, or none is possible."""

    def __init__(self, environment: str, why: str) -> None:
        super().__init__(f"{environment} cannot be used here: {why}")
        self.environment = environment


def self_check(
    ready: Ready, checkout: Checkout, accelerator: Accelerator, gpus: Sequence[Gpu], say: Say
) -> dict[str, float]:
    """Compare results of each GPU with known results (suites/workloads/experiments/self_check.py).

    Returns the largest relative error by result. Raises SelfCheckFailed where a GPU fails or differs from float64 on
    the CPU.
    """
    name = ready.environment.name
    say(f"{name}: self-check: a matrix product, a convolution and a training step against float64 on the CPU")
    argument = {"case": {}, "accelerator": accelerator, "settings": TimingSettings().model_dump()}
    errors: dict[str, float] = {}
    shares: list[tuple[Gpu, ...]] = [(gpu,) for gpu in gpus] or [()]
    for share in shares:
        transcript, why_not = ask(ready.starter, ready.built, checkout, _WORKLOAD, argument, _TIMEOUT_S, share)
        if why_not:
            raise SelfCheckFailed(name, f"it failed its self-check: {why_not}")
        for metric in transcript.metrics:
            if metric.name.endswith("_relative_error"):
                errors[metric.name] = max(errors.get(metric.name, 0.0), metric.value)
    worst = max(errors, key=lambda name: errors[name])
    say(f"{name}: self-check passed: {len(errors)} results, the worst {worst} {errors[worst]:.1e}; every row is marked")
    return errors
