"""Runs a trial as a container: starts it, limits what it may do, reads its output, and ends it."""

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsuishi.base import owner
from tsuishi.base.errors import EngineLost, UserError
from tsuishi.base.processes import Ended, Process, Stream
from tsuishi.engines.docker.daemon import Connection, address, engine_errors, may_be_here
from tsuishi.engines.docker.devices import NO_GPUS, find_passing, groups_of_gpus
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.environment_variables import cuda_cache, of_cuda_cache
from tsuishi.engines.interface import Built, Launch, ResourceLimits
from tsuishi.machine.gpus import Gpu

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

# The container's own deadline is so much later than that of its runner, so that a living runner always ends it.
GRACE_S = 30.0
_OWNER = f"{OURS}owner"
# In seconds of the monotonic clock, which changes of the time of day do not move.
_DEADLINE = f"{OURS}deadline-monotonic-s"
_WHY = "its process was killed, or its time is over"
_NOBODY = "65534:65534"
_CUDA_CACHE = "/cuda-cache"
_SIGKILLED = 128 + signal.SIGKILL


class ContainerStarter:
    """Starts trials as containers of an environment's image."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start(self, built: Built, launch: Launch) -> Process:
        labels = {OURS + key: value for key, value in launch.labels.items()}
        given = {
            **hardening(launch.limits, launch.mounts),
            **self._gpus(launch.limits.gpus),
            **self._connection.daemon.needs,
        }
        if kept := cuda_cache(built, launch):
            given = with_cuda_cache(given, kept)
        with self._connection.speaking() as client:
            container = client.containers.create(
                built.realised_id,
                bounded([*built.python, *launch.arguments], launch.limits.seconds),
                name=launch.name,
                labels=labels | owned_labels(launch.limits.seconds),
                **networked(given, launch.network),
            )
            try:
                return RunningContainer(client, container)
            except BaseException:  # the container must not stay behind
                container.remove(force=True)
                raise

    def confinement(self, python: str) -> dict[str, Any]:
        """Nothing: every container is confined in the same way."""
        return {}

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        try:
            self._gpus(gpus)
        except UserError as error:
            return str(error)
        return ""

    def gpu_remedy(self) -> str:
        return f"{find_passing(self._connection.daemon).remedy}; or use --engine venv"

    def inside(self, path: Path, place: str) -> str:
        return place

    def abandoned(self) -> Sequence[str]:
        """What `sweep` would end, in words; nothing where the engine does not answer."""
        if may_be_here(address()):
            with suppress(EngineLost), self._connection.speaking() as client:
                return [f"container {container['Id'][:12]}: {_WHY}" for container in _abandoned(client)]
        return ()

    def sweep(self) -> None:
        """End the containers whose runner was killed, of every run, cache and user; none without an answer."""
        if may_be_here(address()):
            with suppress(EngineLost), self._connection.speaking() as client:
                remove_abandoned(client)

    def _gpus(self, gpus: Sequence[Gpu]) -> dict[str, Any]:
        """Arguments of containers.create. Raises UserError where the engine cannot pass these GPUs."""
        if not gpus:
            return NO_GPUS
        daemon = self._connection.daemon
        groups = [] if daemon.rootless else groups_of_gpus()
        return {**find_passing(daemon).arguments(gpus), **({"group_add": groups} if groups else {})}


def networked(given: Mapping[str, Any], network: Mapping[str, str] | None) -> dict[str, Any]:
    """The arguments of containers.create for a program that reaches other machines, see `Launch`; else as given."""
    if network is None:
        return dict(given)
    return {**given, "network_mode": "host", "environment": {**given.get("environment", {}), **network}}


def with_cuda_cache(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The arguments of containers.create for a program on a GPU, which may write into this folder of CUDA's."""
    from docker.types import Mount

    if not os.getuid():
        os.chown(folder, *map(int, _NOBODY.split(":")))
    return {
        **given,
        "mounts": [*given["mounts"], Mount(_CUDA_CACHE, str(folder), type="bind")],
        "environment": {**given.get("environment", {}), **of_cuda_cache(_CUDA_CACHE)},
    }


def hardening(limits: ResourceLimits, mounts: Mapping[Path, str]) -> dict[str, Any]:
    """The limits and permissions of a trial's container, as arguments of containers.create."""
    from docker.types import LogConfig, Mount

    given: dict[str, Any] = {
        "network_mode": "none",
        "read_only": True,
        # Docker's default is noexec, under which code that torch.compile has just compiled does not load.
        "tmpfs": {"/tmp": "exec,mode=1777"},  # noqa: S108
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "user": _unprivileged_user(),
        "pids_limit": limits.pids,
        # The image's own health check would disturb the measurement.
        "healthcheck": {"test": ["NONE"]},
        # The engine would keep every line on disk; the runner reads the stream itself.
        "log_config": LogConfig(type="none"),
        "mounts": [Mount(place, str(path), type="bind", read_only=True) for path, place in mounts.items()],
    }
    if limits.memory_bytes:
        given |= {"mem_limit": limits.memory_bytes, "memswap_limit": limits.memory_bytes}
    return given


def owned_labels(seconds: float) -> dict[str, str]:
    """The labels of a container: its owner is this process, and its deadline is after these seconds and the grace."""
    return {_OWNER: owner.me(), _DEADLINE: f"{time.monotonic() + seconds + GRACE_S:.0f}"}


def bounded(command: Sequence[str], seconds: float) -> list[str]:
    """The command with its own time limit, these seconds and the grace, because its runner may have been killed.

    timeout(1), which every Debian and Ubuntu has, is the container's process 1: no process in the container can end it,
    and all of them end with it.
    """
    return ["timeout", "-s", "KILL", f"{seconds + GRACE_S:.0f}", *command]


def remove_abandoned(client: "DockerClient") -> None:
    """Remove the containers whose owner is dead or whose deadline is over."""
    from docker.errors import APIError

    for container in _abandoned(client):
        try:
            client.api.remove_container(container["Id"], force=True)
        except APIError as error:
            if error.status_code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):  # another process removes it
                raise


def _abandoned(client: "DockerClient") -> list[dict[str, Any]]:
    found = client.api.containers(all=True, filters={"label": _OWNER})
    return [container for container in found if not _is_wanted(container["Labels"])]


def _is_wanted(labels: Mapping[str, str]) -> bool:
    deadline = labels.get(_DEADLINE, "")
    passed = deadline.isdecimal() and time.monotonic() > int(deadline)
    return owner.is_alive(labels[_OWNER]) and not passed


class RunningContainer:
    """The container of a trial. It is attached before it starts, so that no output is lost."""

    def __init__(self, client: "DockerClient", container: "Container") -> None:
        self._client = client
        self._container = container
        self._id = str(container.id)
        self._oom_kills = _oom_kills()
        self._stream = client.api.attach(self._id, stdout=True, stderr=True, stream=True, demux=True)
        container.start()
        self._pid = own_process(int(client.api.inspect_container(self._id)["State"]["Pid"]), self._id)

    def output(self) -> Iterator[tuple[Stream, bytes]]:
        with engine_errors():
            for stdout, stderr in self._stream:
                if stdout:
                    yield "stdout", stdout
                if stderr:
                    yield "stderr", stderr

    def pids(self) -> Sequence[int]:
        return [self._pid] if self._pid else []

    def stop(self) -> None:
        from docker.errors import APIError

        with engine_errors(), suppress(APIError):  # it has ended already
            self._container.kill()

    def wait(self) -> Ended:
        with engine_errors():
            code = int(self._client.api.wait(self._id, timeout=None)["StatusCode"])
            killed = bool(self._client.api.inspect_container(self._id)["State"].get("OOMKilled"))
            self._container.remove(force=True)
        # Under cgroups of the first version Podman does not notice this; the kernel's own count shows it.
        return Ended(code, out_of_memory=killed or (code == _SIGKILLED and _oom_kills() > self._oom_kills))


def own_process(pid: int, container: str, processes: Path = Path("/proc")) -> int:
    """The id of a container's process, or 0 where that id is of another process here: by the names of cgroups.

    Engines count in a system of their own: Docker Desktop in a virtual machine or another distribution of WSL, and an
    engine outside of the container that this process is in.
    """
    try:
        return pid if container in (processes / str(pid) / "cgroup").read_text(encoding="utf-8") else 0
    except OSError:
        return 0


def _oom_kills() -> int:
    """How many processes of this machine the kernel has killed because memory was full, in containers or not."""
    count = re.search(r"^oom_kill (\d+)$", Path("/proc/vmstat").read_text(), re.MULTILINE)
    return int(count[1]) if count else 0


def _unprivileged_user() -> str:
    """The user who runs tsuishi, because that user can read the workloads; "nobody" in place of root."""
    return f"{os.getuid()}:{os.getgid()}" if os.getuid() else _NOBODY
