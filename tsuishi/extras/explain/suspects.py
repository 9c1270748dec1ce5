"""`invoke explain RUN_A --beside RUN_B`: how much slower B is, and everything that differs in the records of both.

A difference is a suspect and not a cause: nothing is measured here. Each says how it could be separated.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tsuishi.base.errors import UserError
from tsuishi.commands.chain import Chain
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.ratios import as_ratio, mean_ratio
from tsuishi.estimates.steadiness import STEP_TIMES
from tsuishi.report.parts.wording import ratio_text
from tsuishi.results.directory import open_run
from tsuishi.results.records import EnvironmentRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.results.same_machine import FACTS, differing, facts, makes_another
from tsuishi.specs.selections import ENVIRONMENT
from tsuishi.verdicts.evidence import Evidence

_HERE = "run both environments on one machine: run-suite --env {},{}"
_CODE = "measure with one version of the code"
_SETTING, _MACHINE = "set it alike, and measure again", "not separable on one machine"
# The facts of an environment that its name does not say.
_FIELDS = ("python", "framework", "engine", "engine_version", "lock_sha256", "cuda", "cudnn", "sandbox", "variables")
# The longest text of a value.
_LONGEST = 60


class Suspect(NamedTuple):
    """A difference between two runs: what differs, its value in each, and how it could be separated."""

    what: str
    one: str
    other: str
    how: str


def explain_runs(chain: Chain) -> None:
    """Print the ratio of both runs over the cases that both have, and the suspects.

    Raises UserError where they share no case.
    """
    results, words, say = chain.session.settings.results, chain.session.words, chain.session.screen.say
    names = chain.options.text("table"), chain.options.text("beside")
    one, other = (Evidence([open_run(results, name)], (), words) for name in names)
    lines = list(_ratios(one, other))
    if not lines:
        raise UserError(f"{names[0]} and {names[1]} share no case with the time of a step")
    for line in lines:
        say(line)
    found = list(suspects(one, other))
    if found:
        headers = ("differs", "in the first", "in the second", "to separate it")
        chain.session.screen.table("Suspects, none of which is measured", headers, found)
    else:
        say("their records do not differ: another time, other load, or a cause that no record sees")


def _pairs_of_environments(one: Evidence, other: Evidence) -> list[tuple[str, str]]:
    """The environments that both have; of runs with one environment each, these."""
    ours, theirs = ([record.name for record in of.environment_records.values()] for of in (one, other))
    both = [(name, name) for name in dict.fromkeys(ours) if name in theirs]
    return both or ([(ours[0], theirs[0])] if len({*ours}) == len({*theirs}) == 1 else [])


def _ratios(one: Evidence, other: Evidence) -> Iterator[str]:
    for first, second in _pairs_of_environments(one, other):
        ours, theirs = _terms(one, first), _terms(other, second)
        pairs = [(theirs[case], term) for case, term in ours.items() if case in theirs]
        if pairs:
            cases = f"geometric mean of {len(pairs)} cases" if len(pairs) > 1 else "one case"
            where = first if first == second else f"{second} over {first}"
            times = ratio_text(as_ratio(mean_ratio(pairs)))
            yield f"the second takes {times} times as long as the first: {cases}, {where}"


def _terms(of: Evidence, environment: str) -> dict[str, Term]:
    """The term of the time of a step of each case in an environment."""
    found: dict[str, Term] = {}
    for quantity in STEP_TIMES:
        for (case_id, column, name), term in of.terms.items():
            if name == quantity and of.selectable(column)[ENVIRONMENT] == environment:
                found.setdefault(case_id, term)
    return found


def suspects(one: Evidence, other: Evidence) -> Iterator[Suspect]:
    """Everything that differs: the code, the request, the machine, and the environments."""
    (ours,), (theirs,) = one.results.runs.values(), other.results.runs.values()
    yield from _differ("tsuishi", _version(ours), _version(theirs), _CODE)
    yield from _differ("profile", ours.profile, theirs.profile, _SETTING)
    codes = [{name: record for record, name in of.results.workloads.items()} for of in (one, other)]
    for name in codes[0].keys() & codes[1].keys():
        yield from _differ(f"code of the workload {name}", codes[0][name], codes[1][name], _CODE)
    for first, second in zip(one.machine_records.values(), other.machine_records.values(), strict=False):
        known = facts(first), facts(second)
        for name in differing(first, second):
            how = _MACHINE if makes_another(name) else _SETTING
            label = FACTS[name].label if name in FACTS else name
            yield from _differ(label, known[0].get(name), known[1].get(name), how)
    of_each = [{record.name: record for record in of.environment_records.values()} for of in (one, other)]
    for ours_name, theirs_name in _pairs_of_environments(one, other):
        yield from _of_environments(of_each[0][ours_name], of_each[1][theirs_name])


def _version(run: RunRecord) -> str:
    """The version of tsuishi that made a run: of a package with its digest, of a checkout with its commit."""
    if run.git and run.git.package:
        return run.git.package
    commit = (run.git.commit if run.git else None) or "no commit"
    return f"{run.tsuishi_version} {commit[:12]}{' with changes' if run.git and run.git.dirty else ''}"


def _of_environments(one: EnvironmentRecord, other: EnvironmentRecord) -> Iterator[Suspect]:
    how = _HERE.format(one.name, other.name) if one.name != other.name else _SETTING
    for field in _FIELDS:
        yield from _differ(f"{one.name}: {field}", getattr(one, field), getattr(other, field), how)
    named, rest = ([getattr(record, of) or {} for record in (one, other)] for of in ("versions", "packages"))
    for name in dict.fromkeys((*named[0], *named[1])):
        yield from _differ(f"{one.name}: {name}", named[0].get(name), named[1].get(name), how)
    others = [name for name in {*rest[0], *rest[1]} - {*named[0]} if rest[0].get(name) != rest[1].get(name)]
    if others:
        yield Suspect(f"{one.name}: {len(others)} other packages", "", ", ".join(sorted(others))[:_LONGEST], how)


def _differ(what: str, one: Any, other: Any, how: str) -> Iterator[Suspect]:
    """The suspect, where both values are known or one package is missing, and they differ; of mappings each key."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*one, *other)):
            yield from _differ(f"{what}: {key}", one.get(key), other.get(key), how)
    elif one != other:
        texts = [("not there" if each is None else str(each))[:_LONGEST] for each in (one, other)]
        yield Suspect(what, texts[0], texts[1], how)
