"""The tasks of a call of Invoke, `invoke build run-suite report`, as a chain.

Invoke runs each task of a call by itself. The executor here (named in invoke.yaml) gives all tasks the same `Chain`.
Options given to a task hold for all tasks (see command_line.py). A user's mistake is printed as a single line. A failed
trial (or a claim that --fail-on names) becomes the exit code only after the later tasks have run: the report is always
written.
"""

import gc
import os
import signal
import sys
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO, cast

from invoke.exceptions import Exit
from invoke.executor import Executor
from invoke.tasks import Call

from tsuishi.base import home
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import EXIT_INTERRUPTED, EXIT_NOTHING_CHECKED, EngineLost, UserError
from tsuishi.base.option_table import MAIN_JOB, options_of
from tsuishi.base.printable import VisibleStream
from tsuishi.base.settings import PREFIX
from tsuishi.base.typed import as_typed
from tsuishi.commands.command_line import Refused, given_options, refuse_without_its_task
from tsuishi.commands.options import Options, open_session

if TYPE_CHECKING:
    from tsuishi.plan.planning import Plan
    from tsuishi.plan.session import Session


@dataclass
class Chain:
    """The tasks of a call, their options, and the results that tasks pass to later tasks."""

    tasks: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    # The keys of invoke.yaml, and the environment variables INVOKE_TSUISHI_*.
    configured: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    checkout: Checkout = field(default_factory=Checkout)
    # The plan that was printed; the id of the run that was made; the largest exit code so far.
    plan: "Plan | None" = None
    run_id: str = ""
    exit_code: int = 0
    # Whether it makes a run that run-suite can resume.
    makes_run: bool = False
    # Locks that the chain has to its end.
    held: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def session(self) -> "Session":
        """The session of all tasks. Raises UserError for a wrong option, variable or key of invoke.yaml."""
        return open_session(self.tasks, self.options, self.configured, self.variables, self.checkout)

    @property
    def only_plans(self) -> bool:
        """Whether the chain only prints its plan (--plan)."""
        return self.options.has("plan")

    def main_job(
        self,
        checkout: Checkout,
        task: str,
        options: Mapping[str, Any],
        *,
        but: Collection[str] = (),
        configured: Mapping[str, Any] = MappingProxyType({}),
    ) -> "Chain":
        """The main job of a task in a tree of its own: with the options of this chain, and these where it has none.

        but: options that mean something else to the task. configured: keys of invoke.yaml that this job has instead.
        """
        rows = {row.parameter for row in options_of(MAIN_JOB)}.difference(but)
        given = {name: value for name, value in self.options.given.items() if name in rows}
        settings = {**self.configured, **configured}
        made = Chain(MAIN_JOB, Options({**options, **given}), settings, self.variables, checkout=checkout)
        made.session = replace(made.session, task=task)
        return made

    def end_with(self, code: int) -> None:
        """Let the chain end with this exit code, unless it has a larger exit code already."""
        self.exit_code = max(self.exit_code, code)


class ChainExecutor(Executor):
    """Invoke's executor, with the same chain for all tasks of a call."""

    def execute(self, *tasks: Any) -> Any:
        """Run the chain. Raises invoke.Exit with the exit code of the chain, unless it is 0."""
        names = tuple(call.task.name for call in self.normalize(tasks))
        # Invoke would convert variables itself, and ends with a traceback where a list or a number is expected.
        variables = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(PREFIX)}
        sys.stdout = cast("TextIO", sys.__stdout__)  # a task whose reader is gone stops
        gc.freeze()  # imported modules stay: collections need not look at them again
        self._chain = Chain(names)  # until the options are read
        # Warnings and tracebacks may contain control characters from other people's texts.
        sys.stderr = cast("TextIO", VisibleStream(sys.stderr))
        try:
            _hear_signals()
            options = given_options(tasks)
            refuse_without_its_task(options, names, self.collection)
            self._chain = Chain(names, Options(options), dict(self.config.get("tsuishi") or {}), variables)
            if self._chain.options.has("fail_on"):
                from tsuishi.commands.report_runs import why_undecided

                if why := why_undecided(self._chain):
                    raise Refused(why, EXIT_NOTHING_CHECKED)
            results = super().execute(*tasks)
        except UserError as error:
            raise Refused(error) from None
        except EngineLost as lost:
            raise Refused(f"the engine stopped answering: {lost}; start it again") from None
        except OSError as error:
            why = ": ".join(filter(None, (error.strerror or str(error), error.filename)))
            raise Refused(why + home.remedy(error)) from None
        except KeyboardInterrupt:
            resumes = any(row.name == "resume" for row in options_of(names))
            goes_on = "the same command with `--resume latest`" if resumes else "the same command"
            if self._chain.makes_run or "run-suite" in names:
                goes_on = "`invoke run-suite --resume latest`"
            raise Exit(as_typed(f"interrupted; {goes_on} goes on"), code=EXIT_INTERRUPTED) from None
        sys.stdout.flush()
        if self._chain.exit_code:
            raise Exit(code=self._chain.exit_code)
        return results

    def expand_calls(self, calls: list[Call]) -> list[Call]:
        """The calls, each with the chain in place of its options, which the chain has."""
        return [call.clone(with_={"kwargs": {"chain": self._chain}}) for call in super().expand_calls(calls)]


def _hear_signals() -> None:
    """Handle SIGTERM, and others that would end Python at once: a lost terminal (but under nohup), Ctrl-\\, Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    """Handle a signal like Ctrl-C: the current trial is recorded, then the run stops."""
    raise KeyboardInterrupt
