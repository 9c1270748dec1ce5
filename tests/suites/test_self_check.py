"""The self-check that --force asks for, in every pinned environment that is built here, on the CPU."""

import shutil
from pathlib import Path

import pytest

from tests.bench import link_checkout
from tests.suites.environments import PINNED, REAL, built, inside
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.environments.entry import Ready
from tsuishi.environments.self_check import self_check
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.environment import Environment

CHECKED = {
    *("matmul", "convolution", "convolution_input_gradient", "convolution_filter_gradient"),
    *("logits", "loss", "gradient"),
}


def check(environment: Environment, checkout: Checkout) -> tuple[dict[str, float], list[str]]:
    said: list[str] = []
    starter, there = built(environment)
    ready = Ready(environment, starter, there, EnvironmentRecord(name=environment.name))
    return self_check(ready, checkout, "cpu", (), said.append), said


@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
@inside
def test_what_computes_as_float64_does_passes_and_says_how_well(environment: Environment) -> None:
    errors, said = check(environment, REAL)
    assert {name.removesuffix("_relative_error") for name in errors} == CHECKED
    assert all(0 <= error < 1e-4 for error in errors.values()), errors
    assert said[-1].startswith(f"{environment.name}: self-check passed: 7 results, the worst ")


@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
@inside
def test_what_computes_something_else_is_refused_with_the_error(environment: Environment, tmp_path: Path) -> None:
    checkout = link_checkout(tmp_path)
    checkout.workloads.unlink()
    shutil.copytree(REAL.workloads, checkout.workloads, ignore=shutil.ignore_patterns("__pycache__"))
    script = checkout.workloads / "experiments" / "self_check.py"
    text = script.read_text(encoding="utf-8")
    # As if the device's products were a thousandth too small.
    script.write_text(text.replace("return left.dot(right), result", "return left.dot(right) * 1.001, result"), "utf-8")
    with pytest.raises(UserError) as caught:
        check(environment, checkout)
    assert str(caught.value) == (
        f"{environment.name} cannot be used here: it failed its self-check: "
        "matmul_relative_error is 0.000999; at most 0.0001 is rounding"
    )
