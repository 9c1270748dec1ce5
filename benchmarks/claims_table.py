"""Which claims plans can decide in which time: `python -m benchmarks.claims_table` writes docs/claims.md, with .venv
active.

A plan is made for machines that have as many GPUs as a claim takes, with RTX 2080 Ti's memory where its scope is that
memory, for the profiles quick and full and for several times; see tsuishi/plan/decidable.py. The times of trials are
the guesses of suites, of environments that are built. Nothing is measured.
"""

import argparse
import math
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from benchmarks.stand_in_cards import ADA, TURING, Card, Cards, MadeUpClock
from tests.machine.test_compatibility import Machine
from tests.sessions import seeing
from tests.words import WORDS, shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.base.units import megabytes
from tsuishi.environments.build_plan import disk_needed, plan_builds
from tsuishi.machine.busy import used_by_others
from tsuishi.machine.history import History
from tsuishi.plan import trials
from tsuishi.plan.candidates import candidates
from tsuishi.plan.choice import Choice, fitting_defaults
from tsuishi.plan.decidable import GpusHere, Situation, Takes, gpus_of, what_claims_take
from tsuishi.plan.lines import minutes
from tsuishi.plan.outline import environments_in, outline
from tsuishi.plan.planning import first_answer_s, outline_run
from tsuishi.plan.session import Session
from tsuishi.specs.case import SUITE
from tsuishi.specs.claims import Claim
from tsuishi.specs.environment import read_environments
from tsuishi.specs.selections import ENVIRONMENT
from tsuishi.specs.source import Source
from tsuishi.specs.suite import Profile, select_suites

CHECKOUT = Checkout()
PAGE = CHECKOUT.root / "docs" / "claims.md"
CARD, MEMORY_GIB = "GeForce RTX 2080 Ti", 11.0
TIMES = {"10 min": 600.0, "1 h": 3600.0, "no limit": math.inf}
PROFILES: tuple[Profile, ...] = ("quick", "full")
# The environments of each kind of machine: those of 2019 and of today.
ON_CPU = ("tf1.13-cpu", "tf2-cpu", "torch1.1-cu90", "torch2-cpu")
ON_GPUS = ("tf1.13-cu100-wheels", "tf2-cuda", "torch1.2-cu100", "torch2-cuda")
# Cards of nine generations, each with a driver of a branch that it has; one is divided, one draws a desktop.
CARDS = (
    Card("Tesla K80", 11.2, driver="470.256.02"),
    Card("Tesla P100", 16.0, driver="535.288.01"),
    Card("Tesla V100", 16.0),
    Card("Tesla T4", 15.0),
    TURING,
    Card("A100", 40.0, driver="535.288.01"),
    Card("A100", 40.0, driver="535.288.01", divided=True),
    ADA,
    Card("GeForce RTX 4060", 8.0, driver="580.95.05", desktop_gib=2.3),
    Card("H100", 80.0),
    Card("GeForce RTX 5090", 32.0, driver="580.95.05"),
    Card("B200", 180.0, driver="580.95.05"),
)
WORDS_OF: dict[Takes, str] = {
    "planned": "yes",
    "time": "more time",
    "profile": "needs `full`",
    "suite": "no",
    "environment": "no",
    "data": "needs data",
    "gpus": "GPUs",
    "hardware": "other GPUs",
    "nothing": "no",
}


class Guesses(History):
    """No history, on a machine as fast as that of the suites' guesses: the page is the same on every machine."""

    @cached_property
    def slowness(self) -> float:
        return 1.0


class Plan(NamedTuple):
    """A plan that is not carried out: GPUs, profile, a name in TIMES, and suites; without suites the default suites."""

    gpus: int
    profile: Profile
    time: str
    suites: tuple[str, ...] = ()


@cache
def takes(plan: Plan) -> Mapping[tuple[str, str], Takes]:
    """What each claim takes there, with real data at hand, and without transfers between GPUs."""
    choice, matrix, situation = without_time(plan._replace(time=""))
    outlined = outline(choice, matrix, situation.asked, {}, 1, TIMES[plan.time])
    planned = Counter(trial.cell for trial in outlined.trials)
    return what_claims_take(shipped_sources(), replace(situation, planned=planned))


@cache
def without_time(plan: Plan) -> tuple[Choice, trials.Matrix, Situation]:
    """What does not depend on the time of a plan: its choice, its cases, and its situation with no trial planned."""
    sources = shipped_sources()
    claims = [claim for source in sources if suites_of(source) == plan.suites != () for claim in source.claims]
    named = {name for claim in claims for name in claim.named(ENVIRONMENT)}
    there = {*ON_GPUS, *named} if plan.gpus else ON_CPU
    environments = [each for each in read_environments(CHECKOUT.images) if each.name in there]
    machine = Machine(*[CARD] * plan.gpus)
    choice = Choice(profile=plan.profile, environments=tuple(each.name for each in environments), suites=plan.suites)
    with tempfile.TemporaryDirectory() as empty:
        given = (CHECKOUT, environments, machine, Guesses(Path(empty), "machine"))
        everything = trials.matrix(choice, *given)
        matrix = trials.matrix(choice, *given, None, trials.too_early(WORDS, environments, everything))
    questions = {suite.name: suite.questions for suite in select_suites(CHECKOUT.suites, plan.suites)}
    suites = frozenset[str | int](questions)
    hardware = GpusHere(plan.gpus, MEMORY_GIB, dict.fromkeys(range(plan.gpus + 1), False))
    asked = candidates(WORDS, questions, sources, matrix.possible, hardware, accuracy=plan.profile == "full")
    larger = matrix if plan.profile == "full" else without_time(plan._replace(profile="full"))[1]
    frameworks = frozenset(environment.framework for environment in environments)
    of_full = candidates(WORDS, {}, sources, larger.possible, hardware, accuracy=True)
    return choice, matrix, Situation(hardware, frameworks, suites, asked, of_full, {})


def from_a_clone(card: Card) -> tuple[str, ...]:
    """The row of a card: the environments that fit it, the needs of its first ten minutes, and the claims asked."""
    with tempfile.TemporaryDirectory() as empty:
        settings = Settings(cache=Path(empty), engine="venv", jobs=1)
        session = Session(settings, Choice(), Screen(), CHECKOUT, clock=MadeUpClock(TIMES["10 min"]))
        seeing(session, nvml=Cards(card, 1), history=Guesses(Path(empty), "machine"), data=None)
        fitting = fitting_defaults(CHECKOUT, session.choice, session.nvml)
        outlined = outline_run(session, fitting)
        builds = plan_builds(session.builder, environments_in(outlined, fitting), session.history)
    fetch = sum(build.download_bytes for build in builds)
    claims: dict[str, dict[str, None]] = {}
    for each in outlined.asked:
        if each.claim:
            claims.setdefault(each.source, {})[each.claim] = None
    first_s = first_answer_s(session, outlined, builds)
    waits = [f"waits: {used}" for gpu in session.nvml.gpus if (used := used_by_others(session.nvml, gpu))]
    sizes = megabytes(fetch), megabytes(fetch + disk_needed(builds, 1))
    return (
        card.title,
        card.driver,
        ", ".join(each.name for each in fitting),
        ", ".join(build.environment.name for build in builds),
        *sizes,
        "; ".join([minutes(first_s), *waits]),
        "; ".join(f"{source} {', '.join(sorted(of_source))}" for source, of_source in claims.items()) or "none",
    )


def suites_of(source: Source) -> tuple[str, ...]:
    """The suites of a source that run only where they are named; empty for the default suites."""
    named = sorted({str(suite) for claim in source.claims for suite in claim.named(SUITE)})
    return tuple(suite.name for suite in select_suites(CHECKOUT.suites, tuple(named)) if not suite.default)


def page() -> str:
    """The text of docs/claims.md."""
    header = ["card", "driver", "environments that fit", "built in the first ten minutes"]
    header += ["to fetch", "disk", "first answer after", "claims asked"]
    rows = [header, ["---"] * len(header), *map(from_a_clone, CARDS)]
    cards = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    lines = [*INTRODUCTION.strip().replace("CARDS", cards).splitlines(), ""]
    times = [f"{profile}, {time}" for profile in PROFILES for time in TIMES]
    header = ["claim", "GPUs", *times]
    lines += [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for source in shipped_sources():
        suites = suites_of(source)
        for claim in source.claims:
            gpus = gpus_of(claim)
            plans = [Plan(gpus, profile, time, suites) for profile in PROFILES for time in TIMES]
            words = [_needs(source, claim, plan) for plan in plans]
            lines.append(f"| {' | '.join([f'{source.name} {claim.id}', str(gpus), *words])} |")
    lines.append("")
    return "\n".join(lines)


def _needs(source: Source, claim: Claim, plan: Plan) -> str:
    """What a claim takes beside a plan, in words; without a limit of time it lacks trials, and not time."""
    needs = takes(plan)[source.name, claim.id]
    return "`--repetitions 3`" if needs == "time" and TIMES[plan.time] == math.inf else WORDS_OF[needs]


INTRODUCTION = """
# Which claims a plan can decide, in which time

`./invoke list --sources` prints what each claim says, which values decide it, and which numbers its source printed.
`run-suite --plan` prints both tables for your machine, where cards, drivers and built environments may differ.

**The first ten minutes on a card**, with nothing built, by the guesses of suites and specs: downloads are apart from
the ten minutes, and the download of `.venv` (130 MB) and of base images comes on top. With environments built, other
claims are asked. A card that MIG divides is not measured, and the plan is that of a CPU; a desktop's memory is no
reason to wait.

CARDS

**With environments of 2019 and of today built, and with CIFAR-10**: can `run-suite --profile P --within T` (for an
adopted table, which runs only where it is named, with its `--suite` and the environments that its claims name) decide a
claim, on a machine with as many RTX 2080 Ti of 11 GiB as the claim takes (0: any machine), without transfers between
them? A claim needs three trials of each of its cases, environments and protocols.

- *yes*: the plan has them. A run decides more than its plan where trials are shorter than the guesses.
- *more time*: the claim can be asked, and other questions come first.
- *needs `full`*: the profile `quick` has too few of its cases. *needs data*: only `full` trains on CIFAR-10.
- *`--repetitions 3`*: without a limit of time, `quick` has a single trial a case on a CPU.
- *no*: no suite tests it.

`python -m benchmarks.claims_table` writes this page; a test holds it to the suites and sources.
"""


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
