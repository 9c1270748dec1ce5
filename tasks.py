"""The tasks: `invoke build run-suite report` is the main job, `invoke --list` shows the rest."""

from typing import TYPE_CHECKING

from tsuishi import extras
from tsuishi.commands.command_line import collected, task

if TYPE_CHECKING:  # tasks import modules when they run: `invoke --list` stays instant
    from tsuishi.commands.chain import Chain


@task
def build(chain: "Chain") -> None:
    """Fetch and verify what environments are made of, build them without network, and check what they report.

    Several are built at the same time, and nothing is built twice. An option of one task holds for the whole chain.
    """
    from tsuishi.commands import build

    build.build(chain)


@task
def lock(chain: "Chain") -> None:
    """Resolve locks anew and show what changed: versions, hashes, files, Debian packages, the digest of the base.

    It asks package indexes, apt repositories and the registry. All files of an environment are written, or none.
    """
    from tsuishi.commands import build

    build.lock(chain)


@task
def fetch(chain: "Chain") -> None:
    """Fill the cache with all parts of environments: packages, and base images where there is an engine.

    A machine without a network needs only a copy of this cache for `invoke build --offline`.
    """
    from tsuishi.commands import build

    build.fetch(chain.session)


@task
def images(chain: "Chain") -> None:
    """Show every built environment, also of older specs: size, base, lock, age, and whether it keeps its promises.

    Without --verify, sizes and times of files show whether a virtual environment has changed since its build.
    """
    from tsuishi.environments import inventory

    session = chain.session
    inventory.show(session.builder, session.screen, verify=chain.options.has("verify"))


@task
def fetch_data(chain: "Chain") -> None:
    """Fetch CIFAR-10 (170 MB) into the cache, verify it, and print its path; an interrupted download goes on.

    Without CIFAR-10, training uses made-up images of the same shape; every row says so.
    """
    from tsuishi.commands import build

    build.fetch_data(chain.session, chain.options.text("url"))


@task
def run_suite(chain: "Chain") -> None:
    """Run suites in environments and keep every trial under results/<run id>/.

    Each trial is a fresh process or container, in a shuffled and recorded order. Out of memory, unsupported, timeouts
    and failures are rows with reasons. Ctrl-C keeps what was measured; --resume goes on. Exit code 3: a trial failed.
    """
    from tsuishi.commands import run_suite

    run_suite.make_or_resume(chain)


@task
def report(chain: "Chain") -> None:
    """Render runs as reports/out/<run>/index.html, report.md, report.json and tables/*.csv, and print the path.

    Claims of published sources get a verdict each. Exit code 4: a claim has a verdict that --fail-on names; 5: no
    claim was tested.
    """
    from tsuishi.commands import report_runs

    report_runs.report(chain)


@task
def verify(chain: "Chain") -> None:
    """Read every file of runs and compare it with its digest; print a line for each fault.

    Prints the digest of the whole run. Exit code 1: something was altered, is older than verification, or is not signed
    by --signer.
    """
    from tsuishi.commands import verifying

    verifying.verify_all(chain)


@task
def list_(chain: "Chain") -> None:
    """Show environments, suites and runs, and what this machine can run or why it cannot."""
    from tsuishi.commands import listing

    if chain.options.has("sources"):
        listing.show_sources(chain.session, whole=chain.options.has("all"))
    else:
        listing.show(chain.session, whole=chain.options.has("all"))


@task
def doctor(chain: "Chain") -> None:
    """Check engine, GPU, driver, Pythons and disk; print a remedy for each missing thing.

    Shows everything that killed calls have left on this machine; things of a living process do not count.
    """
    from tsuishi.commands import listing
    from tsuishi.environments import doctor

    session = chain.session
    if chain.options.has("remove_strays"):
        doctor.remove_strays(session.builder, session.screen)
    else:
        doctor.examine(session.builder, session.nvml, session.screen, every=chain.options.has("all"))
        listing.show_conclusion(session)


@task
def clean(chain: "Chain") -> None:
    """Remove only things that tsuishi made; without options, only those that can be made again at no cost."""
    from tsuishi.commands import clean

    chosen = {name: chain.options.has(name) for name in ("images", "cache", "results")}
    clean.clean(chain.session, **chosen)


@task
def init(chain: "Chain") -> None:
    """Write tasks, images, suites, sources and templates into a folder, to change them; again: bring it up to date.

    A newer tsuishi replaces the files that you have not changed.
    """
    from tsuishi.commands import init

    init.init(chain)


@task
def lint(chain: "Chain") -> None:
    """Check specs, code (ruff, mypy; vermin: Python 3.6 for suites/workloads) and rendered Dockerfiles (hadolint)."""
    from tsuishi.commands import development

    development.lint(chain.variables)


@task
def advisories(chain: "Chain") -> None:
    """Ask OSV, by uv, for advisories on the packages of tsuishi itself; advisories.toml holds the acknowledged ids.

    Exit code 1: there is a new advisory, or the service did not answer.
    """
    from tsuishi.commands import development

    development.ask_advisories(chain.variables)


@task
def test(chain: "Chain") -> None:
    """Run the tests; their packages are installed into .venv first, from requirements-test.lock."""
    from tsuishi.commands import development

    options = chain.options
    development.test(chain.variables, select=options.text("select"), everything=options.has("all"))


namespace = collected(globals(), extras.modules("tasks"))
namespace.configure({"run": {"pty": False}})
