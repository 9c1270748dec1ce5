"""A Podman service for the engine tests, with its data in a folder of its own and the base images Docker has."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import docker

_ANSWERS_IN_S = 30.0


# The crun of Debian 12 starts nothing where cgroups of both versions are mounted.
_WITHOUT_CGROUPS_2 = 'awk \'$3 == "cgroup2" {print $2}\' /proc/mounts | xargs --no-run-if-empty umount && exec "$@"'

# What a system needs to start containers in, and the folder of the service at its own place.
_IN_ANOTHER_SYSTEM = (
    'mount --bind "$0" "$0" && '  # Podman takes its root for a mount
    'for place in /proc /sys /dev "$1"; do mkdir -p "$0$place" && mount --rbind "$place" "$0$place" || exit 1; done; '
    'shift; exec chroot "$0" "$@"'
)


def why_not(runtime: str = "runc") -> str:
    """What is missing for a service; empty where nothing is."""
    if os.geteuid() != 0:
        return "no right to start a Podman service"
    lacking = [program for program in ("podman", runtime) if not shutil.which(program)]
    return f"no {' and no '.join(lacking)} (Debian's packages podman and {runtime})" if lacking else ""


@contextmanager
def service(
    root: Path, images: tuple[str, ...], runtime: str = "runc", hooks: Path | None = None, system: Path | None = None
) -> Iterator[str]:
    """The address of a service that ends with the block and holds these images of the Docker engine.

    hooks: a folder with hooks that every container gets. system: the root of another Debian, whose Podman it is.
    """
    socket = root / "podman.sock"
    given = f"--runtime {runtime} {f'--hooks-dir {hooks}' if hooks else ''} --log-level error"
    options = f"--root {root}/data --runroot {root}/run {given} system service --time=0"
    # Its mounts go with its namespace, however it ends: pytest removes this folder some day.
    shell = ("sh", "-c", _WITHOUT_CGROUPS_2, "sh") if runtime == "crun" else ()
    program = ("podman", *options.split(), f"unix://{socket}")
    command = in_another_system(system, root, *program) if system else ("unshare", "--mount", *shell, *program)
    with serving(command, root, socket, images) as address:
        yield address


def in_another_system(system: Path, root: Path, *command: str) -> tuple[str, ...]:
    """The command in another Debian, whose root this is, and which sees the folder `root` at its own place."""
    return ("unshare", "--mount", "sh", "-c", _IN_ANOTHER_SYSTEM, str(system), str(root), *command)


@contextmanager
def serving(command: Sequence[str], root: Path, socket: Path, images: tuple[str, ...]) -> Iterator[str]:
    """The address of an engine that this command starts, and that ends with the block; as of `service`."""
    log = root / "service.log"
    # What runs a container leaves a file `oom` where the service was started, once one ran out of memory.
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, cwd=root) as process:
        try:
            _await_answer(process, socket, log)
            with closing(docker.DockerClient(f"unix://{socket}")) as service, closing(docker.from_env()) as engine:
                for image in images:
                    with suppress(docker.errors.ImageNotFound):  # one of a registry, where Podman finds it, too
                        chunks: Any = engine.images.get(image).save(named=image)  # sent as they come
                        service.images.load(chunks)
            yield f"unix://{socket}"
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(root / "data", ignore_errors=True)  # a program that ends a container may still be at it


def _await_answer(process: "subprocess.Popen[bytes]", socket: Path, log: Path) -> None:
    deadline = time.monotonic() + _ANSWERS_IN_S
    while not socket.exists():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, f"no answer in {_ANSWERS_IN_S:g} s"
        time.sleep(0.05)
