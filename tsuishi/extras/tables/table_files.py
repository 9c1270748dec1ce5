"""The files of a published table: from paths or an address, with the place they come from and their licence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from tsuishi.artifacts.network import GivenUp, Network, failures, paced, public_url, reason
from tsuishi.base import files, toml
from tsuishi.base.checkout import NoRepository, git
from tsuishi.base.errors import UserError
from tsuishi.extras.tables.stated_versions import contradictions
from tsuishi.specs.table_text import table_text

if TYPE_CHECKING:
    from unearth.fetchers.sync import PyPIClient

_ENDINGS = (".csv", ".tsv", ".md", ".markdown", ".html", ".htm", ".json", ".txt")
# The longest of these, with its point.
_ENDING = max(map(len, _ENDINGS))
_LICENCE_FILES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "COPYING")
# A licence that lets a file be passed on with its text, and words that only its text has.
_PASSED_ON = {
    "MIT": "permission is hereby granted, free of charge",
    "Apache-2.0": "apache license version 2.0",
    "BSD": "redistribution and use in source and binary forms",
    "CC0-1.0": "cc0 1.0 universal",
    "CC-BY-4.0": "attribution 4.0 international",
}
# A page of GitHub that shows a file: the address of the file itself stands behind it.
_GITHUB_PAGE = re.compile(r"https://github\.com/([^/]+/[^/]+)/(?:blob|raw)/(.+)")


@dataclass(frozen=True)
class Licence:
    """A licence: its name, empty where it is none that lets the file be passed on; and its text."""

    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class TableFile:
    """A file with a table: its name, text, bytes and their address, with the commit where it is in git.

    contradictions: sentences on versions that the files beside it state differently.
    """

    name: str
    text: str
    content: bytes
    address: str
    licence: Licence
    contradictions: tuple[str, ...] = ()
    # Of its text; empty for UTF-8.
    encoding: str = ""


def table_files(given: str, network: Network, licence: Path | None) -> list[TableFile]:
    """The files at a path, in a folder, of a pattern (*.csv), or at an address. Raises UserError without any."""
    of = Licence(_name_of(text := toml.read_text(licence)), text) if licence else None
    if given.startswith(("http://", "https://")):
        return [_fetched(given, network, of)]
    path = Path(given).expanduser()
    paths = (
        sorted(path.iterdir()) if path.is_dir() else [path] if path.is_file() else sorted(path.parent.glob(path.name))
    )
    paths = [each for each in paths if each.is_file() and (each.suffix.lower() in _ENDINGS or each == path)]
    if not paths:
        raise UserError(f"{given}: no such file, no folder with tables ({' '.join(_ENDINGS)}), and no address")
    return [_local(each, of) for each in paths]


def shown(given: str) -> str:
    """A path or an address of a table as it may be printed: without credentials, and without a query."""
    return public_url(given) if "://" in given else given


def _local(path: Path, licence: Licence | None) -> TableFile:
    address, root = _origin(path)
    content = toml.read_content(path)
    text, encoding = table_text(str(path), content)
    # Without a repository the files beside it may be of other machines, as in a folder of downloads.
    beside = contradictions(path.resolve().parent, root) if (root / ".git").exists() else ()
    return TableFile(path.name, text, content, address, licence or _licence_beside(path, root), beside, encoding)


def _origin(path: Path) -> tuple[str, Path]:
    """Where a file comes from: the repository's address, commit and path, else its name; and the repository's root."""
    folder = path.resolve().parent
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    try:
        url = git(root, "config", "--get", "remote.origin.url").decode().strip()
        commit = git(root, "rev-parse", "HEAD").decode().strip()
    except NoRepository:
        return path.name, root
    return f"{public_url(url)} {commit} {path.resolve().relative_to(root.resolve()).as_posix()}", root


def _licence_beside(path: Path, root: Path) -> Licence:
    folder = path.resolve().parent
    for each in (folder, *(parent for parent in folder.parents if parent.is_relative_to(root))):
        for name in _LICENCE_FILES:
            if (each / name).is_file():
                text = toml.read_text(each / name)
                return Licence(_name_of(text), text)
    return Licence()


def _name_of(text: str) -> str:
    plain = " ".join(re.sub(r"[^\w.]+", " ", text.lower()).split())
    marks = {name: " ".join(re.sub(r"[^\w.]+", " ", mark).split()) for name, mark in _PASSED_ON.items()}
    return next((name for name, mark in marks.items() if mark in plain), "")


def _fetched(given: str, network: Network, licence: Licence | None) -> TableFile:
    """The file at an address. Raises UserError where it cannot be had."""
    from tsuishi.artifacts.client import http_client

    page = _GITHUB_PAGE.fullmatch(given)
    address = f"https://raw.githubusercontent.com/{page[1]}/{page[2]}" if page else given
    with http_client(network) as client:
        content = _content(client, address, network)
        found = licence or next(_licences_above(client, address, network), Licence())
    text, encoding = table_text(shown(given), content)
    name = PurePosixPath(unquote(urlsplit(address).path)).name or "table.html"
    name = f"table{PurePosixPath(name).suffix[:_ENDING]}" if files.unfit(name) else name
    return TableFile(name, text, content, public_url(address), found, encoding=encoding)


def _content(client: "PyPIClient", address: str, network: Network) -> bytes:
    try:
        with client.stream("GET", address) as response:
            response.raise_for_status()
            body = bytearray()
            for chunk in paced(response.iter_bytes(), network):
                body += chunk
                if len(body) > toml.MOST_TEXT_BYTES:
                    raise GivenUp(f"larger than {toml.MOST_TEXT_BYTES >> 20} MiB, the most that is read")
            return bytes(body)
    except failures() as error:
        raise UserError(f"{public_url(address)}: {reason(error, address, network)}") from error


def _licences_above(client: "PyPIClient", address: str, network: Network) -> Iterator[Licence]:
    """The first licence in the folder of an address, or in those above."""
    folder, inner = urljoin(address, "."), ""
    while folder != inner:
        for name in _LICENCE_FILES[:2]:
            try:
                text = _content(client, urljoin(folder, name), network).decode(errors="replace")
            except UserError:
                continue
            yield Licence(_name_of(text), text)
        folder, inner = urljoin(folder, ".."), folder
