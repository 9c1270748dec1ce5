"""What parity does not see of training on one device, in frameworks that have no test of their own for it."""

import pytest

from common.request import Request
from frameworks import mxnet
from tests.suites.environments import PINNED, inside, run_inside
from tsuishi.specs.environment import Environment

STEPPED = [environment for environment in PINNED if environment.framework in ("mxnet", "chainer")]


@pytest.mark.parametrize("environment", STEPPED, ids=lambda environment: environment.name)
@inside
def test_momentum_epochs_statistics_and_inference_are_as_they_should_be(environment: Environment) -> None:
    found = run_inside(environment, "check_steps.py", environment.framework)
    assert found["second_step_error"] < 1e-4
    assert max(found["epochs_error"]) < 1e-6
    assert found["statistics_error"] < 1e-5
    assert found["inference_changes"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("case", "searches"),
    [({}, "1"), ({"autotune": "default"}, "1"), ({"autotune": "off"}, "0"), ({"convolution_tuning": "untuned"}, "0")],
)
def test_mxnet_is_told_before_its_import_whether_cudnn_searches(case: dict[str, str], searches: str) -> None:
    request = Request({"case": case, "framework": "mxnet", "accelerator": "cuda", "settings": {}})
    assert mxnet.variables(request) == {"MXNET_CUDNN_AUTOTUNE_DEFAULT": searches}
