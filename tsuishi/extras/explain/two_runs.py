"""`invoke explain RUN_A --beside RUN_B`: how much slower B is, and which differences explain it.

Another environment and another number of CPUs can be had on one machine. They are measured with the case whose time
differs most, or that --row names: as both runs had them, and in mixtures.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from pydantic import ValidationError

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.commands.chain import Chain
from tsuishi.commands.report_runs import named_runs
from tsuishi.estimates.contrasts import days_of, ratio
from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast, Term
from tsuishi.estimates.ratios import as_ratio, mean_ratio
from tsuishi.estimates.steadiness import STEP_TIMES
from tsuishi.extras.explain import explaining
from tsuishi.extras.explain.difference import Between, Difference
from tsuishi.extras.explain.suspects import CPUS, DATA_SET, SUSPECTS, beside_trials, is_made_up, suspects
from tsuishi.extras.tables.check import Found
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.machine.process_limits import limits_of_process
from tsuishi.report.parts.wording import digits, is_pace, is_rate, ratio_text, worded
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.case import DEVICES, NODES, SUITE, Value
from tsuishi.specs.environment import find_environment, without_engine
from tsuishi.specs.printed_table import slug
from tsuishi.specs.selections import ENVIRONMENT
from tsuishi.specs.suite import Profile, known_suites
from tsuishi.verdicts.evidence import Evidence

# Why the ratio of two runs has no interval.
_APART = f"no interval: a program differs from day to day, and each run needs {FEWEST_TRIALS} days to show by how much"
# How far records reach.
_REACH = (
    "records hold the code, how it was timed, the machine and its settings, and the packages, flags and libraries of a "
    "trial's process; they hold no clock of a CPU, no temperature of it, and no other setting that a program reads"
)
# JSON has no infinity.
_MOST_FREEDOM = 1e30


class Shared(NamedTuple):
    """The pace of a case in both runs: the environments, the terms, and the ratio, all as logarithms."""

    case_id: str
    quantity: str
    environments: tuple[str, str]
    first: Term
    second: Term
    is_largest: bool = False

    @property
    def ratio(self) -> Contrast:
        """The second over the first, of their times."""
        return ratio(*self.sides)

    @property
    def sides(self) -> tuple[Term, Term]:
        """The terms whose ratio says how many times as long the second takes."""
        return (self.first, self.second) if is_rate(self.quantity) else (self.second, self.first)


def explain_runs(chain: Chain) -> None:
    """Print the ratio of both runs over the cases that both have, and the suspects; measure those that can be set here.

    Raises UserError where they share no case, and where what can be set cannot be measured.
    """
    with files.private_folder() as folder, worded(chain.session.words):
        _explain_runs(chain, folder)


def _explain_runs(chain: Chain, folder: Path) -> None:
    words, say = chain.session.words, chain.session.screen.say
    names = chain.options.text("table"), chain.options.text("beside")
    one, other = (Evidence([_run(chain, name, folder / str(number))], (), words) for number, name in enumerate(names))
    pairs = _pairs_of_environments(one, other)
    of_steps = [each for pair in pairs for each in _shared(one, other, pair, STEP_TIMES)]
    shared = of_steps or [each for pair in pairs for each in _shared(one, other, pair, _paces(one, other))]
    if not shared:
        raise UserError(
            f"{names[0]} and {names[1]} share no case with a time or a rate: run the same suite for both, in an "
            "environment of one name, or each in a single environment"
        )
    for pair in dict.fromkeys(each.environments for each in shared):
        say(_ratio([each for each in shared if each.environments == pair], pair))
    chosen = _chosen(chain, one, shared)
    asked = _difference(chain, one, other, chosen)
    measured = frozenset() if isinstance(asked, str) else {factor.name for factor in asked.factors(words.usual)}
    found = [
        *suspects(one, other, pairs, measured, chosen.environments),
        *beside_trials(one, other, chosen.case_id, chosen.environments, measured),
    ]
    if not found:
        say(f"their records do not differ: another time, other load, or a cause that no record sees; {_REACH}")
        return
    chain.session.screen.table(*SUSPECTS, found)
    if isinstance(asked, str):
        say(f"nothing is measured: {asked}")
        return
    say(f"measured here: {asked.case}")
    assert asked.between is not None
    asked = asked.model_copy(update={"between": asked.between.model_copy(update={"suspects": tuple(found[:1000])})})
    explaining.measure(chain, _found(chain, one, other, chosen, asked), asked)


def _run(chain: Chain, name: str, into: Path) -> RunDirectory:
    """The run of an id, a folder or an archive. Raises UserError for an archive of several."""
    run, *others = named_runs(chain.session, name, into)
    if others:
        raise UserError(f"{name} has {1 + len(others)} runs: unpack it, and name the folder of one")
    return run


def _found(chain: Chain, one: Evidence, other: Evidence, chosen: Shared, asked: Difference) -> Found:
    """The case as a number that a check measures, with the profile and on the accelerator of the first run."""
    (first,), (second,) = one.results.runs.values(), other.results.runs.values()
    computed = _accelerator(one, chosen, 0) or "auto"
    choice = replace(chain.session.choice, profile=cast(Profile, first.profile), accelerator=computed)
    quantity = (asked.column, asked.text, "", one.axes[chosen.case_id], asked.quantity, asked.value)
    number = CheckableNumber((), (), *quantity, asked.hardware, "", "", {})
    name = slug(f"{first.run_id} beside {second.run_id}")
    return Found(number, "", replace(chain.session, choice=choice), name, (), case_id=chosen.case_id)


def _pairs_of_environments(one: Evidence, other: Evidence) -> list[tuple[str, str]]:
    """The environments that both have; of runs with one environment each, these."""
    ours, theirs = ([record.name for record in of.environment_records.values()] for of in (one, other))
    both = [(name, name) for name in dict.fromkeys(ours) if name in theirs]
    return both or ([(ours[0], theirs[0])] if len({*ours}) == len({*theirs}) == 1 else [])


def _paces(one: Evidence, other: Evidence) -> list[str]:
    """The times and rates that both runs have; first those that a script or a workload itself gives."""
    known = {quantity for _, _, quantity in one.terms} & {quantity for _, _, quantity in other.terms}
    paces = [name for name in sorted(known) if is_pace(name)]
    return sorted(paces, key=lambda name: not one.words.quantity(name).origin.startswith("metric:"))


def _shared(
    one: Evidence, other: Evidence, pair: tuple[str, str], quantities: Sequence[str] = STEP_TIMES
) -> Iterator[Shared]:
    ours, theirs = _terms(one, pair[0], quantities), _terms(other, pair[1], quantities)
    for case, (quantity, term) in ours.items():
        if case in theirs and theirs[case][0] == quantity:
            yield Shared(case, quantity, pair, term, theirs[case][1])


def _terms(of: Evidence, environment: str, quantities: Sequence[str]) -> dict[str, tuple[str, Term]]:
    """The first of the quantities that each case has in an environment, with its term."""
    found: dict[str, tuple[str, Term]] = {}
    for quantity in quantities:
        for (case_id, column, name), term in of.terms.items():
            if name == quantity and of.selectable(column)[ENVIRONMENT] == environment:
                found.setdefault(case_id, (quantity, term))
    return found


def _ratio(shared: list[Shared], pair: tuple[str, str]) -> str:
    cases = f"geometric mean of {len(shared)} cases" if len(shared) > 1 else "one case"
    where = pair[0] if pair[0] == pair[1] else f"{pair[1]} over {pair[0]}"
    by = dict.fromkeys(each.quantity for each in shared if each.quantity not in STEP_TIMES)
    where += f", by {', '.join(by)}" if by else ""
    times = as_ratio(mean_ratio([each.sides for each in shared]))
    days = min(len(days_of(term)) for each in shared for term in (each.first, each.second))
    apart = f"; {_APART}" if times.low is None and days < FEWEST_TRIALS else ""
    return f"the second takes {ratio_text(times)} times as long as the first: {cases}, {where}{apart}"


def _chosen(chain: Chain, one: Evidence, shared: list[Shared]) -> Shared:
    """The case that --row names, else the case whose time differs most. Raises UserError where --row names none."""
    words = chain.options.text("row").replace(",", " ").split()

    def said(each: Shared) -> set[str]:
        axes = one.axes[each.case_id]
        return {*map(str, axes.values()), *(f"{axis}={value}" for axis, value in axes.items())}

    fit = [each for each in shared if said(each).issuperset(words)]
    if not fit:
        cases = "; ".join(dict.fromkeys(_case(one, each.case_id) for each in shared[:5]))
        raise UserError(f"--row {' '.join(words)}: both runs have no such case; they have {cases}")
    chosen = max(fit, key=lambda each: abs(each.ratio.value))
    # The largest of several ratios is larger than its true value, and its interval does not know it.
    return chosen if len(fit) == 1 else chosen._replace(is_largest=True)


def _case(of: Evidence, case_id: str) -> str:
    """A case without its suite and usual values."""
    known = of.words.axes
    axes = {axis: value for axis, value in of.axes[case_id].items() if axis != SUITE and value != known[axis].usual}
    return ", ".join(f"{axis}={value}" for axis, value in axes.items())


def _difference(chain: Chain, one: Evidence, other: Evidence, chosen: Shared) -> Difference | str:
    """What is to be explained by measuring a case here, or why nothing is."""
    axes, (first,), (second,) = one.axes[chosen.case_id], one.results.runs.values(), other.results.runs.values()
    if chosen.quantity not in STEP_TIMES:
        return f"{chosen.quantity} is no time of a step; set alike what differs, and run the suite again"
    theirs, mine, *why_not = _cpus(one, other, chosen)
    for settings, data in zip((theirs, mine), _data_sets(one, other, chosen.case_id), strict=True):
        settings |= data
    if DATA_SET in mine and chain.session.data is None:
        why_not.append("no data set is at hand here")
    here = _names_here(chain, one, other, chosen.environments)
    why_not += [_why_not_here(chain, of, name) for of, name in zip((one, other), here, strict=True)]
    if str(axes.get(SUITE)) not in known_suites(chain.session.checkout.suites):
        why_not.append(f"suites/ has no {axes.get(SUITE)}")
    computed = [_accelerator(of, chosen, place) for place, of in enumerate((one, other))]
    lacks_gpus = "cuda" in computed and int(axes.get(DEVICES, 1)) > len(chain.session.nvml)
    if int(axes.get(NODES, 1)) > 1 or lacks_gpus:
        why_not.append("the case needs more devices than this machine has")
    if None not in computed and computed[0] != computed[1]:
        why_not.append(f"the first computed with {computed[0]}, the second with {computed[1]}")
    if not (mine or here[0] != here[1]):
        why_not.append("nothing that differs can be set on one machine")
    if any(why_not):
        return "; ".join(dict.fromkeys(filter(None, why_not)))
    try:
        return _of_settings(one, chosen._replace(environments=here), theirs, mine, (first.run_id, second.run_id))
    except ValidationError:
        return "the times of the case are out of all bounds"


def _of_settings(
    one: Evidence, chosen: Shared, theirs: dict[str, Value], mine: dict[str, Value], runs: tuple[str, str]
) -> Difference:
    """The difference between two runs, by their ids. theirs, mine: settings of the first and of the second."""
    both = chosen.ratio
    has_no_interval = chosen.is_largest or both.error is None or math.isinf(both.error)
    return Difference(
        text=digits(math.exp(chosen.first.mean)),
        column=chosen.quantity,
        case=_case(one, chosen.case_id),
        axes={**one.axes[chosen.case_id], **theirs},
        quantity=chosen.quantity,
        value=math.exp(chosen.first.mean),
        hardware="",
        mine=mine,
        mine_in=chosen.environments[1],
        theirs_in=chosen.environments[0],
        between=Between(
            first=runs[0],
            second=runs[1],
            ratio=both.value,
            # Runs of few days do not say how far days differ.
            error=None if has_no_interval else both.error,
            freedom=min(both.freedom, _MOST_FREEDOM),
        ),
    )


def _accelerator(of: Evidence, chosen: Shared, place: int) -> str | None:
    """What the case computed with in a run, the first (0) or the second; None where its plan does not say it."""
    (run,) = of.results.runs.values()
    cell = chosen.case_id, chosen.environments[place]
    return next((trial.accelerator for trial in run.plan if (trial.case_id, trial.environment) == cell), None)


def _cpus(one: Evidence, other: Evidence, chosen: Shared) -> tuple[dict[str, Value], dict[str, Value], str]:
    """The CPUs of the first and of the second run as settings, where they differ; and why they cannot be set here.

    A quota of CPU time is no number of CPUs.
    """
    counts = []
    for of, environment in zip((one, other), chosen.environments, strict=True):
        trials = of.results.trials
        its = trials[(trials["case_id"] == chosen.case_id) & (trials["environment"] == environment)]
        records = [of.results.machines.get(record) for record in its["machine_record"]]
        known = {record.cpu.usable if record and record.cpu else None for record in records}
        quotas = [record for record in records if record and record.limits and record.limits.cpu_quota]
        counts.append(known.pop() if len(known) == 1 and not quotas else None)
    first, second = counts
    if CPUS in one.axes[chosen.case_id] or not (first and second) or first == second:
        return {}, {}, ""
    most, usable = max(first, second), limits_of_process()["cores"]
    why_not = f"{most} CPUs cannot be had here: this process may use {usable:g}" if most > usable else ""
    return {CPUS: first}, {CPUS: second}, why_not


def _data_sets(one: Evidence, other: Evidence, case_id: str) -> tuple[dict[str, Value], dict[str, Value]]:
    """The data set of the first and of the second run as settings, where one had images that are made up."""
    if is_made_up(one, case_id) == is_made_up(other, case_id) or DATA_SET in one.axes[case_id]:
        return {}, {}
    first, second = ("made_up" if is_made_up(of, case_id) else "at_hand" for of in (one, other))
    return {DATA_SET: first}, {DATA_SET: second}


def _names_here(chain: Chain, one: Evidence, other: Evidence, pair: tuple[str, str]) -> tuple[str, str]:
    """The names of a pair of environments here: with the engines, where nothing else differs and both answer here."""
    stem, second_stem = map(without_engine, pair)
    if stem != second_stem:
        return pair
    engines = [
        next(record.engine for record in of.environment_records.values() if record.name == name)
        for of, name in zip((one, other), pair, strict=True)
    ]
    first, second = (f"{stem}.{engine}" for engine in engines)
    refused = any(_why_not_here(chain, of, name) for of, name in ((one, first), (other, second)))
    return (stem, stem) if first == second or refused else (first, second)


def _why_not_here(chain: Chain, of: Evidence, name: str) -> str:
    """Why the environment of a run cannot be had here; empty where it can."""
    images, engines = chain.session.checkout.images, chain.session.builder.engines
    here = find_environment(images, name)
    if here is None:
        return f"images/ has no {name}"
    records = of.environment_records.values()
    locks = {record.lock_sha256 for record in records if without_engine(record.name) == here.made_as}
    if locks - {here.lock_sha256, "", None}:
        return f"the lock of {here.made_as} has changed since"
    try:
        return engines.refusal(here)
    except UserError as unusable:
        return str(unusable)
