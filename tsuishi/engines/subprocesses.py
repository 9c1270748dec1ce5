"""Starts and ends a workload as a child process, for the engines venv and host."""

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tsuishi.base import files, owner
from tsuishi.base.processes import Ended, Process, Stream
from tsuishi.engines import environment_variables, sandbox, supervisor
from tsuishi.engines.interface import Built, Launch
from tsuishi.machine.gpus import Gpu, wsl

_CHUNK = 1 << 16
_TICK_S = 0.2
# Seconds for killed processes to end. A process that waits for a file system or a driver may take longer.
_ENDS_IN_S = 10.0
# The supervisors that this process started and has not waited for. The lock is held while a supervisor is started.
_supervisors: set[int] = set()
_family = threading.Lock()
# How the name of a workload's own folder begins.
_SCRATCH = "tsuishi-"


class ChildProcess:
    """A workload under a supervisor, which ends every process that the workload started: see supervisor.py.

    `scratch` is a folder that is made for the workload and removed when it ends. `is_workload`: whether the command is
    the workload itself, and not a program by which something else starts it. Raises OSError where it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], scratch: str = "", *, is_workload: bool = True
    ) -> None:
        self._is_workload = is_workload
        self._mark = f"{owner.me()} {uuid.uuid4().hex}"
        self._code: int | None = None
        lifeline, holding = os.pipe()
        reading, status = os.pipe()
        self._lifeline, self._status = os.fdopen(holding, "wb", 0), os.fdopen(reading, "rb")
        try:
            with _family:
                supervisor.adopt_orphans()  # of a supervisor that is killed
                # Without preexec_fn: Python would lose a Ctrl-C that arrives while it forks for it.
                self._popen = subprocess.Popen(
                    [sys.executable, "-I", "-S", supervisor.__file__, str(lifeline), str(status), scratch, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env={**variables, owner.MARK: self._mark},
                    cwd="/",
                    start_new_session=True,  # Ctrl-C goes to the runner only
                    pass_fds=(lifeline, status),
                    bufsize=0,
                )
                _supervisors.add(self._popen.pid)
        finally:
            os.close(lifeline)
            os.close(status)
        try:
            self._pid = int(self._status.readline() or 0)
        except BaseException:  # Ctrl-C, say
            self.stop()
            raise
        if not self._pid:
            code = self.wait().code
            raise OSError(code, os.strerror(code), command[0])

    def output(self) -> Iterator[tuple[Stream, bytes]]:
        """The output until the workload itself has ended. Its processes in the background are then killed."""
        stream = self._popen.stdout
        assert stream is not None
        while True:
            ended = self._popen.poll() is not None
            if ended:
                self._hear_status()
            ready, _, _ = select.select([stream], [], [], 0 if ended else _TICK_S)
            if ready:
                chunk = stream.read(_CHUNK)
                if not chunk:
                    return
                yield "stdout", chunk
            elif ended:
                return

    def pids(self) -> Sequence[int]:
        return [self._pid] if self._is_workload else []

    def stop(self) -> None:
        self._lifeline.close()
        self._popen.send_signal(signal.SIGCONT)

    def wait(self) -> Ended:
        code = self._popen.wait()
        _supervisors.discard(self._popen.pid)
        self._hear_status()
        self._lifeline.close()
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        return Ended(code if self._code is None else self._code)

    def _hear_status(self) -> None:
        """Read the exit code of the workload after the supervisor has ended.

        A supervisor that was killed has written nothing, and the workload still runs: it is killed now.
        """
        if not self._status.closed:
            status = self._status.read()
            self._status.close()
            self._code = int(status) if status else None
            if not status:
                _kill_adopted()
                _kill_marked(self._mark)


class ProcessStarter:
    """Starts workloads as child processes, in a sandbox where this machine has one.

    `more_variables`: more environment variables for workloads, beside those of environment_variables.py. confined:
    whether a sandbox is wanted.
    """

    # The device file of CUDA's unified memory, which cuInit needs (error 999 without it). Outside of a sandbox libcuda
    # has nvidia-modprobe make it, which is setuid.
    unified_memory = Path("/dev/nvidia-uvm")

    def __init__(self, more_variables: Mapping[str, str] | None = None, *, confined: bool = True) -> None:
        self._more_variables, self._confined = dict(more_variables or {}), confined

    def start(self, built: Built, launch: Launch) -> Process:
        """See `Starter`. Of the limits only the time is enforced."""
        python = built.python[0]
        kept = environment_variables.cuda_cache(built, launch)
        network = launch.network is not None
        walls = sandbox.walls(python, launch.mounts, network=network, writable=kept) if self._confined else []
        scratch = "" if walls else f"{tempfile.gettempdir()}/{_SCRATCH}{uuid.uuid4().hex}"
        variables = environment_variables.for_trial(Path(python), scratch or sandbox.HOME, launch.limits.gpus)
        variables |= self._more_variables | dict(launch.network or {})
        variables |= environment_variables.of_cuda_cache(str(kept)) if kept else {}
        return ChildProcess([*walls, *built.python, *launch.arguments], variables, scratch)

    def confinement(self, python: str) -> dict[str, Any]:
        """The sandbox of workloads and the user's variables that they get, for the environment's record."""
        variables = [*environment_variables.passed(), *self._more_variables]
        folders = environment_variables.digests()
        walls = sandbox.described(python) if self._confined else sandbox.NOT_WANTED
        return {"sandbox": walls, "variables": variables, "folders": folders}

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        """A child process sees the GPUs that its parent sees. In a sandbox, CUDA cannot make a device file it lacks."""
        missing = not self.unified_memory.exists() and not wsl()
        if gpus and missing and self._confined and not sandbox.why_none(sys.executable):
            return f"no {self.unified_memory}, without which CUDA does not start in a sandbox: {self.gpu_remedy()}"
        return ""

    def gpu_remedy(self) -> str:
        return "`sudo nvidia-modprobe -u -c 0` makes /dev/nvidia-uvm; see also `nvidia-smi` and CUDA_VISIBLE_DEVICES"

    def inside(self, path: Path, place: str) -> str:
        return str(path)


def abandoned_programs() -> list[str]:
    """What `end_abandoned` would end, in words."""
    return [
        f"process {process.pid} ({process.info['name']}): of a trial whose runner was killed"
        for process, mark in _marked()
        if not _has_runner(mark)
    ]


def end_abandoned() -> None:
    """End the trials whose runner and supervisor were both killed."""
    for mark in {mark for _, mark in _marked()}:
        if not _has_runner(mark):
            _kill_marked(mark)


def abandoned_scratch() -> list[Path]:
    """The folders of workloads, of this user, that no supervisor will remove any more."""
    used = {process.info["environ"].get("HOME") for process, mark in _marked() if _has_runner(mark)}
    named = re.compile(rf"{_SCRATCH}[0-9a-f]{{32}}")
    folders = [path for path in Path(tempfile.gettempdir()).iterdir() if named.fullmatch(path.name)]
    return [path for path in sorted(folders) if str(path) not in used and files.is_folder_of_ours(path)]


def _has_runner(mark: str) -> bool:
    """Whether the runner of a trial may be alive. Processes of a runner on another machine are not ours."""
    runner = mark.rpartition(" ")[0]
    return owner.is_elsewhere(runner) or owner.is_alive(runner)


def _marked() -> Iterator[tuple[psutil.Process, str]]:
    """Every process that a trial on this machine has started, with the mark of its trial.

    Its name and its variables were read before, all at once, for it may end at any time: process.info["name"] and
    ["environ"].
    """
    for process in psutil.process_iter(["name", "environ", "status"]):  # leaves out a process that has just ended
        mark = (process.info["environ"] or {}).get(owner.MARK)  # it has none where it belongs to another user
        if mark and process.info["status"] != psutil.STATUS_ZOMBIE:
            yield process, mark


def _kill_adopted() -> None:
    """Kill every process that this process did not start, and whose supervisor was killed; all that they started too.

    A supervisor begins a session, and nothing below it can come back into ours.
    """
    me, until = os.getpid(), time.monotonic() + _ENDS_IN_S
    while time.monotonic() < until:
        with _family:
            children = [(pid, session) for pid, (parent, _, session) in supervisor.processes().items() if parent == me]
            adopted = {pid for pid, session in children if session != os.getsid(0)} - _supervisors
        if not adopted:
            return
        supervisor.kill_below(adopted)
        for process in adopted:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.001)


def _kill_marked(mark: str) -> None:
    """Kill every process that a trial has started, until none is left, or none that the kernel can end soon."""
    until = time.monotonic() + _ENDS_IN_S
    while living := [process for process, its_mark in _marked() if its_mark == mark]:
        for process in living:
            with suppress(psutil.Error):
                process.kill()
        if time.monotonic() > until:
            return
