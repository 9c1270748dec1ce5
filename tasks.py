"""The tasks: `invoke build run-suite report` is the main job, `invoke --list` shows the rest."""

from typing import TYPE_CHECKING

from tsuishi import extras
from tsuishi.commands.command_line import collected, task

if TYPE_CHECKING:  # what a task needs is imported when it runs: `invoke --list` stays instant
    from tsuishi.commands.chain import ChainContext


@task
def build(ctx: "ChainContext") -> None:
    """Fetch and verify what environments are made of, build them without network, and check what they report.

    Several are built at the same time, and nothing is built twice. Options given to any task of a chain hold for all of
    it.
    """
    from tsuishi.commands import build

    build.build(ctx.chain)


@task
def lock(ctx: "ChainContext") -> None:
    """Resolve locks anew and show what changed: versions, hashes, files, Debian packages, the digest of the base.

    It asks package indexes, apt repositories and the registry; of an environment all is written, or nothing.
    """
    from tsuishi.commands import build

    build.lock(ctx.chain)


@task
def fetch(ctx: "ChainContext") -> None:
    """Fill the cache with all that environments are built from: packages, and base images where there is an engine.

    Carried to a machine without a network, it is what `invoke build --offline` needs.
    """
    from tsuishi.commands import build

    build.fetch(ctx.chain.session)


@task
def images(ctx: "ChainContext") -> None:
    """Show what was built: size, base, lock, age, whether it keeps its promises, and what is left of older specs.

    Without --verify, sizes and times of files tell whether a virtual environment is as it was built.
    """
    from tsuishi.environments import inventory

    session = ctx.chain.session
    inventory.show(session.builder, session.screen, verify=ctx.chain.options.has("verify"))


@task
def fetch_data(ctx: "ChainContext") -> None:
    """Fetch CIFAR-10 (170 MB) into the cache, verify it, and print where it is; goes on where it was interrupted.

    Without it training runs on made-up images of the same shape, and says so in every row.
    """
    from tsuishi.commands import build

    build.fetch_data(ctx.chain.session, ctx.chain.options.text("url"))


@task
def run_suite(ctx: "ChainContext") -> None:
    """Run suites in environments and keep every trial under results/<run id>/.

    Each trial is a fresh process or container, in a shuffled and recorded order. Out of memory, unsupported, timeouts
    and failures are rows with reasons. Ctrl-C keeps what was measured; --resume goes on. Exit code 3: a trial failed.
    """
    from tsuishi.commands import run_suite

    run_suite.run_suite(ctx.chain)


@task
def report(ctx: "ChainContext") -> None:
    """Render runs as reports/out/<run>/index.html, report.md, report.json and tables/*.csv, and print where.

    Claims of published sources get a verdict each. Exit code 4: a claim has a verdict that --fail-on names; 5: none was
    tested.
    """
    from tsuishi.commands import report_runs

    report_runs.report(ctx.chain)


@task
def verify(ctx: "ChainContext") -> None:
    """Read every file of runs and compare it with what was written; a line for each fault.

    Prints the digest that stands for the whole. Exit code 1: something was altered, is older than verification, or is
    not signed by --signer.
    """
    from tsuishi.commands import verifying

    verifying.verify_all(ctx.chain)


@task
def list_(ctx: "ChainContext") -> None:
    """Show environments, suites and runs, and what this machine can run or why it cannot."""
    from tsuishi.commands import listing

    if ctx.chain.options.has("sources"):
        listing.show_sources(ctx.chain.session)
    else:
        listing.show(ctx.chain.session)


@task
def doctor(ctx: "ChainContext") -> None:
    """Check engine, GPU, driver, Pythons and disk; each thing that is missing comes with its remedy.

    Shows what killed calls have left on this machine. Nothing of a living process counts as left.
    """
    from tsuishi.environments import doctor

    session = ctx.chain.session
    if ctx.chain.options.has("remove_strays"):
        doctor.remove_strays(session.builder, session.screen)
    else:
        doctor.examine(session.builder, session.nvml, session.screen)


@task
def clean(ctx: "ChainContext") -> None:
    """Remove what tsuishi made, and only that; without options, what can be made again at no cost."""
    from tsuishi.commands import clean

    chosen = {name: ctx.chain.options.has(name) for name in ("images", "cache", "results")}
    clean.clean(ctx.chain.session, **chosen)


@task
def lint(ctx: "ChainContext") -> None:
    """Check specs, code (ruff, mypy; vermin: Python 3.6 for suites/workloads) and rendered Dockerfiles (hadolint)."""
    from tsuishi.commands import development

    development.lint(ctx.chain.variables)


@task
def advisories(ctx: "ChainContext") -> None:
    """Ask OSV, by uv, for advisories on the packages of tsuishi itself; advisories.toml holds those that were read.

    Exit code 1: there is a new advisory, or the service did not answer.
    """
    from tsuishi.commands import development

    development.ask_advisories(ctx.chain.variables)


@task
def test(ctx: "ChainContext") -> None:
    """Run the tests; what they need beside is installed into .venv first, from requirements-test.lock."""
    from tsuishi.commands import development

    options = ctx.chain.options
    development.test(ctx.chain.variables, select=options.text("select"), everything=options.has("all"))


namespace = collected(globals(), extras.modules("tasks"))
namespace.configure({"run": {"pty": False}})
