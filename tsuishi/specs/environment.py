"""Environments: what an experiment runs in. One TOML file and one lock each, in images/."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import UserError, unknown
from tsuishi.specs.debian import Apt, Deb, apt_lock, read_apt_lock
from tsuishi.specs.lock import Pin, read_lock

Accelerator = Literal["cpu", "cuda"]
Capability = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")]
Version = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)+$")]
Reference = Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?/[a-z0-9._/-]+:[A-Za-z0-9_.-]+$")]

# In images/ with the environments: which GPU and driver run what (tsuishi/machine/compatibility.py).
COMPATIBILITY = "compatibility.toml"


# What computes, as the environment's packages name it; what offers it is for the workloads to know.
Framework = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
# Of an environment that has no framework of its own: a host interpreter.
ANY = "any"


def framework_problem(name: object) -> str:
    """Why this cannot be the name of a framework; empty where it can."""
    try:
        TypeAdapter(Framework).validate_python(name, strict=True)
    except ValidationError:
        return f"framework: expected a name as torch or tensorflow, in small letters; given: {name!r}"
    return ""


def _requirement(text: str) -> str:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"'{text}' is no requirement as pip has them: {error}") from error
    return text


class BaseImage(toml.Spec):
    """The image everything is built on. An empty digest means: not known here, recorded as "unpinned"."""

    reference: Reference
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    # Its names in other registries, tried in order where the first is out of reach: by digest, so only with one.
    copies: tuple[Reference, ...] = ()


class Cuda(toml.Spec):
    """What the GPU code inside was made for."""

    # Release of the toolkit its libraries are from, and the lowest driver (Linux, x86-64) that runs it.
    toolkit: Version
    min_driver: Version
    # Lowest and highest compute capability it runs on: by native code, or PTX where all of its libraries have that.
    compute_capabilities: tuple[Capability, Capability]
    # Why nothing newer runs it: where everything in it held PTX as well, a driver could compile that for newer GPUs.
    beyond: str = ""


class ExpectedCosts(toml.Spec):
    """What the plan says before anything was measured on this machine; figures from two CPU cores."""

    build_s: float = 60.0
    startup_s: float = 5.0
    # How much longer a step takes than in the fastest environment.
    slowdown: float = 1.0
    # How many times the size of its packages it takes once installed; CUDA's libraries are hardly compressed in theirs.
    unpacked: float = 4.5


class Environment(toml.Spec):
    """A pinned framework stack, as images/<name>.toml says it. `pins` are its lock's, empty for `host`."""

    prose = frozenset({"description", "origins"})

    name: toml.Name
    title: str
    description: str = ""
    framework: Framework
    accelerators: tuple[Accelerator, ...] = Field(min_length=1)
    # Part of a run nobody named environments for: on machines that compute on the CPU alone, on those with a GPU.
    default: tuple[Accelerator, ...] = ()
    # Where its parts come from, and what replaces each when that is gone.
    origins: str = ""
    # What of it may not be passed on just so (docs/redistribution.md); said when it is exported.
    redistribution: str = ""
    # None means that no limit is known, or that it has no GPU code.
    cuda: Cuda | None = None
    # Major and minor version of the CPython it needs; None means whatever interpreter is given.
    python: Annotated[str, Field(pattern=r"^3\.[0-9]+$")] | None = None
    base: BaseImage | None = None
    # Whether its Python packages are installed from the lock, or come with the base, recorded and held to the promises.
    packages: Literal["locked", "of the base"] = "locked"
    # What `invoke lock` resolves the lock from, as pip has it.
    requires: tuple[Annotated[str, AfterValidator(_requirement)], ...] = ()
    # Reported version by package name, checked after every build; `python` may be given to the digit that matters.
    promises: dict[str, str] = {}
    # Package indexes to look in after the configured ones.
    indexes: tuple[str, ...] = ()
    # Where else an artefact is to be had, by package: URLs, tried in order after the indexes.
    urls: dict[str, tuple[str, ...]] = {}
    apt: Apt | None = None
    expect: ExpectedCosts = ExpectedCosts()
    pins: tuple[Pin, ...] = ()
    debs: tuple[Deb, ...] = ()

    @model_validator(mode="after")
    def _pinned_or_host(self) -> "Environment":
        if (self.base is None) != (self.python is None):
            raise ValueError("'base' and 'python' go together: give both (pinned) or neither (a host interpreter)")
        if self.base and not self.promises:
            raise ValueError(
                "'promises' is empty: say which versions the environment must report, e.g. torch = \"1.1.0\""
            )
        if self.base and self.base.copies and not self.base.digest:
            raise ValueError("'base.copies' need 'base.digest': without it nobody can tell whether they are the same")
        return self

    @property
    def pinned(self) -> bool:
        """False for `host`, whose interpreter is recorded rather than pinned."""
        return self.base is not None

    @property
    def release(self) -> str:
        """The version of its framework that it promises; "0" where it promises none."""
        return self.promises.get(self.framework, "0")

    @property
    def open(self) -> tuple[str, ...]:
        """What of the locks is not known yet, and so cannot be built: `name==version`, `name=version`."""
        pins = [f"{pin.name}=={pin.version}" for pin in self.pins if not pin.sha256]
        return (*pins, *(deb.title for deb in self.debs if not deb.sha256))

    @cached_property
    def asked(self) -> dict[str, object]:
        """Everything that decides what a build makes, and nothing else: what the spec id is a hash of."""
        fields = {"name", "framework", "accelerators", "python", "packages", "promises"}
        base = self.base and {"reference": self.base.reference, "digest": self.base.digest}
        cuda = self.cuda and [self.cuda.toolkit, self.cuda.min_driver]
        pins = [[pin.name, pin.version, list(pin.sha256), pin.file, pin.size_bytes] for pin in self.pins]
        debs = [[deb.name, deb.version, deb.sha256, deb.file, deb.size_bytes] for deb in self.debs]
        fixed = self.model_dump(mode="json", include=fields)
        return {**fixed, "base": base, "cuda": cuda, "pins": pins, "debs": debs}

    @property
    def lock_sha256(self) -> str:
        """Hash over all that is locked, names and sizes of files too (not over places or the order of lines)."""
        pins = [[pin.name, pin.version, sorted(pin.sha256), pin.file, pin.size_bytes] for pin in self.pins]
        debs = [[deb.name, deb.version, deb.sha256, deb.file, deb.size_bytes] for deb in self.debs]
        return toml.digest([*sorted(pins), *sorted(debs)], 64)

    def spec_id(self, template: str) -> str:
        """Hash of what was asked for: spec, lock and the text of the template that builds it."""
        return toml.digest([self.asked, template], 16)


def read_environment(path: Path) -> Environment:
    """The environment of images/<name>.toml with its lock beside it."""
    environment = toml.load(path, Environment, name=path.stem, pins=(), debs=())
    pins: tuple[Pin, ...] = ()
    debs: tuple[Deb, ...] = ()
    if environment.pinned and environment.packages == "locked":
        pins = read_lock(path.with_suffix(".lock"))
        _check_promises_are_locked(environment, pins, path)
    if environment.apt:
        debs = read_apt_lock(apt_lock(path), environment.apt)
    return environment.model_copy(update={"pins": pins, "debs": debs})


def _check_promises_are_locked(environment: Environment, pins: tuple[Pin, ...], path: Path) -> None:
    """A promise the lock contradicts would fail only after the whole build; say so at once."""
    locked = {pin.name: pin.version for pin in pins}
    for name, version in environment.promises.items():
        pinned = locked.get(canonicalize_name(name), version)
        # A framework may add a label to its version that an index leaves out: 2.13.0+cu130 (PEP 440).
        if version not in (pinned, f"{pinned}+{version.partition('+')[2]}"):
            raise UserError(f"{path}: promises {name} {version}, but {path.stem}.lock pins {pinned}")


def open_refusal(environment: Environment) -> str:
    """Why an environment cannot be built yet; empty where its locks know everything."""
    if not environment.open:
        return ""
    return (
        f"not known yet: {', '.join(environment.open)}: run `invoke lock --env {environment.name}` on a machine that "
        "reaches their sources; a build never resolves"
    )


def known_environments(images: Path) -> dict[str, Path]:
    """Name and file of every environment, in alphabetical order."""
    return {path.stem: path for path in sorted(images.glob("*.toml")) if path.name != COMPATIBILITY}


def named_environments(images: Path, names: tuple[str, ...]) -> dict[str, Path]:
    """Name and file of those named, in that order. Raises UserError for a name that is not there."""
    known = known_environments(images)
    for name in names:
        if name not in known:
            raise unknown("environment", name, known)
    return {name: known[name] for name in names}


def read_environments(images: Path) -> tuple[Environment, ...]:
    """Every environment, in alphabetical order."""
    return tuple(map(read_environment, known_environments(images).values()))


def select_environments(images: Path, names: tuple[str, ...], accelerator: Accelerator) -> tuple[Environment, ...]:
    """The named environments, or the default ones of machines that compute on `accelerator`.

    Raises UserError for a name that is not there.
    """
    if names:
        return tuple(map(read_environment, named_environments(images, names).values()))
    return tuple(environment for environment in read_environments(images) if accelerator in environment.default)
