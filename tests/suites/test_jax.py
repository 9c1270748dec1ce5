"""JAX: its variables, what parity does not see of it, and the page that has it as an example of a framework."""

import inspect

import pytest

from common.request import Request
from frameworks import interface, jax, parts
from tests.suites.environments import PINNED, REAL, inside, run_inside


def request(accelerator: str, **case: int) -> Request:
    return Request({"case": case, "framework": "jax", "accelerator": accelerator, "settings": {}})


def test_a_cpu_shows_itself_as_as_many_devices_as_the_case_has() -> None:
    flag = "--xla_force_host_platform_device_count="
    assert jax.variables(request("cpu", devices=3)) == {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flag + "3"}
    assert jax.variables(request("cpu"))["XLA_FLAGS"] == flag + "1"


def test_where_a_gpu_is_asked_for_the_cpu_alone_will_not_do() -> None:
    assert jax.variables(request("cuda", devices=2))["JAX_PLATFORMS"] == "cuda,cpu"


@inside
def test_jax_compiles_once_learns_with_momentum_and_never_blocks_itself() -> None:
    (environment,) = (one for one in PINNED if one.framework == "jax")
    found = run_inside(environment, "check_jax.py")
    assert found["devices"] == 2
    assert max(found["second_step_errors"]) < 1e-4
    assert found["statistics_error"] < 1e-6
    before, first, second = found["compile_s"]
    assert before == 0 < first == second
    in_training, in_inference = found["losses"]
    assert in_training == pytest.approx(in_inference, rel=1e-6)  # of a network without batch normalisation
    assert not found["shares_memory"]


# What experiments call, or ask for: what a base class does itself is nothing for a framework to offer.
DONE_ALREADY = {"report", "require_tf32", "set_tf32", "may_be_refused", "part", "strategy"}
OFFERED = [
    (one.__name__, name)
    for module in (interface, parts)
    for one in vars(module).values()
    if inspect.isclass(one) and one.__module__ == module.__name__
    for name in vars(one)
    if not name.startswith("_") and name not in DONE_ALREADY
]


@pytest.mark.parametrize(("owner", "name"), OFFERED, ids=".".join)
def test_the_page_about_frameworks_has_whatever_a_framework_may_offer(owner: str, name: str) -> None:
    page = (REAL.root / "docs" / "your-own-framework.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert any(f"{name}(" in row or f"`{name}`" in row or f".{name}`" in row for row in rows), (owner, name)
