"""The executors by their names in the settings: that of this machine, and those of extras with their nodes."""

from typing import TYPE_CHECKING

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
    for executors in extras.given("executors", "EXECUTORS"):
        if make := executors.get(settings.executor):
            made: Executor = make()
            return made
    raise UserError(f"no executor {settings.executor}: tsuishi/extras/ has none of that name")


def nodes_of(settings: Settings) -> "Nodes | None":
    """The nodes of the executor that the settings name; None: trials run here. Raises UserError for an unknown name."""
    if settings.runs_here:
        return None
    for nodes in extras.given("executors", "NODES"):
        if make := nodes.get(settings.executor):
            made: Nodes = make(settings)
            return made
    raise UserError(f"no executor {settings.executor} with nodes: tsuishi/extras/ has none of that name")
