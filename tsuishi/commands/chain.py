"""One call of Invoke, `invoke build run-suite report`, as one piece of work.

Invoke runs each task of a chain by itself. The executor here (named in invoke.yaml) gives all of them one `Chain`: as
Invoke means it to be done, the context of every task is of a class of ours, and has it as `ctx.chain`. Options given
to one of the tasks hold for all (command_line.py reads them), a user's mistake is one line, and a failed trial (or a
claim that --fail-on names) becomes the exit code only after the tasks behind it have run: the report is always written.
"""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TextIO, cast

from invoke.config import Config
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.executor import Executor
from invoke.parser.parser import ParseResult
from invoke.tasks import Call

from tsuishi.base.errors import EXIT_INTERRUPTED, EngineLost, UserError
from tsuishi.base.printable import VisibleStream
from tsuishi.base.settings import PREFIX
from tsuishi.commands.command_line import Refused, given_options
from tsuishi.commands.options import Options, open_session
from tsuishi.plan.planning import Plan
from tsuishi.plan.session import Session


@dataclass
class Chain:
    """The tasks of one call, their options, and what the tasks hand on to one another."""

    tasks: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    # The keys of invoke.yaml, and the variables INVOKE_TSUISHI_*.
    configured: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    # What would be done, once it was printed; the run that was made; the exit code, of several the largest.
    plan: Plan | None = None
    run_id: str = ""
    exit_code: int = 0

    @cached_property
    def session(self) -> Session:
        """What all tasks work with. Raises UserError for an option, variable or key of invoke.yaml that is wrong."""
        return open_session(self.tasks, self.options, self.configured, self.variables)

    @property
    def only_plans(self) -> bool:
        """Whether to say what would be done, and stop."""
        return self.options.has("plan")

    def end_with(self, code: int) -> None:
        """Let the chain end with this exit code, or a larger one."""
        self.exit_code = max(self.exit_code, code)


class ChainContext(Context):
    """What a task is called with: Invoke's context, and the chain that the task is part of."""

    chain: Chain

    def __init__(self, config: Config, remainder: str, chain: Chain) -> None:
        super().__init__(config, remainder)
        self._set(chain=chain)  # an attribute, and no key of the configuration


class ChainCall(Call):
    """A call of a task that is part of a chain."""

    def __init__(self, chain: Chain, **call: Any) -> None:
        super().__init__(**call)
        self.chain = chain

    def make_context(self, config: Config, core_parse_result: ParseResult) -> ChainContext:
        """The context that the task is called with."""
        return ChainContext(config, core_parse_result.remainder, self.chain)


class ChainExecutor(Executor):
    """Invoke's executor, with one chain for all tasks of a call."""

    def execute(self, *tasks: Any) -> Any:
        """Run the chain. Raises invoke.Exit with the exit code of the whole."""
        names = tuple(call.task.name for call in self.normalize(tasks))
        # Invoke would cast variables itself, and ends in a traceback where a list or number is meant.
        variables = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(PREFIX)}
        signal.signal(signal.SIGTERM, _interrupt)
        # Warnings and tracebacks say what others wrote, too.
        sys.stderr = cast("TextIO", VisibleStream(sys.stderr))
        try:
            options = Options(given_options(tasks))
            self._chain = Chain(names, options, dict(self.config.get("tsuishi") or {}), variables)
            results = super().execute(*tasks)
        except UserError as error:
            raise Refused(error) from None
        except EngineLost as lost:
            raise Refused(f"the engine stopped answering: {lost}; start it again") from None
        except OSError as error:
            raise Refused(f"{error.strerror or error}: {error.filename or ''}") from None
        except KeyboardInterrupt:
            goes_on = "`invoke run-suite --resume latest`" if "run-suite" in names else "the same command"
            raise Exit(f"interrupted; {goes_on} goes on", code=EXIT_INTERRUPTED) from None
        sys.stdout.flush()
        if self._chain.exit_code:
            raise Exit(code=self._chain.exit_code)
        return results

    def expand_calls(self, calls: list[Call]) -> list[Call]:
        """The calls, as parts of the chain."""
        return [call.clone(into=ChainCall, with_={"chain": self._chain}) for call in super().expand_calls(calls)]


def _interrupt(number: int, frame: object) -> None:
    """SIGTERM means the same as Ctrl-C: record the trial at hand, then stop."""
    raise KeyboardInterrupt
