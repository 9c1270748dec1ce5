"""Data sets: what is known of them, whether one is at hand, and fetching it.

<cache>/data/<file>             whole and verified
<cache>/data/<file>.part        on its way; goes on from there, whatever ended it
<cache>/data/<file>.part.json   which version of which URL the part is of, for If-Range (RFC 9110, 13.1.5)
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi import store
from tsuishi.artifacts import Progress, Say, failures, first_line, http_client, sha256_of
from tsuishi.errors import UserError

if TYPE_CHECKING:
    from httpx2 import Response


@dataclass(frozen=True)
class DataSet:
    """A file as its publishers made it."""

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
    # As Keras's loader has it; the md5 that the data set's own page states for it is c58f30108f718f92721af3b95e74349a.
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)


@dataclass(frozen=True)
class DataFile:
    """A verified data set on this machine. `name` is what its publishers call it: a path may name a user."""

    path: Path
    name: str
    sha256: str

    @property
    def record(self) -> dict[str, str]:
        """As trial.json and run.json keep it."""
        return {"file": self.name, "sha256": self.sha256}


def folder(cache: Path) -> Path:
    """Where fetched data sets lie."""
    return cache / "data"


def places(folders: Sequence[str], data_set: DataSet = CIFAR10) -> list[str]:
    """Where a data set can be fetched from: the URLs of these folders, else its publishers'."""
    return [f"{folder.rstrip('/')}/{data_set.file}" for folder in folders] or list(data_set.urls)


def at_hand(given: Path | None, cache: Path, data_set: DataSet = CIFAR10) -> DataFile | None:
    """The data set in the file or folder given, else the fetched one; None where there is neither.

    Raises UserError where what was given is not there, and where either is another file than the data set's.
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


def fetch(
    cache: Path,
    urls: Sequence[str],
    say: Say,
    progress: Progress = lambda size: None,
    data_set: DataSet = CIFAR10,
) -> Path:
    """The data set, downloaded into the cache unless it is there; from the first of `urls` that gives it.

    What was fetched before an interruption is kept and gone on from, also from another URL. Raises UserError where no
    URL gives it; nothing else than the data set itself ever gets its name.
    """
    final = folder(cache) / data_set.file
    with store.exclusive(folder(cache) / "fetching.lock", "fetching data"):
        if final.exists():
            if sha256_of(final) == data_set.sha256:
                say(f"{final}: there already, and whole")
                return final
            say(f"{final.name} was altered: fetching it again")
        problems = []
        for url in urls:
            try:
                _Download(data_set, final, say, progress).run(url)
            except UserError as error:
                problems.append(str(error))
            else:
                return final
    raise UserError("; ".join(problems))


class _Download:
    """One data set on its way to `final`."""

    def __init__(self, data_set: DataSet, final: Path, say: Say, progress: Progress) -> None:
        self._set = data_set
        self._final = final
        self._part = final.with_name(f"{final.name}.part")
        self._version = final.with_name(f"{final.name}.part.json")
        self._say = say
        self._progress = progress

    def run(self, url: str) -> None:
        """Fetch what is missing, verify, rename. Raises UserError; a part that may be gone on from is kept."""
        went_on = self._receive(url)
        actual = sha256_of(self._part)
        if actual == self._set.sha256:
            self._part.replace(self._final)
            self._version.unlink(missing_ok=True)
            return
        self._forget()
        if not went_on:
            raise UserError(
                f"{url}: sha256 is {actual}, expected {self._set.sha256}: that is not {self._set.name}; "
                "give another address with --url"
            )
        self._say(f"what was there of {self._set.file} does not fit what {url} has: starting over")
        self.run(url)

    def _receive(self, url: str) -> bool:
        """Bring the part to its full length; whether something of an earlier time is in it."""
        kept = self._part.stat().st_size if self._part.exists() else 0
        if kept >= self._set.size_bytes:
            return True
        try:
            with http_client().stream("GET", url, headers=self._headers(url, kept)) as response:
                if kept and response.status_code in (200, 416):
                    self._refuse_another(url, response, kept)
                goes_on = response.status_code == 206 and _first_byte(response) == kept
                if kept and response.status_code == 206 and not goes_on:
                    self._forget()  # other bytes than asked for: all of them, then
                    return self._receive(url)
                response.raise_for_status()
                self._say(f"{'going on with' if goes_on else 'fetching'} {url}")
                self._write(url, response, kept if goes_on else 0)
                return goes_on
        except failures() as error:
            raise UserError(
                f"{url}: {first_line(error)}{self._kept()}; check the network, proxy and certificate settings, then "
                "`invoke fetch-data` again"
            ) from error
        except OSError as error:
            raise UserError(
                f"{self._part}: {error.strerror or error}{self._kept()}: free some room, then `invoke fetch-data` again"
            ) from error

    def _refuse_another(self, url: str, response: "Response", kept: int) -> None:
        """What is kept is not given up for a page that asks for a login, or whatever else is there by now."""
        size = response.headers.get("Content-Length") if response.status_code == 200 else f"at most {kept}"
        if size not in (None, str(self._set.size_bytes)):
            raise UserError(
                f"{url}: it has {size} bytes, and {self._set.name} {self._set.size_bytes}{self._kept()}; "
                "give another address with --url"
            )

    def _write(self, url: str, response: "Response", begin: int) -> None:
        """Put a body where it belongs; its version is noted before its first byte."""
        if not begin:
            self._forget()
            store.write_json(self._version, {"url": url, "version": _version(response.headers)})
        size = begin
        self._progress(begin)
        with self._part.open("ab") as file:
            for chunk in response.iter_raw():  # raw: what a server takes for an encoding is the file itself
                size += len(chunk)
                if size > self._set.size_bytes:
                    self._forget()
                    raise UserError(f"{url}: it sends more than the {self._set.size_bytes} bytes of {self._set.name}")
                file.write(chunk)
                self._progress(len(chunk))
            file.flush()
            os.fsync(file.fileno())

    def _headers(self, url: str, kept: int) -> dict[str, str]:
        """Ask for the bytes as they are, from those kept on; for all of them, if the version has changed."""
        headers = {"Accept-Encoding": "identity"}
        if kept:
            headers["Range"] = f"bytes={kept}-"
            known = store.read_json(self._version) if self._version.exists() else {}
            if known.get("url") == url and known.get("version"):
                headers["If-Range"] = known["version"]
        return headers

    def _kept(self) -> str:
        size = self._part.stat().st_size if self._part.exists() else 0
        return f" ({size} of {self._set.size_bytes} bytes are kept)" if size else ""

    def _forget(self) -> None:
        self._part.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)


def _first_byte(response: "Response") -> int | None:
    """Where a partial response begins, by its Content-Range."""
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _version(headers: Mapping[str, str]) -> str:
    """What If-Range may name: a strong ETag, else the date of the last change; empty where there is neither."""
    etag = headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
