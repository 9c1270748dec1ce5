"""The command line: options of the main job behind any of its tasks, and helpful messages for mistakes.

Invoke reads options task by task: `build run-suite report --profile smoke` gives --profile to `report`, which does not
have it. Here every task of the main job takes the options of all three tasks, and passes each to the tasks that have
it. Invoke has a setting for the executor of tasks, but not for the program that reads them: tasks.py calls
`read_chains`.
"""

import copy
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from invoke import main
from invoke.exceptions import Exit, ParseError
from invoke.parser import Parser
from invoke.parser.context import ParserContext
from invoke.parser.parser import ParseResult
from invoke.program import Program

from tsuishi.base.errors import EXIT_USER_ERROR, UserError, unknown
from tsuishi.base.printable import line, open_standard_streams

MAIN_JOB = ("build", "run-suite", "report")

_UNKNOWN = re.compile(r"No idea what (['\"])(.*)\1 is!")
_NO_VALUE = re.compile(r"Flag <Argument: ([\w-]+).* needed value")


class Refused(Exit):
    """The end of a call: a line on standard error, and the exit code of a user's mistake."""

    def __init__(self, why: object) -> None:
        super().__init__(f"error: {line(why)}", code=EXIT_USER_ERROR)


def read_chains() -> None:
    """Make the running program read its command line as a chain, however it was started."""
    open_standard_streams()
    main.program.__class__ = ChainProgram


class ChainProgram(Program):
    """Invoke's program, with options that hold for a whole chain."""

    def parse_tasks(self) -> None:
        """Read tasks and options. Raises invoke.Exit with a line for a mistake, before any task runs."""
        self._in_one_line(self._parse_chain)

    def parse_cleanup(self) -> None:
        """Answer --help, --list and --complete. Raises invoke.Exit after an answer, and for an unknown task."""
        self._in_one_line(super().parse_cleanup)

    def print_task_help(self, name: str) -> None:
        """Print the task's own options with their help, and the names of the main job's other options."""
        self.parser = self._own
        super().print_task_help(name)
        if name in MAIN_JOB:
            own = self._own.contexts
            print(f"Options of the main job ({' '.join(MAIN_JOB)}) may stand behind any of its tasks. Here also:\n")
            self.print_columns(
                [
                    (task, " ".join(sorted(set(own[task].flags) - set(own[name].flags))))
                    for task in MAIN_JOB
                    if task != name
                ]
            )

    @cached_property
    def _own(self) -> Parser:
        """Invoke's parser, in which every task has its own options. Only the first parser of tasks gets help texts."""
        return super()._make_parser()

    def _make_parser(self) -> Parser:
        """A parser in which every task of the main job takes the options of all of them."""
        parser = copy.deepcopy(self._own)
        contexts = [parser.contexts[name] for name in MAIN_JOB if name in parser.contexts]
        for context in contexts:
            for argument in [argument for other in contexts for argument in other.args.values()]:
                if argument.names[0] not in context.args:
                    shared = copy.copy(argument)
                    shared.names = argument.names[:1]  # without its letter, which another option here may have
                    context.add_arg(shared)
        return parser

    def _parse_chain(self) -> None:
        for task, following in pairwise(self.core.unparsed):
            # Invoke would take it for the task's first argument, where the task has one without a flag.
            if following in ("--help", "-h") and task in self._own.contexts:
                self.print_task_help(task)
                raise Exit
        super().parse_tasks()
        options = given_options(self.tasks)
        for name in options:
            self._refuse_without_its_task(name)
        own = copy.deepcopy(self._own.contexts)
        self.tasks = ParseResult(
            _handed(own[context.name], options) if context.name in MAIN_JOB else context for context in self.tasks
        )

    def _refuse_without_its_task(self, name: str) -> None:
        """Raise UserError for an option that no task of the chain has."""
        owners = [task for task, context in self._own.contexts.items() if name in context.args and task in MAIN_JOB]
        if owners and not any(name in self._own.contexts[context.name].args for context in self.tasks):
            flag = _flag(name)
            raise UserError(
                f"{flag} belongs to {_either(owners)}, which is not in this chain: add it, or leave {flag} out"
            )

    def _in_one_line(self, parse: Callable[[], None]) -> None:
        try:
            try:
                parse()
            finally:
                sys.stdout.flush()
        except BrokenPipeError:  # whoever reads the answer had enough, as `head` has
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Exit from None
        except ParseError as error:
            raise Refused(self._explain(error)) from None
        except UserError as error:
            raise Refused(error) from None

    def _explain(self, error: ParseError) -> UserError | ParseError:
        """The parser's error in tsuishi's words; unchanged if it is of a kind that users' mistakes do not cause."""
        if match := _NO_VALUE.match(str(error)):
            return UserError(f"--{match[1]} needs a value")
        if not (match := _UNKNOWN.fullmatch(str(error))):
            return error
        token, context = match[2], error.context
        if token.startswith("-"):
            return self._unknown_option(token, context)
        if context is not None and (twice := _given_again(token, context, self.core.unparsed)):
            return twice
        if context is not None and Path(token).exists() and "--archive" in _flags(self._own.contexts[context.name]):
            return UserError(f"`{context.name}` takes a file as --archive {token}")
        return unknown("task", token, self.parser.contexts)

    def _unknown_option(self, token: str, context: ParserContext | None) -> UserError:
        """The error for an option that the task before it does not have: where it belongs, or the nearest option."""
        owners = [name for name, task in self._own.contexts.items() if token in _flags(task)]
        task = context.name if context is not None else None
        if owners:
            wrong = f"is no option of `{task}`" if task else "stands before the first task"
            return UserError(f"{token} {wrong}: write it behind {_either(owners)}")
        contexts = [context] if task else self.parser.contexts.values()
        known = [flag for context in [*contexts, self.initial_context] for flag in _flags(context)]
        near = difflib.get_close_matches(token.lstrip("-"), [flag.lstrip("-") for flag in known], n=1)
        hint = f"did you mean --{near[0]}?" if near else f"see `invoke --help {task or '<task>'}`"
        return UserError(f"unknown option {token}; {hint}")


def given_options(contexts: Sequence[ParserContext]) -> dict[str, Any]:
    """The options given to any task of a chain, by their names in tasks.py (host_python).

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


def _handed(context: ParserContext, options: dict[str, Any]) -> ParserContext:
    """A task with the chain's options, as far as it has them."""
    for argument in context.args.values():
        if argument.name in options:
            argument.set_value(options[argument.name], cast=False)
    return context


def _flags(context: ParserContext) -> Iterator[str]:
    yield from context.flags
    yield from context.inverse_flags


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _either(tasks: Iterable[str]) -> str:
    return " or ".join(f"`{task}`" for task in tasks)
