"""A workload as a child process: what the venv and host engines share."""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tsuishi.base import owner
from tsuishi.base.screen import Progress, Say
from tsuishi.engines import sandbox, supervisor
from tsuishi.engines.interface import (
    Built,
    Ended,
    Kept,
    Launch,
    Process,
    Stream,
)
from tsuishi.machine import environ
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Environment

_CHUNK = 1 << 16
_TICK_S = 0.2
_PR_SET_CHILD_SUBREAPER = 36
# Loaded before any fork: the child must not import anything between fork and exec.
_LIBC = ctypes.CDLL(None)
# Set in everything that a trial starts: its runner (owner.py), and the trial.
_MARK = "TSUISHI_TRIAL"


class ChildProcess:
    """One workload under a supervisor, which ends everything that the workload started: see supervisor.py.

    `scratch` is a folder that is made for it, and removed with it. Raises OSError where it cannot be started.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], scratch: str = "") -> None:
        self._mark = f"{owner.me()} {uuid.uuid4().hex}"
        self._code: int | None = None
        lifeline, holding = os.pipe()
        reading, status = os.pipe()
        self._lifeline, self._status = os.fdopen(holding, "wb", 0), os.fdopen(reading, "rb")
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(lifeline), str(status), scratch, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**environ, _MARK: self._mark},
                cwd="/",
                start_new_session=True,  # Ctrl-C is the runner's
                preexec_fn=_adopt_orphans,
                pass_fds=(lifeline, status),
                bufsize=0,
            )
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
        """Until the workload itself has ended: what it left in the background is ended then, not waited for."""
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
        return [self._pid]

    def stop(self) -> None:
        self._lifeline.close()
        self._popen.send_signal(signal.SIGCONT)

    def wait(self) -> Ended:
        code = self._popen.wait()
        self._hear_status()
        self._lifeline.close()
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        return Ended(code if self._code is None else self._code)

    def _hear_status(self) -> None:
        """How the workload ended, once the supervisor has. One that somebody has killed tells nothing, and left it."""
        if not self._status.closed:
            told = self._status.read()
            self._status.close()
            self._code = int(told) if told else None
            if not told:
                _kill_marked(self._mark)


class SubprocessEngine:
    """The verbs that are the same for every engine without containers."""

    def start(self, built: Built, launch: Launch) -> Process:
        """A child process, in a sandbox where there is one. Limits other than time are not enforced."""
        python = built.python[0]
        walls = sandbox.walls(python, launch.mounts)
        scratch = "" if walls else f"{tempfile.gettempdir()}/tsuishi-{uuid.uuid4().hex}"
        variables = environ.for_trial(Path(python), scratch or sandbox.HOME, launch.limits.gpus)
        return ChildProcess([*walls, *built.python, *launch.arguments], {**variables, **self.more_variables()}, scratch)

    def more_variables(self) -> dict[str, str]:
        """What a workload gets of the user's beside what all engines without containers give it."""
        return {}

    def confinement(self, python: str) -> dict[str, Any]:
        """What the record says of how a workload is kept apart from this machine."""
        return {"sandbox": sandbox.described(python), "variables": [*environ.passed(), *self.more_variables()]}

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

    def altered(self, kept: Kept, *, whole: bool) -> str:
        return ""

    def remove(self, kept: Kept) -> None:
        shutil.rmtree(kept.name)

    def storage(self) -> Path | None:
        return None

    def sweep(self) -> None:
        """End what trials left whose runner and supervisor were both killed."""
        for mark in {mark for _, mark in _marked()}:
            if not owner.is_alive(mark.rpartition(" ")[0]):
                _kill_marked(mark)


def _adopt_orphans() -> None:
    """In the supervisor, before it begins: whatever loses its parent there becomes its child."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _marked() -> Iterator[tuple[psutil.Process, str]]:
    """Every process that a trial of this machine has started, and the mark of the trial."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it is another user's, or has just ended
            mark = process.environ().get(_MARK)
            if mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process, mark


def _kill_marked(mark: str) -> None:
    """Kill what a trial has started, until there is none of it."""
    while found := [process for process, its_mark in _marked() if its_mark == mark]:
        for process in found:
            with suppress(psutil.Error):
                process.kill()
