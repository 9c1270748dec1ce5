"""Who a process is: living ones, ended ones, and those that cannot be seen from here."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import missing
from tsuishi.base import owner

ROOT = Path(__file__).parents[2]
TELL = "from tsuishi.base import owner; print(owner.me(), flush=True); input()"
# /proc as some clusters mount it; then another user looks.
ASK_HIDDEN = """
import os, sys
from tsuishi.base import owner
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
alive, dead = sys.argv[1:]
assert not os.path.exists("/proc/" + alive.split(":")[2])
print(owner.is_alive(alive), owner.is_alive(dead))
"""


def told() -> tuple["subprocess.Popen[str]", str]:
    """A living process and who it says it is."""
    command = [sys.executable, "-c", TELL]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout
    return process, process.stdout.readline().strip()


def replaced(index: int, by: str) -> str:
    parts = owner.me().split(":")
    parts[index] = by
    return ":".join(parts)


def test_a_process_is_alive_until_it_is_killed_also_where_nobody_asks_how_it_ended() -> None:
    process, name = told()
    with process:
        assert name.split(":")[2] == str(process.pid)
        assert owner.is_alive(name)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not owner.is_alive(name), "a zombie measures nothing"
    assert not owner.is_alive(name)


def test_the_same_process_says_the_same_and_is_alive() -> None:
    assert owner.me() == owner.me()
    assert owner.is_alive(owner.me())


@pytest.mark.parametrize(
    ("index", "by"), [(3, "1"), (0, "00000000-0000-0000-0000-000000000000")], ids=["started at another time", "boot"]
)
def test_a_pid_that_was_given_again_is_somebody_else(index: int, by: str) -> None:
    assert not owner.is_alive(replaced(index, by))


@pytest.mark.parametrize(
    "text",
    ["", "ada", "a:b:c:d", replaced(2, "../1"), replaced(1, "1")],
    ids=["nothing", "a word", "no numbers", "a path", "another pid namespace"],
)
def test_who_cannot_be_judged_counts_as_alive(text: str) -> None:
    assert owner.is_alive(text)


def test_a_process_that_proc_hides_from_other_users_is_alive() -> None:
    if os.geteuid():
        missing("no right to mount /proc anew")
    process, dead = told()
    process.kill()
    process.communicate()
    mount = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", ASK_HIDDEN, owner.me(), dead]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (found.stdout, found.stderr) == ("True False\n", "")
