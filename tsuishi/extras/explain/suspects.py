"""Everything that differs in the records of two runs: suspects, with a way to separate each. Nothing is measured."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tsuishi.base.language import t
from tsuishi.report.sections.descriptions import shared_values
from tsuishi.report.sections.other_conditions import reported_facts, timing_settings
from tsuishi.results.frames import ok_rows
from tsuishi.results.records import EnvironmentRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.results.same_machine import FACTS, differing, facts, makes_another
from tsuishi.specs.environment import without_engine
from tsuishi.specs.quantities import MOST_OF_OTHERS
from tsuishi.specs.selections import ENVIRONMENT
from tsuishi.verdicts.evidence import Evidence

_HERE = "run both environments on one machine: run-suite --env {},{}"
_CODE = "measure with one version of the code"
_SETTING, _MACHINE = "set it alike, and measure again", "not separable on one machine"
_ENGINES = "make both runs with one engine"
_BOTH_ENGINES = "make both runs with one engine, or run both: run-suite --env {},{}"
_MEASURED, _WITH_ENVIRONMENT = "measured here", "measured here, with its environment"
# The axes of the data set and of the number of CPUs that a process may use (suites/axes.toml), and the facts of a
# machine that the latter sets.
DATA_SET = "data_set"
CPUS = "cpus"
_VARIABLES = "limits.variables"
_OF_CPUS = ("cpu.usable", "limits.cores", "limits.affinity")
_QUIET, _CLOCKS = "end them, and measure again", "from telemetry: power, heat or a fixed clock; not set here"
# The quantity, and the difference of clocks from which it is a suspect.
_CLOCK, _OF_CLOCKS = "gpu_sm_clock_mhz", 0.02
# The facts of an environment that its name does not say.
_FIELDS = ("python", "framework", "engine", "engine_version", "lock_sha256", "cuda", "cudnn", "sandbox", "variables")
# The title and the columns of the table of suspects.
SUSPECTS = "Suspects", ("differs", "in the first", "in the second", "to separate it")
# The longest text of a value.
_LONGEST = 60


class Suspect(NamedTuple):
    """A difference between two runs: what differs, its value in each, and how it could be separated."""

    what: str
    one: str
    other: str
    how: str


def suspects(
    one: Evidence,
    other: Evidence,
    pairs: Iterable[tuple[str, str]],
    measured: Collection[str],
    chosen: tuple[str, str],
) -> Iterator[Suspect]:
    """Everything that differs: the code, the request, how trials were timed, the machine, and the environments.

    pairs: the environments of both runs that belong together, by name. measured: the axes that are measured alone, and
    whether the environments of the chosen pair are.
    """
    (ours,), (theirs,) = one.results.runs.values(), other.results.runs.values()
    yield from _differ("tsuishi", _version(ours), _version(theirs), _CODE)
    yield from _differ("profile", ours.profile, theirs.profile, _SETTING)
    yield from _shared_differ("timing", timing_settings(one), timing_settings(other))
    codes = [{name: record for record, name in of.results.workloads.items()} for of in (one, other)]
    for name in codes[0].keys() & codes[1].keys():
        yield from _differ(f"code of the workload {name}", codes[0][name], codes[1][name], _CODE)
    of_each = [{record.name: record for record in of.environment_records.values()} for of in (one, other)]
    passed = {name for of in of_each for record in of.values() for name in record.variables or ()}
    machines = [[each for of_one in of.records_of_machines.values() for each in of_one.values()] for of in (one, other)]
    known = [[_of_trials(facts(record), passed) for record in records] for records in machines]
    for name in differing(*machines[0], *machines[1]):
        how = _MACHINE if makes_another(name) else _SETTING
        how = _MEASURED if name in _OF_CPUS and CPUS in measured else how
        label = FACTS[name].label if name in FACTS else name
        first, second = (_values(each.get(name) for each in of_run) for of_run in known)
        if first is not None and second is not None:
            yield from _differ(label, first, second, how)
    for ours_name, theirs_name in pairs:
        how = _HERE.format(ours_name, theirs_name) if ours_name != theirs_name else _SETTING
        how = _WITH_ENVIRONMENT if ENVIRONMENT in measured and (ours_name, theirs_name) == chosen else how
        yield from _of_environments(of_each[0][ours_name], of_each[1][theirs_name], how)
        yield from _shared_differ(ours_name, _reported(one, ours_name), _reported(other, theirs_name))


def beside_trials(
    one: Evidence, other: Evidence, case_id: str, environments: tuple[str, str], measured: Collection[str] = ()
) -> Iterator[Suspect]:
    """What differs of the trials of a case: the data set, the load of other programs, the clock of GPUs."""
    data = ["none: images are made up" if is_made_up(of, case_id) else "at hand" for of in (one, other)]
    yield from _differ("data set", data[0], data[1], _MEASURED if DATA_SET in measured else _SETTING)
    ours, theirs = ((of, name, case_id) for of, name in zip((one, other), environments, strict=True))
    first, second = _others_percent(*ours), _others_percent(*theirs)
    if first is not None and second is not None and abs(first - second) > MOST_OF_OTHERS:
        yield Suspect("cores that other programs took, %", f"{first:.0f}", f"{second:.0f}", _QUIET)
    first, second = _clock_mhz(*ours), _clock_mhz(*theirs)
    if first and second and abs(first / second - 1) > _OF_CLOCKS:
        yield Suspect("clock of the GPU in measured phases, MHz", f"{first:.0f}", f"{second:.0f}", _CLOCKS)


def _of_trials(machine: dict[str, Any], passed: Collection[str]) -> dict[str, Any]:
    """The facts of a machine; of the user's variables only those that trials get."""
    variables = machine.get(_VARIABLES) or {}
    return {**machine, _VARIABLES: {name: value for name, value in variables.items() if name in passed}}


def _values(of_records: Iterable[Any]) -> Any:
    """The value of a fact in the records of a run; of several values a list of texts; None where it is unknown."""
    values = [value for value in of_records if value is not None]
    different = [value for place, value in enumerate(values) if value not in values[:place]]
    return different[0] if len(different) == 1 else sorted(_text(value) for value in different) or None


def _reported(of: Evidence, environment: str) -> dict[str, str]:
    """What trials of an environment report of themselves; `beside_trials` tells of the data set."""
    columns = [column for column in of.environments if of.selectable(column)[ENVIRONMENT] == environment]
    facts = shared_values(reported_facts(of, column) for column in columns)
    return {name: value for name, value in facts.items() if name != t("synthetic data")}


def is_made_up(of: Evidence, case_id: str) -> bool:
    """Whether a case had images that are made up."""
    return bool(of.cases.loc[of.cases["case_id"] == case_id, "synthetic"].any())


def _others_percent(of: Evidence, environment: str, case_id: str) -> float | None:
    trials = ok_rows(of.results.trials)
    its = trials[(trials["case_id"] == case_id) & (trials["environment"] == environment)]
    share = its["others_cpu_percent"].mean()
    return None if math.isnan(share) else float(share)


def _clock_mhz(of: Evidence, environment: str, case_id: str) -> float | None:
    keys = [key for key in of.terms if (key[0], key[2]) == (case_id, _CLOCK)]
    found = [of.terms[key].mean for key in keys if of.selectable(key[1])[ENVIRONMENT] == environment]
    return math.exp(found[0]) if found else None


def _version(run: RunRecord) -> str:
    """The version of tsuishi that made a run: of a package with its digest, of a checkout with its commit."""
    if run.git and run.git.package:
        return run.git.package
    commit = (run.git.commit if run.git else None) or "no commit"
    return f"{run.tsuishi_version} {commit[:12]}{' with changes' if run.git and run.git.dirty else ''}"


def _of_environments(one: EnvironmentRecord, other: EnvironmentRecord, how: str) -> Iterator[Suspect]:
    """how: to separate what the name does not say; an engine is measured with an environment of the same name."""
    of_engines = ("engine", "sandbox", *(("engine_version",) if one.engine != other.engine else ()))
    if how == _WITH_ENVIRONMENT and one.name == other.name:
        of_engines = ()
    both = [f"{one.name}.{of.engine}" for of in (one, other)]
    can_be_named = {one.name} == {other.name, without_engine(one.name), *map(without_engine, both)}
    engines = _BOTH_ENGINES.format(*both) if can_be_named else _ENGINES
    for field in _FIELDS:
        of_field = engines if field in of_engines else how
        yield from _differ(f"{one.name}: {field}", getattr(one, field), getattr(other, field), of_field)
    folders = [record.folders or {} for record in (one, other)]
    for name in folders[0].keys() & folders[1].keys():
        first, second = (f"digest {each[name]}" for each in folders)
        yield from _differ(f"{one.name}: {name}", first, second, how)
    named, rest = ([getattr(record, of) or {} for record in (one, other)] for of in ("versions", "packages"))
    for name in dict.fromkeys((*named[0], *named[1])):
        yield from _differ(f"{one.name}: {name}", named[0].get(name), named[1].get(name), how)
    others = [name for name in {*rest[0], *rest[1]} - {*named[0]} if rest[0].get(name) != rest[1].get(name)]
    if others:
        yield Suspect(f"{one.name}: {len(others)} other packages", "", ", ".join(sorted(others))[:_LONGEST], how)


def _shared_differ(what: str, one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[Suspect]:
    """The suspects among the settings that both have: what one run lacks is unknown."""
    for name in (name for name in one if name in other):
        yield from _differ(f"{what}: {name}", one[name], other[name], _SETTING)


def _differ(what: str, one: Any, other: Any, how: str) -> Iterator[Suspect]:
    """The suspect, where both values are known or one package is missing, and they differ; of mappings each key."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*one, *other)):
            yield from _differ(f"{what}: {key}", one.get(key), other.get(key), how)
    elif one != other:
        texts = [_text(each)[:_LONGEST] for each in (one, other)]
        yield Suspect(what, texts[0], texts[1], how)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "not there" if value is None else str(value)
