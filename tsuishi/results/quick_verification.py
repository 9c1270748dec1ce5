"""What is known of a run without reading all of it: the quick form of verification.

It compares the digests of run.json and of the gathered tables with the chain, and the names and sizes of trials and
records. That shows that the tables are those of the runner, not that the trials are. For a report of a run that is not
very large, it compares the digests of trials and records too. `invoke verify` reads everything.
It leaves a mark of what it found, with the state of the run's files: their sizes and the times of their last changes,
which nobody can set. The mark has the seal of this user, and counts as long as the state is the same: a copy of a run
has to be verified again. The state leaves out logs, which no report reads.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from tsuishi.base import files, seals
from tsuishi.base.errors import UserError
from tsuishi.results import hash_chain
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import FileRecord

MARK = "verification.sealed"
_PURPOSE = "verification of a run"
# Files of a run's folder that are made anew at any time, or held while somebody measures.
_GATHERED = "gathered.npz"
# The trials and records of a run of up to 64 MiB, which is tens of thousands of trials, are read for each new state.
_SMALL = 64 << 20
UNCHAINED = frozenset({_GATHERED, ".lock", ".jobs", hash_chain.FILE, MARK})
# What a run has for its user alone: whoever receives the run makes it anew.
OF_ITS_USER = UNCHAINED - {hash_chain.FILE}
FOLDERS = frozenset({"records", "trials"})

Level = Literal["verified", "tables verified", "altered", "older than verification"]


class FileStates(NamedTuple):
    """The trials and records of a run as they are.

    `sizes`: bytes of each trial.json and record, by its path in the run. `digest`: of the sizes and the times of the
    last changes of these and of the trials' tables; empty where nobody looked at the times.
    """

    sizes: Mapping[str, int]
    digest: str = ""


class Assurance(NamedTuple):
    """How far a run is known to be what its runner wrote.

    `root`: the digest that stands for it (see hash_chain.Links), where it is verified. `altered`: the files that are
    not what its runner wrote, are not there any more, or were added, as paths in the run.
    """

    level: Level
    root: str = ""
    altered: tuple[str, ...] = ()


def assurance(run: RunDirectory, states: FileStates) -> Assurance:
    """How far a run is known to be what its runner wrote. No fault raises an error.

    It opens trials only where the times of their last changes are known: so it is for reports, and not for lists.
    """
    state = state_of(run, states)
    if known := _remembered(run, state):
        return known
    found = _look(run, states)
    # As with the gathered file, a look alone writes nothing into a run that was received.
    if found.level == "tables verified" and (run.path / _GATHERED).exists():
        remember(run, state, found)
    return found


def _look(run: RunDirectory, states: FileStates) -> Assurance:
    try:
        links = hash_chain.read(run.path)
        if not links.root:
            return Assurance("older than verification")
        altered = tuple(sorted(_altered(run, links.last, states)))
    except UserError as error:
        altered = (named_in(run, str(error)),)
    return Assurance("altered", altered=altered) if altered else Assurance("tables verified")


def named_in(run: RunDirectory, fault: str) -> str:
    """The file that the line of a fault begins with, as a path in the run."""
    return fault.partition(": ")[0].removeprefix(f"{run.path}/")


def sizes(run: RunDirectory, folders: Iterable[Path]) -> FileStates:
    """The sizes of trials and records alone. folders: of the run's trials. What is no file there has -1 bytes."""
    names = [f"trials/{folder.name}/trial.json" for folder in folders]
    names += [f"records/{path.name}" for path in run.record_files()]
    return FileStates({name: _state(f"{run.path}/{name}")[0] for name in names})


def remember(run: RunDirectory, state: str, found: Assurance) -> None:
    """Leave a mark of what was found, where one can be left.

    state: from before the run was looked at. Where a file has changed meanwhile, the mark never counts.
    """
    if state:
        with suppress(UserError, OSError):  # no key of this user, or a folder of somebody else
            seals.write(run.path / MARK, json.dumps([state, *found]).encode(), _PURPOSE)


def _remembered(run: RunDirectory, state: str) -> Assurance | None:
    """What this user found in this state of a run; None where nobody looked at it."""
    if state and os.path.lexists(run.path / MARK):
        with suppress(UserError, ValueError):
            if (content := seals.read(run.path / MARK, _PURPOSE, files.MOST_JSON_BYTES)) is not None:
                then, level, root, altered = json.loads(content)
                return Assurance(level, root, tuple(altered)) if then == state else None
    return None


def state_of(run: RunDirectory, states: FileStates) -> str:
    """A digest of the states of all files of a run; empty where they are not known."""
    if not states.digest:
        return ""
    try:
        beside = {name: _state(run.path / name) for name in (*_beside(run), hash_chain.FILE)}
    except UserError:
        return ""
    text = json.dumps([run.id, states.digest, sorted(beside.items())])
    return hashlib.sha256(text.encode()).hexdigest()


def _beside(run: RunDirectory) -> list[str]:
    """The files beside trials and records that the chain has to name."""
    return [name for name, _ in files.entries(run.path) if name not in UNCHAINED | FOLDERS]


def _state(path: Path | str) -> tuple[int, int]:
    """Size in bytes and time of the last change in ns; -1 for what is not there, or no regular file."""
    with suppress(FileNotFoundError):
        about = os.lstat(path)
        if stat.S_ISREG(about.st_mode):
            return about.st_size, about.st_ctime_ns
    return -1, -1


def _altered(run: RunDirectory, last: Mapping[str, FileRecord], states: FileStates) -> Iterator[str]:
    """The files by which a run differs from its chain. Trials and records of a run that is not small are not opened."""
    beside, sizes = _beside(run), states.sizes
    are_read = bool(states.digest) and sum(about.bytes for about in last.values()) <= _SMALL
    yield from {*sizes, *beside} - last.keys()  # added, or left by a runner that was killed
    for name, expected in last.items():
        has_size = sizes[name] == expected.bytes if name in sizes else name in beside
        is_read = are_read or name not in sizes
        if not has_size or (is_read and not _is_same(run, name, expected)):
            yield name


def _is_same(run: RunDirectory, name: str, expected: FileRecord) -> bool:
    return hash_chain.about(run.path / name) == expected or (name == "run.json" and _is_ours(run))


def _is_ours(run: RunDirectory) -> bool:
    """Whether run.json has this user's seal: a runner that was killed may have written it after its last line."""
    with suppress(UserError):
        return run.is_ours(run.run())
    return False


def shortened(names: Sequence[str], most: int = 3) -> str:
    """The first names of files, and the number of the others, for a line to the user."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
