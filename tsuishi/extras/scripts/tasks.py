"""The task of trying a script."""

from typing import TYPE_CHECKING

from tsuishi.commands.command_line import task

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain


@task
def try_script(chain: "Chain") -> None:
    """Run a script once, propose patterns for the numbers that it prints, and write its suite.

    Every proposal is shown with a line that it found.
    """
    from tsuishi.extras.scripts import try_script

    try_script.try_script(chain, chain.options.text("script"))
