"""Environments, in which experiments run. Each has a TOML file and a lock in images/."""

import platform
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, get_args

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import UserError, unknown
from tsuishi.base.setting_values import CoreEngine
from tsuishi.specs.debian import Apt, Deb, apt_lock, read_apt_lock
from tsuishi.specs.libraries import Libraries
from tsuishi.specs.lock import Pin, read_lock

Accelerator = Literal["cpu", "cuda"]
# Processors, by the names that Linux gives them.
Machine = Literal["x86_64", "aarch64"]
Capability = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")]
Version = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)+$")]
Reference = Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?/[a-z0-9._/-]+:[A-Za-z0-9_.-]+$")]

# The file in images/ that is no environment: which GPUs and drivers run a toolkit (tsuishi/machine/compatibility.py).
COMPATIBILITY = "compatibility.toml"
_NUMBER = re.compile("([0-9]+)")
_ENGINES = {*get_args(CoreEngine)} - {"auto"}

# A framework, by the name of its package. Only the workloads know what it can do.
Framework = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
# The framework of an environment that may have any framework: a host interpreter.
ANY = "any"


def framework_problem(name: object) -> str:
    """Why `name` cannot be the name of a framework; empty where it can."""
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
    """The base image of an environment. An empty digest means that it is unknown; records then say "unpinned"."""

    reference: Reference
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    # Its names in other registries, tried in order where the first cannot be reached. They need the digest.
    copies: tuple[Reference, ...] = ()


class Cuda(toml.Spec):
    """The drivers and GPUs that run the GPU code of an environment."""

    # The release of the toolkit that its libraries are from, and the lowest driver (Linux, x86-64) that runs it.
    toolkit: Version
    min_driver: Version
    # The lowest and the highest compute capability for which it holds native code; those for which it holds PTX alone,
    # which a driver compiles when it is loaded, while its libraries (cuDNN, cuBLAS) hold native code.
    native: tuple[Capability, Capability]
    ptx: tuple[Capability, Capability] | None = None
    # Why newer GPUs cannot run it. If all of its libraries had PTX, a driver could compile them for newer GPUs.
    beyond: str = ""


class ExpectedCosts(toml.Spec):
    """Guesses for plans on machines without earlier measurements. The defaults were measured on two CPU cores."""

    build_s: toml.Seconds = 60.0
    startup_s: toml.Seconds = 5.0
    # The duration of a step, divided by its duration in the fastest environment.
    slowdown: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    # Installed bytes per byte of its packages. It is small where packages hold CUDA's libraries, which hardly shrink.
    unpacked: Annotated[float, Field(gt=0, le=1e6)] = 4.5


class Environment(toml.Spec):
    """A pinned framework stack, as images/<name>.toml describes it. `pins` are those of its lock; `host` has none."""

    prose = frozenset({"description", "origins", "lacks"})

    name: toml.Name
    title: str
    description: str = ""
    # What its build has not, and other builds of the release have, as their numbers show: `check` says it.
    lacks: str = ""
    framework: Framework
    accelerators: tuple[Accelerator, ...] = Field(min_length=1)
    # The machines on which the packages of its lock run.
    machine: Machine = "x86_64"
    # The machines where runs may use it without being asked by name: those with a CPU only, those with a GPU. Of a
    # framework's environments that fit a machine, runs use the oldest and the newest release.
    default: tuple[Accelerator, ...] = ()
    # Where its parts come from, and what can replace a part that is gone.
    origins: str = ""
    # Which of its parts may not be passed on freely (docs/redistribution.md); an export prints it.
    redistribution: str = ""
    # None means that no limit is known, or that it has no GPU code.
    cuda: Cuda | None = None
    # Major and minor version of the CPython that it needs; None means any interpreter.
    python: Annotated[str, Field(pattern=r"^3\.[0-9]+$")] | None = None
    base: BaseImage | None = None
    # Where its Python packages come from: the lock, or the base image. Packages of the base are recorded, not pinned.
    packages: Literal["locked", "of the base"] = "locked"
    # The requirements, in pip's format, from which `invoke lock` makes the lock.
    requires: tuple[Annotated[str, AfterValidator(_requirement)], ...] = ()
    # Versions by package that the environment must report after its build. For `python` the first digits are enough.
    promises: dict[str, str] = {}
    # More package indexes, which come after the indexes of the settings.
    indexes: tuple[str, ...] = ()
    # More URLs of artefacts, by package; they are tried in order after the indexes.
    urls: dict[str, tuple[str, ...]] = {}
    apt: Apt | None = None
    # Libraries beside its packages, which no index has as packages of their own.
    libraries: Libraries | None = None
    # The environments that are releases of one framework have the same family. The day on which this release appeared.
    family: str = ""
    released: date | None = None
    # Its lock has what the package indexes had at the end of that day (UTC); None: what they have when it is made.
    as_of: date | None = None
    expect: ExpectedCosts = ExpectedCosts()
    pins: tuple[Pin, ...] = ()
    debs: tuple[Deb, ...] = ()
    # The engine that makes it whatever the settings say; no file says it, but the name "<name of a file>.<engine>".
    engine: str = ""

    @model_validator(mode="after")
    def _pinned_or_host(self) -> "Environment":
        if (self.base is None) != (self.python is None):
            raise ValueError("'base' and 'python' go together: give both (pinned) or neither (a host interpreter)")
        if self.base and not self.promises:
            raise ValueError(
                "'promises' is empty: say which versions the environment must report, e.g. torch = \"1.1.0\""
            )
        if self.family and not self.released:
            raise ValueError("'family' needs 'released', the day on which this release of the framework appeared")
        if self.apt and self.machine != "x86_64":
            raise ValueError("'apt' has packages of amd64 only: an environment for another 'machine' takes none")
        if self.libraries and (self.machine != "x86_64" or self.packages != "locked"):
            raise ValueError("'libraries' are of x86-64, and stand beside packages of a lock")
        if self.base and self.base.copies and not self.base.digest:
            raise ValueError("'base.copies' need 'base.digest': only the digest shows that they are the same")
        return self

    @property
    def pinned(self) -> bool:
        """Whether its parts are pinned; False for `host`, whose interpreter is only recorded."""
        return self.base is not None

    @property
    def made_as(self) -> str:
        """The name of its file: what is made of the file is the same under both names."""
        return without_engine(self.name) if self.engine else self.name

    @property
    def release(self) -> str:
        """The promised version of its framework; "0" without a promise."""
        return self.promises.get(self.framework, "0")

    @property
    def open(self) -> tuple[str, ...]:
        """The locked packages whose hashes are not known yet: `name==version`, or `name=version` for Debian's."""
        pins = [f"{pin.name}=={pin.version}" for pin in self.pins if not pin.sha256]
        return (*pins, *(deb.title for deb in self.debs if not deb.sha256))

    @property
    def fetched(self) -> tuple[Pin, ...]:
        """The wheels and sdists that a build needs: those of its lock, and those that carry its libraries."""
        return (*self.pins, *(self.libraries.pins() if self.libraries else ()))

    @property
    def stand_ins(self) -> list[dict[str, str]]:
        """The libraries that it cannot have, and what stands in for them: `asked` and `used`, as in its record."""
        return self.libraries.substitutions() if self.libraries else []

    @cached_property
    def asked(self) -> dict[str, object]:
        """Everything of the spec that decides the result of a build; the spec id is a hash of it."""
        fields = {"framework", "accelerators", "python", "packages", "promises"}
        base = self.base and {"reference": self.base.reference, "digest": self.base.digest}
        cuda = self.cuda and [self.cuda.toolkit, self.cuda.min_driver]
        pins = [[pin.name, pin.version, list(pin.sha256), pin.file, pin.size_bytes] for pin in self.pins]
        debs = [[deb.name, deb.version, deb.sha256, deb.file, deb.size_bytes] for deb in self.debs]
        fixed = self.model_dump(mode="json", include=fields)
        libraries = {"libraries": self.libraries.asked} if self.libraries else {}
        return {"name": self.made_as, **fixed, "base": base, "cuda": cuda, "pins": pins, "debs": debs, **libraries}

    @property
    def lock_sha256(self) -> str:
        """Hash of the locks, with the names and sizes of files. URLs and the order of lines do not count."""
        pins = [[pin.name, pin.version, sorted(pin.sha256), pin.file, pin.size_bytes] for pin in self.fetched]
        debs = [[deb.name, deb.version, deb.sha256, deb.file, deb.size_bytes] for deb in self.debs]
        return toml.digest([*sorted(pins), *sorted(debs)], 64)

    def spec_id(self, template: str) -> str:
        """Hash of the spec, the locks and `template`, the text of the template of the build."""
        return toml.digest([self.asked, template], 16)


def read_environment(path: Path) -> Environment:
    """The environment of images/<name>.toml and of the locks beside it. Raises UserError for a wrong file."""
    environment = toml.load(path, Environment, name=path.stem, pins=(), debs=(), engine="")
    pins: tuple[Pin, ...] = ()
    debs: tuple[Deb, ...] = ()
    if environment.pinned and environment.packages == "locked":
        pins = read_lock(path.with_suffix(".lock"))
        _check_promises_are_locked(environment, pins, path)
    if environment.apt:
        debs = read_apt_lock(apt_lock(path), environment.apt)
    return environment.model_copy(update={"pins": pins, "debs": debs})


def check_framework(path: Path, workloads: Path) -> None:
    """Raise UserError where no workload can compute with the framework of images/<name>.toml."""
    name = toml.load(path, Environment, name=path.stem, pins=(), debs=(), engine="").framework
    known = {ANY, *(facts.parent.name for facts in (workloads / "frameworks").glob("*/facts.py"))}
    if name not in known:
        raise UserError(f"{path}: key 'framework': {unknown('framework', name, known)}; '{ANY}' is for scripts")


def _check_promises_are_locked(environment: Environment, pins: tuple[Pin, ...], path: Path) -> None:
    """Raise UserError where the lock contradicts a promise. Otherwise it would fail only after the whole build."""
    locked = {pin.name: pin.version for pin in pins}
    for name, version in environment.promises.items():
        pinned = locked.get(canonicalize_name(name), version)
        # A framework may add a label to its version that an index leaves out: 2.13.0+cu130 (PEP 440).
        if version not in (pinned, f"{pinned}+{version.partition('+')[2]}"):
            raise UserError(f"{path}: promises {name} {version}, but {path.stem}.lock pins {pinned}")


def open_refusal(environment: Environment) -> str:
    """Why an environment cannot be built yet; empty where its locks have every hash."""
    if not environment.open:
        return ""
    return (
        f"not known yet: {', '.join(environment.open)}: run `invoke lock --env {environment.made_as}` on a machine "
        "that reaches their sources; a build never resolves"
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Names or labels of environments in alphabetical order, numbers in theirs.

    >>> in_order(["tf1.13-cpu", "tf1.4-cpu", "host"])
    ['host', 'tf1.4-cpu', 'tf1.13-cpu']
    """

    def key(name: str) -> tuple[list[int | str], str]:
        # Every second part is a number, so parts at the same place can be compared.
        return [int(part) if part.isdecimal() else part for part in _NUMBER.split(name)], name

    return sorted(names, key=key)


def known_environments(images: Path) -> dict[str, Path]:
    """Name and file of every environment, in order."""
    paths = {path.stem: path for path in images.glob("[!.]*.toml") if path.name != COMPATIBILITY}
    return {name: paths[name] for name in in_order(paths)}


def named_files(images: Path, names: tuple[str, ...]) -> dict[str, Path]:
    """Name and file of the named environments, in the given order. Raises UserError for an unknown name."""
    known = known_environments(images)
    for name in names:
        if name not in known:
            raise unknown("environment", name, known)
    return {name: known[name] for name in names}


def without_engine(name: str) -> str:
    """The name of the file of an environment, whose name may say its engine."""
    stem, _, engine = name.rpartition(".")
    return stem if stem and engine in _ENGINES else name


def find_environment(images: Path, name: str) -> Environment | None:
    """The environment of this name, None where there is none; "torch2-cpu.venv" is torch2-cpu in the engine venv."""
    known = known_environments(images)
    stem = name if name in known else without_engine(name)
    if stem not in known:
        return None
    own = {"name": name, "engine": name[len(stem) + 1 :]}
    return read_environment(known[stem]).model_copy(update=own)


def read_environments(images: Path) -> tuple[Environment, ...]:
    """Every environment, in order."""
    return tuple(map(read_environment, known_environments(images).values()))


def named_environments(images: Path, names: Iterable[str]) -> tuple[Environment, ...]:
    """The named environments, in the given order. Raises UserError for an unknown name."""
    found = {name: find_environment(images, name) for name in names}
    for name, environment in found.items():
        if environment is None:
            raise unknown("environment", name, known_environments(images))
    return tuple(filter(None, found.values()))


def default_environments(images: Path, accelerator: Accelerator) -> tuple[Environment, ...]:
    """The defaults of machines like this that compute on `accelerator`.

    Where no environment is for machines like this, all defaults are returned: each then says why it cannot be made.
    """
    default = tuple(each for each in read_environments(images) if accelerator in each.default)
    return tuple(each for each in default if each.machine == platform.machine()) or default


def ends(environments: Iterable[Environment]) -> tuple[Environment, ...]:
    """The environments with the oldest and with the newest release of each framework, in the given order."""
    given = tuple(environments)
    releases: dict[str, set[PackageVersion]] = defaultdict(set)
    for environment in given:
        releases[environment.framework].add(PackageVersion(environment.release))
    at_ends = {framework: (min(versions), max(versions)) for framework, versions in releases.items()}
    return tuple(each for each in given if PackageVersion(each.release) in at_ends[each.framework])
