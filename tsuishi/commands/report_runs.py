"""`invoke report`: the report of runs, with published numbers and verdicts on claims."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi import extras
from tsuishi.base import files, toml, units
from tsuishi.base.errors import EXIT_NOTHING_CHECKED, EXIT_VERDICT, UserError
from tsuishi.base.home import expanded
from tsuishi.base.language import ENGLISH, speaking
from tsuishi.commands.chain import Chain
from tsuishi.commands.options import SLOWER, slower_than
from tsuishi.machine.compatibility import read_table
from tsuishi.plan.session import Session
from tsuishi.report.output.vega import Drawings
from tsuishi.results import directory
from tsuishi.results.days import days_of_sessions
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import MachineRecord
from tsuishi.results.run_record import RUN_SUITE
from tsuishi.results.same_machine import differing, makes_another
from tsuishi.specs.questions import LOOKS

if TYPE_CHECKING:
    from tsuishi.report.parts.blocks import Page

# A run with more trials took longer than minutes, and so does its report.
_TRIALS_OF_MINUTES = 300
# Characters of the ids of runs in the name of a report. File systems take 255, also of the names beside it meanwhile.
_LONGEST_NAME = 200


def report(chain: Chain) -> None:
    """Make the report of the named runs and archives, else of the chain's run, else of the latest run.

    Raises UserError where an archive is not verified.
    """
    if chain.only_plans:
        return
    with files.private_folder() as folder:
        further = [run for runs in extras.given("runs", "further_runs") for run in runs(chain, folder)]
        runs = [*runs_of_chain(chain, or_latest=not further), *further]
        report_of(chain, runs, _baseline(chain, folder / "baseline"))


def runs_of_chain(chain: Chain, *, or_latest: bool = True) -> list[RunDirectory]:
    """The runs that --run names and the run that the chain has made, each once; or_latest: without any, the latest."""
    names = [*chain.options.paths("run"), *filter(None, [chain.run_id])]
    opened = [directory.open_run(chain.session.settings.results, name) for name in names or [""] * or_latest]
    return [*{run.path.resolve(): run for run in opened}.values()]


def why_undecided(chain: Chain) -> str:
    """Why a run that is yet to be measured cannot be called slower, by the number of days; empty where it can.

    The days of archives are known once these are verified, so the report says it.
    """
    options, session = chain.options, chain.session
    gates, archives = options.names("fail_on"), options.has("archive")
    if "run-suite" not in chain.tasks or chain.only_plans or archives or slower_than(gates) is None or len(gates) > 1:
        return ""
    named = [name for name in options.paths("run") if name != directory.LATEST]  # the latest is the run to come
    before = [directory.open_run(session.settings.results, name) for name in (*named, *options.paths("resume"))]
    now, then, baseline = _days(before, with_today=True), None, options.paths("baseline")
    if not any(expanded(name).is_file() for name in baseline):
        then = _days(directory.open_run(session.settings.results, name) for name in baseline)
    if now >= LOOKS[0] and (then is None or then >= LOOKS[0]):
        return ""
    theirs = "" if then is None else f", their baseline has {then}"
    return (
        f"--fail-on {SLOWER} takes {LOOKS[0]} days on each side; with today the runs have {now}{theirs}: nothing is "
        f"measured. Measure on {LOOKS[0]} days by `invoke run-suite`, then `invoke report --run A,B,C --baseline D,E,F "
        f"--fail-on {gates[0]}`, or leave --fail-on out"
    )


def _days(runs: Iterable[RunDirectory], *, with_today: bool = False) -> int:
    """On how many days runs were measured."""
    begins = {
        f"{run.path} {number}": began
        for run in runs
        for record in [run.run()]
        for number, began in enumerate(
            [session.began_at or "" for session in record.sessions] or [record.created_at or ""]
        )
    }
    today = {"": datetime.now(UTC).isoformat()} if with_today else {}
    return len({*days_of_sessions(begins | today).values()})


def _baseline(chain: Chain, into: Path) -> list[RunDirectory]:
    """The runs that `--baseline` names, those of archives under the new folder `into`."""
    into.mkdir()
    names = enumerate(chain.options.paths("baseline"))
    return [run for number, name in names for run in named_runs(chain.session, name, into / str(number))]


def named_runs(session: Session, name: str, into: Path) -> list[RunDirectory]:
    """The run of an id or a folder; of a file the runs that an extra reads, into a new folder.

    Raises UserError where there is none.
    """
    path = expanded(name)
    readers = extras.given("runs", "runs_of") if path.is_file() else ()
    found = [run for runs_of in readers for run in runs_of(session, path, into)]
    return found if readers else [directory.open_run(session.settings.results, name)]


def report_of(chain: Chain, runs: Sequence[RunDirectory], baseline: Sequence[RunDirectory] = ()) -> None:
    """Make the report of these runs, held against the runs of a baseline if there are any."""
    begun, session, options = time.monotonic(), chain.session, chain.options
    out = report_folder(session, runs, options.text("out"))
    drawings_in_cache = session.settings.cache / "report"
    # The charts of a report that is made again are kept.
    is_new, every = not out.exists(), options.has("all_charts")
    # The processes that draw start before the import of pandas, which takes as long as their start.
    with speaking(session.settings.lang), Drawings(drawings_in_cache, is_new, every) as drawings:
        from tsuishi.report.output.folder import Against, make_report

        checkout = session.checkout
        against = Against(baseline, slower_than(options.names("fail_on")) or 1.0) if baseline else None
        sheets = read_table(checkout.images).data_sheets
        given = (session.words, checkout.templates, out, drawings, against, *_history(chain, runs), sheets)
        file, page = make_report(runs, checkout.published, *given)
    _learn(session, runs, time.monotonic() - begun)
    undrawn = [f"some charts are not drawn: {drawings.why_undrawn}"] if drawings.why_undrawn else []
    closing = (*_time_taken(chain), *page.closing, *undrawn)
    further = _more(session, runs, page.more) if session.task == RUN_SUITE else ()
    for line in (*closing, f"report: {file}", *further):
        session.screen.say(line)
    _fail_on(chain, options.names("fail_on"), page)


def _fail_on(chain: Chain, wanted: Sequence[str], page: "Page") -> None:
    """Print the matches of the names of --fail-on, and names with nothing to match; the chain gets the exit code."""
    from tsuishi.specs.claims import VERDICTS

    baseline = page.baseline if slower_than(wanted) is not None else None
    matched = baseline.failing if baseline else []
    matched += [
        f"{verdict.verdict}: {verdict.source} ({verdict.claim}) in {verdict.environments or 'no environment'}"
        for verdict in page.verdicts
        if verdict.verdict in wanted
    ]
    verdicts = {verdict.verdict for verdict in page.verdicts}
    unchecked = [f"--fail-on {SLOWER}: {baseline.unchecked}"] if baseline and baseline.unchecked else []
    unchecked += [
        f"--fail-on {name}: no claim was tested"
        for name in wanted
        if name in VERDICTS and not (verdicts - {"not tested"} or name in verdicts)
    ]
    for line in dict.fromkeys((*matched, *unchecked)):
        chain.session.screen.say(line)
    if matched or unchecked:
        chain.end_with(EXIT_VERDICT if matched else EXIT_NOTHING_CHECKED)


def _history(chain: Chain, runs: Sequence[RunDirectory]) -> tuple[list[RunDirectory], Counter[tuple[str, ...]]]:
    """These runs, and all runs of the user on the same machines; none without `--history`.

    And the numbers of runs on other machines, by the facts that differ.
    """
    past: list[RunDirectory] = []
    left_out: Counter[tuple[str, ...]] = Counter()
    if chain.options.has("history"):
        past = [*runs]
        known = [RunDirectory(path) for path in directory.known_runs(chain.session.settings.results).values()]
        given = {run.path.resolve() for run in runs}
        ours = [machine for run in runs for machine in _machines(run)]
        for run in (run for run in known if run.path.resolve() not in given):
            others = [tuple(filter(makes_another, differing(mine, its))) for its in _machines(run) for mine in ours]
            if () in others:
                past.append(run)
            elif others:
                left_out[min(others, key=len)] += 1
    return past, left_out


def _machines(run: RunDirectory) -> list[MachineRecord]:
    """The records of the machines of a run; those that cannot be read are left out."""
    found = []
    for path in run.record_files():
        with suppress(UserError):
            if path.name.startswith("machine-") and isinstance(record := run.record(path.stem), MachineRecord):
                found.append(record)
    return found


def report_folder(session: Session, runs: Sequence[RunDirectory], name: str) -> Path:
    """The folder of a report, by its given name or the ids of its runs, and by its language if that is not English.

    Many ids are too long for a file system: then their beginning stands, with a digest of all. Raises UserError for a
    name that is a path.
    """
    language = session.settings.lang
    if name in (".", "..") or "/" in name:
        raise UserError(f"--out takes the name of a folder under {session.settings.reports}/, and no path: {name}")
    if why := files.unfit(name):
        raise UserError(f"--out: {why}")
    if not name and len(name := "+".join(run.id for run in runs)) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{toml.digest(name)}"
    says_it = language == ENGLISH or name == language or name.endswith(f"-{language}")
    return session.settings.reports / (name if says_it else f"{name}-{language}")


def _learn(session: Session, runs: Sequence[RunDirectory], took_s: float) -> None:
    """Remember the duration of the report, if it is of a run of minutes."""
    if len(runs) == 1 and len(runs[0].finished_folders()) <= _TRIALS_OF_MINUTES:
        with session.learning() as history:
            history.learn("report", took_s)


def _time_taken(chain: Chain) -> Iterator[str]:
    """A line on the time that the main job took, if its time was limited."""
    clock = chain.session.clock
    if clock.within_s is not None and "run-suite" in chain.tasks:
        planned = f"; the plan said {units.duration(chain.plan.expected_s)}" if chain.plan else ""
        yield f"took {units.duration(clock.spent_s)} of {units.duration(clock.within_s)}{planned}"


def _more(session: Session, runs: Sequence[RunDirectory], lines: Sequence[str]) -> Iterator[str]:
    """A line on what more time would bring, with the command for it, where the report is of one run that can go on."""
    known = list(directory.known_runs(session.settings.results).values())
    if lines and len(runs) == 1 and runs[0].path in known and runs[0].is_ours(runs[0].run()):
        name = directory.LATEST if runs[0].path == known[-1] else runs[0].id
        yield f"{'; '.join(lines)}: `invoke run-suite --resume {name} --within 30m report`"
