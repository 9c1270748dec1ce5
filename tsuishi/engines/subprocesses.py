"""A workload as a child process: what the venv and host engines share."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tsuishi.engines.base import Built, Ended, Limits, Process, Stream

_CHUNK = 1 << 16
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
            preexec_fn=_die_with_parent,
            bufsize=0,
        )

    def output(self) -> Iterator[tuple[Stream, bytes]]:
        assert self._popen.stdout is not None
        while chunk := self._popen.stdout.read(_CHUNK):
            yield "stdout", chunk

    def pids(self) -> Sequence[int]:
        return [self._popen.pid]

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        code = self._popen.wait()
        self.stop()  # whatever it left behind in its session
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        return Ended(code)


class SubprocessEngine:
    """The verbs that are the same for every engine without containers."""

    def start(
        self,
        built: Built,
        arguments: Sequence[str],
        mounts: Mapping[Path, str],
        limits: Limits,
        name: str,
        labels: Mapping[str, str],
    ) -> Process:
        """A child process; folders need no mounting, and limits other than time are not enforced."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        if limits.gpus:
            environ["CUDA_VISIBLE_DEVICES"] = ",".join(limits.gpus)
        environ["PYTHONDONTWRITEBYTECODE"] = "1"
        return ChildProcess([*built.python, *arguments], environ)

    def inside(self, path: Path, place: str) -> str:
        return str(path)

    def sweep(self, labels: Mapping[str, str]) -> None:
        """Nothing: a child dies with the runner that started it."""


def _die_with_parent() -> None:
    """In the child, before exec: SIGKILL when the runner is gone, so that an orphan never disturbs a later trial."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
