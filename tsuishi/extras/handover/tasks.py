"""The tasks of handing over."""

from typing import TYPE_CHECKING

from tsuishi.commands.command_line import task

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain


@task
def export(chain: "Chain") -> None:
    """Write built environments as files, with checksums, for machines without network or for later.

    They hold software of others: docs/redistribution.md says which parts may be passed on.
    """
    from tsuishi.extras.handover import images

    session = chain.session
    images.export(session.builder, session.screen, session.choice.environments, chain.options.text("to"))


@task
def import_(chain: "Chain") -> None:
    """Verify archives of environments, load them into the engine, and use them as if they had been built here."""
    from tsuishi.extras.handover import exchange

    session, archives = chain.session, chain.options.paths("archive")
    exchange.import_archives(session.builder, session.screen, archives, session.build)


@task
def archive(chain: "Chain") -> None:
    """Write verified runs, with their inputs and bills of materials, as a single file for others.

    The same runs give the same bytes. Text that looks like a secret, or is your secret, is refused by name.
    Software of others goes in only on request: docs/redistribution.md says which parts may be passed on.
    """
    from tsuishi.extras.handover import archive_runs

    archive_runs.archive(chain)


@task
def sign(chain: "Chain") -> None:
    """Sign archives by a key of SSH, each in a file beside it; signatures of others stay.

    A signature says who vouches for these bytes. It does not say whether other runs were thrown away.
    """
    from tsuishi.extras.handover import archive_runs

    archive_runs.sign(chain)


@task
def replay(chain: "Chain") -> None:
    """Measure the cases of an archive, or of a run, on this machine, and report both side by side.

    It runs the suites and workloads of this checkout, and stops where they differ from those of the run.
    """
    from tsuishi.extras.handover import replay

    replay.replay(chain)


@task
def publish(chain: "Chain") -> None:
    """Write the numbers of an archive as a published source: later reports compare with it. You add the claims."""
    from tsuishi.extras.handover import publishing

    publishing.publish(chain)
