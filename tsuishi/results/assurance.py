"""How far a run is known to be what its runner wrote: no file was altered, lost or added since.

A report asks for the `assurance` of a run: that compares run.json, the gathered tables and the names of trials and
records; of a run that is not very large, every file. `verify` (verification.py) reads everything.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.results import manifest, schema
from tsuishi.results.directory import RunDirectory, table_header
from tsuishi.results.manifest import ANEW, ONCE, Digests

# Files of a run's folder that are held during a measurement.
OF_ITS_USER = frozenset({".lock", ".jobs"})
UNLISTED = OF_ITS_USER | {ANEW}
_FOLDERS = frozenset({"records", "trials"})
# A report reads all files of a run of up to 64 MiB, which is thousands of trials; a list, which has many runs, of less.
_SMALL, LISTED = 64 << 20, 4 << 20

Level = Literal["verified", "tables verified", "altered", "older than verification", "being measured"]


class Assurance(NamedTuple):
    """How far a run is known to be what its runner wrote.

    `root`: the digest that stands for it (see manifest.py), where it is verified. `altered`: the files that are not
    what its runner wrote, are not there any more, or were added, as paths in the run. `has_tables`: its gathered tables
    are those of the trials that are there.
    """

    level: Level
    root: str = ""
    altered: tuple[str, ...] = ()
    has_tables: bool = False


def assurance(run: RunDirectory, most: int = _SMALL) -> Assurance:
    """How far a run is known to be what its runner wrote. No fault raises an error.

    most: the bytes of a run up to which every file is read; else no trial is opened.
    """
    if run.measured_by():
        return Assurance("being measured")
    try:
        known = manifest.read(run.path)
        if not known.are_there:
            return Assurance("older than verification")
        altered = {*_added_or_lost(run, known), *_differing(run, known.anew)}
        tables = {ONCE, "trials.csv", *(f"{table}.csv" for table in schema.OF_A_TRIAL)}
        is_as_listed = known.anew.keys() >= tables and not any(name in tables or "/" in name for name in altered)
        is_small = _are_within(run, {**known.anew, **known.once}, most)
        altered |= {*_differing(run, known.once)} if is_small else set()
        has_tables = is_as_listed and not any("/" in name for name in altered) and _have_details(run)
        if not altered:
            level: Level = "verified" if is_small else "tables verified"
            return Assurance(level, known.root if is_small else "", has_tables=has_tables)
    except UserError as error:
        altered, has_tables = {_named_in(run, str(error))}, False
    return Assurance("altered", altered=tuple(sorted(altered)), has_tables=has_tables)


def _have_details(run: RunDirectory) -> bool:
    """Whether the gathered table of trials has the columns that a report reads."""
    return {column.name for column in (*schema.TRIALS, *schema.DETAILS)} <= {*table_header(run.path / "trials.csv")}


def listed_files(run: RunDirectory, folders: Sequence[Path], records: Sequence[Path]) -> set[str]:
    """The files of a run that digests name, but the files of trials beside their trial.json."""
    names = {f"trials/{folder.name}/trial.json" for folder in folders} | {f"records/{path.name}" for path in records}
    return names | {name for name, _ in files.entries(run.path)} - UNLISTED - _FOLDERS


def _added_or_lost(run: RunDirectory, known: Digests) -> set[str]:
    """The files by which a run differs from its digests, without a look into the folders of trials."""
    listed = {name for name in known.once if name.startswith("records/") or name.endswith("/trial.json")} | {
        *known.anew
    }
    found = listed_files(run, run.finished_folders(), run.record_files()) ^ listed
    return found if known.root else {*found, ANEW}


def _are_within(run: RunDirectory, names: Collection[str], most: int) -> bool:
    """Whether files have so many bytes at most, all together."""
    left = most
    for name in names:
        with suppress(OSError):
            left -= os.lstat(f"{run.path}/{name}").st_size
        if left < 0:
            return False
    return bool(most)


class Compared(NamedTuple):
    """A file of a run, beside its digest: its size, and in words why it is not the file that its runner wrote."""

    name: str
    bytes: int
    why: str


def compared_files(run: RunDirectory, digests: Mapping[str, str]) -> Iterator[Compared]:
    """Every file that has a digest. The seal of this user speaks for run.json, too.

    A runner that was killed may have written run.json after its digest. A record is no longer than a text that is read.
    """
    for name, digest in digests.items():
        path = f"{run.path}/{name}"  # a run may have 100,000 files, and a Path of each takes time
        try:
            if name.endswith(".json") and (size := os.stat(path).st_size) > toml.MOST_TEXT_BYTES:  # noqa: PTH116
                yield Compared(name, 0, f"{path}: it has {size:,} bytes: {toml.MOST_TEXT_BYTES:,} are the most")
                continue
            size, found = files.size_and_sha256(path)
            why = "" if found == digest else f"{path}: altered: its {size} bytes are not what the runner wrote"
        except UserError as error:
            size, why = 0, str(error)
        except OSError as error:
            size, why = 0, f"{path}: cannot be read: {error.strerror}"
        yield Compared(name, size, "" if why and name == "run.json" and _is_ours(run) else why)


def _differing(run: RunDirectory, digests: Mapping[str, str]) -> set[str]:
    return {each.name for each in compared_files(run, digests) if each.why}


def _is_ours(run: RunDirectory) -> bool:
    """Whether run.json has this user's seal."""
    with suppress(UserError):
        return run.is_ours(run.run())
    return False


def refuse_alterations(run: RunDirectory) -> None:
    """Raise UserError where a file that is written once is not what the runner of this run wrote.

    A trial that was removed is none: it is measured again, and counted.
    """
    known = manifest.read(run.path, may_be_cut=True)
    removed = {folder for folder in map(_folder_of, known.once) if not os.path.lexists(run.path / folder)}
    there = {name: digest for name, digest in known.once.items() if _folder_of(name) not in removed}
    if altered := sorted(_differing(run, there)):
        raise UserError(
            f"run {run.id} was altered since it was measured: {shortened(altered)}: restore what was altered, or "
            f"remove the trial's folder; `invoke verify --run {run.id}` says more"
        )


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def _named_in(run: RunDirectory, fault: str) -> str:
    """The file that the line of a fault begins with, as a path in the run."""
    return fault.partition(": ")[0].removeprefix(f"{run.path}/")


def shortened(names: Sequence[str], most: int = 3) -> str:
    """The first names of files, and the number of the others, for a line to the user."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
