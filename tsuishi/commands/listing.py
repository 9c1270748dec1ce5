"""`invoke list`: environments, suites, runs and sources."""

from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi import extras
from tsuishi.base.errors import UserError, leave_out
from tsuishi.base.language import in_words
from tsuishi.base.units import counted
from tsuishi.environments.inventory import EnvironmentRow, environment_row
from tsuishi.plan.choice import choose
from tsuishi.plan.decidable import gpus_of
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.results.assurance import LISTED, assurance, shortened
from tsuishi.specs.case import PROTOCOL
from tsuishi.specs.environment import read_environments
from tsuishi.specs.suite import PROFILES, Suite, every_suite

if TYPE_CHECKING:
    from tsuishi.specs.claims import Claim
    from tsuishi.specs.source import Source


def show(session: Session, whole: bool) -> None:
    """Print tables of environments, suites and runs; environments that cannot be made here only with `whole`."""
    rows = _environments(session)
    if whole:
        headers = ("name", "what", "default", "engine", "state", "computes on")
        session.screen.table("Environments", headers, [row[:-1] for row in rows])
    else:
        here = [row for row in rows if row.is_here]
        shown = [(row.name, row.state, row.computes_on.partition(":")[0], row.default, row.title) for row in here]
        session.screen.table("Environments", ("name", "state", "on", "default", "what"), shown)
        if others := len(rows) - len(here):
            session.screen.say(f"{counted(others, 'other')} cannot be made or used here: `invoke list --all` says why")
    if any(row.engine == session.builder.engines.venv.name and row.state == "built" for row in rows):
        session.screen.say("built: the files were not compared; `invoke images` compares their sizes and times")
    suites = every_suite(session.checkout.suites)
    session.screen.table(
        "Suites, and their cases by profile", ("name", "/".join(PROFILES), "what"), list(map(_suite_row, suites))
    )
    if named := [suite.name for suite in suites if not suite.default]:
        session.screen.say(f"only where they are named: {', '.join(named)} (--suite)")
    runs = [run_row(path) for path in directory.known_runs(session.settings.results).values()]
    session.screen.table("Runs", ("id", "profile", "environments", "trials", "tried", ""), runs)
    if not runs:
        session.screen.say("none yet: invoke build run-suite report")


def show_conclusion(session: Session) -> None:
    """Print how many environments can be made and used here, and those of the main job, or why it would stop."""
    try:
        rows = _environments(session)
        here = sum(row.is_here for row in rows)
        session.screen.say(f"{here} of {len(rows)} environments can be made and used here: `invoke list`")
        chosen = choose(session.builder, session.choice, session.nvml).environments
    except UserError as error:  # a configured engine that does not answer, say
        session.screen.say(f"the main job would stop: {error}")
        return
    names = ", ".join(environment.name for environment in chosen)
    session.screen.say(f"the main job takes of {names}: `invoke build run-suite report`")


def _environments(session: Session) -> list[EnvironmentRow]:
    environments = read_environments(session.checkout.images)
    return [environment_row(session.builder, session.nvml, environment) for environment in environments]


def _suite_row(suite: Suite) -> tuple[object, ...]:
    counts = "/".join(str(len(list(suite.cases(profile, "cpu")))) for profile in PROFILES)
    return suite.name, counts, f"{suite.title} ({suite.source})" if suite.source else suite.title


def show_sources(session: Session, whole: bool) -> None:
    """Print published sources, and the claims and the numbers in doubt of each, with `whole` all of them."""
    from tsuishi.commands.doubts import show_doubts
    from tsuishi.report.sections.claim_words import judged_on
    from tsuishi.specs.source import check_names, read_sources

    sources = read_sources(session.checkout.published, session.words, needed=())
    try:
        check_names(session.checkout.published, sources, session.words)
    except UserError as error:
        leave_out(str(error))
    headers = ("name", "date", "hardware", "numbers", "claims", "what")
    session.screen.table("Sources", headers, [_source_row(source) for source in sources])
    for source in sources:
        by = ", ".join(filter(None, (source.author, source.address)))
        claims = [(claim.id, _claim_text(claim), judged_on(claim, session.words)) for claim in source.claims]
        if claims:
            session.screen.table(
                f"Claims of {source.name}{by and f' ({by})'}", ("id", "claim", "judged on (region)"), claims
            )
        show_doubts(session, source.name, source.numbers, source.hardware, whole)


def _source_row(source: "Source") -> tuple[object, ...]:
    hardware = "; ".join(machine.title for machine in source.hardware)
    stated = sum(claim.stated for claim in source.claims)
    derived = len(source.claims) - stated
    claims = f"{stated} stated, {derived} derived" if derived else stated
    return source.name, source.date or "unknown", hardware, len(source.flat()), claims, source.title


def _claim_text(claim: "Claim") -> str:
    """What a claim says, and what it takes: protocols, if not both, and NVIDIA GPUs."""
    gpus = gpus_of(claim)
    needs = [f"{in_words(sorted(map(str, protocols)))} only"] if (protocols := claim.named(PROTOCOL)) else []
    needs += [] if claim.stated else ["not stated, but follows"]
    needs += [counted(gpus, "GPU")] if gpus else []
    return f"{claim.text['en']} [{', '.join(needs)}]" if needs else claim.text["en"]


def run_row(path: Path) -> tuple[str, ...]:
    """A row of the table of runs. The last cell says why a run cannot be read, or which files were altered.

    Trials are parsed only where the run differs from its manifest, or has no manifest.
    """
    run = directory.RunDirectory(path)
    try:
        recorded = run.run()
        folders = run.finished_folders()
        found = assurance(run, most=LISTED)
        if found.level in ("verified", "tables verified"):
            done = len({folder.name.rpartition(".a")[0] for folder in folders})
        else:
            done = len({trial.id.planned for _, trial in run.finished()})
    except UserError as error:
        return path.name, "", "", "", "", str(error)
    names = ", ".join(sorted({entry.environment for entry in recorded.plan}))
    remarks = [] if run.is_ours(recorded) else ["received"]
    remarks += filter(None, (elsewhere(run) for elsewhere in extras.given("executors", "elsewhere")))
    if found.level == "being measured":
        remarks.append(f"being measured by {run.measured_by()}")
    elif found.altered:
        remarks.append(f"altered, or left by a runner that was killed: {shortened(found.altered)}")
    return path.name, recorded.profile, names, str(len(recorded.plan)), str(done), "; ".join(remarks)
