"""The command line: tasks whose options are rows of the table, and one line for each mistake.

Invoke reads options task by task. Here each task of the main job takes the options of all its tasks, so they may stand
behind any of them; the executor (chain.py) hands them to all tasks. Invoke has no hook for the messages of its parser.
So `collected` lets the same parser read the command line first, and explains its errors: Invoke loads tasks.py just
before it reads tasks and their options.
"""

import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from invoke import main
from invoke.collection import Collection
from invoke.exceptions import Exit, ParseError
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext, to_flag, translate_underscores
from invoke.parser.parser import Parser, ParseResult
from invoke.tasks import Task

from tsuishi import __version__, extras
from tsuishi.base import checkout
from tsuishi.base.errors import EXIT_USER_ERROR, UserError, unknown
from tsuishi.base.option_table import MAIN_JOB, OPTIONS, Option, options_of
from tsuishi.base.printable import answering, line, open_standard_streams
from tsuishi.base.typed import as_typed

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain

_UNKNOWN = re.compile(r"No idea what (['\"])(.*)\1 is!")
_NO_VALUE = re.compile(r"Flag <\w*Argument: ([\w-]+).* needed value")
_NOT_GIVEN = re.compile(r"'([\w-]+)' did not receive required positional arguments: '([\w-]+)'")


# What a call without a task prints.
_BEGINNING = """\
tsuishi {version} runs published deep-learning experiments again on this machine,
in pinned environments, and judges their claims.

  invoke build run-suite report   the main job: about ten minutes, then a report
  invoke doctor                   what this machine has and lacks, with remedies
  invoke list                     environments, suites, and the runs so far

`invoke --list` shows all tasks, `invoke --help TASK` the options of a task."""


class Refused(Exit):
    """The end of a call: a line on standard error, and an exit code, without another that of a user's mistake."""

    def __init__(self, why: object, code: int = EXIT_USER_ERROR) -> None:
        super().__init__(f"error: {as_typed(line(why))}", code=code)


class OptionArgument(Argument):
    """Invoke's argument for a row. Its help is made when it is read: it may need the settings, which import much."""

    def __init__(self, row: Option) -> None:
        self._row = row
        super().__init__(
            row.name,
            kind=str if row.switch is None else bool,
            default=row.switch if row.switch is not None or row.positional else "",
            positional=row.positional,
            attr_name=row.parameter if "-" in row.name else None,
        )

    @property
    def help(self) -> str:
        """The row's help."""
        return self._row.told()

    @help.setter
    def help(self, text: str | None) -> None:
        """Invoke's own class sets it."""


class OptionTask(Task[Any]):
    """A task with the options that rows give it. Its body takes the chain, which has their values."""

    def __init__(self, body: Callable[["Chain"], None], rows: Sequence[Option]) -> None:
        super().__init__(body, name=translate_underscores(body.__name__), positional=())
        self.rows = options_of((self.name,), rows)
        self._chained = options_of(MAIN_JOB, rows) if self.name in MAIN_JOB else []

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """An argument for each option of the task, and of the main job where the task belongs to the main job."""
        rows = {row.name: row for row in [*self._chained, *self.rows]}
        return [OptionArgument(row) for row in rows.values()]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task on its chain, unless an extra does the whole task."""
        chain = kwargs["chain"]
        if not any(instead(chain) for instead in extras.given("core_tasks", self.body.__name__)):
            self.body(chain)


def task(body: Callable[["Chain"], None], rows: Sequence[Option] = OPTIONS) -> OptionTask:
    """The task of Invoke that a function is: its name, its docstring, and its options from the table."""
    return OptionTask(body, rows)


def collected(module: Mapping[str, object], further: Iterable[ModuleType] = ()) -> Collection:
    """The tasks of a module, and those of further modules, which `--list` shows under the titles of their packages.

    While Invoke runs, raises invoke.Exit: with one line for a mistake, without a line behind the list of tasks.
    """
    open_standard_streams()
    os.environ[checkout.ROOT] = str(Path(str(module["__file__"])).parent)
    groups = {"Available tasks:": _tasks(module)}
    groups |= {str(sys.modules[each.__name__.rpartition(".")[0]].__doc__): _tasks(vars(each)) for each in further}
    collection = Collection(*chain.from_iterable(groups.values()))
    if (core := getattr(main.program, "core", None)) is not None:
        sys.stdout = answering(sys.stdout)  # until a task runs, what Invoke prints is an answer: --list, --help
        if _asks_for_nothing(core):
            print(as_typed(_BEGINNING.format(version=__version__)))
            raise Exit(code=0)
        if core[0].args.list.value is True and core[0].args["list-format"].value == "flat":
            _list(groups)
            raise Exit(code=0)
        if isinstance(name := core[0].args.list.value, str):
            raise Refused(f"--list takes no name: `invoke --list` shows all tasks, `invoke --help {name}` this task")
        given = _CommandLine(collection, core.unparsed)
        given.check(asked := core[0].args.help)
        if isinstance(asked.value, str):
            given.explain_task(asked.value, collection[asked.value])
            raise Exit(code=0)
    return collection


def _asks_for_nothing(core: ParseResult) -> bool:
    """Whether no task was given, nor an option of Invoke that prints something."""
    printing = ("help", "list", "complete", "print-completion-script")
    return not (core.unparsed or core.remainder or any(core[0].args[name].value for name in printing))


def _tasks(module: Mapping[str, object]) -> list[OptionTask]:
    return [each for each in module.values() if isinstance(each, OptionTask)]


def _list(groups: Mapping[str, Sequence[OptionTask]]) -> None:
    """Print the tasks as Invoke does, but those of each extra apart."""
    for title, tasks in groups.items():
        print(f"{title}\n")
        rows = [(task.name, (task.__doc__ or "").strip().partition("\n")[0]) for task in tasks]
        main.program.print_columns(sorted(rows))


class _CommandLine:
    """The words behind Invoke's own options, and the tasks that they may name."""

    def __init__(self, tasks: Collection, words: Sequence[str]) -> None:
        self._tasks = {context.name or "": context for context in tasks.to_contexts()}
        self._rows = {name: {row.name: row for row in tasks[name].rows} for name in self._tasks}
        self._words = words

    def check(self, help_of: Argument) -> None:
        """Raise Refused for words that Invoke cannot read. `task --help` becomes `--help task`."""
        for name, following in pairwise(self._words):
            # Invoke would take it for the task's first argument, where the task has one without a flag.
            if following in ("--help", "-h") and name in self._tasks and not help_of.value:
                help_of.value = name
        try:
            if isinstance(help_of.value, str) and help_of.value not in self._tasks:
                raise unknown("task", help_of.value, self._tasks)
            Parser(initial=main.program.initial_context, contexts=self._tasks.values()).parse_argv([*self._words])
        except ParseError as error:
            raise Refused(self._explain(error)) from None
        except UserError as error:
            raise Refused(error) from None

    def explain_task(self, name: str, task: OptionTask) -> None:
        """Print the help of a task: its own options, as those of the rest of the main job have tasks of their own."""
        context, columns = self._tasks[name], main.program.print_columns
        print(as_typed(f"invoke {name} [options]\n\n{inspect.getdoc(task)}\n"))
        if task.rows:
            columns(sorted(context.help_for(to_flag(row.name)) for row in task.rows))
        if name in MAIN_JOB:
            others = (f"`invoke --help {other}`" for other in MAIN_JOB if other != name)
            print(as_typed(f"In a chain, it takes the options of the other tasks, too: {', '.join(others)}"))

    def _explain(self, error: ParseError) -> UserError | ParseError:
        """The parser's error in tsuishi's words; unchanged if it is of a kind that users' mistakes do not cause."""
        if match := _NO_VALUE.match(str(error)):
            return UserError(f"{_flag(match[1])} needs a value")
        if match := _NOT_GIVEN.match(str(error)):
            return UserError(f"`{match[1]}` needs its {match[2]}: {self._rows[match[1]][match[2]].told()}")
        if not (match := _UNKNOWN.fullmatch(str(error))):
            return error
        token, context = match[2], error.context
        if token.startswith("-"):
            return self._unknown_option(token, context)
        if context is not None and (twice := _given_again(token, context, self._words)):
            return twice
        if context is not None and Path(token).exists() and "archive" in self._rows[context.name or ""]:
            return UserError(f"`{context.name}` takes a file as --archive {token}")
        return unknown("task", token, self._tasks)

    def _unknown_option(self, token: str, context: ParserContext | None) -> UserError:
        """The error for an option that the task before it does not have: where it belongs, or the nearest option."""
        task = context.name if context is not None else None
        owners = [name for name, rows in self._rows.items() if token in _flags(rows.values())]
        if owners:
            wrong = f"is no option of `{task}`" if task else "stands before the first task"
            return UserError(f"{token} {wrong}: write it behind {_either(owners)}")
        contexts = [context] if task and context is not None else self._tasks.values()
        known = [
            flag for each in [*contexts, main.program.initial_context] for flag in (*each.flags, *each.inverse_flags)
        ]
        near = difflib.get_close_matches(token.lstrip("-"), [flag.lstrip("-") for flag in known], n=1)
        hint = f"did you mean --{near[0]}?" if near else f"see `invoke --help {task or '<task>'}`"
        return UserError(f"unknown option {token}; {hint}")


def given_options(contexts: Sequence[ParserContext]) -> dict[str, Any]:
    """The options given to any task of a chain, by their names in Python (host_python).

    An option with an empty value counts as not given. Raises UserError where two tasks are given different values.
    """
    options: dict[str, Any] = {}
    for context in contexts:
        for argument in context.args.values():
            if not argument.got_value or argument.value == "":
                continue
            if options.setdefault(argument.name, argument.value) != argument.value:
                raise _given_twice(argument.name, options[argument.name], argument.value)
    return options


def refuse_without_its_task(given: Iterable[str], chain: Iterable[str], known: Collection) -> None:
    """Raise UserError for a given option that no task of the chain has."""
    has = {name: {row.parameter for row in getattr(known[name], "rows", ())} for name in known.task_names}
    for option in given:
        owners = [name for name in MAIN_JOB if option in has.get(name, ())]
        if owners and not any(option in has[name] for name in chain):
            flag = _flag(option)
            raise UserError(
                f"{flag} belongs to {_either(owners)}, which is not in this chain: add it, or leave {flag} out"
            )


def _given_again(value: str, context: ParserContext, words: Sequence[str]) -> UserError | None:
    """The error for a second value of a task's option. Invoke reads such a value as the name of a task."""
    for word, following in pairwise([*words, ""]):
        flag, equals, rest = word.partition("=")
        argument = context.flags.get(flag)
        if argument is None or not argument.takes_value or (rest if equals else following) != value:
            continue
        if argument.got_value and argument.value != value:
            return _given_twice(argument.name, argument.value, value)
    return None


def _given_twice(name: str, first: object, second: object) -> UserError:
    flag = _flag(name)
    if isinstance(first, bool):
        given = f"{flag} and --no-{flag[2:]} are both given; one of them"
    else:
        given = f"{flag} is given as '{first}' and as '{second}'; it"
    return UserError(f"{given} holds for the whole chain: give it once")


def _flags(rows: Iterable[Option]) -> Iterator[str]:
    for row in rows:
        yield row.flag
        if row.switch:
            yield f"--no-{row.name}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _either(tasks: Iterable[str]) -> str:
    return " or ".join(f"`{task}`" for task in tasks)
