"""The executors by their names in the settings: that of this machine, and those of extras with their nodes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tsuishi import extras
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings

if TYPE_CHECKING:  # a command imports only what it uses
    from tsuishi.plan.session import Nodes
    from tsuishi.run.executor import Executor


def executor_of(settings: Settings) -> "Executor":
    """The executor that the settings name. Raises UserError for an unknown name."""
    if settings.runs_here:
        from tsuishi.run.executor import LOCAL

        return LOCAL
    made: Executor = _of_extras("EXECUTORS", settings.executor)()
    return made


def nodes_of(settings: Settings) -> "Nodes | None":
    """The nodes of the executor that the settings name; None: trials run here. Raises UserError for an unknown name."""
    if settings.runs_here:
        return None
    made: Nodes = _of_extras("NODES", settings.executor)(settings)
    return made


def _of_extras(table: str, name: str) -> Callable[..., Any]:
    """The function of this name in a table of the extras' executors.py."""
    for makes in extras.given("executors", table):
        if name in makes:
            found: Callable[..., Any] = makes[name]
            return found
    raise UserError(f"no executor {name}: tsuishi/extras/ has none of that name in {table}")
