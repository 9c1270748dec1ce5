"""device_limits without a framework: what a case may be, what a step counts as, how a product is checked.

And what the machine itself is asked, for real.
"""

import errno
import functools
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import threading

import numpy as np
import pytest

from common.events import Unsupported
from common.request import Fields
from experiments import device_limits
from frameworks.numpy import limits as machine
from tests.bench import REAL
from tests.suites import entry
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


MEMORY = {"protocol": "steady", "operation": "host_memory_read", "buffer_mib": 8, "cores": "all"}
STORAGE = {"protocol": "steady", "operation": "storage_read", "buffer_mib": 8, "cache": "cold"}
SETTINGS = {
    "seed": 0, "warm_up_steps": 3, "warm_up_s": 0.1, "block_s": 0.05, "min_blocks": 3, "measure_s": 0.1, "max_s": 5.0,
    "stop_at": 0.0,
}  # fmt: skip


def measured(axes):
    """(facts, samples of the phase measure, bytes of a step) of a case that is run in a process of its own."""
    asked = {"experiment": "device_limits", "framework": None, "accelerator": "cpu", "settings": SETTINGS, "case": axes}
    code, texts, errors = entry.run(REAL.workloads, json.dumps(asked))
    assert (code, texts[-1]["event"]) == (0, "finished"), (texts[-1], errors)
    facts, of_process = [text for text in texts if text["event"] == "environment"]
    assert {*of_process["flags"]} >= {"flush_to_zero", "allocator"}
    (metric,) = [text for text in texts if text["event"] == "metric"]
    samples = [text for text in texts if text["event"] == "sample" and text["phase"] == "measure"]
    assert (metric["name"], metric["unit"]) == ("bytes", "B")
    return facts, samples, metric["value"]


@pytest.mark.parametrize(
    ("axes", "threads"),
    [
        (MEMORY, len(os.sched_getaffinity(0))),
        ({**MEMORY, "cores": "one"}, 1),
        (STORAGE, 1),
        ({**STORAGE, "cache": "cached"}, 1),
    ],
)
def test_the_machine_is_measured_without_a_framework_and_says_what_it_is(axes, threads):
    facts, samples, moved = measured(axes)
    assert moved == 8 * 2**20
    assert (facts["framework"], facts["flags"], facts["simulated"]) == (None, {"threads": threads}, False)
    assert facts["versions"] == {"numpy": np.__version__}
    assert [device["kind"] for device in facts["devices"]] == ["cpu"]
    assert len(samples) >= 3
    # Files are dropped from the cache between blocks: with several steps in a block, only the first would be cold.
    assert (max(sample["steps"] for sample in samples) > 1) == (axes.get("cache") != "cold")


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        ({**MEMORY, "cores": "two"}, "case 'cores' is 'two'; known: one, all"),
        ({**STORAGE, "cache": "warm"}, "case 'cache' is 'warm'; known: cold, cached"),
        ({**STORAGE, "devices": 1}, "case has unknown 'devices'"),
        ({**STORAGE, "buffer_mib": 0}, "case 'buffer_mib' is 0"),
        ({**MEMORY, "protocol": "literal"}, "case 'protocol' is 'literal'"),
    ],
)
def test_a_case_of_the_machine_that_makes_no_sense_is_refused(axes, text):
    with pytest.raises(ValueError, match=text):
        device_limits.machine_problem(Fields("case", axes))


@pytest.mark.parametrize("cores", ["one", "all"])
def test_every_core_reads_its_share_to_the_end(cores):
    before, started = threading.active_count(), []
    problem = device_limits.machine_problem(Fields("case", {**MEMORY, "cores": cores}))

    def measure(step, synchronise):
        step()
        started.append(threading.active_count() - before)

    found = machine.Limits().host_memory_read(problem, measure)
    assert started == [found] == [machine.cores() if cores == "all" else 1]


def in_page_cache(path):
    """Whether the first page of a file is in the system's page cache; skips where the system does not say."""
    with pathlib.Path(path).open("rb") as file:
        try:
            return os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            pytest.skip("this file system does not tell")


@pytest.fixture
def files():
    """The folder of two files of 6 MiB that no other process reads, beside the packages that trials read."""
    with tempfile.TemporaryDirectory(dir=sysconfig.get_path("purelib")) as folder:
        for name in ("first", "second"):
            pathlib.Path(folder, name).write_bytes(bytes(6 * 2**20))
        yield folder


@pytest.mark.parametrize("cache", ["cold", "cached"])
def test_files_are_dropped_from_the_page_cache_before_a_block_and_are_in_it_after_it(cache, files, monkeypatch):
    problem = device_limits.machine_problem(Fields("case", {**STORAGE, "cache": cache}))
    monkeypatch.setattr(machine, "chosen_files", functools.partial(machine.chosen_files, folder=files))
    paths = [path for path, _ in machine.chosen_files(problem.buffer_bytes)]
    assert len(paths) == 2
    seen: list[bool] = []

    def measure(step, synchronise, announce):
        step()
        if announce is not None:
            announce(1)
            seen.extend(map(in_page_cache, paths))
        step()
        seen.extend(map(in_page_cache, paths))

    assert machine.Limits().storage_read(problem, measure) == 8 * 2**20
    assert seen == [*([False] * len(paths) if cache == "cold" else []), *[True] * len(paths)]


def test_a_file_that_another_process_has_mapped_is_not_read_as_it_stays_in_the_page_cache(files):
    mapped = pathlib.Path(files, "first")
    hold = (
        "import mmap, sys; file = open(sys.argv[1], 'rb'); held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); "
        "print(held[0], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", hold, mapped], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"0\n"  # type: ignore[union-attr]
        assert machine.kept_in_cache(mapped)
        assert machine.chosen_files(2**20, files) == [(str(mapped.with_name("second")), 2**20)]
        other.communicate()
    assert sorted(machine.chosen_files(12 * 2**20, files))[0] == (str(mapped), 6 * 2**20)


def test_the_largest_files_are_read_until_there_is_enough(tmp_path):
    for name, size in (("small", 10), ("large", 1000), ("folder/middle", 100)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    large, middle, small = (str(tmp_path / name) for name in ("large", "folder/middle", "small"))
    assert machine.chosen_files(999, str(tmp_path)) == [(large, 999)]
    assert machine.chosen_files(1105, str(tmp_path)) == [(large, 1000), (middle, 100), (small, 5)]
    with pytest.raises(Unsupported, match=r"operation 'storage_read': 2 MiB asked for, .* a smaller buffer would run"):
        machine.chosen_files(2 * 2**20, str(tmp_path))


def test_a_file_that_is_shorter_than_it_was_is_no_endless_read(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 10)
    with (tmp_path / "file").open("rb", buffering=0) as file:
        assert machine.read_file(file, 100, memoryview(bytearray(4))) == 10
