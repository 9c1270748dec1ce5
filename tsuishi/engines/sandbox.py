"""The sandbox of a trial without a container, made by bubblewrap; or the reason why there is no sandbox.

The trial can read the system's libraries, its interpreter, the workloads and its data; it can write to a /tmp of its
own. It sees no home, no network but loopback, and only its own processes. System calls are not filtered, so that the
sandbox slows nothing down.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tsuishi.base.home import home
from tsuishi.engines import environment_variables
from tsuishi.machine import interpreters

NOT_WANTED = "none wanted"  # in records, where the setting `sandbox` is false
HOME = "/tmp"  # noqa: S108  it is the trial's own in the sandbox
_PATIENCE_S = 20
_LONGEST_LINE = 200
_NOT_INSTALLED = "is not installed"
# What bubblewrap says where the kernel, AppArmor or a container keeps it from making namespaces.
_OF_NAMESPACES = ("namespace", "uid map", "gid map", "Operation not permitted", "Permission denied")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
# Files that the loader, the C library and interpreters read.
_ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "passwd", "group", "nsswitch.conf", "hosts"),
    *("localtime", "python3"),
)
_NO_NETWORK = "--unshare-net"
_FLAGS = (
    *("--unshare-user", "--unshare-pid", _NO_NETWORK, "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "localhost", "--cap-drop", "ALL", "--new-session", "--die-with-parent"),
    *("--proc", "/proc", "--dev", "/dev", "--tmpfs", HOME),
    *("--ro-bind", "/sys", "/sys"),  # where libraries read the caches and cores of the CPU, and the GPU's place
)
_WHERE = """
import json, os, sys
prefixes = sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix
print(json.dumps([path for path in (*prefixes, *sys.path) if os.path.isabs(path) and os.path.exists(path)]))
"""


def walls(python: str, mounts: Iterable[Path], *, network: bool = False, writable: Path | None = None) -> list[str]:
    """The first words of a command, which run its rest in a sandbox; empty where `why_none` has a reason.

    network: whether it keeps the machine's network. writable: a folder in which it may write.
    """
    if why_none(python):
        return []
    command = _command(python, map(str, mounts), ("--bind", str(writable), str(writable)) if writable else ())
    return [word for word in command if word != _NO_NETWORK] if network else command


def described(python: str) -> str:
    """The sandbox for the environment's record: bubblewrap and its version, or "none" and the reason."""
    return f"none: {why}" if (why := why_none(python)) else _version()


@cache
def why_none(python: str) -> str:
    """Why programs of this interpreter run without a sandbox; empty where a trial run in a sandbox works."""
    if shutil.which("bwrap") is None:
        return f"bubblewrap (bwrap) {_NOT_INSTALLED}"
    variables = environment_variables.for_trial(Path(python), HOME, ())
    result = _run([*_command(python, ()), python, "-S", "-c", ""], variables)
    last_line = result.stderr.strip().rpartition("\n")[2][:_LONGEST_LINE] or "it says nothing"
    return "" if result.returncode == 0 else f"bubblewrap does not work here ({last_line})"


def remedy_for(why: str) -> str:
    """What to do where there is no sandbox, for this reason; see `why_none`."""
    if _NOT_INSTALLED in why:
        return "install bubblewrap"
    if any(word in why for word in _OF_NAMESPACES):
        return (
            "let bwrap make user namespaces, as root: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or an "
            "AppArmor profile for it (Ubuntu 24.04)"
        )
    return "see what `bwrap --ro-bind / / true` says"


def _command(python: str, mounts: Iterable[str], more: Iterable[str] = ()) -> list[str]:
    command = [str(shutil.which("bwrap")), *_FLAGS]
    for place in _SYSTEM:
        path = Path(place)
        command += ("--symlink", str(path.readlink()), place) if path.is_symlink() else _readable(place)
    for name in _ETC:
        command += _readable(f"/etc/{name}")
    # All GPUs of the machine, as without a sandbox: CUDA_VISIBLE_DEVICES says which of them the trial uses.
    for device in (*Path("/dev").glob("nvidia*"), Path("/dev/dxg")):
        command += ("--dev-bind-try", str(device), str(device))
    for place in sorted({*_places(python), *environment_variables.folders(), *mounts}):
        if not place.startswith(tuple(f"{system}/" for system in _SYSTEM)):
            command += _readable(place)
    return [*command, *more, "--remount-ro", "/", "--"]


def _readable(place: str) -> tuple[str, str, str]:
    return "--ro-bind-try", place, place


@cache
def _places(python: str) -> frozenset[str]:
    """The folders that this interpreter needs, without those that contain the user's home."""
    result = _run([python, "-c", _WHERE], interpreters.variables())
    named = json.loads(result.stdout) if result.returncode == 0 else []
    places = {*named, *(os.path.realpath(place) for place in named), *_folders_of_links(Path(python))}
    return frozenset(place for place in places if not home().is_relative_to(place))


def _folders_of_links(path: Path) -> Iterator[str]:
    """The folder of a program, and the folders of the links and the file behind it."""
    yield str(path.parent)
    if path.is_symlink():
        yield from _folders_of_links(path.parent / path.readlink())


@cache
def _version() -> str:
    return _run(["bwrap", "--version"], interpreters.variables()).stdout.strip()


def _run(command: list[str], variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, env=variables, cwd="/", capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"it did not end in {_PATIENCE_S} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))
