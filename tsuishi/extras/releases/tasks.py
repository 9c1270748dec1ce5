"""The task of searching releases."""

from typing import TYPE_CHECKING

from tsuishi.commands.command_line import task

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain


@task
def find(chain: "Chain") -> None:
    """Find the release of a framework that changed a value: measure both ends in turns, then releases between them.

    It names a wrong pair of releases in at most 5 % of searches. Environments are built when they are needed.
    """
    from tsuishi.extras.releases import find

    find.find(chain)
