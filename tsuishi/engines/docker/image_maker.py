"""Makes environments as images: builds a Dockerfile and its context on a base image, without network."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tsuishi.base import threads
from tsuishi.base.errors import BuildError
from tsuishi.base.screen import Progress, Say
from tsuishi.engines.docker import labels, recipe
from tsuishi.engines.docker.base_images import Bases, PresentBase
from tsuishi.engines.docker.daemon import Connection, image_or_none, remove_unnamed
from tsuishi.engines.docker.image_store import ImageStore
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.docker.transfer import interruptible
from tsuishi.engines.interface import Artefacts, Built
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

# Layers without a name are removed at this age. No build takes so long, so the process of their build was killed.
_ABANDONED = "24h"
# An image is made in two stages. Until the second ends, the engine has packages and installed files of both.
_STAGES = 2
# Parts of a build's output: colours, a new layer (Podman's arrow is shorter), and lines without information.
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LAYER = re.compile(r"(?: -)?--> ([0-9a-f]{11,12})$")
_CHATTER = (" --->", "--> ", "Removing intermediate container")
# Within these seconds an engine ends the container of a build that was cut off.
_PATIENCE_S = 10.0
# From the first quotation mark to the last of the same kind, because a quoted script may contain quotation marks.
_QUOTED = re.compile(r"""(["'])(.{60}).*\1""", re.DOTALL)


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


class Layers:
    """The layers that a build has made, the newest last, without those that it reused from an earlier build."""

    def __init__(self) -> None:
        self._ids: list[str] = []

    def follow(self, stream: Iterable[Mapping[str, Any]], base_id: str, say: Say) -> None:
        """Read the output of a build to its end. Raises BuildError with its error and the line before the error."""
        last, is_reused = "", False
        for chunk in stream:
            if "error" in chunk:
                raise BuildError(f"{_shortened(chunk['error'].strip())}{last and f' ({last})'}")
            for line in _ANSI.sub("", str(chunk.get("stream", ""))).splitlines():
                layer = _LAYER.match(line)
                if layer and not is_reused and layer[1] not in base_id:
                    self._ids.append(layer[1])
                if layer or "Using cache" in line:
                    is_reused = not layer
                if line.strip() and not line.startswith(_CHATTER):
                    say(line)
                    last = last if line.startswith("Step ") else line.strip()

    def keep(self, image: "Image") -> None:
        """Forget the layers of this image, so that they are not removed."""
        of_it = " ".join(str(entry["Id"]) for entry in image.history())
        self._ids = [layer for layer in self._ids if layer not in of_it]

    def remove(self, client: "DockerClient") -> None:
        """Remove the layers. If the build was cut off, wait until the engine has ended its container."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._ids and time.monotonic() < deadline:
            if not client.containers.list(all=True, filters={"ancestor": self._ids[-1]}, ignore_removed=True):
                break
            time.sleep(0.1)
        while self._ids:
            remove_unnamed(client, self._ids.pop())


def _shortened(reason: str) -> str:
    """The engine's message about a failed step, with only the beginning of the step's command.

    >>> _shortened("The command '" + "a very long script; " * 20 + "' returned a non-zero code: 1")
    "The command 'a very long script; a very long script; a very long script; …' returned a non-zero code: 1"
    """
    return _QUOTED.sub(r"\1\2…\1", reason)
