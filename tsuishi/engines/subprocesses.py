"""A workload as a child process: what the venv and host engines share."""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tsuishi.engines.base import Built, Ended, Kept, Launch, Process, Stream
from tsuishi.environment import Environment
from tsuishi.fetching.artifacts import Progress, Say
from tsuishi.gpus.nvml import Gpu

_CHUNK = 1 << 16
_TICK_S = 0.2
_PR_SET_PDEATHSIG = 1
# Loaded before any fork: the child must not import anything between fork and exec.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class ChildProcess:
    """One workload in a session of its own, so that everything it starts can be ended with it."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd="/",
            start_new_session=True,
            preexec_fn=die_with_parent,
            bufsize=0,
        )

    def output(self) -> Iterator[tuple[Stream, bytes]]:
        """Until the workload itself has ended: what it left in the background is ended then, not waited for."""
        stream = self._popen.stdout
        assert stream is not None
        while True:
            ended = self._popen.poll() is not None
            if ended:
                self.stop()
            ready, _, _ = select.select([stream], [], [], 0 if ended else _TICK_S)
            if ready:
                chunk = stream.read(_CHUNK)
                if not chunk:
                    return
                yield "stdout", chunk
            elif ended:
                return

    def pids(self) -> Sequence[int]:
        return [self._popen.pid]

    def stop(self) -> None:
        family = _descendants(self._popen.pid) if self._popen.poll() is None else []
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        for member in family:  # one with a session of its own is in no group of ours
            with suppress(psutil.Error):
                member.kill()

    def wait(self) -> Ended:
        code = self._popen.wait()
        self.stop()  # whatever it left behind in its session
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        return Ended(code)


class SubprocessEngine:
    """The verbs that are the same for every engine without containers."""

    def start(self, built: Built, launch: Launch) -> Process:
        """A child process; folders need no mounting, and limits other than time are not enforced."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        if launch.limits.gpus:
            environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.id for gpu in launch.limits.gpus)
            environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as NVML counts them; CUDA alone puts the fastest first
        environ["PYTHONDONTWRITEBYTECODE"] = "1"
        return ChildProcess([*built.python, *launch.arguments], environ)

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        return ""

    def inside(self, path: Path, place: str) -> str:
        return str(path)

    def fetch(self, environment: Environment, say: Say, downloaded: Progress) -> int:
        return 0

    def missing(self, environment: Environment) -> tuple[str, ...]:
        return ()

    def tidy(self) -> None:
        """Nothing is left behind."""

    def kept(self) -> list[Kept]:
        return []

    def remove(self, kept: Kept) -> None:
        shutil.rmtree(kept.name)

    def storage(self) -> Path | None:
        return None

    def sweep(self, labels: Mapping[str, str]) -> None:
        """Nothing: a child dies with the runner that started it."""


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def die_with_parent() -> None:
    """In the child, before exec: SIGKILL when the runner is gone, so that an orphan never disturbs a later trial."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
