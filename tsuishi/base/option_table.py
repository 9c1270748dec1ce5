"""The options of all tasks: each is a row of a table, options.toml; extras have tables of their own.

The parameters of tasks, help texts, the settings that flags change, the arguments that a run records, and refusals
derive from the rows. A setting has its type, bounds and default in settings.py alone: the row of its option names it,
and the help takes them from there. This module imports nothing heavy, as `invoke --list` reads it.
"""

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from tsuishi import extras
from tsuishi.base.errors import UserError

MAIN_JOB = ("build", "run-suite", "report")


def names_in(text: str) -> tuple[str, ...]:
    """The names in a list with commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


@dataclass(frozen=True)
class Option:
    """An option of one task or more.

    help: may name the {values}, {bounds} and {default} of the setting.
    """

    name: str  # as it is typed: host-python
    tasks: str  # their names, separated by spaces
    help: str
    # True or False for a switch with this default; None for an option with a value.
    switch: bool | None = None
    # How its text is read: names, positive, whole <least>, word <known> <known>; empty: as it is given.
    read: str = ""
    # Whether the value may stand without the flag, and has to be given.
    positional: bool = False
    # The setting that it changes, or the field of plan.choice.Choice that it fills.
    setting: str = ""
    choice: str = ""
    # Whether a run records what it sets or fills.
    recorded: bool = True
    # Whether it decides the plan of a run, which --resume cannot change; whether only a cluster has a use for it.
    plans: bool = False
    of_cluster: bool = False

    @property
    def of(self) -> tuple[str, ...]:
        """The tasks that have it."""
        return tuple(self.tasks.split())

    @property
    def parameter(self) -> str:
        """Its name in Python, and among the arguments of a run: host_python."""
        return self.name.replace("-", "_")

    @property
    def flag(self) -> str:
        """--host-python."""
        return f"--{self.name}"

    def value(self, given: Any) -> Any:
        """The value that a given text stands for. Raises UserError for a wrong text."""
        kind, *known = self.read.split() or [""]
        if kind == "names":
            return names_in(given)
        if kind == "word" and given not in known:
            raise UserError(f"{self.flag} takes {', '.join(known)}; given: {given}")
        return self._number(str(given), *map(int, known)) if kind in ("whole", "positive") else given

    def _number(self, given: str, least: int | None = None) -> float:
        try:
            number = float(given) if least is None else int(given)
        except ValueError:
            number = math.nan
        if least is not None and not number >= least:
            raise UserError(f"{self.flag} takes a whole number from {least}; given: {given}")
        if least is None and not 0 < number < math.inf:
            raise UserError(f"{self.flag} takes a number above 0; given: {given}")
        return number

    def told(self) -> str:
        """The help text, with the facts of the setting filled in."""
        return self.help.format(**_facts(self.setting)) if self.setting and "{" in self.help else self.help


def options_of(tasks: Iterable[str], rows: Sequence[Option] | None = None) -> list[Option]:
    """The rows of these tasks, in the table's order, each once."""
    asked = {*tasks}
    return [row for row in (OPTIONS if rows is None else rows) if asked & {*row.of}]


def task_with(*options: str) -> str:
    """The task that has all of these options, for a command in a message; words for it where its extra is absent.

    >>> task_with("repetitions", "suite"), task_with("repetitions", "of nobody")
    ('run-suite', '<the task of an extra that is not here>')
    """
    names = sorted({task for row in OPTIONS for task in row.of})
    found = (task for task in names if {*options} <= {row.name for row in options_of((task,))})
    return next(found, "<the task of an extra that is not here>")


def _facts(setting: str) -> dict[str, str]:
    """What the help of an option takes from its setting."""
    from tsuishi.base.settings import Settings

    field = Settings.model_fields[setting]
    bounds = {name: getattr(limit, name) for limit in field.metadata for name in ("ge", "le") if hasattr(limit, name)}
    values = [value for value in get_args(field.annotation) if value != "auto"]
    default = field.default
    return {
        "values": " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
        if get_origin(field.annotation) is Literal
        else "",
        "bounds": " to ".join(f"{bound:g}" for bound in bounds.values()),
        "default": f"{default:g}" if isinstance(default, float) else str(default),
    }


def read_options(files: Iterable[Path]) -> tuple[Option, ...]:
    """The rows of files of options. `shared` in a file: the options of the main job that its tasks have, too.

    `like`: a task that has all options of another one, but for its own of the same names.
    """
    rows: list[Option] = []
    shared: dict[str, set[str]] = {}
    like: dict[str, str] = {}
    for path in files:
        with path.open("rb") as opened:
            content = tomllib.load(opened)
        rows += [Option(**row) for row in content["options"]]
        shared |= {task: set(names.split()) for task, names in content.get("shared", {}).items()}
        like |= content.get("like", {})
    rows = [
        replace(row, tasks=" ".join((row.tasks, *(task for task, names in shared.items() if row.name in names))))
        if {*MAIN_JOB} & {*row.of}
        else row
        for row in rows
    ]
    for task, other in like.items():
        own = {row.name for row in rows if task in row.of}
        rows = [
            replace(row, tasks=f"{row.tasks} {task}") if other in row.of and row.name not in own else row
            for row in rows
        ]
    return tuple(rows)


OPTIONS = read_options([Path(__file__).with_name("options.toml"), *extras.files("options.toml")])
