"""SciPy on all cores: every image once, in processes that end with whoever started them."""

import collections
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from common import timing
from frameworks.numpy import all_cores as conv2d_all_cores
from frameworks.numpy import conv2d
from tests.suites.inside.recorder import Recorder

Problem = collections.namedtuple("Problem", "images kernel places settings budget")
RANDOM = np.random.RandomState(0)


def make_problem(count, size, channels):
    images = RANDOM.uniform(-1, 1, (count, 9, 8, channels)).astype(np.float32)
    kernel = RANDOM.uniform(-1, 1, (size, size, channels, channels)).astype(np.float32)
    return Problem(images, kernel, [None], {"later_runs": 2}, timing.UNLIMITED)


@pytest.mark.parametrize(("count", "size", "channels"), [(7, 3, 1), (1, 4, 3), (5, 10, 2)])
def test_every_image_is_convolved_over_all_its_channels(count, size, channels):
    problem, recorder = make_problem(count, size, channels), Recorder()
    outputs = conv2d_all_cores.run(problem, recorder)
    expected = conv2d.expected_of_all_channels(problem, range(count))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    assert [(sample[0], sample[3]) for sample in recorder.samples] == [
        ("first_run", count),
        ("later_runs", count),
        ("later_runs", count),
    ]


def test_there_is_a_process_for_every_core_and_none_without_an_image():
    connections = conv2d_all_cores._start(make_problem(3, 1, 1), np.zeros((3, 9, 8, 1), np.float32))
    assert len(connections) == min(3, len(os.sched_getaffinity(0)))


def test_a_process_that_fails_is_an_error_not_a_wait():
    problem = make_problem(2, 3, 1)
    with pytest.raises((EOFError, ConnectionError)):
        conv2d_all_cores.run(problem._replace(kernel=None), Recorder())


@pytest.mark.long
def test_processes_end_when_the_workload_is_killed(tmp_path):
    script = tmp_path / "workload.py"
    script.write_text(
        f"import sys, time\nsys.path[:0] = {[str(pathlib.Path(timing.__file__).parents[1])]!r}\n"
        "import multiprocessing, numpy as np, collections\n"
        "from frameworks.numpy import all_cores as conv2d_all_cores\n"
        "problem = collections.namedtuple('P', 'images kernel')(np.zeros((64, 2, 2, 1)), None)\n"
        "kept = conv2d_all_cores._start(problem, None)\n"
        "print(*[child.pid for child in multiprocessing.active_children()], flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as workload:
        assert workload.stdout is not None
        children = [int(pid) for pid in workload.stdout.readline().split()]
        workload.send_signal(signal.SIGKILL)
    assert children
    deadline = time.monotonic() + 10
    while any(is_running(pid) for pid in children):
        assert time.monotonic() < deadline, "still running"
        time.sleep(0.05)


def is_running(pid):
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
