"""device_limits without a framework: what a case may be, what a step counts as, and how a product is checked."""

import numpy as np
import pytest

from common.events import Unsupported
from common.request import Fields
from experiments import device_limits
from tests.suites.inside.recorder import Recorder

COPY = {"protocol": "steady", "operation": "memory_copy", "devices": 1, "buffer_mib": 3}
PRODUCT = {"protocol": "steady", "operation": "matmul", "devices": 1, "precision": "fp16", "matrix_size": 10}


def case(base, **axes):
    return Fields("case", {**base, **axes})


def work(axes):
    recorder = Recorder()
    device_limits.emit_work(axes, recorder)
    return recorder.metrics


def test_a_product_is_two_operations_for_each_of_its_n_cubed_multiply_adds():
    assert work(case(PRODUCT)) == {"flops": (2000, "1"), "bytes": (600, "B")}


@pytest.mark.parametrize(
    ("operation", "devices", "times"),
    [
        ("memory_copy", 1, 2),  # read and written
        ("host_to_device", 1, 1),
        ("device_to_host", 1, 1),
        ("device_to_device", 2, 1),
        ("all_reduce", 2, 1),  # 2 (n - 1) / n
        ("all_reduce", 4, 1.5),
    ],
)
def test_bytes_are_counted_as_the_memory_or_the_bus_carries_them(operation, devices, times):
    axes = case(COPY, operation=operation, devices=devices)
    assert work(axes) == {"bytes": (times * 3 * 2**20, "B")}


def test_a_launch_has_no_work_and_every_launch_is_a_step():
    assert work(case({"protocol": "steady", "operation": "kernel_launch", "devices": 1})) == {}
    recorder = Recorder()
    device_limits.PerLaunch(recorder).sample("measure", 0, 3, 0, 0.5)
    assert recorder.samples == [("measure", 0, 3 * device_limits.LAUNCHES, 0, 0.5)]


def test_what_is_no_sample_passes_through_unchanged():
    recorder = Recorder()
    device_limits.PerLaunch(recorder).metric("x", 1, "1")
    assert recorder.metrics == {"x": (1, "1")}


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        (case(COPY, operation="sort"), "case 'operation' is 'sort'; known: all_reduce, "),
        (case(COPY, precision="fp32"), "case has unknown 'precision'"),
        (case(PRODUCT, precision="fp8"), "case 'precision' is 'fp8'"),
        (case(PRODUCT, matrix_size=0), "case 'matrix_size' is 0"),
        (case(COPY, protocol="literal"), "case 'protocol' is 'literal'"),
    ],
)
def test_a_case_that_makes_no_sense_is_refused(axes, text):
    with pytest.raises(ValueError, match=text):
        device_limits.check_axes(axes)


@pytest.mark.parametrize(
    ("operation", "devices", "text"),
    [
        ("memory_copy", 2, "operation 'memory_copy' is one of 1 device; asked for 2"),
        ("device_to_device", 1, "operation 'device_to_device' is one of 2 devices; asked for 1"),
        ("all_reduce", 1, "operation 'all_reduce' is one of 2 devices or more; asked for 1"),
    ],
)
def test_an_operation_on_a_wrong_number_of_devices_is_unsupported(operation, devices, text):
    with pytest.raises(Unsupported, match=text):
        device_limits.check_axes(case(COPY, operation=operation, devices=devices))


def product(precision, error=0.0):
    problem = device_limits.make_problem(case(PRODUCT), {"seed": 0}, [None])
    left, right = problem.matrices
    result = left[problem.rows].dot(right)
    result[0, 0] += error * np.abs(result).max()
    recorder = Recorder()
    device_limits.check_product((left[problem.rows], right, result), precision, recorder)
    return recorder.metrics["max_relative_error"][0]


def test_a_product_within_rounding_passes_with_its_error():
    assert product("fp32") < 1e-6
    assert product("fp16", 0.01) == pytest.approx(0.01, rel=0.1)


def test_a_wrong_product_is_an_error_that_says_by_how_much():
    with pytest.raises(ArithmeticError, match=r"by 0\.01 of the largest value; at most 1e-05 is rounding in fp32"):
        product("fp32", 0.01)
