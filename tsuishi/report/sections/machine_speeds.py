"""A table of machines, where a report has several: how much faster each is than the machine of the first run."""

import math
from collections.abc import Mapping, Sequence

from tsuishi.base.language import in_words, t
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.ratios import mean_ratio
from tsuishi.report.parts.blocks import Heading, Text, View
from tsuishi.report.parts.declarations import Column, Tables, interval, ratio_columns
from tsuishi.report.parts.wording import NOTHING, Cell, Table, ratio_cell, text_cell
from tsuishi.report.sections.descriptions import machine_text
from tsuishi.report.sections.pairs import Matchup
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "machines": (
        Column("machine_record", "string", "id of the machine's record"),
        Column("reference", "string", "that of the machine of the first run"),
        Column("numbers", "integer", "that both machines have, in environments of the same name"),
        *interval("ratio", "geometric mean over these of its speed over the reference's"),
    )
}


def machine_view(evidence: Evidence, compared: Sequence[Matchup]) -> View | None:
    """The machines, the fastest first; None for a report of a single machine.

    Machines are compared by every case that both ran in environments of the same name, by the quantities of the
    comparison of environments. Machines without such a case stand last, without a number.
    """
    machines = [*evidence.machine_records]
    columns = _columns(evidence)
    first = next(iter(columns), "")
    if len(machines) < 2 or not first:
        return None
    speeds: dict[str, tuple[Contrast, int] | None] = {}
    for machine, own in columns.items():
        pairs = _pairs(compared, columns[first], own) if machine != first else []
        speeds[machine] = (mean_ratio(pairs), len(pairs)) if pairs else None
    order = sorted(columns, key=lambda machine: -_speed(speeds[machine], is_first=machine == first))
    rows, table = [], []
    for machine in order:
        number = machines.index(machine) + 1 if machine in machines else None
        record = evidence.machine_records.get(machine)
        name = f"{number}: {machine_text(record)}" if record else t("not recorded")
        found = speeds[machine]
        cells = [text_cell(name), text_cell(in_words(columns[machine]))]
        if machine == first:
            cells += [text_cell(NOTHING), Cell("1", 1.0, kind="number")]
        elif found is None:
            cells += [text_cell("0"), text_cell(NOTHING)]
        else:
            cells += [text_cell(str(found[1])), ratio_cell(found[0], ())]
        table.append(cells)
        about = {"machine_record": machine, "reference": first, "numbers": found[1] if found else 0}
        rows.append({**about, **ratio_columns(found[0] if found else None)})
    names = [t("machine"), t("environments"), t("numbers compared"), t("times as fast")]
    title = t("Machines, the fastest first")
    about_table = t(
        "Times as fast as machine {number}, that of the first run: geometric means over all numbers that both have, in "
        "environments of the same name. Each was measured on its own, so a ratio has an interval from three days each.",
        number=machines.index(first) + 1,
    )
    return View((Heading(t("Machines")), Text(about_table), Table(names, table, title=title)), {"machines": rows})


def _columns(evidence: Evidence) -> dict[str, dict[str, str]]:
    """The label of each environment of each machine, by the ids of machines and names of environments.

    Machines stand in the order of the runs. Of a run and its replay on the same machine, the first counts.
    """
    found: dict[str, dict[str, str]] = {}
    trials = evidence.results.trials[["machine", "environment", "column"]].drop_duplicates()
    for machine, environment, column in trials.itertuples(index=False):
        if machine:
            found.setdefault(machine, {}).setdefault(environment, column)
    return found


def _pairs(compared: Sequence[Matchup], first: Mapping[str, str], other: Mapping[str, str]) -> list[tuple[Term, Term]]:
    """Terms of the same case and environment on two machines, so that first over second is the other's speed."""
    shared = [(first[name], other[name]) for name in first if name in other]
    return [pair for matchup in compared for here, there in shared for pair in matchup.speeds(there, here)]


def _speed(found: tuple[Contrast, int] | None, *, is_first: bool) -> float:
    if is_first:
        return 0.0
    return found[0].value if found else -math.inf
