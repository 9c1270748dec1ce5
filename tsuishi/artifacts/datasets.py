"""Data sets: their URLs and hashes, finding a file on this machine, and fetching it.

<cache>/data/<file>        a whole and verified file
<cache>/data/<file>.part   an unfinished download; the next download continues it
<cache>/data/<digest>      a link to data of a script, which stay where their user has them
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as remembered
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.errors import UserError
from tsuishi.base.files import sha256_of
from tsuishi.base.screen import Progress, Say
from tsuishi.specs.experiment import ExperimentData

if TYPE_CHECKING:
    from tsuishi.artifacts.network import Network


@dataclass(frozen=True)
class DataSet:
    """A file of a data set, as its publishers made it."""

    name: str
    file: str
    urls: tuple[str, ...]
    size_bytes: int
    sha256: str


CIFAR10 = DataSet(
    name="CIFAR-10, python version",
    file="cifar-10-python.tar.gz",
    urls=("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
    size_bytes=170_498_071,
    # From Keras's loader. The page of the data set gives the md5 of this file: c58f30108f718f92721af3b95e74349a.
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)


@dataclass(frozen=True)
class DataFile:
    """A verified data set on this machine. Records hold the publishers' `name`, as the path may name a user."""

    path: Path
    name: str
    sha256: str

    @property
    def record(self) -> dict[str, str]:
        """The entry in trial.json and run.json."""
        return {"file": self.name, "sha256": self.sha256}


def folder(cache: Path) -> Path:
    """The folder of fetched data sets."""
    return cache / "data"


def places(folders: Sequence[str], data_set: DataSet = CIFAR10) -> list[str]:
    """The URLs of a data set: its file in each of these folders, or its publishers' URLs where no folder is given."""
    return [f"{folder.rstrip('/')}/{data_set.file}" for folder in folders] or list(data_set.urls)


def at_hand(given: Path | None, cache: Path, data_set: DataSet = CIFAR10) -> DataFile | None:
    """The data set in the file or folder `given`, else the fetched file; None where it is not fetched yet.

    Raises UserError where `given` does not exist, and where the file's hash is not that of the data set.
    """
    path = given or folder(cache) / data_set.file
    if path.is_dir():
        path = path / data_set.file
    if not path.is_file():
        if given is None:
            return None
        raise UserError(f"--data: there is no file {path}: `invoke fetch-data` gets {data_set.file}")
    actual = sha256_of(path)
    if actual != data_set.sha256:
        raise UserError(
            f"{path} is not {data_set.name}: its sha256 is {actual}, expected {data_set.sha256}; "
            + ("give another --data" if given else "get it again with `invoke fetch-data`")
        )
    return DataFile(path.resolve(), data_set.file, actual)


def linked(cache: Path, data: ExperimentData) -> Path:
    """The place of a script's data. They are read whole, once a process, and compared with their digest.

    Raises UserError where they are not on this machine, or have changed.
    """
    place = folder(cache) / data.sha256
    if not place.exists():
        raise UserError(f"the data {data.path} of a script are not known here: {_linking(place)}")
    if (actual := digest_of(place.resolve())) != data.sha256:
        raise UserError(
            f"the data {data.path} of a script were altered: {place.resolve()} has the digest {actual}, not "
            f"{data.sha256}: write it into the suite if these are the data you mean, else {_linking(place)}"
        )
    return place.resolve()


def _linking(place: Path) -> str:
    return f"`ln -sfn <their file or folder> {place}`"


@remembered
def digest_of(path: Path) -> str:
    """The SHA-256 of a file; of a folder, that of the lines that sha256sum prints for its files, sorted by path.

    Raises UserError where a file cannot be read, or is a link out of the folder, which a sandbox would not follow.
    """
    try:
        if not path.is_dir():
            return sha256_of(path)
        digest = hashlib.sha256()
        for name in sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if not file.is_dir()):
            if not (path / name).resolve().is_relative_to(path):
                raise UserError(f"{path / name}: a link out of the folder: put the file there, or name its folder")
            digest.update(f"{sha256_of(path / name)}  {name}\n".encode())
    except OSError as error:
        raise UserError(f"{error.filename or path}: {error.strerror}") from error
    return digest.hexdigest()


def fetch(
    cache: Path,
    urls: Sequence[str],
    say: Say,
    progress: Progress = lambda size: None,
    data_set: DataSet = CIFAR10,
    network: "Network | None" = None,
) -> Path:
    """The file of the data set in the cache, downloaded from the first of `urls` that has it.

    An interrupted download is continued, from any URL. Only a verified file gets the data set's name. Raises UserError
    where no URL has the file.
    """
    # Only a download needs a client, which is slow to import.
    from tsuishi.artifacts.client import http_client
    from tsuishi.artifacts.download import Download, ExpectedFile, SourceFailed, part_lock
    from tsuishi.artifacts.network import Network

    final, network = folder(cache) / data_set.file, network or Network()
    part = final.with_name(f"{final.name}.part")
    expected = ExpectedFile(data_set.file, (data_set.sha256,), data_set.size_bytes)
    with part_lock(part, data_set.file, say):
        if final.exists():
            if sha256_of(final) == data_set.sha256:
                say(f"{final}: there already, and whole")
                return final
            say(f"{final.name} was altered: fetching it again")
        problems = []
        with http_client(network) as client:
            for url in urls:
                try:
                    Download(expected, part, client, network, say, progress).run(url)
                except SourceFailed as error:
                    problems.append(str(error))
                    say(str(error))
                else:
                    return part.replace(final)
    raise UserError(
        f"{data_set.name} cannot be fetched: {'; '.join(problems)}; `invoke fetch-data` goes on with the kept "
        "part; --url gives another address; docs/sites.md shows ways around a network"
    )
