"""What an engine is: how it enters environments, and the parts it has where it also makes and stores them.

Every engine finds environments and starts programs in them. The other parts are there or None, so nobody writes a
method that does nothing, and a caller who needs a part sees in its type that an engine may lack it.

              starter  maker  store  inspector  bases
    docker    yes      yes    yes               yes
    venv      yes      yes    yes    yes
    host      yes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tsuishi.base.processes import Process
from tsuishi.base.screen import Progress, Say
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Environment


@dataclass(frozen=True)
class Availability:
    """Whether an engine can be used on this machine; if not, the reason and its remedy."""

    usable: bool
    version: str = ""
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Built:
    """An environment that exists and can be entered: what was asked for, and what was got."""

    environment: Environment
    engine: str
    engine_version: str
    spec_id: str
    # Image id, or the digest of interpreter and installed packages.
    realised_id: str
    # The command that starts Python in it: ("python",) in a container, the path of an interpreter elsewhere.
    python: tuple[str, ...]
    # More for the environment's record: base, substitutions, image or sandbox.
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Artefacts:
    """The files that an environment's locks name: packages for Python, and Debian packages."""

    wheels: Sequence[Path]
    debs: Sequence[Path]


@dataclass(frozen=True)
class Kept:
    """An environment that takes room on this machine, made from today's spec or an earlier one.

    A text is empty where the value is not known.
    """

    environment: str
    engine: str
    # The image's tag, or the folder.
    name: str
    spec_id: str
    realised_id: str
    size_bytes: int
    base_digest: str
    lock_sha256: str
    # ISO 8601.
    created: str


@dataclass(frozen=True)
class ResourceLimits:
    """What a program may use.

    The runner watches `seconds`. Where the runner was killed, the engine ends the program some time later.
    """

    memory_bytes: int | None = None
    pids: int = 4096
    gpus: tuple[Gpu, ...] = ()
    seconds: float = 86_400.0


@dataclass(frozen=True)
class Launch:
    """A program to start in an environment: `python <arguments>`, which can read some folders of the host.

    `mounts` maps a folder or file of the host to its place inside a container; `Starter.inside` gives the path that the
    arguments have to use. `name` and `labels` identify the program later.
    """

    arguments: tuple[str, ...]
    mounts: Mapping[Path, str]
    name: str
    labels: Mapping[str, str]
    limits: ResourceLimits = ResourceLimits()


class Starter(Protocol):
    """Starts programs in environments, and ends them."""

    def start(self, built: Built, launch: Launch) -> Process:
        """Start a program in the environment. Raises EngineLost where the engine does not answer."""

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        """Why a program would not see these GPUs, with the remedy; empty where it would."""

    def inside(self, path: Path, place: str) -> str:
        """The path by which a program sees a mounted folder: `place` in a container, else `path`."""

    def sweep(self) -> None:
        """End the programs whose runner was killed, of every run, cache and user.

        Programs of a living process go on. Does nothing where the engine does not answer.
        """


class Maker(Protocol):
    """Makes environments."""

    def build(self, environment: Environment, artefacts: Artefacts, say: Say, downloaded: Progress) -> Built:
        """Make it of these files. Raises BuildError.

        The caller verifies what it reports and calls `discard` where that is wrong. `downloaded` counts what the engine
        still had to download. Several threads may build at once; `tidy` follows when all builds have ended.
        """

    def discard(self, built: Built) -> None:
        """Remove an environment that was just built, so that `Engine.find` does not give it again."""

    def tidy(self) -> None:
        """Remove what builds left that failed or were killed. Only while nothing is being built."""

    def building_bytes(self, packages_bytes: int, installed_bytes: int) -> int:
        """The most disk space that one build takes while it goes on, by the size of its packages."""


class Store(Protocol):
    """The environments of an engine that take room on this machine."""

    def kept(self) -> list[Kept]:
        """Every environment that this engine made and that is still there, also those of earlier specs."""

    def remove(self, kept: Kept) -> None:
        """Remove one of them. Raises UserError where it is in use."""

    def folder(self) -> Path | None:
        """The folder on whose disk they lie; None where this machine cannot see it."""


class Inspector(Protocol):
    """Compares stored environments with what was built, where they are files that anybody can change.

    An image needs none: its id is a digest of all it holds.
    """

    def altered(self, kept: Kept, *, whole: bool) -> str:
        """The first difference, in words; empty where there is none.

        Compares sizes and times; where `whole`, every file's content.
        """


class BaseSupply(Protocol):
    """The base images that environments are built on, where the engine does not build on this machine itself."""

    def fetch(self, environment: Environment, say: Say, downloaded: Progress) -> int:
        """Put the base image into the cache, where it is not there already; its size there in bytes."""

    def missing(self, environment: Environment) -> tuple[str, ...]:
        """The base image in words, where neither engine nor cache has it; else nothing."""


class Engine(Protocol):
    """A way to have environments on this machine."""

    name: str

    @property
    def starter(self) -> Starter: ...

    @property
    def maker(self) -> Maker | None: ...

    @property
    def store(self) -> Store | None: ...

    @property
    def inspector(self) -> Inspector | None: ...

    @property
    def bases(self) -> BaseSupply | None: ...

    def availability(self) -> Availability:
        """Whether this engine can be used on this machine. Starts nothing."""

    def refusal(self, environment: Environment) -> str:
        """Why this engine cannot provide that environment here, with the remedy; empty where it can."""

    def find(self, environment: Environment) -> Built | None:
        """The environment that is there for exactly this spec, lock and template. Quick, and without network."""
