"""Programs that a test keeps running in the foreground as children of its process, and ends by their process ids."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_ANSWERS_IN_S = 30.0
# Daemons live in sbin, which a user's PATH often lacks.
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


class Programs:
    """Running programs, by their names. Their output goes to <folder>/log/<name>.out."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "log").mkdir()

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def start(self, name: str, *argv: str) -> None:
        with (self._folder / "log" / f"{name}.out").open("ab") as out:
            self._running[name] = subprocess.Popen(argv, env=self._environ, stdout=out, stderr=out, cwd=self._folder)

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """End a program by a signal, or after ten seconds by SIGKILL."""
        if process := self._running.pop(name, None):
            process.send_signal(number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def end_all(self) -> None:
        """End every program, the last that was started first."""
        for name in reversed([*self._running]):
            self.end(name)

    def command(self, *argv: str) -> str:
        """The output of a command that ends by itself; empty where it fails."""
        done = subprocess.run(argv, env=self._environ, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""


def wait_for(condition: Callable[[], object], timeout_s: float = _ANSWERS_IN_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in {timeout_s:g} s"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
