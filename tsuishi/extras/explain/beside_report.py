"""`invoke explain RUN --beside REPORT`: a run beside the folder of a report, which has tables and no trials.

It says how much slower the report's run is, and lists every fact that differs. Nothing is measured.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.files import read_json, read_rows
from tsuishi.commands.chain import Chain
from tsuishi.estimates.steadiness import STEP_TIMES
from tsuishi.extras.explain.suspects import SUSPECTS, Suspect
from tsuishi.report.parts.wording import NOTHING, Table, digits
from tsuishi.report.sections import descriptions
from tsuishi.results.directory import open_run
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.evidence import Evidence

# Facts that follow from others, or have no meaning beside another report.
_NOT_COMPARED = ("title", "realised id", "packages", "image")
# No step takes longer.
_LONGEST_S = 1e9
# Facts by the name of a machine or an environment, and by the name of the fact.
_Facts = Mapping[str, Mapping[str, str]]


def explain_report(chain: Chain, folder: Path) -> None:
    """Print the ratio over the cases that both have, by environment, and what differs.

    Raises UserError for a folder that holds no report in English, and where they share no case.
    """
    say, session = chain.session.screen.say, chain.session
    run = open_run(session.settings.results, chain.options.text("table"))
    one = Evidence([run], (), session.words)
    try:
        times, facts = _read(folder)
    except (LookupError, TypeError, ValueError) as error:
        raise UserError(f"{folder}: no report in English of this version of tsuishi ({error!r})") from error
    ratios: dict[str, dict[str, float]] = {}
    for quantity, (key, term) in itertools.product(STEP_TIMES, one.terms.items()):
        if key[2] == quantity and 0 < times.get(key, 0.0) < _LONGEST_S:
            ratios.setdefault(key[1], {}).setdefault(key[0], math.log(times[key]) - term.mean)
    if not ratios:
        raise UserError(f"{run.path.name} and {folder} share no case with the time of a step")
    for environment, each in ratios.items():
        times_as_long = _times([*each.values()])
        say(f"the report's run takes {times_as_long} ({environment}; a report has no trials, so there is no interval)")
    ours = [_facts([table.columns, *([cell.text for cell in row] for row in table.rows)]) for table in _tables(one)]
    found = [
        suspect
        for mine, its, missing in zip(ours, facts, ("", "not there", ""), strict=True)
        for suspect in _differing(mine, its, missing)
    ]
    if found:
        session.screen.table(*SUSPECTS, found)
    else:
        say("their facts do not differ: another time, other load, or a cause that no report shows")


def _tables(one: Evidence) -> list[Table]:
    """The tables of a report with its environments, their packages, and its machines."""
    return [descriptions.environment_table(one), descriptions.package_table(one), descriptions.machine_table(one)]


def _read(folder: Path) -> tuple[dict[tuple[str, str, str], float], list[_Facts]]:
    """The times of steps by case, environment and quantity, and the facts of the tables that `_tables` makes."""
    data = read_json(folder / "report.json")
    rows = read_rows(folder / "tables" / "cases.csv")
    times = {
        (row["case_id"], row["environment"], row["quantity"]): float(row["estimate"])
        for row in rows
        if row["status"] == OK and row["quantity"] in STEP_TIMES and row["estimate"]
    }
    heading, headed = "", dict[str, list[_Facts]]()
    for block in itertools.chain.from_iterable(section["blocks"] for section in data["sections"]):
        if block["block"] == "heading":
            heading = block["text"]
        elif block["block"] == "table":
            texts = [[cell["text"] for cell in row] for row in block["rows"]]
            headed.setdefault(heading, []).append(_facts([block["columns"], *texts]))
    return times, [*headed["Environments"][:2], headed["Machine"][0]]


def _facts(rows: Iterable[list[str]]) -> _Facts:
    (_, *names), *others = rows
    return {name: {row[0]: row[index] for row in others} for index, name in enumerate(names, start=1)}


def _times(ratios: list[float]) -> str:
    middle, *ends = (digits(math.exp(each)) for each in (statistics.fmean(ratios), min(ratios), max(ratios)))
    spread = f"geometric mean of {len(ratios)} cases, {ends[0]} to {ends[1]}" if ratios[1:] else "one case"
    return f"{middle} times as long as this run: {spread}"


def _differing(ours: _Facts, theirs: _Facts, missing: str) -> Iterator[Suspect]:
    """What differs. missing: stands for a fact that one of them does not have; empty: then it is no difference."""
    for name in ours:
        if name in theirs:
            for fact in dict.fromkeys((*ours[name], *theirs[name])):
                one, other = (of.get(fact, NOTHING).replace(NOTHING, missing) for of in (ours[name], theirs[name]))
                if one != other and one and other and fact not in _NOT_COMPARED:
                    yield Suspect(f"{name}: {fact}", one, other, "a report has no trials: measure both")
