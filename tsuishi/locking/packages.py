"""Resolves the Python packages of a lock: uv chooses the versions for the environment's Python; a pin names one file.

It is the file that pip would take. uv runs the setup.py of an old sdist on this machine, as pip does, to learn its
requirements: by the environment's own Python where the machine has it, as some refuse a newer one.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name, parse_wheel_filename

from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.certificates import trusted_certificates
from tsuishi.artifacts.network import file_of, public_url
from tsuishi.artifacts.pip_configuration import Sources, pip_options
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say
from tsuishi.locking.servers import Servers, local
from tsuishi.specs.environment import Environment, Machine
from tsuishi.specs.lock import Pin, wrong_name

# Older names of platforms, by the minor version of glibc (PEP 600).
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
# The tools of packaging are never older than these days. pip of 2017 knows neither all wheels nor the options of a
# build. Where this machine has no other Python, uv runs an sdist's setup.py in that of this process, for which
# setuptools before 68 is too old.
_NO_EARLIER = {"pip": date(9999, 1, 1), "setuptools": date(2023, 10, 15), "wheel": date(2023, 10, 15)}


def resolve_pins(
    environment: Environment, sources: Sources, cache: Cache, servers: Servers, build_python: Path | None, say: Say
) -> tuple[Pin, ...]:
    """A pin for each package, with hash, file and size, sorted by name.

    `build_python` runs the setup.py of sdists; None: the Python of this process.
    Raises UserError where no set of versions fits, and where a source that is needed is out of reach.
    """
    assert environment.python is not None
    if not environment.requires:
        raise UserError(f"{environment.name}: 'requires' is empty: say what its lock is to be resolved from")
    say(f"resolving {len(environment.requires)} requirements for CPython {environment.python}")
    indexes = _indexes(environment, sources, servers, say)
    files = _files_of_urls(environment, sources, cache, servers, say)
    requirements = [*environment.requires, *(f"{name} @ {path.as_uri()}" for name, path in files.items())]
    packages = _compile(environment, requirements, indexes, sources.find_links, servers, build_python)
    # torch==2.13.0 also allows 2.13.0+cpu, which is another build: only a requirement that names it may choose it.
    while exclusions := _other_builds(requirements, packages):
        requirements += exclusions
        packages = _compile(environment, requirements, indexes, sources.find_links, servers, build_python)
    tags = wheel_tags(environment.python, environment.machine)
    pins = [_pin(environment, package, tags, servers) for package in packages]
    return tuple(sorted(pins, key=lambda pin: pin.name))


def _indexes(environment: Environment, sources: Sources, servers: Servers, say: Say) -> list[str]:
    """The indexes to resolve from: the configured indexes, and those of the environment that can be reached.

    Raises UserError where a configured index is out of reach: without it uv might choose other versions, or packages of
    other authors.
    """
    for index in sources.indexes:
        if problem := servers.why_not(index):
            raise UserError(
                f"{environment.name}: the package index {public_url(index)} is out of reach: {problem}; a lock made "
                "without it might hold other packages: reach it, or leave it out (tsuishi.indexes)"
            )
    indexes = list(sources.indexes)
    for index in environment.indexes:
        if problem := servers.why_not(index):
            say(f"left out: the package index {public_url(index)} is out of reach: {problem}")
        else:
            indexes.append(index)
    return [servers.place(index) for index in indexes]


def _files_of_urls(
    environment: Environment, sources: Sources, cache: Cache, servers: Servers, say: Say
) -> dict[str, Path]:
    """The files of packages for which the spec names URLs, by package. Files of indexes do not count for them."""
    files = {}
    for name, urls in environment.urls.items():
        names = [file_of(url) for url in urls]
        hashes = next((pin.sha256 for pin in environment.pins if pin.name == canonicalize_name(name)), ())
        kept = cache.verified(hashes, say, environment.python) if hashes else None
        folders = [folder for place in sources.find_links if (folder := local(place))]
        copies = [copy.as_uri() for folder in folders for file in names if (copy := folder / file).exists()]
        try:
            files[name] = kept if kept and kept.name in names else servers.take([*copies, *urls])
        except UserError as error:
            raise UserError(f"{environment.name}: {name} is not to be had: {error}") from error
    return files


def _compile(
    environment: Environment,
    requirements: Sequence[str],
    indexes: Sequence[str],
    find_links: Sequence[str],
    servers: Servers,
    build_python: Path | None,
) -> list[dict[str, Any]]:
    """The packages of the pylock.toml (PEP 751) that uv resolves from requirements."""
    python = environment.python
    command = [sys.executable, "-P", "-m", "uv", "pip", "compile", "-", "--format=pylock.toml", "--generate-hashes"]
    command += [f"--python-version={python}", f"--python-platform={environment.machine}-manylinux_2_{_glibc(python)}"]
    # As in pip, the best version of all indexes counts. No cache, so that nothing is left from an earlier call.
    command += ["--index-strategy=unsafe-best-match", "--no-cache", "--no-config", "--no-python-downloads"]
    command += ["--quiet", "--color=never", *(() if indexes else ("--no-index",))]
    command += [f"--python={build_python}"] if build_python else []
    command += _until(environment.as_of) if environment.as_of else []
    with tempfile.TemporaryDirectory() as folder:
        certificates = Path(folder) / "certificates.pem"
        certificates.write_bytes(trusted_certificates(servers.network))
        lines = "\n".join(requirements)
        environ = _environ(certificates) | _places(indexes, find_links)
        result = subprocess.run(command, input=lines, env=environ, capture_output=True, text=True, check=False)
    if result.returncode:
        day = f" as of {environment.as_of}" if environment.as_of else ""
        raise UserError(f"{environment.name}: uv finds no set of packages{day}: {_complaint(result.stderr)}")
    packages: list[dict[str, Any]] = tomllib.loads(result.stdout)["packages"]
    return packages


def _until(day: date) -> list[str]:
    """The options of uv by which only files count that were uploaded before the end of a day (UTC).

    Files for which an index states no time of upload (PEP 700) do not count either.
    """
    tools = [f"--exclude-newer-package={name}={max(day, least)}T23:59:59Z" for name, least in _NO_EARLIER.items()]
    return [f"--exclude-newer={day}T23:59:59Z", *tools]


def _other_builds(requirements: Sequence[str], packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Requirements that exclude the local versions (2.13.0+cpu) among packages that no requirement names."""
    named = unquote(" ".join(requirements))
    local = [(str(package["name"]), str(package["version"])) for package in packages if "+" in package["version"]]
    return [f"{name}!={version}" for name, version in local if version not in named]


def _environ(certificates: Path) -> dict[str, str]:
    """The variables of uv: the certificates, pip's proxy, and none of the user's configuration of uv."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "SSL_CERT"))}
    if proxy := pip_options().get("proxy"):
        environ |= {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy}
    return environ | {"SSL_CERT_FILE": str(certificates)}


def _places(indexes: Sequence[str], find_links: Sequence[str]) -> dict[str, str]:
    """The variables that name indexes and folders. Every user can read uv's arguments, and URLs may hold credentials.

    Indexes in UV_INDEX are separated by spaces, places in UV_FIND_LINKS by commas.
    """
    variables = {
        "UV_INDEX": " ".join(map(_quoted, indexes[:-1])),
        "UV_DEFAULT_INDEX": "".join(map(_quoted, indexes[-1:])),
        "UV_FIND_LINKS": ",".join(map(_quoted, find_links)),
    }
    return {name: places for name, places in variables.items() if places}


def _quoted(place: str) -> str:
    """A place as a URL without spaces and commas, which separate places in a list."""
    if not urlsplit(place).scheme:
        return Path(place).absolute().as_uri()
    return place.replace(" ", "%20").replace(",", "%2C")


def _complaint(text: str) -> str:
    """The causes that uv gives, in one line, without its hints."""
    summary, *causes = text.partition("\nhint:")[0].split("cause:")
    return "; ".join(" ".join(cause.split()) for cause in causes or [summary])[:1000]


def _glibc(python: str | None) -> int:
    """The minor version of the oldest glibc of a base: bases of 2019 have more than 2.17, Debian 10 has 2.28."""
    return 17 if python in ("3.5", "3.6", "3.7") else 28


def wheel_tags(python: str, machine: Machine) -> dict[str, int]:
    """The ranks of the wheel tags that a Python can use on Linux on a machine; the lowest rank is best."""
    from unearth import TargetPython

    platforms = []
    for minor in range(_glibc(python), 4, -1):
        platforms.append(f"manylinux_2_{minor}_{machine}")
        platforms += [f"{_LEGACY[minor]}_{machine}"] if minor in _LEGACY else []
    version = tuple(int(part) for part in python.split("."))
    target = TargetPython(py_ver=version, platforms=[*platforms, f"linux_{machine}"])
    return {str(tag): rank for rank, tag in enumerate(target.supported_tags())}


def _pin(environment: Environment, package: Mapping[str, Any], tags: Mapping[str, int], servers: Servers) -> Pin:
    """The pin of a release: the wheel that fits best, else the sdist.

    Raises UserError where no file fits, where a file has the name of another release, or where its hash differs.
    """
    release = package["name"], package["version"]
    wheels = [
        (min(ranks), entry)
        for entry in package.get("wheels", ())
        if not wrong_name(_file(entry), *release)
        if (ranks := [tags[str(tag)] for tag in parse_wheel_filename(_file(entry))[3] if str(tag) in tags])
    ]
    best = min(wheels, key=itemgetter(0))[1] if wheels else package.get("archive") or package.get("sdist")
    if best is None:
        raise UserError(
            f"{environment.name}: {package['name']}=={package['version']} has no file for CPython {environment.python} "
            f"on {environment.machine.replace('_', '-')} Linux: require another version"
        )
    if problem := wrong_name(_file(best), *release):
        raise UserError(f"{environment.name}: {problem}")
    sha256, size = best.get("hashes", {}).get("sha256"), best.get("size") or servers.size(_url(best))
    if not sha256 or not size:
        path = servers.take([_url(best)])
        if path.parent.name != (sha256 or path.parent.name):
            raise UserError(f"{environment.name}: {path.name} has sha256 {path.parent.name}, its index says {sha256}")
        sha256, size = path.parent.name, path.stat().st_size
    return Pin(canonicalize_name(package["name"]), package["version"], (sha256,), _file(best), size)


def _url(entry: Mapping[str, Any]) -> str:
    return str(entry.get("url") or Path(entry["path"]).as_uri())


def _file(entry: Mapping[str, Any]) -> str:
    return str(entry.get("name") or file_of(_url(entry)))
