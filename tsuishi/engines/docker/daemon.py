"""The daemon behind the socket: where it listens, who it is, and whatever goes wrong on the way to it."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tsuishi.base.errors import EngineLost, UserError

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image


# Open files, and processes of a user: enough for any trial, and no more than any system allows.
_LIMIT = 4096
_CAP_SYS_RESOURCE = 24


@dataclass(frozen=True)
class Daemon:
    """Who answers at the socket: Podman speaks Docker's language too. `info` is what it tells of itself."""

    name: Literal["Docker", "Podman"]
    version: str
    info: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def told(self) -> str:
        """The version as records have it, beside the engine's name `docker`, which is that of the language spoken."""
        rootless = self.info.get("Rootless") or "name=rootless" in (self.info.get("SecurityOptions") or ())
        # Podman is silent about limits it ignores: those of a user under cgroups of the first version.
        unlimited = ", without limits on memory" if self.info.get("CgroupVersion") == "1" else ""
        more = f" (rootless{unlimited})" if rootless else ""
        return (self.version if self.name == "Docker" else self.title) + more

    @property
    def needs(self) -> dict[str, Any]:
        """What every container has to be created with here, as arguments of containers.create.

        Podman raises limits to its own defaults where none are given, which fails without CAP_SYS_RESOURCE.
        """
        from docker.types import Ulimit

        if self.name == "Docker" or _may_raise_limits():
            return {}
        return {"ulimits": [Ulimit(name=name, soft=_LIMIT, hard=_LIMIT) for name in ("nofile", "nproc")]}

    @property
    def no_network(self) -> str:
        """What a build is asked for to have none: Podman takes the word for containers and gives the host's."""
        return "none" if self.name == "Docker" else "NetworkDisabled"

    @property
    def number(self) -> tuple[int, ...]:
        """The version's first two parts."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])


def identify(client: "DockerClient") -> Daemon:
    """Ask the daemon who it is."""
    version = client.version()
    podman = any(component["Name"] == "Podman Engine" for component in version.get("Components") or ())
    return Daemon("Podman" if podman else "Docker", str(version["Version"]), client.info())


def address() -> str:
    """Where the daemon listens: DOCKER_HOST, or the first of the usual sockets that exists; empty where none does."""
    given = os.environ.get("DOCKER_HOST", "")
    if given:
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    sockets = (Path("/var/run/docker.sock"), Path(runtime) / "docker.sock", Path.home() / ".docker/run/docker.sock")
    return next((f"unix://{socket}" for socket in sockets if socket.exists()), "")


def _may_raise_limits() -> bool:
    """Whether anybody on this machine (which may be a container) could: by the bounding set, that of root too."""
    (bounding,) = re.findall(r"^CapBnd:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return bool(int(bounding, 16) >> _CAP_SYS_RESOURCE & 1)


def image_or_none(client: "DockerClient", name: str) -> "Image | None":
    """An image here by any of its names, or its id."""
    from docker.errors import ImageNotFound

    try:
        return client.images.get(name)
    except ImageNotFound:
        return None


@contextmanager
def speaking() -> Iterator[None]:
    """Whatever goes wrong between here and the daemon, as one kind of error."""
    import docker.credentials.errors
    import docker.errors
    import requests.exceptions
    import urllib3.exceptions

    lost = (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, ConnectionError)
    try:
        yield
    except docker.errors.APIError as error:
        if error.is_server_error() and "shutting down" in str(error):
            raise EngineLost(str(error.explanation)) from error
        raise UserError(f"the engine refused: {error.explanation or error}") from error
    except docker.credentials.errors.StoreError as error:
        raise UserError(f"~/.docker/config.json names a credential helper that fails: {error}") from error
    except (docker.errors.DockerException, *lost) as error:
        raise EngineLost((str(error).splitlines() or [type(error).__name__])[0][:200]) from error
