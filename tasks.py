"""The tasks: `invoke build run-suite report` is the main job, `invoke --list` shows the rest."""

from typing import Any

from invoke import Collection, Context, task

ENV = "environments, separated by commas; without it every default one this machine can make (see `invoke list`)"
SUITE = "suites, separated by commas; without it all"
ENGINE = "docker, venv or host; without it Docker where it answers, else venv"
PROFILE = "smoke (seconds a trial), quick (minutes in all) or full (the source's length)"
MIRRORS = "base images used in place of others: asked=used,asked=used (for machines that cannot reach the registry)"
HOST_PYTHON = "the interpreter of the environment `host`"
COMMON = {
    "env": ENV,
    "engine": ENGINE,
    "mirrors": MIRRORS,
    "host-python": HOST_PYTHON,
    "plan": "say what would be done, and stop",
}


def _session(ctx: Context) -> Any:
    from tsuishi import commands

    return commands.session(ctx.config)


@task(help=COMMON, auto_shortflags=False)
def build(
    ctx: Context, env: str = "", engine: str = "", mirrors: str = "", host_python: str = "", plan: bool = False
) -> None:
    """Fetch and verify what environments are made of, build them without network, and check what they report.

    What is built already is left alone. Options given to any task of a chain hold for all of it.
    """
    from tsuishi import commands

    commands.build(_session(ctx))


@task(
    name="fetch-data",
    auto_shortflags=False,
    help={"url": "fetch it from there; without it from tsuishi.data_urls, else from where it was published"},
)
def fetch_data(ctx: Context, url: str = "") -> None:
    """Fetch CIFAR-10 (170 MB) into the cache, verify it, and print where it is; goes on where it was interrupted.

    Without it training runs on made-up images of the same shape, and says so in every row.
    """
    from tsuishi import commands

    commands.fetch_data(_session(ctx))


@task(
    name="run-suite",
    auto_shortflags=False,
    help={
        **COMMON,
        "suite": SUITE,
        "profile": PROFILE,
        "repetitions": "independent trials of each case; without it what the suite says",
        "timeout": "seconds after which a trial is stopped; without it what the suite says",
        "seed": "decides the order of the trials",
        "accelerator": "cpu or cuda; without it the GPU wherever an environment can use it",
        "telemetry-interval": "seconds between telemetry rows, 0.1 to 60; 1 without it",
        "data": "CIFAR-10 as cifar-10-python.tar.gz, or a folder with it; without it the one `invoke fetch-data` got",
        "name": "goes into the run's id in place of the profile",
        "resume": "go on with the run of that id; `latest` for the latest one",
    },
)
def run_suite(
    ctx: Context,
    env: str = "",
    suite: str = "",
    profile: str = "",
    engine: str = "",
    repetitions: str = "",
    timeout: str = "",
    seed: str = "",
    accelerator: str = "",
    telemetry_interval: str = "",
    data: str = "",
    name: str = "",
    resume: str = "",
    mirrors: str = "",
    host_python: str = "",
    plan: bool = False,
) -> None:
    """Run suites in environments and keep every trial under results/<run id>/.

    Each trial is a fresh process or container, in a shuffled and recorded order. Out of memory, unsupported, timeouts
    and failures are rows with reasons. Ctrl-C keeps what was measured; --resume goes on. Exit code 3: a trial failed.
    """
    from tsuishi import commands

    commands.run_suite(_session(ctx))


@task(
    auto_shortflags=False,
    help={
        "run": "ids of runs, separated by commas; without it the one just made, else the latest",
        "out": "name of its folder under reports/out/",
        "lang": "language: en or ja; en without it",
        "fail-on": "exit with code 4 where a claim has one of these verdicts, as contradicted",
        "plan": COMMON["plan"],
    },
)
def report(ctx: Context, run: str = "", out: str = "", lang: str = "", fail_on: str = "", plan: bool = False) -> None:
    """Render runs as reports/out/<run>/index.html, report.md, report.json and tables/*.csv, and print where.

    Claims of published sources get a verdict each. Exit code 4: a claim has a verdict that --fail-on names.
    """
    from tsuishi import commands

    commands.report(_session(ctx))


@task(
    name="list",
    auto_shortflags=False,
    help={"sources": "show the published sources instead, with their claims"},
)
def list_(ctx: Context, sources: bool = False) -> None:
    """Show environments, suites and runs, and what this machine can run or why it cannot."""
    from tsuishi import commands

    commands.list_everything(_session(ctx), sources=sources)


@task(auto_shortflags=False)
def doctor(ctx: Context) -> None:
    """Check engine, GPU, driver, Pythons and disk; each thing that is missing comes with its remedy."""
    from tsuishi import commands

    commands.doctor(_session(ctx))


@task(
    auto_shortflags=False,
    help={
        "images": "remove images and virtual environments",
        "cache": "remove downloads as well",
        "results": "remove runs and reports (asked for by name only)",
    },
)
def clean(ctx: Context, images: bool = False, cache: bool = False, results: bool = False) -> None:
    """Remove what tsuishi made, and only that; without options, what can be made again at no cost."""
    from tsuishi import commands

    commands.clean(_session(ctx), images=images, cache=cache, results=results)


@task(auto_shortflags=False)
def lint(ctx: Context) -> None:
    """Check the specs, and the code with ruff, mypy and vermin (Python 3.6 for suites/workloads)."""
    from tsuishi import development

    development.lint()


@task(
    auto_shortflags=False,
    help={
        "select": "only tests whose name contains this",
        "quick": "leave out the tests that need an engine, a browser or old Pythons",
    },
)
def test(ctx: Context, select: str = "", quick: bool = False) -> None:
    """Run the tests; what they need beside is installed into .venv first, from requirements-test.lock."""
    from tsuishi import development

    development.test(select=select, quick=quick)


namespace = Collection(build, fetch_data, run_suite, report, list_, doctor, clean, lint, test)
namespace.configure({"run": {"pty": False}})
