"""The verbs every engine has, and what passes through them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from tsuishi.artifacts.fetcher import Fetcher
from tsuishi.base.screen import Progress, Say
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Environment

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Availability:
    """Whether an engine can be used here; if not, why and what to do about it."""

    usable: bool
    version: str = ""
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Built:
    """An environment that exists and can be entered: what was asked, and what was got."""

    environment: Environment
    engine: str
    engine_version: str
    spec_id: str
    # Image id, or the digest of interpreter and installed packages.
    realised_id: str
    # How to start a Python program in it: ("python",) in a container, the path of an interpreter elsewhere.
    python: tuple[str, ...]
    # What goes into the environment's record beside the above: base, substitutions, image size.
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """An environment that takes room on this machine, whichever spec it was made from; empty what is not known."""

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
    """What a trial may use.

    `seconds` are the runner's to watch; where the runner is gone, the engine ends the trial some time later.
    """

    memory_bytes: int | None = None
    pids: int = 4096
    gpus: tuple[Gpu, ...] = ()
    seconds: float = 86_400.0


@dataclass(frozen=True)
class Ended:
    """How a process ended. Where a signal did it, `code` is its number, negative, or plus 128 in a container."""

    code: int
    out_of_memory: bool = False


@dataclass(frozen=True)
class Launch:
    """What to start in an environment: `python <arguments>`, with folders of the host to be seen read-only.

    `mounts` maps a folder here to its place inside a container; `Engine.inside` tells which path to use in arguments.
    `name` and `labels` are for finding it again.
    """

    arguments: tuple[str, ...]
    mounts: Mapping[Path, str]
    name: str
    labels: Mapping[str, str]
    limits: ResourceLimits = ResourceLimits()


class Process(Protocol):
    """A started workload."""

    def output(self) -> Iterator[tuple[Stream, bytes]]:
        """Everything it prints, as it comes, until it ends. Raises EngineLost where the engine goes away."""

    def pids(self) -> Sequence[int]:
        """Process ids on this machine whose trees are the workload's."""

    def stop(self) -> None:
        """End it at once, with everything it started. Does nothing where it has ended."""

    def wait(self) -> Ended:
        """How it ended, once `output` is exhausted; cleans up after it."""


class Engine(Protocol):
    """How environments are made and entered."""

    name: str

    def availability(self) -> Availability:
        """Whether this engine can be used on this machine, without starting anything."""

    def refusal(self, environment: Environment) -> str:
        """Why this engine cannot make that environment here, with the remedy; empty where it can."""

    def find(self, environment: Environment) -> Built | None:
        """The environment as built earlier from the same spec, lock and template; quickly, and without network."""

    def fetch(self, environment: Environment, say: Say, downloaded: Progress) -> int:
        """Keep in the cache what a build needs beside its artefacts; its bytes."""

    def missing(self, environment: Environment) -> tuple[str, ...]:
        """What of that is neither here nor in the cache, in words."""

    def build(self, environment: Environment, fetcher: Fetcher, say: Say) -> Built:
        """Make it. Raises BuildError. The caller verifies what it reports and calls `discard` where it is wrong.

        May be called for several environments at once, from a thread each; `tidy` once they all have ended.
        """

    def tidy(self) -> None:
        """Remove what builds leave behind."""

    def discard(self, built: Built) -> None:
        """Forget a build, so that `find` does not give it again."""

    def kept(self) -> list[Kept]:
        """Every environment that was made by this engine and is still there, of whatever spec."""

    def altered(self, kept: Kept, *, whole: bool) -> str:
        """What of one of those is not as it was built, by sizes and times, or `whole`: by contents; empty where all is.

        Nothing is looked at where the realised id is a digest that the engine itself keeps to.
        """

    def remove(self, kept: Kept) -> None:
        """Remove one of those. Raises UserError where it is in use."""

    def storage(self) -> Path | None:
        """Where what is built takes room; None where that is nowhere this machine can see."""

    def start(self, built: Built, launch: Launch) -> Process:
        """Start a program in the environment. Raises EngineLost where the engine does not answer."""

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        """Why a program started in an environment would not see these GPUs, with the remedy; empty where it would."""

    def inside(self, path: Path, place: str) -> str:
        """The path by which a mounted folder is seen by the workload: `place` in a container, else `path`."""

    def sweep(self) -> None:
        """End whatever killed processes of tsuishi left running, of any run, cache and user.

        What a living process started stays. Does nothing where the engine does not answer.
        """
