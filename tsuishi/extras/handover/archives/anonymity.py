"""Runs without the names of their user: words stand for users, homes, hosts, addresses and secrets.

A scrubbed run is a run: its records have the names of their new content, trials cite these, and it has a manifest of
its own, so all readers of runs can read it. Its results, times and cases stay unchanged.
"""

import getpass
import gzip
import json
import os
import re
import shutil
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.base.home import home
from tsuishi.base.redaction import HIDDEN, redacted
from tsuishi.extras.handover.archives.bundle import unpacked
from tsuishi.extras.handover.archives.secret_search import Secrets
from tsuishi.results import manifest
from tsuishi.results.assurance import UNLISTED
from tsuishi.results.directory import WRITTEN_ANEW, RunDirectory
from tsuishi.results.manifest import Manifest
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.vocabulary import Vocabulary

# Names of neither a person nor a machine.
_COMMON = frozenset(
    {"root", "user", "users", "ubuntu", "debian", "docker", "runner", "jovyan", "nobody", "admin", "test", "localhost"}
)
_SHORTEST, _SHORTEST_FOLDER = 3, len("/root")
_HOMES = re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s\"':,;]+")
# These begin with the first of a row of characters that they repeat: see redaction.py.
_MAIL = re.compile(r"(?<![\w.+-])[.+-]*+[\w.+-]++@[\w-]++\.[\w.-]+\b")
_GPU = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}\b", re.IGNORECASE)
# Hosts that only a site knows: in a URL or before a port, without a public ending.
_SITE = re.compile(
    r"(?<![\w-])(?<![\w-]\.)(?:[\w-]++\.)+(?:lan|local|internal|intranet|corp|home|localdomain|test)\b"
    r"|(?<=://)(?:10|127|172|192)(?:\.\d{1,3}){3}|(?<=://)[\w-]+(?=[:/])",
    re.IGNORECASE,
)
# Values that other files cite, and that name no person.
_FIXED = frozenset({"trial", "trial_id", "case", "case_id", "run_id", "environment", "files", "tables", "status"})

# Files that are made again for a scrubbed run.
_ANEW = UNLISTED | {manifest.ONCE}


@dataclass(frozen=True)
class Identity:
    """Who measured where: `folders` with the word for each, `users`, `hosts`; and the secrets of the user."""

    folders: dict[str, str]
    users: frozenset[str]
    hosts: frozenset[str]
    secrets: frozenset[str]

    def search(self) -> Secrets:
        """Finds all remaining traces of the identity."""
        folders = {folder for folder in self.folders if len(folder) > _SHORTEST_FOLDER}
        return Secrets(self.secrets, {*self.users, *self.hosts, *folders})


def identity_here(secrets: frozenset[str], folders: dict[Path, str], urls: Iterable[str], public: str) -> Identity:
    """The identity of this user on this machine.

    folders: further folders, with a word for each; urls: of settings; public: a text in small letters. Names that are
    words of that text are no part of the identity.
    """
    known = _COMMON | {*re.findall(r"[a-z0-9]+", public)}
    users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
    with suppress(OSError, KeyError):
        users.add(getpass.getuser())
    hosts = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    for url in urls:
        with suppress(ValueError):
            hosts.add(urlsplit(url if "://" in url else f"//{url}").hostname or "")
    homes = {str(path): "[home]" for path in (home(), home().resolve())}
    return Identity(
        {**homes, **{str(folder): word for folder, word in folders.items()}},
        frozenset(name for name in users if len(name) >= _SHORTEST and name.lower() not in known),
        frozenset(name for name in hosts if len(name) >= _SHORTEST and name.lower() not in known),
        secrets,
    )


class Scrubber:
    """Puts words in the place of all parts of an identity, and of all texts that look like such parts."""

    def __init__(self, identity: Identity) -> None:
        self._texts: list[tuple[re.Pattern[str], str]] = [
            *((re.compile(re.escape(secret)), HIDDEN) for secret in sorted(identity.secrets, key=len, reverse=True)),
            *(
                (re.compile(rf"{re.escape(folder)}(?![\w-])"), word)
                for folder, word in sorted(identity.folders.items(), key=lambda item: -len(item[0]))
                if len(folder) > 1
            ),
            (_HOMES, "[home]"),
            (_MAIL, "[mail]"),
            (_GPU, "[gpu]"),
            *((_word(host), "[host]") for host in sorted(identity.hosts, key=len, reverse=True)),
            (_SITE, "[host]"),
            *((_word(user), "[user]") for user in sorted(identity.users, key=len, reverse=True)),
        ]

    def text(self, text: str) -> str:
        """A text without the identity."""
        text = redacted(text)
        for pattern, word in self._texts:
            text = pattern.sub(word, text)
        return text

    def values(self, value: Any) -> Any:
        """A JSON value without the identity; keys, and values that other files cite, stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.values(entry) for entry in value]
        if isinstance(value, dict):
            return {key: entry if key in _FIXED else self.values(entry) for key, entry in value.items()}
        return value


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)


def scrubbed(run: RunDirectory, into: Path, scrubber: Scrubber, words: Vocabulary) -> tuple[RunDirectory, list[str]]:
    """A copy of a run in the folder `into`, scrubbed; and the files that were altered, as paths in the run.

    The tables and the manifest of the run are made again. words: describes the axes of its cases.
    """
    try:
        shutil.copytree(run.path, into, ignore=shutil.ignore_patterns(*_ANEW, ".*"))
    except shutil.Error as error:
        _, _, why = error.args[0][0]  # an entry for each file that could not be copied
        raise UserError(f"no copy of run {run.id} to make anonymous: {why}") from None
    copy = RunDirectory(into)
    renamed = {path.stem: _scrub_record(path, scrubber) for path in copy.record_files()}
    for folder in copy.finished_folders():
        _scrub_trial(folder, scrubber, renamed)
    content = scrubber.values({key: value for key, value in copy.run().content().items() if key != "mac"})
    files.write_json(into / "run.json", RunRecord.model_validate_json(json.dumps(content)).content())
    copy.gather(words)
    listed = Manifest(into)
    for _, trial in copy.finished():
        listed.add(trial)
    listed.add_records(copy.record_files())
    manifest.write_anew(into, WRITTEN_ANEW)
    return copy, list(_altered(run.path, into, renamed))


def _scrub_record(path: Path, scrubber: Scrubber) -> str:
    """Scrub a record, but the axes of a case; returns its new id."""
    kind, _, _ = path.stem.rpartition("-")
    if kind == "case":
        return path.stem
    value = scrubber.values(files.read_json(path))
    name = f"{kind}-{toml.digest(value)}"
    if name != path.stem:
        path.unlink()
        files.write_json(path.with_name(f"{name}.json"), value)
    return name


def _scrub_trial(folder: Path, scrubber: Scrubber, renamed: dict[str, str]) -> None:
    path = folder / "trial.json"
    trial = files.read_json(path)
    for name, _ in files.entries(folder):
        if name != path.name:
            _scrub_text(folder / name, scrubber)
    changed = scrubber.values(trial)
    for key, value in trial.items():
        if key.endswith("_record") and value:
            changed[key] = renamed.get(value, value)
    if trial.get("files") is not None:
        changed["files"] = {name: manifest.about(folder / name).content() for name in trial["files"]}
    if trial.get("tables") is not None:
        changed["tables"] = {name: manifest.about(folder / f"{name}.csv").sha256 for name in trial["tables"]}
    if changed != trial:
        files.write_json(path, changed)


def _scrub_text(path: Path, scrubber: Scrubber) -> None:
    """Scrub a file of a trial; a file that ends with .gz is unpacked first."""
    was = b"".join(unpacked(path.name, path))
    now = scrubber.text(was.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    if now != was:
        files.write_bytes(path, gzip.compress(now, 6, mtime=0) if path.suffix == ".gz" else now)


def _altered(raw: Path, fresh: Path, renamed: dict[str, str]) -> Iterator[str]:
    """The files of a run whose content has changed, by their original names."""
    for path in sorted(raw.rglob("*")):
        name = path.relative_to(raw).as_posix()
        if path.is_dir() or name in _ANEW or "/." in f"/{name}":
            continue
        now = f"records/{renamed[path.stem]}.json" if path.parent.name == "records" else name
        if files.read_bytes(path) != files.read_bytes(fresh / now):
            yield name
