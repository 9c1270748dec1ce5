"""The plan of a command: the environments it needs, its questions, what it leaves out, and how long it takes."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tsuishi.artifacts import datasets
from tsuishi.base import exclusion, units
from tsuishi.base.errors import UserError
from tsuishi.environments import possible
from tsuishi.environments.batch import jobs
from tsuishi.environments.build_plan import (
    PlannedBuild,
    disk_needed,
    plan_builds,
    print_builds,
    print_builds_briefly,
)
from tsuishi.environments.entry import Ready
from tsuishi.machine import description, disk
from tsuishi.machine.busy import shared_with
from tsuishi.plan import lines, trials
from tsuishi.plan.candidates import candidates
from tsuishi.plan.choice import UsableEnvironments, choose
from tsuishi.plan.decidable import Situation, Takes, gpus_here, what_claims_take
from tsuishi.plan.outline import Outline, environments_in, outline
from tsuishi.plan.session import MARGIN_S, Session
from tsuishi.plan.trials import Matrix, Refused
from tsuishi.plan.worth import Costs
from tsuishi.specs.case import SUITE
from tsuishi.specs.environment import Environment, known_environments, read_environment
from tsuishi.specs.questions import LOOKS, PlannedQuestion
from tsuishi.specs.source import Source, read_sources
from tsuishi.specs.suite import every_suite, select_suites

# A file system should have this many times the bytes that go to it.
_FREE_DISK_MARGIN = 1.1


class NothingToAsk(UserError):
    """The environments refuse all cases, so that more time would not do."""


class TooShort(UserError):
    """The time is too short for any question."""


@dataclass(frozen=True)
class Plan:
    """What a command would do.

    environments: those it needs. expected_s: seconds from the command to its end. outlined: what it would measure.
    left_out: why environments are left out, by their names.
    """

    environments: tuple[Environment, ...]
    expected_s: float
    outlined: Outline = field(default_factory=Outline)
    left_out: Mapping[str, str] = field(default_factory=dict)


def plan_builds_only(session: Session, *, only: bool = False) -> Plan:
    """Print the plan of a command that builds but does not measure. Raises UserError where nothing can be built.

    only: as for `plan_run`.
    """
    chosen, builds = _chosen(session, to_run=False, only=only)
    print_builds(session.screen, builds, chosen.left_out)
    return Plan(chosen.environments, _print_expected(session, builds, 0.0), left_out=chosen.left_out)


def plan_run(session: Session, *, only: bool = False) -> Plan:
    """Print the plan of a command that measures. Raises UserError where the time is too short, and NothingToAsk.

    only: nothing of the plan is done, so that other processes may build and measure, and the whole plan is printed;
    else a dozen lines of it.
    """
    chosen, builds = _chosen(session, to_run=True, only=only)
    if session.settings.runs_here:
        session.screen.say(description.machine_line(session.nvml))
    for environment in chosen.environments:
        if not environment.pinned:  # it alone knows its framework, on which its questions depend
            session.builder.enter(environment, session.screen.say)
    outlined = outline_run(session, chosen.environments)
    by_name = session.choice.environments
    needed = chosen.environments if by_name else environments_in(outlined, chosen.environments)
    wanted = [build for build in builds if build.environment in needed]
    why = f"no question that needs it fits {units.duration(session.clock.within_s or 0)}"
    later = {build.environment.name: why for build in builds if build.environment not in needed}
    left_out = {**chosen.left_out, **later}
    if only:
        print_builds(session.screen, wanted, left_out)
        lines.print_outline(session.screen, outlined, session.clock, session.history)
        print_claims(session, [each.environment for each in outlined.matrix.possible], outlined)
        session.screen.say(_data_line(session))
    else:
        print_builds_briefly(session.screen, wanted, left_out)
        lines.print_briefly(session.screen, outlined)
        no_data = not session.data and not all(trial.script for trial in outlined.trials)
        for line in (*lost_comparisons(chosen, session.checkout.images), *([_data_line(session)] if no_data else ())):
            session.screen.say(line)
    for line in shared_with(session.nvml):
        session.screen.say(line)
    if session.nvml.remedy and not session.choice.environments and session.choice.accelerator == "auto":
        session.screen.say(f"the GPU is not used: {session.nvml.why_not}: {session.nvml.remedy}")
    if session.nodes:
        session.screen.say(session.nodes.expected(outlined.trials, session.nvml.gpus))
    heating_s = _heating_s(session, outlined.matrix)
    if heating_s:
        session.screen.say(f"heating: about {units.duration(heating_s)} before the first trial (tsuishi.heat_s)")
    then_s = heating_s + outlined.measuring_s / session.at_once + session.report_s
    first_s = first_answer_s(session, outlined, wanted) if session.is_limited else None
    expected_s = _print_expected(session, wanted, then_s, first_s)
    return Plan(needed, expected_s, outlined, left_out)


def first_answer_s(session: Session, outlined: Outline, builds: Sequence[PlannedBuild]) -> float:
    """Expected seconds from the command to its first answer, without downloads."""
    trials_s = outlined.first_answer_s / session.at_once
    return _built_after_s(session, builds) + _heating_s(session, outlined.matrix) + trials_s


def _built_after_s(session: Session, builds: Sequence[PlannedBuild]) -> float:
    """Expected seconds from the command to the end of its builds, without downloads."""
    costs = Costs({}, {build.environment.name: build.expected_s for build in builds}, jobs(session.settings))
    return (session.clock.spent_s if session.clock.within_s is not None else 0.0) + costs.building_s(costs.build_s)


def outline_run(
    session: Session, environments: Sequence[Environment], ready: Mapping[str, Ready] | None = None
) -> Outline:
    """What to measure in these environments in the time left.

    ready: the environments that are built, by name; None: those that an earlier command built. Raises UserError where
    the time is too short for any question.
    """
    if ready is None:
        built = {environment.name: session.builder.find(environment) for environment in environments}
        ready = {name: environment for name, environment in built.items() if environment}
    environments = [ready[each.name].as_built if each.name in ready else each for each in environments]
    cells = measurable(session, environments, ready)
    builds = plan_builds(session.builder, environments, session.history)
    # On a cluster, time counts from the first job: all is built before it.
    counts = session.settings.runs_here
    build_s = {
        build.environment.name: build.expected_s if counts and build.environment.name not in ready else 0.0
        for build in builds
    }
    heating_s = _heating_s(session, cells)
    left_s = session.left_for_trials_s() - heating_s
    given = build_s, jobs(session.settings), left_s
    outlined = outline(session.choice, cells, questions(session, cells), *given)
    if not outlined.asked:
        of_cases = outline(session.choice, cells, questions(session, cells, compares=False), *given)
        outlined = of_cases if of_cases.asked else outlined
    if not outlined.asked and session.is_limited:
        error = TooShort if outlined.others else NothingToAsk
        beside_s = session.clock.spent_s + session.report_s + MARGIN_S + heating_s
        raise error(lines.too_short(outlined, session.clock, beside_s, session.choice.gpu_hours))
    return outlined


def measurable(session: Session, environments: Sequence[Environment], ready: Mapping[str, Ready]) -> Matrix:
    """All that could be measured in these environments. Those that are ready are asked which cases they cannot run.

    Raises UserError where nothing can be measured.
    """

    def matrix(refused: Refused) -> Matrix:
        given = (session.nvml, session.history, session.data_record)
        return trials.matrix(session.choice, session.checkout, environments, *given, refused)

    everything = matrix({})
    if not everything.first:
        raise UserError("nothing to run: the chosen suites have no case for this profile on this machine")
    to_build = [environment for environment in environments if environment.name not in ready]
    asked = {name: _unsupported(session, environment, everything) for name, environment in ready.items()}
    return matrix({**trials.too_early(session.words, to_build, everything), **asked})


def _heating_s(session: Session, cells: Matrix) -> float:
    """Expected seconds before the first trial, in which devices are heated: with the start of a framework."""
    heated = [(session.heat_s(here.accelerator), here.environment.expect.startup_s) for here in cells.possible]
    return max((heat_s + start_s for heat_s, start_s in heated if heat_s), default=0.0)


def published_sources(session: Session) -> tuple[Source, ...]:
    """The published sources. Raises UserError for a wrong file of a source of the chosen suites."""
    chosen = select_suites(session.checkout.suites, session.choice.suites)
    needed = {suite.source for suite in chosen}
    return read_sources(session.checkout.published, session.words, tables=False, needed=needed)


def questions(session: Session, matrix: Matrix, compares: bool = True) -> list[PlannedQuestion]:
    """Every question that the cells of a matrix can answer.

    compares: without it, a suite that runs only where it is named, and only compares its cases, is asked how long each
    of them takes. No other suite and no claim is asked then.
    """
    checkout = session.checkout
    chosen = select_suites(checkout.suites, session.choice.suites)
    by_suite = {suite.name: suite.questions for suite in chosen}
    sources = published_sources(session)
    if not compares:
        named = [suite for suite in chosen if not suite.default]
        by_suite = {suite.name: () for suite in named if all(each.kind == "cases" for each in suite.questions)}
        sources = ()
    hardware = gpus_here(session.nvml)
    return candidates(session.words, by_suite, sources, matrix.possible, hardware, _shows_accuracy(session))


def _shows_accuracy(session: Session) -> bool:
    """Whether trainings are whole, and on real data."""
    return session.data is not None and session.choice.profile == "full"


def print_claims(session: Session, environments: Sequence[Environment], outlined: Outline) -> None:
    """Print what this plan can decide of the claims of sources, and what the others would take."""
    larger = trials.matrix(
        replace(session.choice, profile="full"), session.checkout, environments, session.nvml, session.history
    )
    sources = published_sources(session)
    hardware = gpus_here(session.nvml)
    situation = Situation(
        hardware,
        frozenset(environment.framework for environment in environments),
        frozenset(suite.name for suite in select_suites(session.checkout.suites, session.choice.suites)),
        (*outlined.asked, *outlined.others),
        candidates(session.words, {}, sources, larger.possible, hardware, accuracy=True),
        outlined.counts,
    )
    takes = what_claims_take(sources, situation)
    if takes:
        notes = _of_other_suites(session, environments, sources, takes)
        session.screen.table("Claims of published sources", ("", "claims"), lines.claim_rows(takes, notes))


def _of_other_suites(
    session: Session,
    environments: Sequence[Environment],
    sources: Sequence[Source],
    takes: Mapping[tuple[str, str], Takes],
) -> dict[tuple[str, str], str]:
    """For each claim that needs another suite: the option that names it, and the expected minutes of its trials.

    Empty for a run that names its suites: it is not about the others.
    """
    claims = [(source.name, claim) for source in sources for claim in source.claims]
    suites = {(name, claim.id): sorted(map(str, claim.named(SUITE))) for name, claim in claims}
    there = {suite.name for suite in every_suite(session.checkout.suites)}
    suites = {key: suites[key] for key, need in takes.items() if need == "suite" and there >= {*suites[key]}}
    if not suites or session.choice.suites:
        return {}
    choice = replace(session.choice, suites=tuple(dict.fromkeys(itertools.chain(*suites.values()))))
    matrix = trials.matrix(choice, session.checkout, environments, session.nvml, session.history)
    seconds: dict[tuple[str, str], float] = {}
    hardware = gpus_here(session.nvml)
    for question in candidates(session.words, {}, sources, matrix.possible, hardware, _shows_accuracy(session)):
        of_trials = LOOKS[0] * sum(matrix.first[cell].expected_s for cell in question.cells)
        key = question.source, question.claim
        seconds[key] = max(of_trials, seconds.get(key, 0.0))
    return {
        key: ", ".join([f"--suite {','.join(names)}", *([lines.minutes(seconds[key])] if key in seconds else [])])
        for key, names in suites.items()
    }


def await_others(session: Session, builds: Sequence[PlannedBuild], *, measures: bool) -> None:
    """See that no other process is in the way of a plan, before its plan is printed.

    With the setting `wait`, waits for others that build or measure; this time does not count. Without it, raises Held
    where the plan has to build while others build, or has to measure while others measure.
    """
    has_to_build = not all(build.built for build in builds)
    with session.clock.apart():
        try:
            with session.building.alone():
                pass
        except exclusion.Held as held:
            if has_to_build:
                raise
            session.screen.say(f"beside this, {held.holder}: --wait waits for it")
        if measures and session.settings.runs_here:
            with session.machine_alone():
                pass


def _chosen(session: Session, to_run: bool, only: bool) -> tuple[UsableEnvironments, list[PlannedBuild]]:
    """The environments to use, and their builds. Raises UserError for an unknown suite or environment."""
    suites = select_suites(session.checkout.suites, session.choice.suites)  # a wrong name is an error before all else
    for data in [data for suite in suites if to_run and suite.experiment for data in suite.experiment.data]:
        datasets.linked(session.settings.cache, data)  # and so are missing data
    chosen = choose(session.builder, session.choice, session.nvml, to_run)
    if not only:
        await_others(session, plan_builds(session.builder, chosen.environments, session.history), measures=to_run)
    pinned = any(environment.pinned for environment in chosen.environments)
    if pinned and (why_not := session.builder.engines.why_no_containers()):
        session.screen.say(f"without containers: {why_not}")
    return chosen, plan_builds(session.builder, chosen.environments, session.history)


def lost_comparisons(chosen: UsableEnvironments, images: Path) -> Iterator[str]:
    """A line for each framework with a single environment left: the questions about its releases are not asked."""
    specs = known_environments(images)
    for framework in sorted({each.framework for each in chosen.environments if each.pinned}):
        here = [each for each in chosen.environments if each.framework == framework]
        left_out = [name for name in chosen.left_out if read_environment(specs[name]).framework == framework]
        if len(here) == 1 and left_out:
            name = left_out[0]
            yield f"nothing is compared with {here[0].name}, as {name} is left out: {chosen.left_out[name]}"


def _unsupported(session: Session, ready: Ready, everything: Matrix) -> dict[str, str]:
    """Why cases cannot run in an environment that is ready, by case id."""
    here = [trial for cell, trial in everything.first.items() if cell.environment == ready.environment.name]
    if not here:
        return {}
    cases = [(trial.workload, trial.case, trial.settings) for trial in here]
    accelerator = here[0].accelerator
    if accelerator == "cuda" and not session.nvml.are_here:
        return {}  # this machine cannot say it for the GPUs of nodes: each trial says it there
    gpus = session.nvml.gpus if accelerator == "cuda" else ()
    where = (session.checkout, session.settings.cache, session.machine, accelerator, gpus)
    return possible.unsupported(ready, *where, cases, session.screen.say)


def _data_line(session: Session) -> str:
    """The data that training will read, and how to get the real data."""
    if session.data:
        return f"data: {session.data.name}"
    size = units.megabytes(session.data_set.size_bytes if session.data_set else 0)
    return f"data: made up; `invoke fetch-data` gets the real ones ({size}), or give --data"


def _print_expected(
    session: Session, builds: Sequence[PlannedBuild], then_s: float, first_s: float | None = None
) -> float:
    """Print and return the expected seconds of the command.

    then_s: the expected seconds after the builds; first_s: those from the command to the first answer; None: nothing is
    answered before the end. Raises UserError where there is not enough disk.
    """
    clock, screen = session.clock, session.screen
    fetch = sum(build.download_bytes for build in builds)
    unpacked = disk_needed(builds, jobs(session.settings))
    expected_s = _built_after_s(session, builds) + then_s
    in_time = first_s is not None and first_s <= expected_s
    first = f"the first answer after about {units.duration(first_s or 0.0)}, " if in_time else ""
    of = f" of {units.duration(clock.within_s)}" if clock.within_s is not None and then_s else ""
    disk_room = f", {units.megabytes(fetch + unpacked)} of disk" if fetch + unpacked else ""
    fetching = lines.fetching(fetch, session.history)
    screen.say(f"expected: {units.duration(expected_s)}{of}, {first}{fetching}{disk_room}")
    _require_disk(session, builds, fetch, unpacked)
    return expected_s


def _require_disk(session: Session, builds: Sequence[PlannedBuild], fetch: int, unpacked: int) -> None:
    """Raise UserError where downloads and builds do not fit, on one file system or on two."""
    cache = session.settings.cache
    stores = [session.builder.engines.chosen_for(build.environment).store for build in builds if not build.built]
    storage = next((folder for store in stores if store and (folder := store.folder())), cache)
    advice = "choose fewer with --env or --jobs, or move the cache (tsuishi.cache)"
    disk.require([(cache, fetch), (storage, unpacked)], advice, _FREE_DISK_MARGIN)
