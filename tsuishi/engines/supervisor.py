"""Runs a command. When it ends, kills every process that it started. subprocesses.ChildProcess runs this script:

    python -I -S supervisor.py LIFELINE STATUS SCRATCH COMMAND...

LIFELINE is the reading end of a pipe. When its other end is closed, also by the death of the process that holds it, the
supervisor kills the command. STATUS is the writing end of a pipe. The supervisor writes `<pid>` to it, and, when no
process of the command is left, `<exit code>`, negative for a signal; or `0` and `<errno>` where the command could not
be started. SCRATCH is a folder for the command alone, made before it and removed after it; "" for none.

It is a subreaper: a process below it that loses its parent becomes its child. The script starts with every trial, so it
imports as little as it can.
"""

import _thread
import ctypes
import os
import sys
import time

_SIGKILL = 9
_PR_SET_CHILD_SUBREAPER = 36


def main(lifeline: int, status: int, scratch: str, command: list[str]) -> None:
    adopt_orphans()
    for end in (lifeline, status):
        os.set_inheritable(end, False)
    if scratch:
        os.mkdir(scratch, 0o700)
    child, error = start_command(command)
    tell(status, 0 if error else child)
    _thread.start_new_thread(end_with, (lifeline, child))
    code = wait_for(child)
    end_all()
    if scratch:
        os.spawnl(os.P_WAIT, "/bin/rm", "rm", "-rf", scratch)
    tell(status, error or code)


def adopt_orphans() -> None:
    """Make this process the parent of every process below it that loses its parent."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def start_command(command: list[str]) -> tuple[int, int]:
    """The process id of the command, in its own session, and the errno where it could not be started, else 0."""
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
    """Wait until the other end of the lifeline is closed, then kill the command."""
    os.read(lifeline, 1)
    os.kill(child, _SIGKILL)


def wait_for(child: int) -> int:
    """The exit code of the command. Other children, which lost their parent, are reaped when they end."""
    while True:
        pid, how = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(how)


def end_all() -> None:
    """Kill all descendants, again and again until none is left, because a living process may start another process."""
    try:
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                kill_below({os.getpid()})
                time.sleep(0.001)
    except ChildProcessError:
        return


def kill(how, whom) -> None:  # type: ignore[no-untyped-def]  # typing is not imported
    try:
        how(whom, _SIGKILL)
    except OSError:
        pass


def processes() -> dict[int, tuple[int, int, int]]:
    """Every process of this machine: its parent, process group and session."""
    known = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    _, parent, group, session = file.read().rpartition(b")")[2].split()[:4]
            except OSError:
                continue
            known[int(name)] = int(parent), int(group), int(session)
    return known


def kill_below(roots: set[int]) -> None:
    """Kill every process below these, once. A process that has just been started may be left."""
    known = processes()
    family, size = set(roots), 0
    while len(family) > size:
        size = len(family)
        family |= {process for process, (parent, _, _) in known.items() if parent in family}
    for process in family - roots:
        # A group is killed at once, so that its members cannot fork meanwhile.
        kill(os.killpg, known[process][1])
        kill(os.kill, process)


def tell(status: int, number: int) -> None:
    try:
        os.write(status, b"%d\n" % number)
    except BrokenPipeError:  # ChildProcess, which reads it, is gone
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
