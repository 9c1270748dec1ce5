"""The Python packages of a lock: versions by uv, for the environment's own Python; of each the file pip would take.

To know what an sdist of old needs, its setup.py is run on this machine, as pip would.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
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
from tsuishi.specs.environment import Environment
from tsuishi.specs.lock import Pin, wrong_name

# Wheels for these glibcs have other names as well (PEP 600).
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


def resolve_pins(
    environment: Environment, sources: Sources, cache: Cache, servers: Servers, say: Say
) -> tuple[Pin, ...]:
    """One pin for each package, by name, with hash, file and size.

    Raises UserError where versions do not go together, or a source is out of reach that no other can stand in for.
    """
    assert environment.python is not None
    if not environment.requires:
        raise UserError(f"{environment.name}: 'requires' is empty: say what its lock is to be resolved from")
    say(f"resolving {len(environment.requires)} requirements for CPython {environment.python}")
    indexes = _indexes(environment, sources, servers, say)
    given = _given(environment, sources, cache, servers, say)
    wanted = [*environment.requires, *(f"{name} @ {path.as_uri()}" for name, path in given.items())]
    packages = _compile(environment, wanted, indexes, sources.find_links, servers)
    # torch==2.13.0 takes 2.13.0+cpu as well, which is another build: none is taken that was not asked for by name.
    while others := _other_builds(wanted, packages):
        wanted += others
        packages = _compile(environment, wanted, indexes, sources.find_links, servers)
    tags = _tags(environment.python)
    pins = [_pin(environment, package, tags, servers) for package in packages]
    return tuple(sorted(pins, key=lambda pin: pin.name))


def _indexes(environment: Environment, sources: Sources, servers: Servers, say: Say) -> list[str]:
    """The indexes to resolve from: all that are configured, and those of the environment that can be reached.

    Raises UserError for a configured one out of reach: without it other versions might be found, or somebody else's.
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


def _given(environment: Environment, sources: Sources, cache: Cache, servers: Servers, say: Say) -> dict[str, Path]:
    """The files of packages that the spec has URLs of: those and no others, whatever indexes have by that version."""
    given = {}
    for name, urls in environment.urls.items():
        files = [file_of(url) for url in urls]
        known = next((pin.sha256 for pin in environment.pins if pin.name == canonicalize_name(name)), ())
        here = cache.verified(known, say, environment.python) if known else None
        folders = [folder for place in sources.find_links if (folder := local(place))]
        copies = [copy.as_uri() for folder in folders for file in files if (copy := folder / file).exists()]
        try:
            given[name] = here if here and here.name in files else servers.take([*copies, *urls])
        except UserError as error:
            raise UserError(f"{environment.name}: {name} is not to be had: {error}") from error
    return given


def _compile(
    environment: Environment, wanted: Sequence[str], indexes: Sequence[str], find_links: Sequence[str], servers: Servers
) -> list[dict[str, Any]]:
    """The packages of a pylock.toml (PEP 751) that uv makes of requirements."""
    python = environment.python
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", "--format=pylock.toml", "--generate-hashes"]
    command += [f"--python-version={python}", f"--python-platform=x86_64-manylinux_2_{_glibc(python)}"]
    # As pip does: the best version of all indexes, and nothing from an earlier call.
    command += ["--index-strategy=unsafe-best-match", "--no-cache", "--no-config", "--no-python-downloads"]
    command += ["--quiet", "--color=never", *(() if indexes else ("--no-index",))]
    with tempfile.TemporaryDirectory() as folder:
        certificates = Path(folder) / "certificates.pem"
        certificates.write_bytes(trusted_certificates(servers.network))
        asked = "\n".join(wanted)
        environ = _environ(certificates) | _places(indexes, find_links)
        done = subprocess.run(command, input=asked, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{environment.name}: uv finds no set of packages: {_complaint(done.stderr)}")
    packages: list[dict[str, Any]] = tomllib.loads(done.stdout)["packages"]
    return packages


def _other_builds(wanted: Sequence[str], packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What excludes the local versions among packages that are not named in what is wanted."""
    named = unquote(" ".join(wanted))
    local = [(str(package["name"]), str(package["version"])) for package in packages if "+" in package["version"]]
    return [f"{name}!={version}" for name, version in local if version not in named]


def _environ(certificates: Path) -> dict[str, str]:
    """What uv is told by variables: nothing of its own configuration, the certificates and the proxy that pip has."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "SSL_CERT"))}
    if proxy := pip_options().get("proxy"):
        environ |= {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy}
    return environ | {"SSL_CERT_FILE": str(certificates)}


def _places(indexes: Sequence[str], find_links: Sequence[str]) -> dict[str, str]:
    """Where uv looks, by variables: its arguments, in which credentials could be, can be read by everybody here.

    UV_INDEX has spaces between its indexes, UV_FIND_LINKS commas.
    """
    given = {"UV_INDEX": " ".join(map(_quoted, indexes[:-1])), "UV_DEFAULT_INDEX": "".join(map(_quoted, indexes[-1:]))}
    given["UV_FIND_LINKS"] = ",".join(map(_quoted, find_links))
    return {name: places for name, places in given.items() if places}


def _quoted(place: str) -> str:
    """A place without what would end it in a list."""
    if not urlsplit(place).scheme:
        return Path(place).absolute().as_uri()
    return place.replace(" ", "%20").replace(",", "%2C")


def _complaint(text: str) -> str:
    """The reasons uv gives, in one line, without its hints."""
    told, *causes = text.partition("\nhint:")[0].split("cause:")
    return "; ".join(" ".join(reason.split()) for reason in causes or [told])[:1000]


def _glibc(python: str | None) -> int:
    """The minor version of the glibc there is at least: 2.17 is older than any base of 2019, 2.28 that of Debian 10."""
    return 17 if python in ("3.5", "3.6", "3.7") else 28


def _tags(python: str) -> dict[str, int]:
    """The tags of wheels that Python can use on x86-64 Linux, with their rank: the lowest is best."""
    from unearth import TargetPython

    platforms = []
    for minor in range(_glibc(python), 4, -1):
        platforms.append(f"manylinux_2_{minor}_x86_64")
        platforms += [f"{_LEGACY[minor]}_x86_64"] if minor in _LEGACY else []
    version = tuple(int(part) for part in python.split("."))
    target = TargetPython(py_ver=version, platforms=[*platforms, "linux_x86_64"])
    return {str(tag): rank for rank, tag in enumerate(target.supported_tags())}


def _pin(environment: Environment, package: Mapping[str, Any], tags: Mapping[str, int], servers: Servers) -> Pin:
    """The one file of a release: the wheel that fits best, else the sdist. Raises UserError for a name of another."""
    release = package["name"], package["version"]
    fitting = [
        (min(ranks), entry)
        for entry in package.get("wheels", ())
        if not wrong_name(_file(entry), *release)
        if (ranks := [tags[str(tag)] for tag in parse_wheel_filename(_file(entry))[3] if str(tag) in tags])
    ]
    best = min(fitting, key=lambda one: one[0])[1] if fitting else package.get("archive") or package.get("sdist")
    if best is None:
        raise UserError(
            f"{environment.name}: {package['name']}=={package['version']} has no file for CPython {environment.python} "
            "on x86-64 Linux: require another version"
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
