"""Gives the engine tests a Docker engine and base images on a machine that can reach no registry.

As a script: ``export "$(python tests/engine/local_bases.py)"``, and later ``--stop``. The only line on stdout
is the setting that makes Tsuishi take these images for the ones environments name; all else goes to stderr.
Needs root, and Debian's packages docker.io and debootstrap. The CPythons are pyenv's.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

# What an environment names, and the local image that stands in for it; its tag is the CPython it holds.
MIRRORS = (
    ("docker.io/library/python:3.6.15-slim-bullseye", "tsuishi-test/python:3.6"),
    ("docker.io/library/python:3.6.15-bullseye", "tsuishi-test/python-full:3.6"),
    ("docker.io/library/python:3.11.13-slim-bookworm", "tsuishi-test/python:3.11"),
    ("docker.io/library/python:3.11.13-bookworm", "tsuishi-test/python-full:3.11"),
)
# What Docker's images have that are not slim, as far as an environment needs it: the same for all, one file system.
_FULL = ("libgomp1", "g++", "openssl")
MORE_PACKAGES = dict.fromkeys(("tsuishi-test/python-full:3.6", "tsuishi-test/python-full:3.11"), _FULL)
SOCKET = "/var/run/docker.sock"
ENGINE_TIMEOUT_S = 60.0
LABEL = "org.tsuishi.test.recipe"
# Imported as the containers' user before an image is made: a missing library is to stop here, not in a test.
MODULES = "ssl, sqlite3, ctypes, bz2, lzma, venv, hashlib, zlib, readline, curses, uuid"
# Of a CPython: the packages pyenv's user installed, and what an image for tests has no use for.
LEFT_OUT = shutil.ignore_patterns(
    *("site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "_tkinter*", "__pycache__"),
    *("config-*", "*.a"),
)
# Of the root file system: what is the machine's, or only read by people.
EMPTIED = (
    *("dev", "proc", "sys", "tmp", "var/cache/apt", "var/lib/apt/lists"),
    *("usr/share/doc", "usr/share/man", "usr/share/locale"),
)
# The system tools live in sbin, which a user's PATH often lacks.
PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


class Failed(Exception):
    """Something the machine lacks or a command that failed, in words for the person at the terminal."""


def say(text: str) -> None:
    """Stdout belongs to the one line a shell exports, so people are told on stderr."""
    print(text, file=sys.stderr, flush=True)


def tail(text: str) -> str:
    """The end of a program's output, where the reason for its failure is."""
    return "\n".join(text.splitlines()[-20:])


def run(*argv: str | Path) -> str:
    """Runs a command and gives its stdout; quiet, since a failure's error holds the end of its output."""
    env = {**os.environ, "LC_ALL": "C", "PATH": PATH}
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise Failed(f"{argv[0]} is not installed (apt-get install docker.io debootstrap)") from error
    if done.returncode:
        command = " ".join(map(str, argv))
        raise Failed(f"{command}: exit status {done.returncode}\n{tail(done.stdout + done.stderr)}")
    return done.stdout


def cache() -> Path:
    """One folder for all that is costly to make again, where CI can keep it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tsuishi"


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """Lets one run at a time start an engine or make images: two would start two and race for the tags."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "local_bases.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# The engine


def answers(host: str) -> bool:
    """Asks the engine itself: a socket left by one that was killed is still there as a file."""
    try:
        run("docker", "--host", host, "version", "--format", "{{.Server.Version}}")
    except Failed:
        return False
    return True


def running(pid_file: Path, program: str) -> int | None:
    """The process a pid file names, if it is that program; a stale file is removed: dockerd would trust it.

    Read from /proc/PID/exe, which a zombie has no more, so that one nobody has reaped counts as ended.
    """
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file.read_text())
        if Path(f"/proc/{pid}/exe").readlink().name.startswith(program):
            return pid
    pid_file.unlink(missing_ok=True)
    return None


def state(root: Path) -> Path:
    """For the engine's own sockets: below a deep data root their paths would pass the 108 bytes allowed."""
    return Path("/run") / f"tsuishi-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}"


def launch(root: Path, host: str) -> subprocess.Popen[bytes]:
    """Starts dockerd in a session of its own, so that it outlives this script and its terminal."""
    log, pid_file = root / "dockerd.log", root / "dockerd.pid"
    # Dockerd starts a containerd, unless this file, left by one that was killed, names a process.
    running(state(root) / "containerd/containerd.pid", "containerd")
    argv = ("dockerd", "--host", host, "--data-root", root, "--exec-root", state(root), "--pidfile", pid_file)
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(argument) for argument in argv],
            env={**os.environ, "PATH": PATH},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            start_new_session=True,
        )


def start(root: Path, host: str) -> None:
    """Starts an engine and waits until it answers; what it says when it does not is in its log."""
    if os.geteuid() != 0 or not all(shutil.which(program, path=PATH) for program in ("docker", "dockerd")):
        raise Failed("no Docker engine answers; starting one needs root and Debian's package docker.io")
    root.mkdir(parents=True, exist_ok=True)
    process = launch(root, host)
    deadline = time.monotonic() + ENGINE_TIMEOUT_S
    while not answers(host):
        if process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
            continue
        why = f"gave no answer in {ENGINE_TIMEOUT_S:.0f} s"
        if process.returncode is not None:
            why = f"ended with status {process.returncode}"
        process.terminate()
        log = root / "dockerd.log"
        raise Failed(f"dockerd {why}; the end of {log}:\n{tail(log.read_text(errors='replace'))}")


def engine(root: Path | None = None, socket: str | None = None) -> str:
    """The address of an engine that answers: one already there, else one started with its data in root."""
    root = (root or cache() / "dockerd").absolute()
    host = f"unix://{socket}" if socket else os.environ.get("DOCKER_HOST") or f"unix://{SOCKET}"
    if answers(host):
        return host
    if not host.startswith("unix://"):
        raise Failed(f"no Docker engine answers at {host}, and only at a unix:// address can one be started")
    if pid := running(root / "dockerd.pid", "dockerd"):
        raise Failed(f"the dockerd of {root} runs (process {pid}), but not at {host}; end it with --stop")
    start(root, host)
    say(f"started dockerd at {host}, its data and log in {root}")
    return host


def stop(root: Path | None = None) -> None:
    """Ends the dockerd that engine() started with this root, and no other; it stops its containers first."""
    root = (root or cache() / "dockerd").absolute()
    pid = running(root / "dockerd.pid", "dockerd")
    if pid is None:
        say(f"no dockerd of {root} is running")
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + ENGINE_TIMEOUT_S
    while running(root / "dockerd.pid", "dockerd"):
        if time.monotonic() > deadline:
            raise Failed(f"dockerd (process {pid}) did not end; see {root / 'dockerd.log'}")
        time.sleep(0.1)
    say(f"ended dockerd (process {pid})")


# The base images


def minor(image: str) -> str:
    """The tag says which CPython an image is to hold, so that the list above stays the only one."""
    return image.rpartition(":")[2]


def cpython(version: str) -> Path:
    """Pyenv's newest CPython of a minor version; its patch level is the machine's, not ours to choose."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [path for path in versions.glob(f"{version}.*") if re.fullmatch(r"[0-9.]+", path.name)]
    if not found:
        raise Failed(f"no CPython {version} in {versions} (pyenv install {version})")
    return max(found, key=lambda path: [int(part) for part in path.name.split(".")])


def packages(pythons: Iterable[Path]) -> list[str]:
    """The Debian packages whose shared libraries these CPythons load, by the host's, which built them."""
    binaries = [
        binary
        for python in pythons
        for pattern in ("lib/libpython*.so.*", "lib/python*/lib-dynload/*.so")
        for binary in python.glob(pattern)
        if "_tkinter" not in binary.name
    ]
    libraries = set(re.findall(r"=> /(?:usr/)?(lib/\S+)", run("ldd", *binaries)))
    owners = set()
    for library in libraries:
        # The file is in /usr/lib, but packages from before the merge list it in /lib.
        with contextlib.suppress(Failed):
            owners.add(run("dpkg-query", "--search", f"/{library}").partition(":")[0])
            continue
        owners.add(run("dpkg-query", "--search", f"/usr/{library}").partition(":")[0])
    return sorted(owners)


def mirror() -> str:
    """Where the host's apt takes its release from; asked of apt, which knows all the forms of its sources."""
    wanted = ("Created-By: Packages", f"Release: {own_suite()}", "Component: main")
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted).split()
    if not found:
        raise Failed(f"apt has no source for {own_suite()} main")
    return found[0]


def own_suite() -> str:
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def debootstrapped(suite: str, include: Iterable[str]) -> Path:
    """A minimal Debian as a tar, kept under a name that says what is in it."""
    given = ",".join(include)
    kept = cache() / f"rootfs-{suite}-{hashlib.sha256(given.encode()).hexdigest()[:12]}.tar"
    if kept.exists():
        return kept
    say(f"debootstrap {suite} with {given}")
    with tempfile.TemporaryDirectory(dir=cache(), prefix="rootfs-") as folder:
        target = Path(folder) / "root"
        options = ("--variant=minbase", "--force-check-gpg", f"--include={given}")
        # Its mounts go with its namespace, however it ends: removing the folder must not reach into them.
        run("unshare", "--mount", "debootstrap", *options, suite, target, mirror())
        pack(target, Path(folder) / "root.tar")
        (Path(folder) / "root.tar").rename(kept)
    return kept


def root_file_system(pythons: Iterable[Path], more: Iterable[str]) -> Path:
    """A minimal Debian of the host's own release, with what these CPythons load."""
    return debootstrapped(own_suite(), [*packages(pythons), *more])


def pack(root: Path, tar: Path) -> None:
    """Numeric owners, because the names are the image's and not the host's."""
    left_out = [f"--exclude=./{path}/*" for path in EMPTIED]
    run("tar", "--create", "--file", tar, "--numeric-owner", *left_out, "-C", root, ".")


def install(python: Path, root: Path) -> None:
    """Puts a CPython into /usr/local, where the official images have theirs."""
    local = root / "usr/local"
    shutil.copytree(python / "include", local / "include", symlinks=True, dirs_exist_ok=True)
    shutil.copytree(python / "lib", local / "lib", symlinks=True, dirs_exist_ok=True, ignore=LEFT_OUT)
    for binary in (python / "bin").iterdir():
        # The other scripts name pyenv's interpreter in their first line.
        if re.fullmatch(r"python[0-9.]*m?", binary.name):
            shutil.copy2(binary, local / "bin", follow_symlinks=False)
    for settings in local.glob("lib/python*/_sysconfigdata*.py"):
        settings.write_text(settings.read_text().replace(str(python), "/usr/local"))
    # Libpython is a shared library, and the path built into the interpreter is pyenv's.
    run("chroot", root, "ldconfig")


def check(image: str, root: Path) -> None:
    """Imports what needs a library as the containers' user, before the image gets its name."""
    python = f"python{minor(image)}"
    run("chroot", "--userspec=65534:65534", root, f"/usr/local/bin/{python}", "-B", "-c", f"import {MODULES}")


def recipe(python: Path) -> str:
    """Of this file and the CPython's version, so that an image made before either changed is made again."""
    return hashlib.sha256(Path(__file__).read_bytes() + python.name.encode()).hexdigest()


def is_current(host: str, image: str, python: Path) -> bool:
    """Asks for the image's label; an image of the same name that somebody else made has none."""
    form = f'{{{{index .Config.Labels "{LABEL}"}}}}'
    try:
        label = run("docker", "--host", host, "image", "inspect", "--format", form, image).strip()
    except Failed:
        return False
    return label == recipe(python)


def make(host: str, image: str, python: Path, debian: Path) -> None:
    """Builds the root file system outside the engine and imports it, as there is nothing to build FROM."""
    say(f"making {image} of {python}")
    with tempfile.TemporaryDirectory(dir=cache(), prefix="image-") as folder:
        root, tar = Path(folder) / "root", Path(folder) / "image.tar"
        root.mkdir()
        run("tar", "--extract", "--file", debian, "--numeric-owner", "--preserve-permissions", "-C", root)
        install(python, root)
        check(image, root)
        pack(root, tar)
        path = "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        settings = (path, "ENV LANG=C.UTF-8", 'CMD ["python3"]', f"LABEL {LABEL}={recipe(python)}")
        changes = [argument for setting in settings for argument in ("--change", setting)]
        run("docker", "--host", host, "import", *changes, tar, image)


def bases(host: str) -> None:
    """Makes the images that are not there; with all there it costs one question to the engine for each."""
    pythons = {image: cpython(minor(image)) for _, image in MIRRORS}
    missing = {image: python for image, python in pythons.items() if not is_current(host, image, python)}
    if not missing:
        return
    if os.geteuid() != 0:
        raise Failed("making the base images needs root: debootstrap and chroot do")
    for image, python in missing.items():
        make(host, image, python, root_file_system(pythons.values(), MORE_PACKAGES.get(image, ())))


def main() -> int:
    """Prints the line for the shell only when all is there, so that a failure exports nothing."""
    parser = argparse.ArgumentParser(description="A Docker engine and local base images for engine tests.")
    parser.add_argument("--root", type=Path, help="dockerd's data root (default: in the user's cache)")
    parser.add_argument("--socket", help=f"the engine's socket (default: $DOCKER_HOST, else {SOCKET})")
    parser.add_argument("--stop", action="store_true", help="end the dockerd started here")
    options = parser.parse_args()
    try:
        with lock():
            if options.stop:
                stop(options.root)
                return 0
            bases(engine(options.root, options.socket))
    except Failed as failure:
        say(f"local_bases.py: {failure}")
        return 1
    print("INVOKE_TSUISHI_MIRRORS=" + ",".join(f"{name}={image}" for name, image in MIRRORS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
