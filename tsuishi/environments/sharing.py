"""Shares environments: takes an image from the place of a site, instead of a build, and puts images there.

The place is a registry of images, or a folder with archives that `invoke export` wrote. Whoever can write there is not
trusted: what comes passes the gate of every image that others made (incoming.py), has to be of the spec id that this
checkout asks for, and is entered and held to its promises. What does not hold is not used.
"""

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say, Screen
from tsuishi.environments import exchange
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.environments.exchange import LICENCES, SUFFIX
from tsuishi.environments.incoming import incoming_image, temporary_room
from tsuishi.specs.environment import Environment, select_environments

if TYPE_CHECKING:
    from tsuishi.artifacts.oci_registry import Registry
    from tsuishi.engines.docker.engine import DockerEngine

# The value of --to that means the place in the settings.
PLACE = "registry"
_SITE = "site"


class SharedPlace:
    """The place where a site has its environments: the setting `registry`."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.address = builder.settings.registry

    def is_asked_for(self, environment: Environment) -> bool:
        """Whether the place is asked for an environment: for images only, and offline only where it is a folder."""
        if not self.address or not environment.pinned or (self._builder.settings.offline and not self._folder):
            return False
        return self._builder.engines.chosen_for(environment).name == self._docker.name

    def has_file(self, environment: Environment) -> bool:
        """Whether the place is a folder with a file for this environment. Nothing is read of the file."""
        return self.is_asked_for(environment) and self._folder is not None and self._file(environment).is_file()

    def receive(self, environment: Environment, say: Say, progress: Progress) -> tuple[Ready | None, str]:
        """The environment from the place, ready to be entered, and where it came from in a line.

        None, with the reason, where the place does not have it or cannot be asked, and where it has something else, of
        which nothing stays.
        """
        try:
            with temporary_room(self._builder.settings.cache) as room:
                path = self._fetched(environment, room, say, progress)
                if path is None:
                    return None, f"not in {self.address}: built here"
                say("checking it")
                image_id = self._loaded(environment, path)
            return self._held(environment, say), f"taken from {self.address}, image {image_id}"
        except UserError as error:
            why = str(error).removeprefix(f"{self.address}: ")
            return None, f"not taken from {self.address}: {why}; built here"

    def put(self, screen: Screen, names: tuple[str, ...]) -> None:
        """Put built environments into the place. Raises UserError for those that may not be passed on, by name."""
        if not self.address:
            raise UserError(f"--to {PLACE} needs a place: set tsuishi.registry to a registry or a folder")
        if self._folder:
            exchange.export(self._builder, screen, names, self._folder)
            return
        if self._builder.settings.offline:
            raise UserError(f"offline, and {self.address} is a registry: leave out --offline, or export to a folder")
        self._refuse_what_stays(names)
        from tsuishi.artifacts import intake
        from tsuishi.artifacts.registry_images import put_image

        with temporary_room(self._builder.settings.cache) as folder:
            for one in exchange.write_exports(self._builder, screen, names, folder):
                image = intake.read_archive(one.path)
                with screen.moving(f"sending {one.name}", one.path.stat().st_size) as progress:
                    there = put_image(self._registry, one.path, image, progress)
                one.path.unlink()
                screen.say(f"{one.name}: in the registry as {there}, image {image.id}")

    def _refuse_what_stays(self, names: tuple[str, ...]) -> None:
        """Raise UserError for environments whose parts may not go to everybody, unless only the site can read them."""
        if self._builder.settings.registry_readers == _SITE:
            return
        stays = [
            f"{environment.name} ({environment.redistribution})"
            for environment in select_environments(self._builder.checkout.images, names, "cpu")
            if environment.redistribution
        ]
        if stays:
            raise UserError(
                f"{self.address} counts as a registry that anybody can read, and may not get {'; '.join(stays)}: read "
                f"{LICENCES}; where only your own site can read it, set tsuishi.registry_readers to {_SITE}"
            )

    def _fetched(self, environment: Environment, room: Path, say: Say, progress: Progress) -> Path | None:
        if self._folder:
            file = self._file(environment)
            return file if file.is_file() else None
        from tsuishi.artifacts.registry_images import fetch_image

        say(f"asking {self.address}")
        return fetch_image(self._registry, environment.name, self._spec_id(environment), room, say, progress)

    def _loaded(self, environment: Environment, path: Path) -> str:
        """Give the image of an archive to the engine. Raises UserError where it is not of this environment."""
        incoming = incoming_image(self._builder.checkout, path)
        is_, asked = (
            (incoming.record.name, incoming.record.spec_id),
            (environment.name, self._spec_id(environment)),
        )
        if is_ != asked:
            raise UserError(f"it is {':'.join(is_)}, and {':'.join(asked)} was asked for")
        return incoming.load(self._docker)

    def _held(self, environment: Environment, say: Say) -> Ready:
        """The loaded environment, entered. Raises UserError, and removes it, where it does not keep its promises."""
        builder = self._builder
        try:
            return builder.ensure(environment, builder.fetcher(say), say)
        except BuildError:
            with suppress(UserError):  # removed already
                if built := self._docker.find(environment):
                    self._docker.maker.discard(built)
            raise

    @property
    def _docker(self) -> "DockerEngine":
        return self._builder.engines.docker

    def _spec_id(self, environment: Environment) -> str:
        return self._docker.store.spec_id(environment)

    @cached_property
    def _folder(self) -> Path | None:
        return Path(self.address) if self.address.startswith("/") else None

    def _file(self, environment: Environment) -> Path:
        assert self._folder is not None
        return self._folder / f"{environment.name}-{self._spec_id(environment)}{SUFFIX}"

    @cached_property
    def _registry(self) -> "Registry":
        from tsuishi.artifacts.network import Network
        from tsuishi.artifacts.oci_registry import Registry

        return Registry(self.address, Network(self._builder.settings.ca_bundle))


def export(builder: Builder, screen: Screen, names: tuple[str, ...], to: str) -> None:
    """Export built environments to a folder, or, where `to` is "registry", to the place in the settings."""
    if to == PLACE:
        SharedPlace(builder).put(screen, names)
    else:
        exchange.export(builder, screen, names, to)
