"""The interface of engines. An engine enters environments; it has more parts where it also makes and stores them.

Every engine finds environments and starts programs in them. The other parts may be None: no engine needs a method that
does nothing, and the type tells a caller that an engine may lack a part.

              starter  maker  store  inspector  bases
    docker    yes      yes    yes               yes
    venv      yes      yes    yes    yes
    host      yes
    apptainer yes
    pyxis     yes
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
    """An environment that exists and can be entered: its spec, and the result of its build."""

    environment: Environment
    engine: str
    engine_version: str
    spec_id: str
    # The image id, or a digest of interpreter and installed packages.
    realised_id: str
    # The command that starts Python in it: ("python",) in a container, the path of an interpreter elsewhere.
    python: tuple[str, ...]
    # More fields for the environment's record: base, substitutions, image.
    details: dict[str, Any] = field(default_factory=dict)
    # Programs on a GPU may write into this folder: code that CUDA compiles when it loads it, of this environment alone.
    cuda_cache: Path | None = None


@dataclass(frozen=True)
class Artefacts:
    """The files that an environment's locks name: packages for Python, and Debian packages."""

    wheels: Sequence[Path]
    debs: Sequence[Path]


@dataclass(frozen=True)
class Kept:
    """An environment that is stored on this machine, made from the present spec or an earlier spec.

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
    # The time of its build (ISO 8601).
    created: str


@dataclass(frozen=True)
class ResourceLimits:
    """The resources that a program may use.

    The runner watches `seconds`. If the runner was killed, the engine ends the program some time later.
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
    # The variables of a program that reaches other machines over this machine's network; None: it has no network.
    network: Mapping[str, str] | None = None


class Starter(Protocol):
    """Starts programs in environments, and ends them."""

    def start(self, built: Built, launch: Launch) -> Process:
        """Start a program in the environment. Raises EngineLost where the engine does not answer."""

    def confinement(self, python: str) -> Mapping[str, Any]:
        """Fields for the environment's record that say how programs of this interpreter are confined.

        It may start programs to find out.
        """

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        """Why a program would not see these GPUs, with the remedy; empty where it would."""

    def gpu_remedy(self) -> str:
        """What to do where a program does not see GPUs that it was given."""

    def inside(self, path: Path, place: str) -> str:
        """The path of a mounted folder for a program: `place` in a container, else `path`."""


class Maker(Protocol):
    """Makes environments."""

    def build(self, environment: Environment, artefacts: Artefacts, say: Say, downloaded: Progress) -> Built:
        """Make an environment of these files. Raises BuildError where it fails.

        The caller checks the report of the environment, and calls `discard` where it is wrong. `downloaded` gets the
        bytes that the engine still downloads. Several threads may build at once; `tidy` follows after all builds.
        """

    def discard(self, built: Built) -> None:
        """Remove an environment that was just built, so that `Engine.find` does not return it."""

    def tidy(self) -> None:
        """Remove the rests of builds that failed or were killed. Nothing may be built meanwhile."""

    def building_bytes(self, packages_bytes: int, installed_bytes: int) -> int:
        """The most disk space that a build takes before it ends, in bytes."""


class Store(Protocol):
    """The stored environments of an engine."""

    def kept(self) -> list[Kept]:
        """Every environment that this engine made and that is still there, also those of earlier specs."""

    def remove(self, kept: Kept) -> None:
        """Remove an environment. Raises UserError where it is in use."""

    def folder(self) -> Path | None:
        """The folder that holds them; None where this machine cannot see it."""


class Inspector(Protocol):
    """Compares stored environments with their records, where they are files that any program can change.

    Images need no inspector: their id is a digest of their content.
    """

    def altered(self, kept: Kept, *, whole: bool) -> str:
        """The first difference, in words; empty where there is none.

        Compares sizes and times of files; with `whole` also their contents.
        """


class BaseSupply(Protocol):
    """The base images for environments, of an engine that needs such images."""

    def fetch(self, environment: Environment, say: Say, downloaded: Progress) -> int:
        """Put the base image into the cache if it is not there. Returns its size in bytes."""

    def missing(self, environment: Environment) -> tuple[str, ...]:
        """The base image in words, if neither engine nor cache has it; else empty."""


class Engine(Protocol):
    """A way to make and enter environments on this machine."""

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

    def find(self, environment: Environment, *, at_a_glance: bool = False) -> Built | None:
        """The environment that was made from exactly this spec, lock and template, if any. It needs no network.

        `at_a_glance`: the files of an environment may have changed since its build. Only a list of environments
        uses this, and says so; an environment is not run after a glance alone.
        """


class FileEngine(Engine, Protocol):
    """An engine that makes nothing: its images are files that it makes of exported images."""

    def take(self, environment: Environment, realised_id: str, details: Mapping[str, Any], archive: Path) -> Path:
        """Make the engine's file of the image in an archive, as `docker save` writes it. Returns its path.

        realised_id and details: see `Built`. Raises UserError where that fails.
        """
