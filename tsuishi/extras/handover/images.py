"""Shares environments: takes an image from the place of a site, instead of a build, and puts images there.

The place is a registry of images, which the engine asks, or a folder with files that `invoke export` wrote. An image
has to be of the spec id that this checkout asks for, and is entered and held to its promises. An image that
fails is removed.
"""

import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say, Screen
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.extras.handover import exchange
from tsuishi.extras.handover.exchange import LICENCES
from tsuishi.extras.handover.incoming import ON_THE_WAY, incoming_image
from tsuishi.extras.handover.settings import of_handover
from tsuishi.specs.environment import Environment, named_environments

if TYPE_CHECKING:
    from tsuishi.engines.docker.engine import DockerEngine

# The value of --to that means the place in the settings.
PLACE = "registry"
_SITE = "site"
# The messages of engines for a name that the registry does not know, and for a registry that needs a login.
_MISSING = ("manifest unknown", "not found")
_LOGIN = re.compile("unauthorized|authentication|basic auth|denied", re.IGNORECASE)
# A folder of the cache in which images are on their way.
CACHED = ON_THE_WAY


class SharedPlace:
    """The place where a site has its environments: the setting `registry`."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.address = of_handover(builder.settings).registry

    def is_asked_for(self, environment: Environment) -> bool:
        """Whether the place is asked for an environment: for images only, and offline only where it is a folder."""
        if not self.address or not environment.pinned or (self._builder.settings.offline and not self._folder):
            return False
        return self._builder.engines.chosen_for(environment).name == self._docker.name

    def has_file(self, environment: Environment) -> bool:
        """Whether the place is a folder with a file for this environment. The file is not read."""
        return self.is_asked_for(environment) and self._folder is not None and self._file(environment).is_file()

    def receive(self, environment: Environment, say: Say, progress: Progress) -> tuple[Ready | None, str]:
        """The environment from the place, ready to be entered, and where it came from in a line.

        None, with the reason, where the place does not have it or cannot be asked, and where it has something else,
        which is removed.
        """
        try:
            image_id = self._loaded(environment, say) if self._folder else self._pulled(environment, say, progress)
            if not image_id:
                return None, f"not in {self.address}: built here"
            return self._held(environment, say), f"taken from {self.address}, image {image_id}"
        except UserError as error:
            return None, f"not taken from {self.address}: {error}; built here"

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
        for ready in exchange.ready_images(self._builder, names):
            environment, there = ready.environment, self._reference(ready.environment)
            size = int(ready.built.details["image"]["size_bytes"])
            with screen.moving(f"sending {environment.name}", size) as progress:
                try:
                    self._docker.store.push(environment, there, progress)
                except UserError as error:
                    raise UserError(f"{self.address}: {self._with_remedy(error)}") from error
            screen.say(f"{environment.name}: in the registry as {there}, image {ready.built.realised_id}")

    def _refuse_what_stays(self, names: tuple[str, ...]) -> None:
        """Raise UserError for environments with parts that may not be public, unless only the site can read them."""
        if of_handover(self._builder.settings).registry_readers == _SITE:
            return
        stays = [
            f"{environment.name} ({environment.redistribution})"
            for environment in named_environments(self._builder.checkout.images, names)
            if environment.redistribution
        ]
        if stays:
            raise UserError(
                f"{self.address} counts as a public registry, and may not get {'; '.join(stays)}: read "
                f"{LICENCES}; where only your own site can read it, set tsuishi.registry_readers to {_SITE}"
            )

    def _pulled(self, environment: Environment, say: Say, progress: Progress) -> str:
        """Pull the image of an environment; empty where the registry has none.

        Raises UserError where it cannot be pulled, or is of another environment.
        """
        say(f"asking {self.address}")
        try:
            return self._docker.store.pull(environment, self._reference(environment), progress)
        except UserError as error:
            if any(words in str(error) for words in _MISSING):
                return ""
            raise self._with_remedy(error) from error

    def _loaded(self, environment: Environment, say: Say) -> str:
        """Give the image of a file to the engine; empty without a file.

        Raises UserError where it is not of this environment.
        """
        file = self._file(environment)
        if not file.is_file():
            return ""
        say("checking it")
        incoming = incoming_image(self._builder.checkout, file)
        is_, asked = (
            (incoming.record.name, incoming.record.spec_id),
            (environment.made_as, self._spec_id(environment)),
        )
        if is_ != asked:
            raise UserError(f"it is {':'.join(is_)}, and {':'.join(asked)} was asked for")
        return incoming.load(self._docker)

    def _reference(self, environment: Environment) -> str:
        """The name of the image in the registry. The engine decides whether the registry is asked encrypted."""
        return f"{self._place}/{environment.made_as}:{self._spec_id(environment)}"

    def _with_remedy(self, error: UserError) -> UserError:
        """The error, with the remedy for a registry that needs a login."""
        login = f"; `docker login {self._place.partition('/')[0]}`" if _LOGIN.search(str(error)) else ""
        return UserError(f"{error}{login}")

    def _held(self, environment: Environment, say: Say) -> Ready:
        """The loaded environment, entered. Raises UserError, and removes it, where it does not keep its promises."""
        try:
            return self._builder.ensure(environment, say)
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
        """The file of an environment in the folder, whether it is there or not."""
        assert self._folder is not None
        new, old = (
            self._folder / name for name in exchange.file_names(environment.made_as, self._spec_id(environment))
        )
        return old if old.is_file() and not new.is_file() else new

    @property
    def _place(self) -> str:
        """The address as a part of the names of images."""
        return self.address.rpartition("://")[2].strip("/")


place = SharedPlace


def export(builder: Builder, screen: Screen, names: tuple[str, ...], to: str) -> None:
    """Export built environments to a folder, or, where `to` is "registry", to the place in the settings."""
    if to == PLACE:
        SharedPlace(builder).put(screen, names)
    else:
        exchange.export(builder, screen, names, to)
