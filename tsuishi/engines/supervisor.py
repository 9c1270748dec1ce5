"""Runs one command, and ends with it everything that it started. A script of its own, see subprocesses.ChildProcess:

    python -I -S supervisor.py LIFELINE STATUS SCRATCH COMMAND...

LIFELINE is the end of a pipe for reading: once its other end is closed, also by the death of whoever holds it, the
command is ended. STATUS is the end of a pipe for writing. It is told `<pid>`, and when nothing of the command is left
`<exit code>`, which is negative for a signal; or `0` and `<errno>` where the command could not be started. SCRATCH is a
folder for the command alone, made before it and removed after it; "" for none.

Who starts it has made it a subreaper: whatever loses its parent becomes its child. As it starts with every trial, it
imports as little as it can.
"""

import _thread
import os
import sys
import time

_SIGKILL = 9


def main(lifeline: int, status: int, scratch: str, command: list[str]) -> None:
    for end in (lifeline, status):
        os.set_inheritable(end, False)
    if scratch:
        os.mkdir(scratch, 0o700)
    child, error = start(command)
    tell(status, 0 if error else child)
    _thread.start_new_thread(end_with, (lifeline, child))
    code = wait_for(child)
    end_all()
    if scratch:
        os.spawnl(os.P_WAIT, "/bin/rm", "rm", "-rf", scratch)
    tell(status, error or code)


def start(command: list[str]) -> tuple[int, int]:
    """The process of the command, in a session of its own; and the errno where it could not be started, else 0."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.execv(command[0], command)
        except OSError as error:
            os.write(writing, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    os.close(writing)
    return child, int(os.read(reading, 16) or 0)


def end_with(lifeline: int, child: int) -> None:
    os.read(lifeline, 1)
    os.kill(child, _SIGKILL)


def wait_for(child: int) -> int:
    """The exit code of that process. Those that lost their parent are reaped as they end."""
    while True:
        pid, how = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(how)


def end_all() -> None:
    """Kill every descendant, until there is none: while one is killed, another may start a third."""
    try:
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for process, group in descendants():
                    # A whole group at once: none of its members can fork meanwhile.
                    kill(os.killpg, group)
                    kill(os.kill, process)
                time.sleep(0.001)
    except ChildProcessError:
        return


def kill(how, whom) -> None:  # type: ignore[no-untyped-def]  # typing is not imported
    try:
        how(whom, _SIGKILL)
    except OSError:
        pass


def descendants() -> list[tuple[int, int]]:
    """Every process that this one has started, directly or not, and its process group."""
    known = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    _, parent, group = file.read().rpartition(b")")[2].split()[:3]
            except OSError:
                continue
            known[int(name)] = int(parent), int(group)
    family, size = {os.getpid()}, 0
    while len(family) > size:
        size = len(family)
        family |= {process for process, (parent, _) in known.items() if parent in family}
    return [(process, known[process][1]) for process in family - {os.getpid()}]


def tell(status: int, number: int) -> None:
    try:
        os.write(status, b"%d\n" % number)
    except BrokenPipeError:  # nobody is left to hear it
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
