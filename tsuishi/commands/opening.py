"""The session of a chain, opened from its options, its variables and invoke.yaml."""

from collections.abc import Collection

from tsuishi.base import budget
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import unknown
from tsuishi.base.language import languages
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings, read_settings
from tsuishi.commands.chain import Chain
from tsuishi.commands.options import Options
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.specs.claims import VERDICTS
from tsuishi.specs.suite import profile_name

# Options that are settings.
_SETTINGS = (
    *("engine", "offline", "jobs", "mirrors", "host_python"),
    *("telemetry_interval", "data", "lang", "gpus", "busy_gpu"),
)


def open_session(chain: Chain) -> Session:
    """The session of a chain. Raises UserError for an option, variable or key of invoke.yaml that is wrong."""
    options, rooms = chain.options, Rooms()
    flags = {name: options.given.get(name) for name in _SETTINGS}
    settings = read_settings(chain.configured, chain.variables, flags, rooms)
    choice = Choice(
        environments=options.names("env"),
        suites=options.names("suite"),
        profile=profile_name(options.text("profile", "quick")),
        repetitions=options.whole_number("repetitions", least=1),
        timeout_s=options.whole_number("timeout", least=1),
        seed=options.whole_number("seed", least=0) or 0,
        accelerator=options.word("accelerator", ("auto", "cpu", "cuda")),
        force=options.has("force"),
    )
    clock = Clock(_within_s(options, chain.tasks, settings))
    for verdict in options.names("fail_on"):
        if verdict not in VERDICTS:
            raise unknown("verdict", verdict, VERDICTS)
    if settings.lang not in languages():
        raise unknown("language", settings.lang, languages())
    return Session(settings, choice, Screen(), rooms, clock=clock, with_report="report" in chain.tasks)


def _within_s(options: Options, tasks: Collection[str], settings: Settings) -> float | None:
    """How long the main job may take, in seconds; None for as long as it takes.

    A profile or a number of repetitions says how much to run, and so does a run that is gone on with.
    """
    if options.has("within"):
        return budget.seconds(options.text("within"))
    chosen = any(options.has(name) for name in ("profile", "repetitions", "resume"))
    return None if chosen or "run-suite" not in tasks else budget.seconds(settings.within)
