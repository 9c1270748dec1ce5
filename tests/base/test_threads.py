"""Work in several threads: results in order, one failure ends all, and so does Ctrl-C."""

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.pinned import environment
from tsuishi.base import threads
from tsuishi.base.checkout import Checkout
from tsuishi.base.processes import Process
from tsuishi.engines.interface import Built, Launch
from tsuishi.engines.subprocesses import ProcessStarter
from tsuishi.environments.probe import ask


class Noting(ProcessStarter):
    """A starter of child processes that notes what it started."""

    def start(self, built: Built, launch: Launch) -> Process:
        process = super().start(built, launch)
        self.pids = process.pids()
        return process


def wait_until_halted() -> None:
    with suppress(threads.Halted):
        while True:
            threads.check()
            time.sleep(0.01)


def test_results_are_in_the_order_of_the_items_whichever_ends_first() -> None:
    gates = [threading.Event() for _ in range(3)]
    gates[2].set()

    def work(index: int) -> int:
        assert gates[index].wait(10)
        if index:
            gates[index - 1].set()
        return index * 10

    assert threads.each([0, 1, 2], work, jobs=3) == [0, 10, 20]
    assert threads.each([], work, jobs=3) == []


def test_no_more_than_so_many_are_done_at_a_time() -> None:
    lock, at_once, most = threading.Lock(), 0, 0

    def work(_: int) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.02)
        with lock:
            at_once -= 1

    threads.each(range(8), work, jobs=2)
    assert most == 2


def test_an_exception_ends_the_others_and_is_raised_once_they_have_ended() -> None:
    ours, theirs = socket.socketpair()
    ended = threading.Event()
    reading = threading.Event()

    def work(index: int) -> None:
        if index == 0:
            assert reading.wait(10)
            raise ZeroDivisionError("a bug")
        try:
            with threads.closing(lambda: ours.shutdown(socket.SHUT_RDWR)):
                reading.set()
                ours.recv(1)
            threads.check()
        finally:
            ended.set()

    with pytest.raises(ZeroDivisionError, match="a bug"):
        threads.each([0, 1], work, jobs=2)
    assert ended.is_set()
    theirs.close()


def test_what_waits_is_not_begun_after_an_exception() -> None:
    begun = []

    def work(index: int) -> None:
        begun.append(index)
        if index == 0:
            raise ZeroDivisionError("a bug")
        time.sleep(0.05)

    with pytest.raises(ZeroDivisionError, match="a bug"):
        threads.each(range(50), work, jobs=1)
    assert len(begun) < 50


def test_what_another_thread_ends_is_over_at_the_next_step() -> None:
    seen: list[type[BaseException]] = []
    halted = threading.Event()

    def work(index: int) -> None:
        if index == 0:
            raise ZeroDivisionError("a bug")
        try:
            while True:
                threads.check()
                time.sleep(0.01)
        except threads.Halted as error:
            seen.append(type(error))
            halted.set()
            raise

    with pytest.raises(ZeroDivisionError, match="a bug"):
        threads.each([1, 0], work, jobs=2)
    assert halted.is_set()
    assert seen == [threads.Halted]
    threads.check()  # the thread that called goes on


def test_what_is_begun_too_late_is_ended_at_once() -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def work(index: int) -> None:
        if index == 0:
            raise ZeroDivisionError("a bug")
        wait_until_halted()
        with subprocess.Popen(["sleep", "30"]) as process:
            begun.append(process)
            with threads.closing(process.kill):
                process.wait()

    with pytest.raises(ZeroDivisionError, match="a bug"):
        threads.each([1, 0], work, jobs=2)
    assert [process.returncode for process in begun] == [-signal.SIGKILL]


def test_a_question_asked_too_late_leaves_nothing_running(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.workloads.mkdir(parents=True)
    (checkout.workloads / "run.py").write_text("import time; time.sleep(30)")
    starter = Noting()

    def work(index: int) -> None:
        if index == 0:
            raise ZeroDivisionError("a bug")
        wait_until_halted()
        built = Built(environment(()), "host", "", "", "", (sys.executable,))
        ask(starter, built, checkout, "sleeps", {}, timeout_s=20)

    with pytest.raises(ZeroDivisionError, match="a bug"):
        threads.each([1, 0], work, jobs=2)
    assert [psutil.pid_exists(pid) for pid in starter.pids] == [False]


def test_ctrl_c_ends_a_process_that_others_wait_for() -> None:
    code = """
import os, signal, subprocess, sys
from tsuishi.base import threads as parallel

def work(index):
    with subprocess.Popen(["sleep", "600"]) as process, parallel.closing(process.kill):
        os.write(1, b"%d\\n" % process.pid)  # a print of two threads may mix
        process.wait()

try:
    parallel.each([1, 2], work, 2)
except KeyboardInterrupt:
    sys.exit(130)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    sleeping = [int(child.stdout.readline()) for _ in range(2)]
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=30) == 130
    for pid in sleeping:
        assert not psutil.pid_exists(pid)
