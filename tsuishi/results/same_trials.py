"""Trials that several runs of a report have in common: a run that is given twice, or a copy of its folder.

A trial is the same where its id, its begin and its length are the same, and every row of its tables. Neither the name
of a run nor that of its folder counts, and a copy may have been resumed: its further trials are its own.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsuishi.results.run_tables import TRIAL, RunTables

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


def common(counts: Mapping[str, int], given: RunTables) -> Common:
    """The trials that runs have in common. Of a trial that is there twice, that of the run with more trials counts.

    counts: the number of trials of each run. given: all these trials, run after run.
    """
    ends = np.cumsum(list(counts.values()))
    places = {run: range(end - count, end) for (run, count), end in zip(counts.items(), ends.tolist(), strict=True)}
    family = {run: run for run in counts}
    first: dict[Any, str] = {}
    kept, copies = [], []
    keys = _keys(given) if len(counts) > 1 else range(len(given.trials))
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


def _keys(given: RunTables) -> list[Any]:
    """A key of each trial, the same for the same trials. Rows are read only where all else is the same."""
    trials = given.trials[[*_OF_A_TRIAL]]
    keys: list[Any] = list(zip(*(trials[name].tolist() for name in _OF_A_TRIAL), strict=True))
    if trials.duplicated().any():
        rows = _rows(given)
        keys = [(*key, digest) for key, digest in zip(keys, rows, strict=True)]
    return keys


def _rows(given: RunTables) -> list[bytes]:
    """A digest of the rows of each trial."""
    digests = [hashlib.sha256() for _ in range(len(given.trials))]
    for table in given.tables.values():
        hashes = pd.util.hash_pandas_object(table.drop(columns=TRIAL), index=False).to_numpy()
        ends = np.searchsorted(table[TRIAL].to_numpy(), np.arange(len(digests) + 1))
        for digest, begin, end in zip(digests, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            digest.update(b"%d " % (end - begin))
            digest.update(hashes[begin:end].tobytes())
    return [digest.digest() for digest in digests]
