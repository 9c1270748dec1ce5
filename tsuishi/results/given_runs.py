"""The runs of a report as they were given, read and joined: a trial that several of them have is there once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from tsuishi.base.printable import visible
from tsuishi.results import gathered, quick_verification, schema
from tsuishi.results.directory import RunDirectory
from tsuishi.results.quick_verification import Assurance
from tsuishi.results.records import AnyRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.results.same_trials import Copy, common
from tsuishi.results.trial_tables import Parts, TableArrays, chosen, joined


@dataclass(frozen=True)
class Given:
    """Runs by their ids, in the order in which they were given, and their trials, run after run.

    `records`: by record id. `texts`: the trial.json of each trial. `fields`: see gathered.Trials, with the `run_id`.
    `copies`, `family`: see same_trials.Common; a run without trials of its own is among the copies only.
    `assurances`: how far each run is known to be what its runner wrote.
    """

    runs: dict[str, RunRecord]
    assurances: dict[str, Assurance]
    records: dict[str, AnyRecord]
    texts: dict[tuple[str, str], bytes | memoryview]
    fields: dict[str, list[Any]]
    tables: dict[str, TableArrays]
    copies: list[Copy]
    family: dict[str, str]


def read_given(runs: Sequence[RunDirectory]) -> Given:
    """Read runs. Raises UserError for a file that is unreadable."""
    named = _named(runs)
    run_records: dict[str, RunRecord] = {}
    assurances: dict[str, Assurance] = {}
    records: dict[str, AnyRecord] = {}
    texts: list[bytes | memoryview] = []
    fields: dict[str, list[Any]] = {
        name: [] for name in ("run_id", "flags", "settings", *(column.name for column in schema.TRIALS))
    }
    parts: dict[str, list[TableArrays]] = {name: [Parts(name).table()] for name in schema.OF_A_TRIAL}
    counts: dict[str, int] = {}
    for run_id, run in named.items():
        read, of_run = gathered.read(run)
        run_records[run_id] = run.run(gathered.read_visible(run.path / "run.json"))
        assurances[run_id] = quick_verification.assurance(run, gathered.file_states(read, of_run))
        records |= of_run.typed()
        counts[run_id] = len(read.names)
        texts += read.texts
        for name, values in {**read.fields, "run_id": [run_id] * len(read.names)}.items():
            fields[name] += values
        for name, table in read.tables.items():
            parts[name].append(table)
    tables = {name: joined(of_table) for name, of_table in parts.items()}
    found = common(counts, fields, tables)
    if len(found.kept) < len(texts):
        fields = {name: _taken(values, found.kept) for name, values in fields.items()}
        tables = {name: chosen(table, found.kept) for name, table in tables.items()}
        texts = _taken(texts, found.kept)
    lost = {copy.run_id for copy in found.copies} - {*fields["run_id"]}
    return Given(
        {run_id: run for run_id, run in run_records.items() if run_id not in lost},
        assurances,
        records,
        dict(zip(zip(fields["run_id"], fields["trial_id"], strict=True), texts, strict=True)),
        fields,
        tables,
        found.copies,
        found.family,
    )


def _taken(values: Sequence[Any], places: np.ndarray) -> list[Any]:
    return [values[place] for place in places]


def _named(runs: Sequence[RunDirectory]) -> Mapping[str, RunDirectory]:
    """The runs by their ids; of runs with the same id, in several folders, the later ones are numbered."""
    named: dict[str, RunDirectory] = {}
    for run in runs:
        first = visible(run.id)
        ids = chain([first], (f"{first} ({number})" for number in count(2)))
        named[next(run_id for run_id in ids if run_id not in named)] = run
    return named
