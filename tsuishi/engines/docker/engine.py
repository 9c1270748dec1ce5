"""The docker engine: environments as images, trials as hardened containers, through the Docker SDK for Python."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.errors import EngineLost, UserError
from tsuishi.base.screen import Say
from tsuishi.engines.docker.base_images import Bases
from tsuishi.engines.docker.containers import ContainerStarter, bounded, owned_labels
from tsuishi.engines.docker.daemon import SOCKET, Connection, address, context_name, engine_errors, may_be_here
from tsuishi.engines.docker.image_maker import ImageMaker
from tsuishi.engines.docker.image_store import ImageStore
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.interface import Availability, Built
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

# The most seconds for resolving Debian packages; then the container for it ends by itself.
_LOCKING_S = 86_400.0


class DockerEngine:
    """The engine behind Docker's socket: Docker or Podman."""

    name = "docker"
    inspector = None

    def __init__(
        self,
        dockerfile: Path,
        mirrors: Mapping[str, str],
        cache: Path,
        *,
        offline: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        template = dockerfile.read_text(encoding="utf-8")
        self._connection = Connection(timeout_s)
        self.bases = Bases(self._connection, cache, mirrors, offline=offline)
        self.store = ImageStore(self.name, self._connection, template, cache)
        self.maker = ImageMaker(self._connection, self.store, self.bases, template, cache)
        self.starter = ContainerStarter(self._connection)

    def availability(self) -> Availability:
        place, named = address(), context_name()
        if named and not may_be_here(place):
            engine = f"is of another machine ({place})" if place else "does not exist"
            remedy = "`docker context use` chooses another, and DOCKER_HOST names an engine here; or use venv"
            return Availability(False, reason=f"the context '{named}' of docker {engine}", remedy=remedy)
        if not place:
            return Availability(False, reason="no Docker socket found", remedy="install and start Docker, or use venv")
        try:
            if may_be_here(place):
                with engine_errors():
                    daemon = self._connection.daemon
                if place.startswith(SOCKET) or daemon.is_here:
                    return Availability(True, version=daemon.recorded_version)
            raise UserError(
                f"DOCKER_HOST={place} is another machine, and telemetry would watch this machine: "
                "run tsuishi there, or unset DOCKER_HOST"
            )
        except EngineLost as error:
            group = (
                "add yourself to the group docker and log in again" if "ermission denied" in str(error) else "start it"
            )
            return Availability(
                False, reason=f"Docker does not answer: {error}", remedy=f"{group}, or use --engine venv"
            )

    def refusal(self, environment: Environment) -> str:
        return "" if environment.pinned else "it has no base image: use --engine host"

    def find(self, environment: Environment, *, at_a_glance: bool = False) -> Built | None:
        base = environment.base
        return self.store.find(environment, self.bases.references(base)) if base else None

    def client(self) -> AbstractContextManager["DockerClient"]:
        """A client for requests to a registry, say. Errors become UserError and EngineLost."""
        return self._connection.speaking()

    @contextmanager
    def base_container(self, environment: Environment, say: Say) -> Iterator["Container"]:
        """An idle container of the base image, with root as user and this machine's network; removed afterwards."""
        with self._connection.speaking() as client:
            base, _ = self.bases.ensure(environment, say, lambda size: None)
            self.starter.sweep()
            container = client.containers.create(
                str(base.id),
                command=["infinity"],
                entrypoint=bounded(["sleep"], _LOCKING_S),
                user="0",
                # A mirror or proxy may be this machine itself.
                network_mode="host",
                labels={f"{OURS}locking": environment.name} | owned_labels(_LOCKING_S),
                **self._connection.daemon.needs,
            )
            try:
                container.start()
                yield container
            finally:
                container.remove(force=True)
