"""Finds, lists and removes the images of environments in the engine; saves them as archives and loads archives."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Progress
from tsuishi.engines.docker import labels, transfer
from tsuishi.engines.docker.daemon import Connection, image_or_none, patient, remove_unnamed
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.interface import Built, Kept
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

# Raises UserError where an image has other layers or labels than it should.
Refusal = Callable[[Sequence[str], Mapping[str, str]], None]


class ImageStore:
    """Images named `tsuishi/<environment>:<spec id>`. The spec id also covers `template`, that of the Dockerfile."""

    def __init__(self, engine: str, connection: Connection, template: str, cache: Path) -> None:
        self._engine = engine
        self._connection = connection
        self._template = template
        self._imported = cache / "environments" / "imported"

    def spec_id(self, environment: Environment) -> str:
        return environment.spec_id(self._template)

    def tag(self, environment: Environment) -> str:
        return f"tsuishi/{environment.made_as}:{self.spec_id(environment)}"

    def find(self, environment: Environment, base_references: Sequence[str]) -> Built | None:
        """The image of an environment, if it was imported, or was built on a base with a reference in the list."""
        with self._connection.speaking() as client:
            image = image_or_none(client, self.tag(environment))
        if image is None:
            return None
        on_this_base = image.labels.get(f"{OURS}base-used") in base_references
        return self.built(environment, image) if on_this_base or self._import_note(image).exists() else None

    def built(self, environment: Environment, image: "Image") -> Built:
        """The environment that this image is."""
        layers = image.attrs["RootFS"]["Layers"]
        facts = {"id": image.id, "tag": self.tag(environment), "size_bytes": image.attrs.get("Size"), "layers": layers}
        return Built(
            environment=environment,
            engine=self._engine,
            engine_version=self._connection.daemon.recorded_version,
            spec_id=self.spec_id(environment),
            realised_id=str(image.id),
            python=("python",),
            details=labels.details(environment, image.labels, facts, image.attrs.get("Created")),
        )

    def kept(self) -> list[Kept]:
        with self._connection.speaking() as client:
            images = client.images.list(filters={"label": f"{OURS}spec-id"})
        return [kept for image in images for tag in image.tags if (kept := labels.kept(image, tag, self._engine))]

    def remove(self, kept: Kept) -> None:
        """Remove the image's name, never by force: an image that a user has given another name stays."""
        with self._connection.speaking() as client:
            client.images.remove(kept.name)

    def folder(self) -> Path | None:
        with self._connection.speaking() as client:
            root = Path(str(client.info().get("DockerRootDir", "")))
        return root if root.is_dir() else None

    def save(self, environment: Environment) -> Iterator[bytes]:
        """The output of `docker save` for the image; its format differs between versions."""
        with self._connection.speaking() as client, patient(client):
            yield from client.api.get_image(self.tag(environment))

    def push(self, environment: Environment, name: str, sent: Progress) -> None:
        """Push the image of an environment by a name of a registry. Raises UserError where the registry refuses it."""
        with self._connection.speaking() as client:
            client.images.get(self.tag(environment)).tag(*name.rsplit(":", 1))
            try:
                transfer.push(client, name, sent)
            finally:
                client.images.remove(name)

    def pull(self, environment: Environment, name: str, downloaded: Progress) -> str:
        """Pull the image of an environment by its name in a registry. Returns its id.

        Raises UserError where it cannot be pulled, and where it was made for another specification.
        """
        with self._connection.speaking() as client:
            before = image_or_none(client, self.tag(environment))
            transfer.pull(client, name, downloaded)
            image = client.images.get(name)
            try:
                made_for, asked = image.labels.get(f"{OURS}spec-id"), self.spec_id(environment)
                if made_for != asked:
                    raise UserError(f"its image was made for spec id {made_for or 'none'}, and {asked} was asked for")
                return self._adopt(client, image, self.tag(environment), before)
            finally:
                client.images.remove(name)

    def load(self, archive: Iterable[bytes], tag: str, refuse: Refusal) -> str:
        """Load an image that was built elsewhere, on any base. Returns its id.

        Raises UserError where the engine refuses the archive, and where `refuse` does, which gets the layers and the
        labels of the image; then the image that had the tag has it again.
        """
        with self._connection.speaking() as client:
            before = image_or_none(client, tag)
            try:
                image = transfer.load(
                    client, archive, lambda loaded: refuse(loaded.attrs["RootFS"]["Layers"], loaded.labels)
                )
            except UserError:
                if before is not None:
                    before.tag(*tag.split(":"))
                raise
            return self._adopt(client, image, tag, before)

    def _adopt(self, client: "DockerClient", image: "Image", tag: str, before: "Image | None") -> str:
        """Give an image its tag, and note that it was imported. Returns its id. before: the image that had the tag."""
        image.tag(*tag.split(":"))
        if before is not None and before.id != image.id:
            remove_unnamed(client, str(before.id))
        note = self._import_note(image)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
        return str(image.id)

    def _import_note(self, image: "Image") -> Path:
        """The file which notes that an image was imported."""
        return self._imported / str(image.id).removeprefix("sha256:")
