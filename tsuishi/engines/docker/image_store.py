"""Finds, lists and removes the images of environments in the engine; saves them as archives and loads archives."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.errors import UserError
from tsuishi.engines.docker import labels
from tsuishi.engines.docker.daemon import Connection, image_or_none, patient
from tsuishi.engines.docker.labels import OURS
from tsuishi.engines.docker.layers import remove_unnamed
from tsuishi.engines.interface import Built, Kept
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image


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
        return f"tsuishi/{environment.name}:{self.spec_id(environment)}"

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
        return Built(
            environment=environment,
            engine=self._engine,
            engine_version=self._connection.daemon.recorded_version,
            spec_id=self.spec_id(environment),
            realised_id=str(image.id),
            python=("python",),
            details=labels.details(environment, image, self.tag(environment)),
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

    def save(self, built: Built) -> Iterator[bytes]:
        """The output of `docker save` for the image; its format differs between versions."""
        with self._connection.speaking() as client, patient(client):
            yield from client.api.get_image(built.realised_id)

    def load(self, archive: Iterable[bytes], tag: str, ids: Sequence[str]) -> str:
        """Load an image that was built elsewhere, on any base. Returns its id.

        Raises UserError where the id is not in `ids`; then the engine's images are the same as before.
        """
        with self._connection.speaking() as client, patient(client):
            before = image_or_none(client, tag)
            for message in client.api.load_image(archive):  # type: ignore[no-untyped-call]
                if "error" in message:
                    raise UserError(f"the engine does not take it: {message['error'].strip()}")
            image = client.images.get(tag)
            if image.id not in ids:
                _restore(client, tag, image, before)
                raise UserError(
                    f"{tag}: the engine made another image of the archive than is in it: all is as it was before; "
                    "do not use the archive, and export it again"
                )
            if before is not None and before.id != image.id:
                remove_unnamed(client, str(before.id))
        note = self._import_note(image)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
        return str(image.id)

    def _import_note(self, image: "Image") -> Path:
        """The file which notes that an image was imported."""
        return self._imported / str(image.id).removeprefix("sha256:")


def _restore(client: "DockerClient", tag: str, loaded: "Image", before: "Image | None") -> None:
    """Remove the loaded image, and give its tag back to the image that had it before."""
    if before is None or before.id != loaded.id:
        client.images.remove(tag)
    if before is not None:
        before.tag(*tag.split(":"))
