"""Debian packages as artefacts: the packages that a spec asks of apt repositories, and the lock that pins them.

`libnccl2=2.4.2-1+cuda10.0 --hash=sha256:7e… --from=nvidia/libnccl2_2.4.2-1+cuda10.0_amd64.deb --bytes=54821390`

Each line of <environment>.apt.lock is a package: name and version as apt writes them, the SHA-256 of the .deb, and its
place. The place is the name of a repository of the spec, then the path below the repository's URI, as the index of the
repository gives it (`Filename`). A build fetches these files like any other artefact and installs them without network.
Signatures are checked once, when the lock is made.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.specs.lock import logical_lines

# A whole fingerprint of OpenPGP (version 4): a key id of fewer digits can be forged.
_FINGERPRINT = r"^([0-9A-F]{40})?$"
AskedPackage = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9_.+~:-]+)?$")]
# A word of a sources list. A blank would begin the next word.
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9._/+~-]+$")]
Uri = Annotated[str, Field(pattern=r"^[a-z]+:[!-~]+$")]

_LINE = re.compile(r"(?P<name>[a-z0-9][a-z0-9+.-]+)=(?P<version>[A-Za-z0-9_.+~:-]+)(?P<rest>(\s+--[!-~]+)+)")
# The file name of a .deb: name, version and architecture. It mostly leaves out the epoch of the version.
_FILE = re.compile(r"[a-z0-9][a-z0-9+.-]+_[A-Za-z0-9.+~%-]+_[a-z0-9-]+\.deb")
_OPTIONS = ("hash", "from", "bytes")


class Repository(toml.Spec):
    """An apt repository. `uris` are its copies, tried in order. Its index is trusted if `key` signed it."""

    uris: tuple[Uri, ...] = Field(min_length=1)
    # As in sources.list: a distribution with its components, or "/" or "./" for a flat repository.
    suite: Word = "/"
    components: tuple[Word, ...] = ()
    # The fingerprint of the key, and the URLs of the key; both are empty where the base image's own keys are enough.
    key: Annotated[str, Field(pattern=_FINGERPRINT)] = ""
    key_urls: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _key_can_be_had(self) -> "Repository":
        if bool(self.key) != bool(self.key_urls):
            raise ValueError("'key' and 'key_urls' go together: the fingerprint says which key the URLs must give")
        return self


class Apt(toml.Spec):
    """Packages to install with apt (`name=version`, or a name where any version will do), and their repositories."""

    packages: tuple[AskedPackage, ...] = Field(min_length=1)
    repositories: dict[toml.Name, Repository] = Field(min_length=1)


@dataclass(frozen=True)
class Deb:
    """A locked package. Without a lock it is a package as the spec asks for it: no hash, perhaps no version."""

    name: str
    version: str
    sha256: str
    file: str = ""
    urls: tuple[str, ...] = ()
    size_bytes: int | None = None

    @property
    def title(self) -> str:
        """Name and version, as apt writes them."""
        return f"{self.name}={self.version}" if self.version else self.name


def apt_lock(spec_file: Path) -> Path:
    """The path of the lock of the Debian packages of images/<environment>.toml."""
    return spec_file.with_suffix(".apt.lock")


def read_apt_lock(path: Path, apt: Apt) -> tuple[Deb, ...]:
    """The packages of a lock in file order; where there is no lock, the packages of the spec without hashes.

    Raises UserError naming file and line for a package that is not pinned, or whose version differs from the spec's.
    """
    if not path.exists():
        return tuple(Deb(*asked.partition("=")[::2], sha256="") for asked in apt.packages)
    debs: dict[str, Deb] = {}
    for number, line in logical_lines(toml.read_text(path, "the lock ")):
        deb = _deb(line, f"{path}:{number}", apt.repositories)
        if deb.name in debs:
            raise UserError(f"{path}:{number}: '{deb.name}' is pinned twice; keep one line")
        debs[deb.name] = deb
    if not debs:
        raise UserError(f"{path}: the lock pins nothing")
    for asked in apt.packages:
        name, _, version = asked.partition("=")
        locked = debs[name].version if name in debs else "nothing of that name"
        if locked != (version or locked) or name not in debs:
            raise UserError(f"{path}: the spec asks for {asked}, the lock pins {locked}: run `invoke lock` again")
    return tuple(debs.values())


def _deb(line: str, where: str, repositories: Mapping[str, Repository]) -> Deb:
    match = _LINE.fullmatch(line)
    if not match:
        raise UserError(f"{where}: expected 'name=version --hash=sha256:… --from=repository/path', got '{line[:60]}'")
    options = dict(word.removeprefix("--").partition("=")[::2] for word in match["rest"].split())
    for option in options:
        if option not in _OPTIONS:
            raise UserError(f"{where}: unknown option '--{option}'; known: --{', --'.join(_OPTIONS)}")
    digest = options.get("hash", "").removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise UserError(
            f"{where}: '{match['name']}' has no --hash=sha256:<64 hexadecimal digits>; every package needs it"
        )
    repository, _, path = options.get("from", "").partition("/")
    if repository not in repositories or not path.endswith(".deb"):
        raise UserError(
            f"{where}: '--from={options.get('from', '')}' is no <repository>/<path>.deb; "
            f"repositories of the spec: {', '.join(repositories)}"
        )
    file = path.rpartition("/")[2]
    if not _FILE.fullmatch(file) or not file.startswith(f"{match['name']}_"):
        raise UserError(f"{where}: '{file}' is no name of a Debian package of {match['name']}")
    return Deb(
        name=match["name"],
        version=match["version"],
        sha256=digest,
        file=file,
        urls=tuple(f"{uri.rstrip('/')}/{path.removeprefix('./')}" for uri in repositories[repository].uris),
        size_bytes=int(options["bytes"]) if re.fullmatch("[0-9]{1,15}", options.get("bytes", "")) else None,
    )
