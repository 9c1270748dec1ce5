"""The options of a chain, and the session that they describe."""

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tsuishi.base import budget
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError, unknown
from tsuishi.base.home import expanded
from tsuishi.base.language import languages
from tsuishi.base.option_table import Option, names_in, options_of
from tsuishi.base.screen import Screen
from tsuishi.base.settings import CLUSTER, Settings, read_settings
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.suite import profile_name
from tsuishi.specs.vocabulary import vocabulary

# The word of --fail-on for a case that is slower than its baseline.
SLOWER = "slower"


@dataclass(frozen=True)
class Options:
    """The options given to any task of a chain, by their names in Python (host_python)."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def has(self, name: str, default: bool = False) -> bool:
        """Whether an option is given, and neither empty nor "no". default: of an option that is not given."""
        return bool(self.given.get(name, default))

    def text(self, name: str) -> str:
        """The given value of an option; empty without it."""
        return str(self.given.get(name) or "")

    def names(self, name: str) -> tuple[str, ...]:
        """The names in a list with commas, each once."""
        return names_in(self.text(name))

    def paths(self, name: str, folder: Path = Path()) -> tuple[str, ...]:
        """The paths in a list with commas, each once. A path with commas in it is one path where it exists.

        folder: where relative paths begin.
        """
        parts, paths = self.text(name).split(","), []
        while parts:
            here = [",".join(parts[:end]).strip() for end in range(len(parts), 0, -1)]
            path = next((path for path in here[:-1] if os.path.exists(folder / expanded(path))), here[-1])  # noqa: PTH110
            paths.append(path)
            del parts[: len(here) - here.index(path)]
        return tuple(dict.fromkeys(filter(None, paths)))


def open_session(
    tasks: Collection[str],
    options: Options,
    configured: Mapping[str, Any],
    variables: Mapping[str, str],
    checkout: Checkout,
) -> Session:
    """The session of a chain of these tasks, with the specs of a checkout.

    configured: the keys of invoke.yaml. variables: environment variables. Raises UserError for a wrong option, variable
    or key.
    """
    rows = options_of(tasks)
    settings = read_settings(
        configured, variables, {row.setting: options.given.get(row.parameter) for row in rows if row.setting}, checkout
    )
    _check_executor(options, settings, rows)
    choice = Choice(
        **{
            row.choice: row.value(options.given[row.parameter])
            for row in rows
            if row.choice and options.has(row.parameter)
        }
    )
    profile_name(choice.profile)
    clock = Clock(_within_s(options, tasks, settings))
    _check_verdicts(options.names("fail_on"), options.has("baseline"))
    if settings.lang not in languages():
        raise unknown("language", settings.lang, languages())
    with_report = any(row.name == "out" for row in rows)
    return Session(
        settings,
        choice,
        Screen(),
        checkout,
        clock=clock,
        with_report=with_report,
        decided=partial(_decided, checkout),
    )


def _decided(checkout: Checkout, run: Path) -> dict[str, str]:
    from tsuishi.report.output.folder import decided_so_far

    return decided_so_far(RunDirectory(run), checkout.published, vocabulary(checkout.suites))


def _check_executor(options: Options, settings: Settings, rows: Iterable[Option]) -> None:
    """Raise UserError for an option that the executor has no use for."""
    given = [row.flag for row in rows if row.of_cluster and options.has(row.parameter)]
    if given and settings.runs_here and not options.has("resume"):
        raise UserError(f"{given[0]} is an option of {CLUSTER.capitalize()}: give --executor {CLUSTER} too")


def slower_than(names: Sequence[str]) -> float | None:
    """The threshold of `slower` among the names of --fail-on: `slower:1.05`, 1 for `slower` alone; None without it.

    Raises UserError for a threshold that is no number from 1 on.
    """
    for name in names:
        word, colon, text = name.partition(":")
        if word == SLOWER:
            try:
                threshold = float(text) if colon else 1.0
            except ValueError:
                threshold = math.nan
            if not 1 <= threshold < math.inf:
                raise UserError(f"--fail-on {SLOWER}:<times> takes a number from 1, as {SLOWER}:1.05; given: {name}")
            return threshold
    return None


def _check_verdicts(names: Sequence[str], has_baseline: bool) -> None:
    """Raise UserError for a verdict that no claim can have, and for `slower` without a baseline."""
    if slower_than(names) is not None and not has_baseline:
        raise UserError(f"--fail-on {SLOWER} needs --baseline: the runs or archives that these are held against")
    verdicts = [name for name in names if name.partition(":")[0] != SLOWER]
    if verdicts:
        from tsuishi.specs.claims import VERDICTS

        for name in verdicts:
            if name not in VERDICTS:
                raise unknown("verdict", name, (*VERDICTS, SLOWER))


def _within_s(options: Options, tasks: Collection[str], settings: Settings) -> float | None:
    """The most seconds of the main job; None without a limit.

    Without --within there is no limit for a given profile, number of repetitions or resumption, as they say how much
    runs, and none on a cluster.
    """
    if options.has("within"):
        return budget.seconds(settings.within)
    chosen = not settings.runs_here or any(options.has(name) for name in ("profile", "repetitions", "resume"))
    return None if chosen or "run-suite" not in tasks else budget.seconds(settings.within)
