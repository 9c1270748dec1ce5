"""What each task does with the options of its chain; tasks.py only names them."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tsuishi.artifacts import datasets
from tsuishi.base import budget, units
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import EXIT_TRIAL_FAILED, EXIT_VERDICT, UserError, unknown
from tsuishi.base.language import languages
from tsuishi.base.screen import Say, Screen
from tsuishi.base.settings import Settings, read_settings
from tsuishi.commands.chain import ChainExecutor
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.results.directory import RunDirectory
from tsuishi.run.measuring import Measuring, failed
from tsuishi.run.runner import RunStopped
from tsuishi.specs.environment import known_environments, named_environments
from tsuishi.specs.suite import profile_name

_SETTINGS_FLAGS = (
    *("engine", "offline", "jobs", "mirrors", "host_python"),
    *("telemetry_interval", "data", "lang", "gpus", "busy_gpu"),
)
# What a run is planned by, and --resume cannot change any more.
_PLANNING_FLAGS = ("env", "suite", "profile", "repetitions", "accelerator", "force", "seed", "name", "plan")
_LATEST = "latest"
# A run of more trials is not one of minutes, and its report takes longer.
_TRIALS_OF_MINUTES = 300


def session(config: Any) -> Session:
    """The session of the chain, with the merged settings and its options; relative paths are the checkout's."""
    if ChainExecutor.session is None:
        ChainExecutor.session = _session(config)
    return ChainExecutor.session  # type: ignore[no-any-return]


def _session(config: Any) -> Session:
    os.chdir(Rooms().root)
    options = ChainExecutor.options
    configured: Mapping[str, Any] = dict(config.get("tsuishi") or {})
    settings = read_settings(configured, ChainExecutor.variables, {name: options.get(name) for name in _SETTINGS_FLAGS})
    choice = Choice(
        environments=_names(options.get("env", "")),
        suites=_names(options.get("suite", "")),
        profile=profile_name(options.get("profile", "quick")),
        repetitions=_whole_number(options, "repetitions", least=1),
        timeout_s=_whole_number(options, "timeout", least=1),
        seed=_whole_number(options, "seed", least=0) or 0,
        accelerator=_one_of(options, "accelerator", ("auto", "cpu", "cuda")),
        within_s=_within_s(options, settings),
        force=bool(options.get("force")),
    )
    if options.get("fail_on"):
        _verdicts(options)
    if settings.lang not in languages():
        raise unknown("language", settings.lang, languages())
    work = Session(settings, choice, Screen())
    work.reports = "report" in ChainExecutor.tasks
    return work


def _within_s(options: Mapping[str, Any], settings: Settings) -> float | None:
    """How long the main job may take, in seconds; None for as long as it takes.

    A profile or a number of repetitions says how much to run, and so does a run that is gone on with.
    """
    if given := options.get("within"):
        return budget.seconds(str(given))
    chosen = any(options.get(name) for name in ("profile", "repetitions", "resume"))
    return None if chosen or "run-suite" not in ChainExecutor.tasks else budget.seconds(settings.within)


def build(work: Session, locked_only: bool) -> None:
    """Print the plan of the whole chain, then build, unless only that was asked for; lock before, if need be."""
    if not locked_only:
        lock(work)
    environments = work.plan(with_trials="run-suite" in ChainExecutor.tasks and not ChainExecutor.options.get("resume"))
    if not _plan_only():
        work.build(environments)


def lock(work: Session) -> None:
    """Resolve the locks of the named environments anew, say what changed, and write it, unless asked not to."""
    images, names = work.rooms.images, work.choice.environments
    if not names:
        known = known_environments(images)
        raise UserError(f"say which locks to make anew, as in --env {next(iter(known))}; known: {', '.join(known)}")
    for name, path in named_environments(images, names).items():
        locked = work.builder.locker(_indented(work, name)).resolve(path)
        for line in locked.difference:
            work.screen.say(f"{name}: {line}")
        files = ", ".join(path.name for path in locked.files)
        if not locked.files:
            work.screen.say(f"{name}: nothing changed")
        elif _plan_only():
            work.screen.say(f"{name}: would be written: {files}")
        else:
            locked.write()
            work.screen.say(f"{name}: written: {files}")


def _indented(work: Session, name: str) -> Say:
    return lambda line: work.screen.say(f"  {name}: {line}")


def fetch(work: Session) -> None:
    """Fetch what environments are built from, without building them."""
    work.fetch()


def images(work: Session, verify: bool) -> None:
    """What was built, what it is made of and what it reported."""
    from tsuishi.commands import inventory

    inventory.show(work, verify)


def export(work: Session) -> None:
    """Write the environments named as archives."""
    from tsuishi.commands import exchange

    exchange.export(work, Path(ChainExecutor.options.get("to", "exports")).expanduser())


def import_(work: Session) -> None:
    """Bring archives back as environments."""
    from tsuishi.commands import exchange

    exchange.import_archives(work, [Path(name) for name in _names(ChainExecutor.options.get("archive", ""))])


def fetch_data(work: Session) -> None:
    """Fetch the data set that training reads, and say where it is."""
    path = work.fetch_data(ChainExecutor.options.get("url", ""))
    work.screen.say(f"data: {path}")


def run_suite(work: Session) -> None:
    """A new run, or an earlier one resumed; leaves its id to the report."""
    resume = ChainExecutor.options.get("resume", "")
    changed = [name for name in _PLANNING_FLAGS if ChainExecutor.options.get(name)]
    if resume and changed:
        raise UserError(f"--resume goes on with a run as it was planned: leave out --{changed[0]}, or start a new run")
    if "build" not in ChainExecutor.tasks and not resume:
        work.plan(with_trials=True)
    if _plan_only():
        return
    try:
        if resume:
            run = Measuring(work).resume("" if resume == _LATEST else resume)
        else:
            run = Measuring(work).run_suite(ChainExecutor.options.get("name", ""))
    except RunStopped as stopped:
        work.screen.say(f"stopped: {stopped}")
        ChainExecutor.run_id = stopped.run.id
        _end_with(EXIT_TRIAL_FAILED)
        return
    ChainExecutor.run_id = run.id
    if failed(run):
        _end_with(EXIT_TRIAL_FAILED)


def report(work: Session) -> None:
    """The report of the runs named, of the run just made, or of the latest one."""
    if _plan_only():
        return
    from tsuishi.base.language import ENGLISH, speaking
    from tsuishi.report.output.vega import Drawings
    from tsuishi.results.reader import ahead

    begun = time.monotonic()
    names = _names(ChainExecutor.options.get("run", "")) or (ChainExecutor.run_id,)
    runs = [directory.open_run(work.settings.results, name) for name in names]
    language = work.settings.lang
    out = output_folder(work.settings, runs, ChainExecutor.options.get("out", ""))
    if language != ENGLISH:
        out = out.with_name(f"{out.name}-{language}")
    # What reads and draws starts before pandas is imported, which takes as long.
    with ahead(runs) as read, speaking(language), Drawings(work.settings.cache / "report") as drawings:
        from tsuishi.report.output.folder import make_report

        made = make_report(runs, work.rooms.published, work.rooms.templates, out, drawings, read)
    _learn_report(work, runs, time.monotonic() - begun)
    if work.clock.within_s is not None and "run-suite" in ChainExecutor.tasks:
        took, within = units.duration(work.clock.spent_s), units.duration(work.clock.within_s)
        said = f"; the plan said {units.duration(work.expected_s)}" if work.expected_s else ""
        work.screen.say(f"took {took} of {within}{said}")
    for line in (*made.closing, f"report: {made.index}", *_more(made.more)):
        work.screen.say(line)
    named = _verdicts(ChainExecutor.options)
    matched = [
        f"{one.verdict}: {one.source} ({one.claim}) in {one.environments or 'no environment'}"
        for one in made.verdicts
        if one.verdict in named
    ]
    for line in dict.fromkeys(matched):
        work.screen.say(line)
    if matched:
        _end_with(EXIT_VERDICT)


def _learn_report(work: Session, runs: Sequence[RunDirectory], took_s: float) -> None:
    """Remember what a report takes, of a run such as a budget of minutes makes."""
    if len(runs) == 1 and len(runs[0].finished_folders()) <= _TRIALS_OF_MINUTES:
        work.history.learn("report", took_s)
        work.history.keep()


def _more(lines: Sequence[str]) -> Iterator[str]:
    """What more time would bring, and how to give it."""
    if lines:
        yield f"{'; '.join(lines)}: `invoke run-suite --resume latest --within 30m report`"


def output_folder(settings: Settings, runs: Sequence[RunDirectory], name: str) -> Path:
    """Where a report goes: under the name given, or that of the run."""
    return settings.reports / (name or "+".join(run.id for run in runs))


def _verdicts(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The verdicts that --fail-on names. Raises UserError for one that there is none of."""
    from tsuishi.specs.claims import VERDICTS

    names = _names(options.get("fail_on", ""))
    for name in names:
        if name not in VERDICTS:
            raise unknown("verdict", name, VERDICTS)
    return names


def _end_with(code: int) -> None:
    """The exit code of the chain: of several the largest."""
    ChainExecutor.exit_code = max(ChainExecutor.exit_code, code)


def list_everything(work: Session, sources: bool) -> None:
    """What there is to run and what was run, or the published sources."""
    from tsuishi.commands import listing

    if sources:
        listing.show_sources(work)
    else:
        listing.show(work)


def doctor(work: Session) -> None:
    """What this machine has, and what is missing."""
    from tsuishi.commands import doctor

    doctor.examine(work)


def clean(work: Session, images: bool, cache: bool, results: bool) -> None:
    """Remove what was asked for, saying each thing; never anything tsuishi did not make."""
    settings = work.settings
    folders = [path.parent for path in settings.reports.glob("*/report.md") if (path.parent / "index.html").exists()]
    if images or cache:
        from tsuishi.commands import inventory

        inventory.remove(work)
    if cache:
        kept = ("artifacts", "bases", "report")
        folders += [*(settings.cache / name for name in kept), datasets.folder(settings.cache)]
    if results:
        folders += directory.known_runs(settings.results).values()
    for folder in folders:
        if folder.exists():
            folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
            work.screen.say(f"removed {folder}")


def _plan_only() -> bool:
    return bool(ChainExecutor.options.get("plan"))


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _whole_number(options: Mapping[str, Any], name: str, least: int) -> int | None:
    given = options.get(name)
    if given in (None, ""):
        return None
    try:
        number = int(str(given))
    except ValueError:
        number = least - 1
    if number < least:
        raise UserError(f"--{name} takes a whole number from {least}; given: {given}")
    return number


def _one_of(options: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    given = str(options.get(name, known[0]))
    if given not in known:
        raise UserError(f"--{name} takes {', '.join(known)}; given: {given}")
    return given
