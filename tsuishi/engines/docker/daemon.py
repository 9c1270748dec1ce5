"""The daemon of the engine: its socket, its kind and version, and the errors of its answers."""

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from tsuishi.base.errors import EngineLost, UserError
from tsuishi.base.home import home

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

# The limit of open files, and of processes of a user: enough for any trial, and every system allows it.
_LIMIT = 4096
_CAP_SYS_RESOURCE = 24
# The first crun that runs hooks of kind createContainer before it makes a container's root read-only (containers/crun,
# issue 1924; runc always did).
_CRUN = (1, 26)
_RUNTIME = "tsuishi-runtime"
# How the address of a socket in a file begins: only this machine can have it.
SOCKET = "unix://"


@dataclass(frozen=True)
class Daemon:
    """The engine at the socket: Docker, or Podman, which has Docker's API.

    `info`: its answer to the request `info`; for Podman with the version of its runtime.
    """

    name: Literal["Docker", "Podman"]
    version: str
    info: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def rootless(self) -> bool:
        return bool(self.info.get("Rootless")) or "name=rootless" in (self.info.get("SecurityOptions") or ())

    @property
    def recorded_version(self) -> str:
        """The version for records, with Podman's name: records call both engines `docker`."""
        # Under cgroups of the first version Podman silently ignores limits of a user.
        unlimited = ", without limits on memory" if self.info.get("CgroupVersion") == "1" else ""
        more = f" (rootless{unlimited})" if self.rootless else ""
        return (self.version if self.name == "Docker" else self.title) + more

    @property
    def needs(self) -> dict[str, Any]:
        """Arguments of containers.create that every container needs with this engine.

        Podman raises limits to its own defaults where none are given, which fails without CAP_SYS_RESOURCE. SELinux
        keeps a container from mounted folders of a user and from GPUs, unless their labels are left alone.
        """
        from docker.types import Ulimit

        given: dict[str, Any] = {}
        if "name=selinux" in (self.info.get("SecurityOptions") or ()):
            given["security_opt"] = ["no-new-privileges", "label=disable"]
        if self.name == "Podman" and not _may_raise_limits():
            given["ulimits"] = [Ulimit(name=name, soft=_LIMIT, hard=_LIMIT) for name in ("nofile", "nproc")]
        return given

    @property
    def is_here(self) -> bool:
        """Whether it says the name and the kernel of this machine: loopback may lead elsewhere (SSH)."""
        here = os.uname()
        return (self.info.get("Name"), self.info.get("KernelVersion")) == (here.nodename, here.release)

    @property
    def hooks_need_a_writable_root(self) -> bool:
        """Whether a container with the hooks of CDI devices starts only if its root is not read-only."""
        crun = re.match(r"crun version (\d+)\.(\d+)", self.info.get(_RUNTIME, ""))
        return crun is not None and (int(crun[1]), int(crun[2])) < _CRUN

    @property
    def no_network(self) -> str:
        """The build argument `networkmode` for no network. For Docker's word `none` Podman gives the host's network."""
        return "none" if self.name == "Docker" else "NetworkDisabled"

    @property
    def number(self) -> tuple[int, ...]:
        """The first two parts of the version."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])


def identify(client: "DockerClient") -> Daemon:
    """Ask the daemon which engine it is."""
    version = client.version()
    podman = any(component["Name"] == "Podman Engine" for component in version.get("Components") or ())
    more = {_RUNTIME: _runtime_of_podman(client)} if podman else {}
    return Daemon("Podman" if podman else "Docker", str(version["Version"]), {**client.info(), **more})


def _runtime_of_podman(client: "DockerClient") -> str:
    """The runtime that Podman starts containers with, as `crun version 1.8.1`; Docker's API names no version."""
    answer = client.api.get(f"{client.api.base_url}/v4.0.0/libpod/info")
    try:
        return str(answer.json()["host"]["ociRuntime"]["version"]).partition("\n")[0]
    except (ValueError, LookupError, TypeError):  # another version of Podman's own API
        return ""


def address() -> str:
    """The address of the daemon that the program `docker` would use; empty without any.

    It is DOCKER_HOST, else that of a context, else the first of the usual sockets that exists.
    """
    given = os.environ.get("DOCKER_HOST", "")
    if given:
        return given
    if name := context_name():
        return _address_of(name)
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    sockets = (Path("/var/run/docker.sock"), Path(runtime) / "docker.sock", home() / ".docker/run/docker.sock")
    return next((f"{SOCKET}{socket}" for socket in sockets if socket.exists()), "")


def may_be_here(place: str) -> bool:
    """Whether an address can be of an engine on this machine: a socket, or loopback, as in WSL and in jobs of CI."""
    with suppress(ValueError):
        parts = urlsplit(place)
        if parts.scheme == "tcp" and parts.hostname:
            return parts.hostname == "localhost" or ip_address(parts.hostname).is_loopback
    return place.startswith(SOCKET)


def context_name() -> str:
    """The name of the context that `docker` uses; empty for its default, and where DOCKER_HOST counts instead."""
    if os.environ.get("DOCKER_HOST"):
        return ""
    named = os.environ.get("DOCKER_CONTEXT") or _read(_configuration() / "config.json").get("currentContext")
    return "" if named in (None, "default") else str(named)


def _address_of(name: str) -> str:
    """The address that a context has; empty where there is no such context."""
    folder = _configuration() / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    with suppress(KeyError, TypeError):
        return str(_read(folder / "meta.json")["Endpoints"]["docker"]["Host"])
    return ""


def _configuration() -> Path:
    """The folder with the configuration of `docker`."""
    return Path(os.environ.get("DOCKER_CONFIG") or home() / ".docker")


def _read(path: Path) -> dict[str, Any]:
    """The JSON object in a file of the user's; empty where it cannot be read, as for `docker`."""
    with suppress(OSError, ValueError):
        value = json.loads(path.read_bytes())
        return value if isinstance(value, dict) else {}
    return {}


def _may_raise_limits() -> bool:
    """Whether root on this machine (which may be a container) can raise limits, by the bounding set of capabilities."""
    (bounding,) = re.findall(r"^CapBnd:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return bool(int(bounding, 16) >> _CAP_SYS_RESOURCE & 1)


def image_or_none(client: "DockerClient", name: str) -> "Image | None":
    """The image in the engine with this name or id; None where there is none."""
    from docker.errors import ImageNotFound

    try:
        return client.images.get(name)
    except ImageNotFound:
        return None


def remove_unnamed(client: "DockerClient", image_id: str) -> None:
    """Remove an image that has no name and on which no other image or container is based."""
    from docker.errors import APIError

    with suppress(APIError):  # it is gone, or is still needed
        image = client.images.get(image_id)
        if not image.tags and not image.attrs.get("RepoDigests"):
            client.images.remove(image_id, noprune=True)


class Connection:
    """The clients of a daemon."""

    def __init__(self, timeout_s: float = 60.0) -> None:
        self._timeout_s = timeout_s
        # Docker's client is not made for several threads, so each thread has its own.
        self._of_thread = threading.local()

    @contextmanager
    def speaking(self) -> Iterator["DockerClient"]:
        """This thread's client. Inside the block its errors become UserError and EngineLost."""
        with engine_errors():
            yield self.client

    @property
    def client(self) -> "DockerClient":
        """This thread's client."""
        import docker

        if not hasattr(self._of_thread, "client"):
            self._of_thread.client = docker.DockerClient(base_url=address(), timeout=self._timeout_s)  # type: ignore[arg-type]
        client: DockerClient = self._of_thread.client
        return client

    @cached_property
    def daemon(self) -> Daemon:
        """The engine that answers. It is asked only once."""
        with self.speaking() as client:
            return identify(client)


@contextmanager
def patient(client: "DockerClient") -> Iterator[None]:
    """Inside the block answers have no time limit, because an engine that packs gigabytes is silent meanwhile."""
    usual = client.api.timeout
    client.api.timeout = None  # type: ignore[assignment]
    try:
        yield
    finally:
        client.api.timeout = usual


@contextmanager
def engine_errors() -> Iterator[None]:
    """Inside the block errors of requests become EngineLost, or UserError where the engine refuses."""
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
