"""The task of comparing two versions of a program."""

from typing import TYPE_CHECKING

from tsuishi.commands.command_line import task

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain


@task
def ab(chain: "Chain") -> None:
    """Run two versions of a program in turns until each number is decided: invoke ab main HEAD -- python bench.py

    Every trial is a fresh process. Exit code 0: no number is slower than the limit; 4: one is, or is missing; 5: one is
    undecided.
    """
    from tsuishi.extras.ab import two_versions

    two_versions.compare(chain)
