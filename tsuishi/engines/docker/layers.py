"""Notes the layers that builds make, and removes those that become no part of an image."""

import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tsuishi.base.errors import BuildError
from tsuishi.base.screen import Say
from tsuishi.engines.docker import recipe

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

# Parts of a build's output: colours, a new layer (Podman's arrow is shorter), and lines without information.
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LAYER = re.compile(r"(?: -)?--> ([0-9a-f]{11,12})$")
_CHATTER = (" --->", "--> ", "Removing intermediate container")
# Within these seconds an engine ends the container of a build that was cut off.
_PATIENCE_S = 10.0


class Layers:
    """The layers that a build has made, the newest last, without those that it reused from an earlier build."""

    def __init__(self) -> None:
        self._ids: list[str] = []

    def follow(self, stream: Iterable[Mapping[str, Any]], base_id: str, say: Say) -> None:
        """Read the output of a build to its end. Raises BuildError with its error and the line before the error."""
        last, is_reused = "", False
        for chunk in stream:
            if "error" in chunk:
                raise BuildError(f"{recipe.shortened_message(chunk['error'].strip())}{last and f' ({last})'}")
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


def remove_unnamed(client: "DockerClient", image_id: str) -> None:
    """Remove an image that has no name and on which no other image or container is based."""
    from docker.errors import APIError

    with suppress(APIError):  # it is gone, or is still needed
        image = client.images.get(image_id)
        if not image.tags and not image.attrs.get("RepoDigests"):
            client.images.remove(image_id, noprune=True)
