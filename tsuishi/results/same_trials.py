"""Trials that several runs of a report have in common: a run that is given twice, or a copy of its folder.

A trial is the same where its id, its begin and its length are the same, and every row of its tables. Neither the name
of a run nor that of its folder counts, and a copy may have been resumed: its further trials are its own.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tsuishi.results.trial_tables import TableArrays

_OF_A_TRIAL = ("trial_id", "case_id", "environment_record", "machine_record", "status", "started_at", "duration_s")


class Copy(NamedTuple):
    """A run with trials that another run has too: `shared` of its `trials`."""

    run_id: str
    other: str
    shared: int
    trials: int


class Common(NamedTuple):
    """What runs have in common.

    `kept`: the places of the trials that count, int64. `copies`: the runs with trials that do not count. `family`: of
    every run the first of the runs that it shares trials with, which may be itself.
    """

    kept: np.ndarray
    copies: list[Copy]
    family: dict[str, str]


def common(counts: Mapping[str, int], fields: Mapping[str, Sequence[Any]], tables: Mapping[str, TableArrays]) -> Common:
    """The trials that runs have in common. Of a trial that is there twice, that of the run with more trials counts.

    counts: the number of trials of each run. fields, tables: of all these trials, run after run.
    """
    ends = np.cumsum(list(counts.values()))
    places = {run: range(end - count, end) for (run, count), end in zip(counts.items(), ends.tolist(), strict=True)}
    family = {run: run for run in counts}
    first: dict[Any, str] = {}
    kept, copies = [], []
    keys = _keys(fields, tables) if len(counts) > 1 else range(len(fields["trial_id"]))
    for run in sorted(counts, key=counts.__getitem__, reverse=True):
        others: dict[str, int] = defaultdict(int)
        for place in places[run]:
            other = first.setdefault(keys[place], run)
            if other == run:
                kept.append(place)
            else:
                others[other] += 1
        copies += [Copy(run, other, shared, counts[run]) for other, shared in others.items()]
        for other in others:
            _unite(family, run, other)
    return Common(np.array(sorted(kept), np.int64), copies, family)


def _unite(family: dict[str, str], run: str, other: str) -> None:
    """Make one family of those of two runs."""
    old, new = family[run], family[other]
    for member, head in family.items():
        if head == old:
            family[member] = new


def _keys(fields: Mapping[str, Sequence[Any]], tables: Mapping[str, TableArrays]) -> list[Any]:
    """A key of each trial, the same for the same trials. Rows are read only where all else is the same."""
    keys: list[Any] = list(zip(*(fields[name] for name in _OF_A_TRIAL), strict=True))
    alike: dict[Any, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        alike[key].append(place)
    starts = {name: np.cumsum(table.counts) - table.counts for name, table in tables.items()}
    for key, places in alike.items():
        for place in places if len(places) > 1 else ():
            digest = hashlib.sha256()
            for name, table in tables.items():
                for part in _rows(table, int(starts[name][place]), int(table.counts[place])):
                    digest.update(part)
            keys[place] = (*key, digest.digest())
    return keys


def _rows(table: TableArrays, start: int, count: int) -> Iterator[bytes]:
    """The rows of a trial as bytes, column by column, each after its length."""
    for name, values in table.columns.items():
        cells = values[start : start + count]
        texts = table.texts.get(name)
        content = cells.tobytes() if texts is None else repr([texts[place] for place in cells.tolist()]).encode()
        yield b"%d %d " % (count, len(content))
        yield content
