"""Environments: what an experiment runs in. One TOML file and one lock each, in images/."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from packaging.utils import canonicalize_name
from pydantic import Field, model_validator

from tsuishi import spec
from tsuishi.errors import UserError, unknown
from tsuishi.lock import Pin, read_lock

Accelerator = Literal["cpu", "cuda"]
Capability = Annotated[str, Field(pattern=r"^\d+\.\d$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Base(spec.Spec):
    """The image everything is built on. An empty digest means: not known here, recorded as "unpinned"."""

    reference: Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:\d+)?/[a-z0-9._/-]+:[\w.-]+$")]
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""


class Deb(spec.Spec):
    """A Debian package as an artefact: fetched by URL, checked by hash, installed without network."""

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+~%-]*\.deb$")]
    sha256: Sha256
    urls: tuple[str, ...] = Field(min_length=1)


class Expect(spec.Spec):
    """What the plan says before anything was measured on this machine; figures from two CPU cores."""

    build_s: float = 60.0
    startup_s: float = 5.0
    # How much longer a step takes than in the fastest environment.
    slowdown: float = 1.0


class Environment(spec.Spec):
    """A pinned framework stack, as images/<name>.toml says it. `pins` are its lock's, empty for `host`."""

    name: spec.Name
    title: str
    description: str = ""
    framework: Literal["torch", "tensorflow", "any"]
    accelerators: tuple[Accelerator, ...] = Field(min_length=1)
    default: bool = False
    # Lowest and highest compute capability its binaries hold code for; None means no limit is known.
    compute_capabilities: tuple[Capability, Capability] | None = None
    # Major and minor version of the CPython it needs; None means whatever interpreter is given.
    python: Annotated[str, Field(pattern=r"^3\.\d+$")] | None = None
    base: Base | None = None
    # Reported version by package name, checked after every build; `python` may be given to the digit that matters.
    promises: dict[str, str] = {}
    # Package indexes to look in after the configured ones.
    indexes: tuple[str, ...] = ()
    debs: tuple[Deb, ...] = ()
    expect: Expect = Expect()
    pins: tuple[Pin, ...] = ()

    @model_validator(mode="after")
    def _pinned_or_host(self) -> "Environment":
        if (self.base is None) != (self.python is None):
            raise ValueError("'base' and 'python' go together: give both (pinned) or neither (a host interpreter)")
        if self.base and not self.promises:
            raise ValueError(
                "'promises' is empty: say which versions the environment must report, e.g. torch = \"1.1.0\""
            )
        return self

    @property
    def pinned(self) -> bool:
        """False for `host`, whose interpreter is recorded rather than pinned."""
        return self.base is not None

    @cached_property
    def asked(self) -> dict[str, object]:
        """Everything that decides what a build makes, and nothing else: what the spec id is a hash of."""
        fields = {"name", "framework", "accelerators", "python", "base", "promises", "debs"}
        pins = [[pin.name, pin.version, list(pin.sha256)] for pin in self.pins]
        return {**self.model_dump(mode="json", include=fields), "pins": pins}

    @property
    def lock_sha256(self) -> str:
        """Hash over the pins (not over comments or order of lines)."""
        return spec.digest(sorted([pin.name, pin.version, *sorted(pin.sha256)] for pin in self.pins), 64)

    def spec_id(self, template: str) -> str:
        """Hash of what was asked for: spec, lock and the text of the template that builds it."""
        return spec.digest([self.asked, template], 16)


def read_environment(path: Path) -> Environment:
    """The environment of images/<name>.toml with its lock beside it."""
    environment = spec.load(path, Environment, name=path.stem, pins=())
    if not environment.pinned:
        return environment
    pins = read_lock(path.with_suffix(".lock"))
    _check_promises_are_locked(environment, pins, path)
    return environment.model_copy(update={"pins": pins})


def _check_promises_are_locked(environment: Environment, pins: tuple[Pin, ...], path: Path) -> None:
    """A promise the lock contradicts would fail only after the whole build; say so at once."""
    locked = {pin.name: pin.version for pin in pins}
    for name, version in environment.promises.items():
        pinned = locked.get(canonicalize_name(name), version)
        if pinned != version:
            raise UserError(f"{path}: promises {name} {version}, but {path.stem}.lock pins {pinned}")


def known_environments(images: Path) -> dict[str, Path]:
    """Name and file of every environment, in alphabetical order."""
    return {path.stem: path for path in sorted(images.glob("*.toml"))}


def select_environments(images: Path, names: tuple[str, ...]) -> tuple[Environment, ...]:
    """The named environments, or all that are marked default. Raises UserError for a name that is not there."""
    known = known_environments(images)
    for name in names:
        if name not in known:
            raise unknown("environment", name, known)
    chosen = [read_environment(known[name]) for name in names or known]
    return tuple(environment for environment in chosen if names or environment.default)
