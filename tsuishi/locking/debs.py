"""Resolves the Debian packages of a lock with apt, in a container of the base image that has a network.

So the lock holds only the packages that the base lacks, and apt itself checks signatures and indexes. apt uses only the
repositories of the spec, and trusts each by the key that the spec names.
"""

import io
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from urllib.request import getproxies

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.specs.debian import Repository
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker.models.containers import Container

_FOLDER = "/tsuishi"
# Check-Valid-Until is off, because the indexes of old releases have expired.
_CONFIGURATION = f"""\
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "{_FOLDER}/sources";
Dir::State::Lists "{_FOLDER}/lists";
APT::Get::List-Cleanup "false";
APT::Install-Recommends "false";
Acquire::Check-Valid-Until "false";
Acquire::ForceHash "SHA256";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Acquire::https::CAInfo "{_FOLDER}/certificates.pem";
"""
_INSTALL = (
    "apt-get",
    "install",
    "--print-uris",
    "--quiet=2",
    "--yes",
    "--reinstall",
    "--allow-downgrades",
    "--no-remove",
)
# `apt-get update` only warns of an index that it cannot fetch or verify, and its exit code is 0.
_SUMMARY = ("W: Some index files failed", "E: Some index files failed")
_FATAL = ("E:", "W: Failed to fetch", "W: GPG error", "W: An error occurred", *_SUMMARY)
# 'URI' name_version_architecture.deb bytes SHA256:digest; colons of versions are quoted in the name.
_URI = re.compile(
    r"'(?P<uri>[!-&(-~]+)' (?P<name>[^_ ]+)_(?P<version>[^_ ]+)_[^_ ]+\.deb (?P<bytes>[0-9]+) "
    r"SHA256:(?P<sha256>[0-9a-f]{64})"
)
Download = Callable[[str], bytes]


def resolve_debs(
    environment: Environment,
    engine: DockerEngine,
    place_of: Callable[[str], str],
    download: Download,
    certificates: bytes,
    say: Say,
) -> list[str]:
    """The lines of <environment>.apt.lock: the packages of the spec, and their dependencies that the base lacks.

    `place_of` maps a URL to its mirror; `download` returns the content of a URL; `certificates` (PEM) are trusted for
    servers. Raises UserError without an engine, and where a repository or a package is out of reach.
    """
    apt = environment.apt
    assert apt is not None
    usable = engine.availability()
    if not usable.usable:
        raise UserError(
            f"{environment.name}: its Debian packages are resolved in a container of the base, with a network: "
            f"{usable.reason}; {usable.remedy}"
        )
    keys = {
        name: _certificate(environment.name, name, repository, place_of, download)
        for name, repository in apt.repositories.items()
        if repository.key
    }
    with engine.base_container(environment, say) as container:
        _put(
            container,
            {"apt.conf": _CONFIGURATION.encode(), "certificates.pem": certificates}
            | {f"keys/{name}.asc": key for name, key in keys.items()},
        )
        _run(container, "mkdir", "-p", f"{_FOLDER}/sources", f"{_FOLDER}/lists/partial")
        uris = {
            name: _update(environment.name, container, name, apt.repositories[name], place_of)
            for name in apt.repositories
        }
        code, output, complaints = _run(container, *_INSTALL, *apt.packages)
    if code:
        raise UserError(f"{environment.name}: apt finds no way to install the packages: {_complaint(complaints)}")
    return sorted(_lines(environment.name, output, uris))


def _certificate(
    environment: str, name: str, repository: Repository, place_of: Callable[[str], str], download: Download
) -> bytes:
    """The OpenPGP certificate of a repository, as text, from the first URL that has it."""
    from pysequoia import Cert

    problems = []
    for url in repository.key_urls:
        try:
            certificates = Cert.split_bytes(download(place_of(url)))
        except UserError as error:
            problems.append(str(error))
            continue
        except RuntimeError:  # sequoia raises no other error
            problems.append(f"{url} gave no OpenPGP key")
            continue
        for certificate in certificates:
            if certificate.fingerprint.upper() == repository.key:
                return str(certificate).encode()
        given = ", ".join(certificate.fingerprint.upper() for certificate in certificates)
        problems.append(f"{url} gave the key {given}")
    raise UserError(
        f"{environment}: the repository {name} is trusted by the key {repository.key}, and that is not to be had: "
        f"{'; '.join(problems)}; do not use another key unless its owner says that it was replaced"
    )


def _put(container: "Container", files: Mapping[str, bytes]) -> None:
    """Write files below _FOLDER, readable for the user that apt uses for downloads."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{_FOLDER}/{name}".lstrip("/"))
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    container.put_archive("/", archive.getvalue())


def _run(container: "Container", *command: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    environment = {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", "APT_CONFIG": f"{_FOLDER}/apt.conf"}
    environment |= {f"{scheme}_proxy": proxy for scheme, proxy in getproxies().items()}
    result: Any = container.exec_run(list(command), environment=environment, demux=True)
    output, complaints = ((text or b"").decode(errors="replace") for text in result.output)
    return int(result.exit_code), output, complaints


def _update(
    environment: str, container: "Container", name: str, repository: Repository, place_of: Callable[[str], str]
) -> str:
    """Make apt read the index of a repository. Returns the first URI whose index has a good signature."""
    problems = []
    for uri in repository.uris:
        place = place_of(uri)
        trusted = f" signed-by={_FOLDER}/keys/{name}.asc" if repository.key else ""
        words = (f"deb [arch=amd64{trusted}]", place, repository.suite, *repository.components)
        _put(container, {f"sources/{name}.list": (" ".join(words) + "\n").encode()})
        only_this = (f"--option=Dir::Etc::SourceList={_FOLDER}/sources/{name}.list", "--option=Dir::Etc::SourceParts=-")
        code, output, complaints = _run(container, "apt-get", "update", "--quiet", *only_this)
        if not code and not any(line.startswith(_FATAL) for line in (output + complaints).splitlines()):
            return place
        problems.append(f"{uri}: {_complaint(complaints or output)}")
    raise UserError(f"{environment}: the repository {name} cannot be used: {'; nor '.join(problems)}")


def _complaint(text: str) -> str:
    """The errors of apt, in one line."""
    lines = [line for line in text.splitlines() if line.startswith(_FATAL)] or text.splitlines()[-1:]
    reasons = [" ".join(line.partition(":")[2].split()) for line in lines if not line.startswith(_SUMMARY)]
    return "; ".join(dict.fromkeys(reasons))[:600]


def _lines(environment: str, output: str, places: Mapping[str, str]) -> Iterator[str]:
    """The lines of the lock, from apt's --print-uris. `places`: the URI of each repository, by name."""
    # apt quotes URIs in its own way.
    unquoted = {name: unquote(place) for name, place in places.items()}
    longest_first = sorted(unquoted, key=lambda name: -len(unquoted[name]))
    for line in output.splitlines():
        match = _URI.fullmatch(line)
        if not match:
            raise UserError(f"{environment}: apt gives no SHA-256 for a package: {line[:200]}")
        uri = unquote(match["uri"])
        name = next((name for name in longest_first if uri.startswith(unquoted[name])), None)
        if name is None:
            raise UserError(
                f"{environment}: apt takes a package from {uri}, which is in no repository of the spec "
                f"({', '.join(places.values())})"
            )
        path = uri.removeprefix(unquoted[name]).lstrip("/").removeprefix("./")
        yield (
            f"{match['name']}={unquote(match['version'])} --hash=sha256:{match['sha256']} "
            f"--from={name}/{path} --bytes={match['bytes']}"
        )
