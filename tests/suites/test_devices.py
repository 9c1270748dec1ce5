"""Which precisions a device can do, by its compute capability: the driver's answer is made up, as no GPU is needed."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from common import cuda_devices, devices
from common.events import Unsupported
from common.request import Fields, Request
from experiments import device_limits, training
from tests.suites.test_frameworks import TRAINED

GPUS = [["Tesla T4", [7, 5], 15_360], ["A100", [8, 0], 40_960], ["H100", [9, 0], 81_559]]
OLD, NEW = 0, 1


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_devices, "_devices", lambda: GPUS)


@pytest.mark.parametrize(("check", "precision"), [(devices.check_tf32, True), (devices.check_bf16, "amp_bf16")])
def test_gpus_before_ampere_have_neither_tf32_nor_bfloat16(check: Callable[..., None], precision: object) -> None:
    check(precision, [NEW, 2])
    for places in ([OLD], [NEW, OLD]):
        with pytest.raises(Unsupported, match=r"compute capability 8\.0 and newer have\); 'fp32' would run"):
            check(precision, places)


def test_a_cpu_may_have_bfloat16_and_has_no_tf32() -> None:
    devices.check_bf16("amp_bf16", [None])
    devices.check_tf32(False, [None])
    with pytest.raises(Unsupported, match="this is a CPU"):
        devices.check_tf32(True, [None])


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "amp_fp16", "fp64"])
def test_other_precisions_are_no_bfloat16(precision: str) -> None:
    devices.check_bf16(precision, [OLD])


@pytest.mark.parametrize(
    ("experiment", "case"),
    [
        *((training, {**TRAINED, "mode": "training", "precision": name}) for name in ("amp_bf16", "bf16")),
        (
            device_limits,
            {"protocol": "steady", "operation": "matmul", "devices": 1, "precision": "bf16", "matrix_size": 2},
        ),
    ],
)
def test_whatever_the_framework_a_case_of_bfloat16_is_refused_before_it_is_loaded(
    experiment: ModuleType, case: dict[str, Any]
) -> None:
    asked = {"case": Fields("case", case), "framework": None, "accelerator": "cuda", "settings": {}}
    with pytest.raises(Unsupported, match="this GPU has no bfloat16"):
        experiment.check(Request(asked))
