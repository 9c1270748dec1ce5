"""The tasks of published tables: a whole table becomes a source, one number is measured here."""

from typing import TYPE_CHECKING

from tsuishi.commands.command_line import task

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain


@task
def adopt(chain: "Chain") -> None:
    """Make a source and a suite of a published table: CSV, TSV, Markdown, HTML or JSON, a file, folder or address.

    Shows what each column was taken for, and why. Every number is a case here, or refused with its reason.
    """
    from tsuishi.extras.tables import adopting

    adopting.adopt_table(chain)


@task
def check(chain: "Chain") -> None:
    """Measure one number of a published table here, and print both beside each other: five lines, and what goes on.

    The number is found by the words of its row. The nearest environment is built, and a run and a report are made in
    a folder of their own. Exit code 3: a trial failed.
    """
    from tsuishi.extras.tables import check

    check.check(chain)
