"""The docker engine: environments as images, trials as hardened containers, through the Docker SDK for Python."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tsuishi.artifacts.fetcher import Fetcher
from tsuishi.base import threads
from tsuishi.base.errors import BuildError, EngineLost, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.engines.docker import labels, recipe
from tsuishi.engines.docker.base_images import Bases, patient
from tsuishi.engines.docker.containers import RunningContainer, bounded, hardening, owned_labels, remove_abandoned
from tsuishi.engines.docker.daemon import Daemon, address, identify, image_or_none, speaking
from tsuishi.engines.docker.devices import NO_GPUS, find_passing
from tsuishi.engines.docker.interruptible import interruptible
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.docker.layers import Layers, remove_unnamed
from tsuishi.engines.interface import Availability, Built, Kept, Launch, Process
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

# How old the layers of a build are by then that was killed with all that knew of it.
_ABANDONED = "24h"
# What finding Debian packages may take; a container in which it is done ends by itself after that.
_LOCKING_S = 86_400.0


class DockerEngine:
    """Environments as images `tsuishi/<environment>:<spec id>`."""

    name = "docker"

    def __init__(
        self,
        dockerfile: Path,
        mirrors: Mapping[str, str],
        cache: Path,
        *,
        offline: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        self._template = dockerfile.read_text(encoding="utf-8")
        self._timeout_s = timeout_s
        self._cache = cache
        self._bases = Bases(cache, mirrors, offline)
        # Docker's client is not made for several threads: each has its own.
        self._own = threading.local()
        self._layers: list[Layers] = []

    def availability(self) -> Availability:
        place = address()
        if not place:
            return Availability(False, reason="no Docker socket found", remedy="install and start Docker, or use venv")
        if not place.startswith("unix://"):
            raise UserError(
                f"DOCKER_HOST={place} is another machine, and telemetry would watch this one: "
                "run tsuishi there, or unset DOCKER_HOST"
            )
        try:
            with speaking():
                return Availability(True, version=self._daemon.told)
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
        with speaking():
            image = image_or_none(self._client, self._tag(environment))
        if image is None:
            return None
        assert environment.base is not None
        called_for = image.labels.get(f"{OURS}base-used") in self._bases.references(environment.base)
        return self._built(environment, image) if called_for or self._imported(image).exists() else None

    def fetch(self, environment: Environment, say: Say, downloaded: Progress) -> int:
        with speaking():
            return self._bases.keep(self._client, environment, say, downloaded).size_bytes

    def missing(self, environment: Environment) -> tuple[str, ...]:
        with speaking():
            return self._bases.missing(self._client, environment)

    def build(self, environment: Environment, fetcher: Fetcher, say: Say) -> Built:
        wheels, debs = fetcher.fetch(environment), fetcher.fetch_debs(environment)
        with speaking():
            base, used = self._bases.ensure(self._client, environment, say, fetcher.progress)
            before = image_or_none(self._client, self._tag(environment))
            folder = recipe.context(self._template, environment, str(base.id), wheels, debs, self._cache)
            with folder as context, context.open("rb") as file, interruptible(self._client):
                self._build_image(environment, base, used, threads.pieces(file), say)
            image = self._client.images.get(self._tag(environment))
            if before is not None and before.id != image.id:
                remove_unnamed(self._client, str(before.id))
            return self._built(environment, image)

    def save(self, built: Built) -> Iterator[bytes]:
        """The image as `docker save` writes it, which differs by version."""
        with speaking(), patient(self._client):
            yield from self._client.api.get_image(built.realised_id)

    def load(self, archive: Iterable[bytes], tag: str, ids: Sequence[str]) -> str:
        """Take in an image that was built elsewhere, whatever base would be called for here; its id.

        Raises UserError where that is none of `ids`: then all is as it was before.
        """
        with speaking(), patient(self._client):
            before = image_or_none(self._client, tag)
            for said in self._client.api.load_image(archive):  # type: ignore[no-untyped-call]
                if "error" in said:
                    raise UserError(f"the engine does not take it: {said['error'].strip()}")
            image = self._client.images.get(tag)
            replaced = before is not None and before.id != image.id
            if image.id not in ids:
                if before is None or replaced:
                    self._client.images.remove(tag)
                if before is not None:
                    before.tag(*tag.split(":"))
                raise UserError(
                    f"{tag}: the engine made another image of the archive than is in it: all is as it was before; "
                    "do not use the archive, and export it again"
                )
            if before is not None and replaced:
                remove_unnamed(self._client, str(before.id))
        self._imported(image).parent.mkdir(parents=True, exist_ok=True)
        self._imported(image).touch()
        return str(image.id)

    @contextmanager
    def client(self) -> Iterator["DockerClient"]:
        """For what is no environment's business, as asking a registry; what fails is told as everywhere."""
        with speaking():
            yield self._client

    @contextmanager
    def base_container(self, environment: Environment, say: Say) -> Iterator["Container"]:
        """A container of the base that does nothing, as root and on this machine's network; gone afterwards."""
        with speaking():
            base, _ = self._bases.ensure(self._client, environment, say, lambda size: None)
            self.sweep()
            container = self._client.containers.create(
                str(base.id),
                command=["infinity"],
                entrypoint=bounded(["sleep"], _LOCKING_S),
                user="0",
                # A mirror or proxy may be this machine itself.
                network_mode="host",
                labels={f"{OURS}locking": environment.name} | owned_labels(_LOCKING_S),
                **self._daemon.needs,
            )
            try:
                container.start()
                yield container
            finally:
                container.remove(force=True)

    def discard(self, built: Built) -> None:
        with speaking():
            self._client.images.remove(self._tag(built.environment), force=True)

    def start(self, built: Built, launch: Launch) -> Process:
        told = {OURS + key: value for key, value in launch.labels.items()}
        with speaking():
            container = self._client.containers.create(
                built.realised_id,
                bounded([*built.python, *launch.arguments], launch.limits.seconds),
                name=launch.name,
                labels=told | owned_labels(launch.limits.seconds),
                **hardening(launch.limits, launch.mounts),
                **self._gpus(launch.limits.gpus),
                **self._daemon.needs,
            )
            try:
                return RunningContainer(self._client, container)
            except BaseException:  # it must not stay behind, whatever happened
                container.remove(force=True)
                raise

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        try:
            self._gpus(gpus)
        except UserError as error:
            return str(error)
        return ""

    def inside(self, path: Path, place: str) -> str:
        return place

    def sweep(self) -> None:
        if address().startswith("unix://"):
            with suppress(EngineLost), speaking():
                remove_abandoned(self._client)

    def tidy(self) -> None:
        """Not while something is being built, to which these layers may belong."""
        from docker.errors import APIError

        with speaking(), suppress(APIError):  # somebody else is at it; what is left takes room, no more
            while self._layers:
                self._layers.pop().remove(self._client)
            self._client.images.prune({"dangling": True, "label": f"{OURS}stage=build", "until": _ABANDONED})

    def kept(self) -> list[Kept]:
        with speaking():
            images = self._client.images.list(filters={"label": f"{OURS}spec-id"})
        return [kept for image in images for tag in image.tags if (kept := labels.kept(image, tag, self.name))]

    def altered(self, kept: Kept, *, whole: bool) -> str:
        return ""  # an image's id is a digest of all it holds

    def remove(self, kept: Kept) -> None:
        """By its name: what somebody else has given another name, too, stays under that. Never by force."""
        with speaking():
            self._client.images.remove(kept.name)

    def storage(self) -> Path | None:
        with speaking():
            root = Path(str(self._client.info().get("DockerRootDir", "")))
        return root if root.is_dir() else None

    @property
    def _client(self) -> "DockerClient":
        import docker

        if not hasattr(self._own, "client"):
            self._own.client = docker.DockerClient(base_url=address(), timeout=self._timeout_s)  # type: ignore[arg-type]
        client: DockerClient = self._own.client
        return client

    @cached_property
    def _daemon(self) -> Daemon:
        with speaking():
            return identify(self._client)

    def _gpus(self, gpus: Sequence[Gpu]) -> dict[str, Any]:
        return find_passing(self._daemon).arguments(gpus) if gpus else NO_GPUS

    def _imported(self, image: "Image") -> Path:
        """Where it is noted that an image was imported."""
        return self._cache / "environments" / "imported" / str(image.id).removeprefix("sha256:")

    def _tag(self, environment: Environment) -> str:
        return f"tsuishi/{environment.name}:{environment.spec_id(self._template)}"

    def _build_image(
        self, environment: Environment, base: "Image", used: str, context: Iterator[bytes], say: Say
    ) -> None:
        stream = self._client.api.build(
            fileobj=cast("IO[bytes]", context),  # which is sent as it comes
            custom_context=True,
            tag=self._tag(environment),
            labels=labels.labels(environment, environment.spec_id(self._template), base, used),
            network_mode=self._daemon.no_network,
            rm=True,
            forcerm=True,
            decode=True,
        )
        layers = Layers()
        self._layers.append(layers)
        try:
            layers.follow(stream, str(base.id), say)
        except BuildError as error:
            raise BuildError(f"{environment.name}: {error}") from None
        layers.keep(self._client.images.get(self._tag(environment)))

    def _built(self, environment: Environment, image: "Image") -> Built:
        return Built(
            environment=environment,
            engine=self.name,
            engine_version=self._daemon.told,
            spec_id=environment.spec_id(self._template),
            realised_id=str(image.id),
            python=("python",),
            details=labels.details(environment, image, self._tag(environment)),
        )
