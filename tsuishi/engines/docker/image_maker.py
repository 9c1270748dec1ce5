"""Makes environments as images: builds a Dockerfile and its context on a base image, without network."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from tsuishi.base import threads
from tsuishi.base.errors import BuildError
from tsuishi.base.screen import Progress, Say
from tsuishi.engines.docker import labels, recipe
from tsuishi.engines.docker.base_images import Bases, PresentBase
from tsuishi.engines.docker.daemon import Connection, image_or_none
from tsuishi.engines.docker.image_store import ImageStore
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.docker.layers import Layers, remove_unnamed
from tsuishi.engines.docker.transfer import interruptible
from tsuishi.engines.interface import Artefacts, Built
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker import DockerClient

# Layers without a name are removed at this age. No build takes so long, so the process of their build was killed.
_ABANDONED = "24h"
# An image is made in two stages. Until the second ends, the engine has packages and installed files of both.
_STAGES = 2


class ImageMaker:
    """Builds images from the Dockerfile `template`. Contexts of builds are made in the folder `cache`."""

    def __init__(self, connection: Connection, images: ImageStore, bases: Bases, template: str, cache: Path) -> None:
        self._connection = connection
        self._images = images
        self._bases = bases
        self._template = template
        self._cache = cache
        self._layers: list[Layers] = []

    def build(self, environment: Environment, artefacts: Artefacts, say: Say, downloaded: Progress) -> Built:
        wheels, debs = artefacts.wheels, artefacts.debs
        tag = self._images.tag(environment)
        with self._connection.speaking() as client:
            base = self._bases.ensure(environment, say, downloaded)
            before = image_or_none(client, tag)
            folder = recipe.context(self._template, environment, str(base.image.id), wheels, debs, self._cache)
            with folder as context, context.open("rb") as file, interruptible(client):
                self._build_image(client, environment, base, threads.pieces_until_halted(file), say)
            image = client.images.get(tag)
            if before is not None and before.id != image.id:
                remove_unnamed(client, str(before.id))
            return self._images.built(environment, image)

    def dockerfile(self, environment: Environment, base: str) -> str:
        """The Dockerfile of an environment on the image `base`."""
        return recipe.dockerfile(self._template, environment, base)

    def discard(self, built: Built) -> None:
        with self._connection.speaking() as client:
            client.images.remove(self._images.tag(built.environment), force=True)

    def tidy(self) -> None:
        """Remove the layers that belong to no image. A build that goes on may still need some of them."""
        from docker.errors import APIError

        # Another process may also be removing them. Layers that stay only take space.
        with self._connection.speaking() as client, suppress(APIError):
            while self._layers:
                self._layers.pop().remove(client)
            client.images.prune({"dangling": True, "label": f"{OURS}stage=build", "until": _ABANDONED})

    def building_bytes(self, packages_bytes: int, installed_bytes: int) -> int:
        return _STAGES * (packages_bytes + installed_bytes)

    def _build_image(
        self, client: "DockerClient", environment: Environment, base: PresentBase, context: Iterator[bytes], say: Say
    ) -> None:
        tag = self._images.tag(environment)
        stream = client.api.build(
            fileobj=cast("IO[bytes]", context),  # the client sends an iterator piece by piece
            custom_context=True,
            tag=tag,
            labels=labels.labels(environment, self._images.spec_id(environment), base.image, base.used),
            network_mode=self._connection.daemon.no_network,
            rm=True,
            forcerm=True,
            decode=True,
        )
        layers = Layers()
        self._layers.append(layers)
        try:
            layers.follow(stream, str(base.image.id), say)
        except BuildError as error:
            raise BuildError(f"{environment.name}: {error}") from None
        layers.keep(client.images.get(tag))
