"""One call of Invoke, `invoke build run-suite report`, as one piece of work.

Invoke runs each task of a chain by itself. This executor (named in invoke.yaml) adds what a chain needs: options
given to one of the tasks hold for all (command_line.py reads them), a user's mistake is one line, and a failed trial
(or a claim that --fail-on names) is told by the exit code only after the tasks behind it have run: the report is
always written.
"""

import os
import signal
import sys
from typing import Any, TextIO, cast

from invoke.exceptions import Exit
from invoke.executor import Executor

from tsuishi.base.errors import EXIT_INTERRUPTED, EngineLost, UserError
from tsuishi.base.printable import VisibleStream
from tsuishi.base.settings import PREFIX
from tsuishi.commands.command_line import Refused, given_options


class ChainExecutor(Executor):
    """Invoke's executor, with one memory for the chain."""

    # Options of all tasks of the chain as given on the command line, and what the tasks hand on to one another.
    options: dict[str, Any] = {}
    # INVOKE_TSUISHI_ variables. Invoke would cast them itself, and ends in a traceback where a list or number is meant.
    variables: dict[str, str] = {}
    tasks: tuple[str, ...] = ()
    # What the tasks of the chain share: its settings, its clock, what was planned.
    session: Any = None
    run_id = ""
    # Held back to the end of the chain; of several the largest.
    exit_code = 0

    def execute(self, *tasks: Any) -> Any:
        """Run the chain. Raises invoke.Exit with the exit code of the whole."""
        cls = type(self)
        cls.session = None
        calls = self.normalize(tasks)
        cls.tasks = tuple(call.task.name for call in calls)
        cls.variables = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(PREFIX)}
        signal.signal(signal.SIGTERM, _interrupt)
        # Warnings and tracebacks say what others wrote, too.
        sys.stderr = cast("TextIO", VisibleStream(sys.stderr))
        try:
            cls.options = given_options(tasks)
            results = super().execute(*tasks)
        except UserError as error:
            raise Refused(error) from None
        except EngineLost as lost:
            raise Refused(f"the engine stopped answering: {lost}; start it again") from None
        except OSError as error:
            raise Refused(f"{error.strerror or error}: {error.filename or ''}") from None
        except KeyboardInterrupt:
            goes_on = "`invoke run-suite --resume latest`" if "run-suite" in cls.tasks else "the same command"
            raise Exit(f"interrupted; {goes_on} goes on", code=EXIT_INTERRUPTED) from None
        sys.stdout.flush()
        if cls.exit_code:
            raise Exit(code=cls.exit_code)
        return results


def _interrupt(number: int, frame: object) -> None:
    """SIGTERM means the same as Ctrl-C: record the trial at hand, then stop."""
    raise KeyboardInterrupt
