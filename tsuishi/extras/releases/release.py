"""The environment of another release of a framework, made from the environment of one release: its spec and lock.

Python is the Python of that environment where the release has a wheel for it, so that comparisons of both have one
difference less; else the newest Python for which the release has a wheel. All packages beside the framework have
the versions that pip would have installed on the day on which the wheel was uploaded.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from tsuishi.artifacts.network import public_url
from tsuishi.base.errors import UserError
from tsuishi.base.units import counted, megabytes
from tsuishi.locking.packages import wheel_tags
from tsuishi.locking.resolve import Locker, NewLock, environment_of, pin_lines, pins_header
from tsuishi.locking.servers import Servers, local
from tsuishi.specs.environment import BaseImage, Environment, read_environment, read_environments
from tsuishi.specs.lock import Pin

# The packages that workloads import beside the framework, and those that install.
BESIDE = ("numpy", "scipy")
_TOOLS = ("pip", "setuptools", "wheel")
# A page of an index with the time at which each file was uploaded (PEP 691, PEP 700).
_PAGE = "application/vnd.pypi.simple.v1+json"
_CPYTHON = re.compile(r"cp3(?P<minor>[0-9]+)")


@dataclass(frozen=True)
class Uploaded:
    """A file of a release: its name, the Pythons that it allows, and the day (UTC) on which it was uploaded."""

    name: str
    pythons: SpecifierSet
    day: date


@dataclass(frozen=True)
class Release:
    """A release as the indexes have it, for the Python that was chosen.

    `first`: the day on which its first file was uploaded; `day`: that of the wheel for this Python.
    """

    requirement: str
    python: str
    first: date
    day: date


def resolve_release(locker: Locker, like: Path, version: str) -> tuple[str, NewLock]:
    """The name, spec and lock of another release of a framework, like the environment images/<like>.toml.

    Raises UserError as `Locker.resolve` does, and where no index has such a release.
    """
    known = read_environment(like)
    release, version = _release(locker, known, version)
    others = read_environments(like.parent)
    made = described(known, version, release, others)
    path = spec_file(like.parent, made)
    locker.say(f"{release.requirement} of {release.first}: CPython {made.python}, packages as of {made.as_of}")
    try:
        pins = locker.pins(made)
    except UserError as error:
        made, left_out = without_companions(made)
        if not left_out:
            raise
        pins = locker.pins(made)
        locker.say(f"left out, as no version of it goes with {release.requirement}: {', '.join(left_out)} ({error})")
    locker.say(_to_fetch(pins))
    if any("+" in each.release for each in others if each.family == made.family):
        made = labelled(made, pins)
    lock = pins_header(made) + pin_lines(pins)
    files = {path: spec_text(made.model_copy(update={"pins": pins})), path.with_suffix(".lock"): lock}
    environment_of(files, path)
    return made.name, NewLock(files, tuple(f"+ {pin.name} {pin.version}" for pin in pins))


def _release(locker: Locker, like: Environment, version: str) -> tuple[Release, str]:
    """The release and its version, as the same build as that of an environment (+cpu) where an index has it."""
    label = like.release.partition("+")[2]
    if label and "+" not in version:
        labelled_version = f"{version}+{label}"
        try:
            return find_release(like, labelled_version, locker.sources.indexes, locker.servers), labelled_version
        except UserError as error:
            locker.say(f"{version} is another build than that of {like.name}, which is +{label}, as {error}")
    return find_release(like, version, locker.sources.indexes, locker.servers), version


def _to_fetch(pins: Sequence[Pin]) -> str:
    """The files that a build will fetch, in words, and how many of them are NVIDIA's libraries."""

    def size(some: Sequence[Pin]) -> str:
        return f"{counted(len(some), 'file')}, {megabytes(sum(pin.size_bytes or 0 for pin in some))}"

    nvidia = [pin for pin in pins if pin.name.startswith("nvidia-")]
    useless = f"; of these {size(nvidia)} are NVIDIA's libraries for GPUs, required on CPUs too" if nvidia else ""
    return f"to fetch: {size(pins)}{useless}"


def find_release(like: Environment, version: str, indexes: Sequence[str], servers: Servers) -> Release:
    """The release `version` of the framework of an environment.

    Raises UserError where no index has such a release with a wheel for its machine and the day of its upload.
    """
    package = _package(like)
    try:
        asked = Version(version)
    except InvalidVersion as error:
        raise UserError(f"--release takes a version, as 2.16.2; given: {version}") from error
    asked_at = [index for index in (*indexes, *like.indexes) if local(servers.place(index)) is None]
    answers = [_page(index, package, servers) for index in asked_at]
    files = [file for page, _ in answers for file in _uploaded(page, asked)]
    for python in _pythons(like, files):
        tags = wheel_tags(python, like.machine)
        fitting = [file.day for file in files if _fits(file, python, tags)]
        if fitting:
            return Release(f"{package}=={version}", python, min(file.day for file in files), max(fitting))
    known = sorted({one for page, _ in answers for one in _versions(page) if one.release[0] == asked.release[0]})
    problems = "; ".join(problem for _, problem in answers if problem)
    machine = like.machine.replace("_", "-")
    raise UserError(
        f"{package} {version} has no wheel for Linux {machine} whose day of upload an index states (PEP 700): "
        f"{', '.join(map(public_url, asked_at))} {'have' if len(asked_at) > 1 else 'has'} "
        f"{', '.join(map(str, known[-40:])) or 'none'}{f' ({problems})' if problems else ''}"
    )


def described(like: Environment, version: str, release: Release, others: Iterable[Environment]) -> Environment:
    """The environment of a release: it computes on CPUs, and no lock is made yet.

    A wheel may hold code for GPUs, which is not used: no index states which GPUs and drivers run it.
    `others`: environments whose base is taken where they have its Python. Raises UserError for an environment that
    does not compute on CPUs.
    """
    if "cpu" not in like.accelerators:
        raise UserError(f"{like.name} is for GPUs: a release is made like an environment that computes on CPUs")
    stem = re.match("[a-z]+", like.name)
    series = ".".join(version.split("+")[0].split(".")[:2])
    name = like.title.split(",")[0].replace(like.release, version)
    installed = "; its code for GPUs is not used" if like.cuda else ""
    return Environment(
        name=f"{stem.group() if stem else like.framework}{series}-cpu",
        title=f"{name}, CPU",
        description=(
            f"{name} as the package index has it{installed}. All packages beside it are of the day {release.day}, the "
            f"newest that it admits; made like {like.name}."
        ),
        framework=like.framework,
        accelerators=("cpu",),
        machine=like.machine,
        python=release.python,
        origins=(
            f"The base is Docker's official image of CPython {release.python}; any Linux image with that CPython "
            "stands in for it through the mirror map. All packages are on the package index, where releases are not "
            "removed; a copy of each, by its hash, can be carried in the cache (`invoke fetch`)."
        ),
        redistribution=like.redistribution and "NVIDIA's libraries are in the wheel or beside it: their licences hold",
        family=like.family or like.framework,
        released=release.first,
        as_of=release.day,
        requires=(release.requirement, *_companions(like), *BESIDE, *_TOOLS),
        indexes=like.indexes if "+" in version else (),
        base=_base(release.python, (like, *others)),
        promises={"python": release.python, like.framework: version},
        expect=like.expect,
    )


def labelled(environment: Environment, pins: Iterable[Pin]) -> Environment:
    """The environment with the label in its promise that a build for CUDA gives itself: 2.5.1+cu124.

    An index leaves the label out. The build is for the CUDA whose runtime it requires.
    """
    runtime = next((pin.version for pin in pins if pin.name.startswith("nvidia-cuda-runtime")), "")
    if not runtime or "+" in environment.release:
        return environment
    label = "".join(runtime.split(".")[:2])
    promises = environment.promises | {environment.framework: f"{environment.release}+cu{label}"}
    return environment.model_copy(update={"promises": promises})


def without_companions(environment: Environment) -> tuple[Environment, list[str]]:
    """A described environment with only its framework, BESIDE and tools; and the names of the removed packages."""
    left_out = [name for name in _beside(environment) if name not in BESIDE]
    requires = [text for text in environment.requires if text not in left_out]
    return environment.model_copy(update={"requires": tuple(requires)}), left_out


def spec_text(environment: Environment) -> str:
    """The text of images/<environment>.toml, with promises for its locked packages beside framework and tools."""
    import tomlkit

    base = environment.base
    assert base is not None
    locked = {pin.name: pin.version for pin in environment.pins}
    promises = environment.promises | {name: locked[name] for name in _beside(environment) if name in locked}
    document = tomlkit.document()
    document["title"] = environment.title
    document["description"] = _paragraph(environment.description)
    machine = [] if environment.machine == Environment.model_fields["machine"].default else ["machine"]
    for key in ("framework", "accelerators", *machine, "default", "python"):
        value = getattr(environment, key)
        document[key] = list(value) if isinstance(value, tuple) else value
    document["origins"] = _paragraph(environment.origins)
    if environment.redistribution:
        document["redistribution"] = environment.redistribution
    for key in ("family", "released", "as_of"):
        document[key] = getattr(environment, key)
    document["requires"] = list(environment.requires)
    if environment.indexes:
        document["indexes"] = list(environment.indexes)
    document["base"] = {"reference": base.reference, "digest": base.digest}
    if not base.digest:
        document["base"]["digest"].comment("not known yet: unpinned")
    document["promises"] = promises
    costs = environment.expect.model_dump(exclude_defaults=True)
    if costs:
        document["expect"] = costs
    # A line break behind the quotes is no part of a text; tomlkit writes none.
    return tomlkit.dumps(document).replace('= """', '= """\n')


def _companions(like: Environment) -> list[str]:
    """The packages that an environment requires and promises beside its framework and BESIDE, as torchvision.

    Each requires exactly one release of the framework, so a resolver finds the version that belongs to another release.
    """
    return [name for name in _beside(like) if name in like.promises and name not in BESIDE]


def _beside(environment: Environment) -> list[str]:
    """The names of the packages that an environment requires beside its framework and the tools of packaging."""
    others = (_package(environment), *_TOOLS)
    return [name for text in environment.requires if (name := Requirement(text).name) not in others]


def _paragraph(text: str) -> Any:
    """A text as lines of at most 118 characters between three quotes."""
    import textwrap

    import tomlkit

    return tomlkit.string("\n".join(textwrap.wrap(text, 118)) + "\n", multiline=True)


def _package(like: Environment) -> str:
    """The name of the package that is the framework: that of the requirement with the release's own version."""
    for text in like.requires:
        requirement = Requirement(text)
        if requirement.name.startswith(like.framework) and requirement.specifier.contains(like.release):
            return requirement.name
    raise UserError(f"{like.name} requires no {like.framework} by its version: name an environment that does")


def _page(index: str, package: str, servers: Servers) -> tuple[dict[str, Any], str]:
    """The page of a package, and why it could not be read.

    The page is empty where the index has no page, or a page that does not state when files were uploaded.
    """
    try:
        page = json.loads(servers.text(f"{index.rstrip('/')}/{canonicalize_name(package)}/", _PAGE))
    except UserError as error:
        return {}, str(error)
    except ValueError:
        return {}, ""
    return (page if isinstance(page, dict) else {}), ""


def _files(page: dict[str, Any]) -> Iterable[tuple[Version, dict[str, Any]]]:
    for file in page.get("files", ()):
        try:
            parse = parse_wheel_filename if file["filename"].endswith(".whl") else parse_sdist_filename
            yield parse(file["filename"])[1], file
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue  # files of other kinds, as eggs


def _versions(page: dict[str, Any]) -> set[Version]:
    return {version for version, _ in _files(page) if not version.is_prerelease}


def _uploaded(page: dict[str, Any], version: Version) -> list[Uploaded]:
    """The files of a version with the day of their upload."""
    return [
        Uploaded(
            file["filename"],
            SpecifierSet(file.get("requires-python") or ""),
            datetime.fromisoformat(file["upload-time"]).date(),
        )
        for found, file in _files(page)
        if found == version and file.get("upload-time")
    ]


def _pythons(like: Environment, files: Sequence[Uploaded]) -> list[str]:
    """The Python of `like`, then all others that wheels name, the newest first."""
    minors = set(chain.from_iterable(_CPYTHON.findall(file.name) for file in files))
    newest = sorted({f"3.{minor}" for minor in minors}, key=Version, reverse=True)
    return list(dict.fromkeys([*([like.python] if like.python else []), *newest]))


def _fits(file: Uploaded, python: str, tags: dict[str, int]) -> bool:
    """Whether a file is a wheel with one of these tags, and allows a Python."""
    if not file.name.endswith(".whl") or f"{python}.99" not in file.pythons:
        return False
    return any(str(tag) in tags for tag in parse_wheel_filename(file.name)[3])


def _base(python: str, others: Iterable[Environment]) -> BaseImage:
    """The base of the first environment with this Python; else Docker's official image of it, of the newest patch."""
    of_python = (other.base for other in others if other.python == python and other.base and not other.apt)
    official = (base for base in of_python if "/python:" in base.reference)
    return next(official, BaseImage(reference=f"docker.io/library/python:{python}-slim"))


def spec_file(images: Path, environment: Environment) -> Path:
    """The file of a new environment. Raises UserError where a file of that name exists."""
    path = images / f"{environment.name}.toml"
    if path.exists():
        raise UserError(f"{path} is there already: `invoke lock --env {environment.name}` makes its lock anew")
    return path
