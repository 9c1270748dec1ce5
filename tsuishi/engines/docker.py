"""The docker engine: environments as images, trials as hardened containers, through the Docker SDK for Python."""

import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from tsuishi import __version__, provenance
from tsuishi.artifacts import Fetcher, Say
from tsuishi.engines import wheelhouse
from tsuishi.engines.base import Availability, Built, Ended, Launch, Limits, Process, Stream
from tsuishi.environment import Environment
from tsuishi.errors import BuildError, EngineLost, UserError
from tsuishi.settings import mirrored

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

_LABEL = "io.tsuishi."
_OCI = "org.opencontainers.image."
_NOBODY = "65534:65534"
_NCCL_SHARED_MEMORY = "8g"
# In a build's output: colours, and lines that are never the reason of a failure.
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CHATTER = (" --->", "Removing intermediate container", "Step ")


class DockerEngine:
    """Environments as images `tsuishi/<environment>:<spec id>`."""

    name = "docker"

    def __init__(self, dockerfile: Path, mirrors: Mapping[str, str], temporary: Path) -> None:
        self._template = dockerfile.read_text(encoding="utf-8")
        self._mirrors = mirrors
        self._temporary = temporary

    def availability(self) -> Availability:
        address = _address()
        if not address:
            return Availability(False, reason="no Docker socket found", remedy="install and start Docker, or use venv")
        if not address.startswith("unix://"):
            raise UserError(
                f"DOCKER_HOST={address} is another machine, and telemetry would watch this one: "
                "run tsuishi there, or unset DOCKER_HOST"
            )
        try:
            with _speaking():
                return Availability(True, version=str(self._client.version()["Version"]))
        except EngineLost as error:
            group = (
                "add yourself to the group docker and log in again" if "ermission denied" in str(error) else "start it"
            )
            return Availability(
                False, reason=f"Docker does not answer: {error}", remedy=f"{group}, or use --engine venv"
            )

    def refusal(self, environment: Environment) -> str:
        return "" if environment.pinned else "it has no base image: use --engine host"

    def find(self, environment: Environment) -> Built | None:
        from docker.errors import ImageNotFound

        with _speaking():
            try:
                image = self._client.images.get(self._tag(environment))
            except ImageNotFound:
                return None
        if image.labels.get(f"{_LABEL}base-used") != self._base(environment):
            return None
        return self._built(environment, image)

    def build(self, environment: Environment, fetcher: Fetcher, say: Say) -> Built:
        from docker.errors import APIError

        wheels, debs = fetcher.fetch(environment), fetcher.fetch_debs(environment)
        with _speaking():
            base = self._ensure_base(environment, say)
            with self._context(environment, wheels, debs) as context:
                self._build_image(environment, base, context, say)
            with suppress(APIError):  # somebody else is pruning; what the build left takes room, no more
                self._client.images.prune({"dangling": True, "label": f"{_LABEL}stage=build"})
            return self._built(environment, self._client.images.get(self._tag(environment)))

    def discard(self, built: Built) -> None:
        with _speaking():
            self._client.images.remove(self._tag(built.environment), force=True)

    def start(self, built: Built, launch: Launch) -> Process:
        with _speaking():
            container = self._client.containers.create(
                built.realised_id,
                [*built.python, *launch.arguments],
                name=launch.name,
                labels={_LABEL + key: value for key, value in launch.labels.items()},
                **hardening(launch.limits, launch.mounts),
            )
            try:
                return _Container(self._client, container)
            except BaseException:  # it must not stay behind, whatever happened
                container.remove(force=True)
                raise

    def inside(self, path: Path, place: str) -> str:
        return place

    def sweep(self, labels: Mapping[str, str]) -> None:
        wanted = [f"{_LABEL}{key}={value}" for key, value in labels.items()]
        with _speaking():
            for container in self._client.containers.list(all=True, filters={"label": wanted}):
                container.remove(force=True)

    def images(self) -> list["Image"]:
        """Every image tsuishi made."""
        with _speaking():
            return list(self._client.images.list(filters={"label": f"{_LABEL}spec-id"}))

    def remove_images(self) -> list[str]:
        """Remove every image tsuishi made, and nothing else; their names."""
        names = []
        for image in self.images():
            names += image.tags
            with _speaking():
                self._client.images.remove(str(image.id), force=True)
        return names

    @cached_property
    def _client(self) -> "DockerClient":
        import docker

        return docker.DockerClient(base_url=_address(), timeout=60)

    def _tag(self, environment: Environment) -> str:
        return f"tsuishi/{environment.name}:{environment.spec_id(self._template)}"

    def _base(self, environment: Environment) -> str:
        """The reference to build on: the spec's, by digest where it has one, or what the mirror map says."""
        assert environment.base is not None
        used = mirrored(environment.base.reference, self._mirrors)
        if used == environment.base.reference and environment.base.digest:
            return f"{used.rpartition(':')[0]}@{environment.base.digest}"
        return used

    def _ensure_base(self, environment: Environment, say: Say) -> "Image":
        from docker.errors import APIError, ImageNotFound

        reference = self._base(environment)
        try:
            return self._client.images.get(reference)
        except ImageNotFound:
            say(f"pulling {reference}")
        try:
            return self._client.images.pull(reference)
        except (APIError, ImageNotFound) as error:
            raise BuildError(
                f"{environment.name}: cannot pull {reference}: {error.explanation or error}; where the registry is out "
                "of reach, name a copy of it in tsuishi.mirrors, or use --engine venv"
            ) from error

    @contextmanager
    def _context(self, environment: Environment, wheels: Sequence[Path], debs: Sequence[Path]) -> Iterator[Path]:
        """The build context as a tar: the same content gives the same bytes, so that layers are found again."""
        template = jinja2.Template(self._template, undefined=jinja2.StrictUndefined, autoescape=False)
        dockerfile = template.render(
            base=self._base(environment),
            python=environment.python,
            debs=environment.debs,
            pip=wheelhouse.pip_wheel(environment.name, wheels).name,
        )
        self._temporary.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._temporary, prefix=".context-") as temporary:
            folder = Path(temporary) / "context"
            wheelhouse.lay_out(folder, environment.pins, wheels, debs)
            (folder / "Dockerfile").write_text(dockerfile, encoding="utf-8")
            path = Path(temporary) / "context.tar"
            with tarfile.open(path, "w", dereference=True) as tar:
                tar.add(folder, arcname=".", filter=_without_circumstances)
            yield path

    def _build_image(self, environment: Environment, base: "Image", context: Path, say: Say) -> None:
        last = ""
        with context.open("rb") as file:
            stream = self._client.api.build(
                fileobj=file,
                custom_context=True,
                tag=self._tag(environment),
                labels=self._labels(environment, base),
                network_mode="none",
                rm=True,
                forcerm=True,
                decode=True,
            )
            for chunk in stream:
                if "error" in chunk:
                    raise BuildError(f"{environment.name}: {chunk['error'].strip()}{last and f' ({last})'}")
                for line in _ANSI.sub("", str(chunk.get("stream", ""))).splitlines():
                    if line.strip():
                        say(line)
                    if line.strip() and not line.startswith(_CHATTER):
                        last = line.strip()

    def _labels(self, environment: Environment, base: "Image") -> dict[str, str]:
        assert environment.base is not None
        revision = provenance.git_state()
        return {
            f"{_OCI}title": f"tsuishi {environment.name}: {environment.title}",
            f"{_OCI}version": __version__,
            f"{_OCI}revision": revision["commit"] + ("-dirty" if revision["dirty"] else ""),
            f"{_OCI}base.name": environment.base.reference,
            f"{_OCI}base.digest": environment.base.digest or "unpinned",
            f"{_LABEL}base-used": self._base(environment),
            f"{_LABEL}base-image": str(base.id),
            f"{_LABEL}spec-id": environment.spec_id(self._template),
            f"{_LABEL}lock-sha256": environment.lock_sha256,
        }

    def _built(self, environment: Environment, image: "Image") -> Built:
        assert environment.base is not None
        asked, used = environment.base.reference, self._base(environment)
        replaced = used.partition("@")[0] not in (asked, asked.rpartition(":")[0])
        return Built(
            environment=environment,
            engine=self.name,
            engine_version=str(self._client.version()["Version"]),
            spec_id=environment.spec_id(self._template),
            realised_id=str(image.id),
            python=("python",),
            details={
                "base": {
                    "reference": asked,
                    "used": used,
                    "digest": environment.base.digest or "unpinned",
                    "image_id": image.labels.get(f"{_LABEL}base-image", ""),
                },
                "substitutions": [{"asked": asked, "used": used}] if replaced else [],
                "image": {
                    "id": image.id,
                    "tag": self._tag(environment),
                    "size_bytes": image.attrs.get("Size"),
                    "created": image.attrs.get("Created"),
                    "labels": dict(sorted(image.labels.items())),
                },
            },
        )


def hardening(limits: Limits, mounts: Mapping[Path, str]) -> dict[str, Any]:
    """Everything a trial's container is denied, and the little it is given, as arguments of containers.create."""
    from docker.types import DeviceRequest, LogConfig, Mount

    given: dict[str, Any] = {
        "network_mode": "none",
        "read_only": True,
        "tmpfs": {"/tmp": "mode=1777"},  # noqa: S108
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "user": _unprivileged_user(),
        "pids_limit": limits.pids,
        # The engine would keep every line on disk; the runner reads the stream itself.
        "log_config": LogConfig(type="none"),
        "mounts": [Mount(place, str(path), type="bind", read_only=True) for path, place in mounts.items()],
    }
    if limits.memory_bytes:
        given |= {"mem_limit": limits.memory_bytes, "memswap_limit": limits.memory_bytes}
    if limits.gpus:
        given |= {
            "device_requests": [DeviceRequest(device_ids=list(limits.gpus), capabilities=[["gpu"]])],
            "environment": {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
            "shm_size": _NCCL_SHARED_MEMORY,
        }
    return given


class _Container:
    """A trial's container, attached before it starts so that nothing it says is lost."""

    def __init__(self, client: "DockerClient", container: "Container") -> None:
        self._client = client
        self._container = container
        self._id = str(container.id)
        self._stream = client.api.attach(self._id, stdout=True, stderr=True, stream=True, demux=True)
        container.start()
        self._pid = int(client.api.inspect_container(self._id)["State"]["Pid"])

    def output(self) -> Iterator[tuple[Stream, bytes]]:
        with _speaking():
            for stdout, stderr in self._stream:
                if stdout:
                    yield "stdout", stdout
                if stderr:
                    yield "stderr", stderr

    def pids(self) -> Sequence[int]:
        return [self._pid] if self._pid else []

    def stop(self) -> None:
        from docker.errors import APIError

        with _speaking(), suppress(APIError):  # it has ended already
            self._container.kill()

    def wait(self) -> Ended:
        with _speaking():
            code = int(self._client.api.wait(self._id, timeout=None)["StatusCode"])
            killed = bool(self._client.api.inspect_container(self._id)["State"].get("OOMKilled"))
            self._container.remove(force=True)
        return Ended(code, out_of_memory=killed)


@contextmanager
def _speaking() -> Iterator[None]:
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
        raise UserError(f"Docker refused: {error.explanation or error}") from error
    except docker.credentials.errors.StoreError as error:
        raise UserError(f"~/.docker/config.json names a credential helper that fails: {error}") from error
    except (docker.errors.DockerException, *lost) as error:
        raise EngineLost((str(error).splitlines() or [type(error).__name__])[0][:200]) from error


def _address() -> str:
    """Where the daemon listens: DOCKER_HOST, or the first of the usual sockets that exists; empty where none does."""
    given = os.environ.get("DOCKER_HOST", "")
    if given:
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    sockets = (Path("/var/run/docker.sock"), Path(runtime) / "docker.sock", Path.home() / ".docker/run/docker.sock")
    return next((f"unix://{socket}" for socket in sockets if socket.exists()), "")


def _unprivileged_user() -> str:
    """Whoever runs tsuishi, who can read the workloads whatever the umask was; nobody in place of root."""
    return f"{os.getuid()}:{os.getgid()}" if os.getuid() else _NOBODY


def _without_circumstances(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """A tar entry without time, owner and mode of this machine."""
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry
