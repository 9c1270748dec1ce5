"""The tasks: `invoke build run-suite report` is the main job, `invoke --list` shows the rest."""

from typing import TYPE_CHECKING

from invoke import Collection, task

from tsuishi.commands.command_line import read_chains

if TYPE_CHECKING:  # what a task needs is imported when it runs: `invoke --list` stays instant
    from tsuishi.commands.chain import ChainContext

ENV = "environments, separated by commas; without it every default one this machine can make (see `invoke list`)"
SUITE = "suites, separated by commas; without it all"
ENGINE = "docker, venv, host, apptainer or pyxis; without it Docker where it answers, else venv"
PROFILE = "smoke (seconds a trial), quick (minutes in all) or full (the source's length)"
MIRRORS = "base images used in place of others: asked=used,asked=used (for machines that cannot reach the registry)"
HOST_PYTHON = "the interpreter of the environment `host`"
OFFLINE = "use what is in the cache (see `invoke fetch`), and no network"
GPUS = "GPUs to use: all, how many (2), or which (device=0,1 or device=GPU-...); all without it"
LANG = "language: en or ja; en without it"
OUT = "name of its folder under reports/out/"
WAIT = "wait for another tsuishi that builds or measures here; without it, what it is in the way of is refused"
FAMILY = "every release of a framework's family that this machine can make, in place of --env: tensorflow or torch"
COMMON = {
    "env": ENV,
    "family": FAMILY,
    "engine": ENGINE,
    "mirrors": MIRRORS,
    "host-python": HOST_PYTHON,
    "wait": WAIT,
    "plan": "say what would be done, and stop",
}


@task(
    auto_shortflags=False,
    help={
        **COMMON,
        "jobs": "how many are built at the same time; without it as many as there are cores, and at most four",
        "offline": OFFLINE,
        "locked-only": "build what is locked; --no-locked-only makes the locks anew first, as `invoke lock` does",
    },
)
def build(
    ctx: "ChainContext",
    env: str = "",
    family: str = "",
    engine: str = "",
    jobs: str = "",
    offline: bool = False,
    mirrors: str = "",
    host_python: str = "",
    wait: bool = False,
    plan: bool = False,
    locked_only: bool = True,
) -> None:
    """Fetch and verify what environments are made of, build them without network, and check what they report.

    Several are built at the same time. What is built already is left alone, and what tsuishi.registry has is taken from
    there, if it holds. Options given to any task of a chain hold
    for all of it.
    """
    from tsuishi.commands import build

    build.build(ctx.chain, locked_only)


@task(
    auto_shortflags=False,
    help={
        "env": "environments, separated by commas",
        "like": "make an environment like this one, of another release of its framework",
        "release": "the release of the environment that is made, as 2.16.2; its packages are of the day it appeared",
        "mirrors": MIRRORS,
        "plan": "show the difference, and write nothing",
    },
)
def lock(
    ctx: "ChainContext", env: str = "", like: str = "", release: str = "", mirrors: str = "", plan: bool = False
) -> None:
    """Resolve locks anew and show what changed: versions, hashes, files, Debian packages, the digest of the base.

    It asks package indexes, apt repositories and the registry; of an environment all is written, or nothing.
    """
    from tsuishi.commands import build

    build.lock(ctx.chain)


@task(
    auto_shortflags=False,
    help={
        **{name: COMMON[name] for name in ("env", "engine", "mirrors")},
        "jobs": "how many are fetched at the same time",
    },
)
def fetch(ctx: "ChainContext", env: str = "", engine: str = "", jobs: str = "", mirrors: str = "") -> None:
    """Fill the cache with all that environments are built from: packages, and base images where there is an engine.

    Carried to a machine without a network, it is what `invoke build --offline` needs.
    """
    from tsuishi.commands import build

    build.fetch(ctx.chain.session)


@task(
    auto_shortflags=False,
    help={"verify": "read every file of virtual environments and compare it with what was built; exit code 1: altered"},
)
def images(ctx: "ChainContext", verify: bool = False) -> None:
    """Show what was built: size, base, lock, age, whether it keeps its promises, and what is left of older specs.

    Without --verify, sizes and times of files tell whether a virtual environment is as it was built.
    """
    from tsuishi.environments import inventory

    session = ctx.chain.session
    inventory.show(session.builder, session.screen, verify=verify)


@task(
    auto_shortflags=False,
    help={
        "env": "environments, separated by commas",
        "to": "folder to write to; exports/ without it; `registry`: the place that tsuishi.registry names",
    },
)
def export(ctx: "ChainContext", env: str = "", to: str = "") -> None:
    """Write built environments as files, with checksums, for machines without network or for later.

    They hold software of others: docs/redistribution.md says what of it may be passed on.
    """
    from tsuishi.environments import sharing

    session = ctx.chain.session
    sharing.export(session.builder, session.screen, session.choice.environments, to)


@task(
    name="import",
    auto_shortflags=False,
    help={
        "archive": "files that `invoke export` wrote, separated by commas",
        "engine": "docker, or apptainer or pyxis, which make a file of each; docker without it",
    },
)
def import_(ctx: "ChainContext", archive: str = "", engine: str = "") -> None:
    """Verify archives of environments, load them into the engine, and use them as if they had been built here."""
    from tsuishi.environments import exchange

    session, archives = ctx.chain.session, ctx.chain.options.paths("archive")
    exchange.import_archives(session.builder, session.screen, archives, session.build)


@task(
    name="fetch-data",
    auto_shortflags=False,
    help={"url": "fetch it from there; without it from tsuishi.data_urls, else from where it was published"},
)
def fetch_data(ctx: "ChainContext", url: str = "") -> None:
    """Fetch CIFAR-10 (170 MB) into the cache, verify it, and print where it is; goes on where it was interrupted.

    Without it training runs on made-up images of the same shape, and says so in every row.
    """
    from tsuishi.commands import build

    build.fetch_data(ctx.chain.session, url)


@task(
    name="run-suite",
    auto_shortflags=False,
    help={
        **COMMON,
        "suite": SUITE,
        "profile": PROFILE,
        "repetitions": "independent trials of each case; without it what the suite says",
        "timeout": "seconds after which a trial is stopped; without it what the suite says",
        "within": "how long it may take, from the command to the report: 90s, 10m, 2h, or none (run everything); "
        "10m without it",
        "seed": "decides the order of the trials",
        "accelerator": "cpu or cuda; without it the GPU wherever an environment can use it",
        "force": "use environments on a GPU newer than their code, if they pass a numerical self-check; rows say so",
        "gpus": GPUS,
        "busy-gpu": "where another program uses the GPUs: wait (up to tsuishi.gpu_wait_s), refuse or use; else wait",
        "telemetry-interval": "seconds between telemetry rows, 0.1 to 60; 1 without it; 0.1 as a phase begins",
        "data": "CIFAR-10 as cifar-10-python.tar.gz, or a folder with it; without it the one `invoke fetch-data` got",
        "executor": "local or slurm: trials run here, or as arrays of a cluster; a resumed run goes on where it was",
        "partition": "the partition of Slurm for the trials' jobs",
        "account": "the account of Slurm for the trials' jobs",
        "gres": "what Slurm gives each trial, as gpu:2; without it each trial has its node alone",
        "constraint": "features that nodes must have, as for sbatch",
        "time": "the limit of a job of Slurm, as 2:00:00; without it the time of the longest trial and five minutes",
        "gpu-hours": "the most GPU-hours that jobs of a cluster may take, as --within; no limit without it",
        "nodes": "cases over as many nodes of a cluster too, started by torchrun; 1 without it",
        "name": "goes into the run's id in place of the profile",
        "resume": "go on with the run of that id; `latest` for the latest one",
    },
)
def run_suite(
    ctx: "ChainContext",
    env: str = "",
    family: str = "",
    suite: str = "",
    profile: str = "",
    engine: str = "",
    repetitions: str = "",
    timeout: str = "",
    within: str = "",
    seed: str = "",
    accelerator: str = "",
    force: bool = False,
    gpus: str = "",
    busy_gpu: str = "",
    telemetry_interval: str = "",
    data: str = "",
    executor: str = "",
    partition: str = "",
    account: str = "",
    gres: str = "",
    constraint: str = "",
    time: str = "",
    gpu_hours: str = "",
    nodes: str = "",
    name: str = "",
    resume: str = "",
    mirrors: str = "",
    host_python: str = "",
    wait: bool = False,
    plan: bool = False,
) -> None:
    """Run suites in environments and keep every trial under results/<run id>/.

    Each trial is a fresh process or container, in a shuffled and recorded order. Out of memory, unsupported, timeouts
    and failures are rows with reasons. Ctrl-C keeps what was measured; --resume goes on. Exit code 3: a trial failed.
    """
    from tsuishi.commands import run_suite

    run_suite.run_suite(ctx.chain)


@task(
    auto_shortflags=False,
    help={
        "suite": "the suite of the case",
        "case": "the case, as protocol=literal,devices=3; an axis that is not named has its usual value",
        "quantity": "what is compared, as later_run_s",
        "from": "the environment of the oldest release",
        "to": "the environment of the newest release",
        "all": "visit every release, and find all changes; without it a bisection finds one",
        "within": "how long it may take: 90s, 10m, 2h; no limit without it",
        **{name: COMMON[name] for name in ("engine", "mirrors", "wait", "plan")},
        "profile": PROFILE,
        "accelerator": "cpu or cuda; without it the GPU wherever an environment can use it",
        "seed": "decides the order of the trials of a round",
        "name": "goes into the run's id in place of `find`",
        "resume": "go on with the search of that run, with the options that it began with; `latest` for the latest run",
    },
)
def find(
    ctx: "ChainContext",
    suite: str = "",
    case: str = "",
    quantity: str = "",
    from_: str = "",
    to: str = "",
    all_: bool = False,
    within: str = "",
    engine: str = "",
    mirrors: str = "",
    profile: str = "",
    accelerator: str = "",
    seed: str = "",
    name: str = "",
    resume: str = "",
    wait: bool = False,
    plan: bool = False,
) -> None:
    """Find the release of a framework that changed a value: measure both ends in turns, then releases between them.

    It names a wrong pair of releases in at most 5 % of searches. Environments are built when they are needed.
    """
    from tsuishi.commands import find

    find.find(ctx.chain)


@task(
    auto_shortflags=False,
    help={
        "run": "ids of runs, separated by commas; without it the one just made, else the latest",
        "archive": "archives, or folders of archives, separated by commas; their runs are reported too",
        "out": OUT,
        "lang": LANG,
        "baseline": "earlier runs, or files that `invoke archive` wrote, separated by commas: what is slower now",
        "history": "draw the sessions of all your runs on this machine, in the same environments, over time",
        "fail-on": "exit with code 4 where a claim has one of these verdicts, as contradicted; or where a case is "
        "certainly slower than its --baseline: slower, or slower:1.05 for more than 1.05 times as long; with code 5 "
        "where no claim was tested, or no case compared",
        "all-charts": "write every chart as SVG, also those that the page draws when a section is opened",
        "plan": COMMON["plan"],
    },
)
def report(
    ctx: "ChainContext",
    run: str = "",
    archive: str = "",
    out: str = "",
    lang: str = "",
    baseline: str = "",
    history: bool = False,
    fail_on: str = "",
    all_charts: bool = False,
    plan: bool = False,
) -> None:
    """Render runs as reports/out/<run>/index.html, report.md, report.json and tables/*.csv, and print where.

    Claims of published sources get a verdict each. Exit code 4: a claim has a verdict that --fail-on names; 5: none was
    tested.
    """
    from tsuishi.commands import report_runs

    report_runs.report(ctx.chain)


@task(
    auto_shortflags=False,
    help={
        "run": "ids or paths of runs, separated by commas; without it the latest",
        "archive": "files that `invoke archive` wrote, separated by commas",
        "signer": "who must have signed the archives: a public key of SSH, or a file of allowed signers",
    },
)
def verify(ctx: "ChainContext", run: str = "", archive: str = "", signer: str = "") -> None:
    """Read every file of runs or archives and compare it with what was written; a line for each fault.

    Prints the digest that stands for the whole. Exit code 1: something was altered, is older than verification, or is
    not signed by --signer.
    """
    from tsuishi.commands import verifying

    verifying.verify_all(ctx.chain)


@task(
    auto_shortflags=False,
    help={
        "run": "ids or paths of runs, separated by commas; without it the one just made, else the latest",
        "to": "folder to write to, or a name that ends with .zip; archives/ without it",
        "with-images": "also the images of the environments, as `invoke export` writes them",
        "with-artifacts": "also the packages that the environments are built from, out of the cache",
        "anonymous": "put words in the place of users, homes, hosts and secrets; the archive says so",
    },
)
def archive(
    ctx: "ChainContext",
    run: str = "",
    to: str = "",
    with_images: bool = False,
    with_artifacts: bool = False,
    anonymous: bool = False,
) -> None:
    """Write verified runs with inputs, bills of materials and their report as a single file for others.

    The same runs give the same bytes. What has the form of a secret, or is a secret of yours, is refused by name.
    Software of others goes in only where asked for: docs/redistribution.md says what of it may be passed on.
    """
    from tsuishi.commands import archive_runs

    archive_runs.archive(ctx.chain)


@task(
    auto_shortflags=False,
    help={
        "archive": "files that `invoke archive` wrote, separated by commas",
        "key": "a key of SSH: the private key, or the public key where an agent holds the private key",
    },
)
def sign(ctx: "ChainContext", archive: str = "", key: str = "") -> None:
    """Sign archives by a key of SSH, each in a file beside it; signatures of others stay.

    A signature says who vouches for these bytes. It does not say that no other run was thrown away.
    """
    from tsuishi.commands import archive_runs

    archive_runs.sign(ctx.chain)


@task(
    auto_shortflags=False,
    help={
        "original": "an archive, or the id or path of a run",
        "within": "as many trials as there is time for, as 10m; without it each trial of the run once",
        "signer": "public key, or file of allowed signers: run the suites and workloads of the archive, in containers",
        "name": "goes into the run's id in place of `replay`",
        "engine": "docker, venv or host; without it the engine of the run",
        "offline": OFFLINE,
        "gpus": GPUS,
        "lang": LANG,
        "out": OUT,
        **{name: COMMON[name] for name in ("mirrors", "host-python", "wait", "plan")},
    },
)
def replay(
    ctx: "ChainContext",
    original: str,
    within: str = "",
    signer: str = "",
    name: str = "",
    engine: str = "",
    offline: bool = False,
    gpus: str = "",
    lang: str = "",
    out: str = "",
    wait: bool = False,
    plan: bool = False,
    host_python: str = "",
    mirrors: str = "",
) -> None:
    """Measure the cases of an archive, or of a run, on this machine, and report both side by side.

    It runs the suites and workloads of this checkout, and stops where they are others than those of the run.
    """
    from tsuishi.commands import replaying

    replaying.replay(ctx.chain, original)


@task(
    auto_shortflags=False,
    help={
        "archive": "a file that `invoke archive` wrote",
        "name": "of the source: reports/published/<name>.toml",
        "title": "what it is, in a line",
    },
)
def publish(ctx: "ChainContext", archive: str, name: str = "", title: str = "") -> None:
    """Write the numbers of an archive as a published source: later reports compare with it. Claims are yours to add."""
    from tsuishi.commands import publishing

    publishing.publish(ctx.chain, archive)


@task(
    name="try-script",
    auto_shortflags=False,
    help={
        "script": "the script, which is copied to suites/; of a notebook, its code cells are",
        "env": "one environment",
        "engine": ENGINE,
        "arguments": "arguments for the script, in quotes",
        "files": "files and folders below its own that it needs, separated by commas: they are copied to suites/",
        "data": "files and folders that it only reads, relative to its folder: they stay where they are",
        "timeout": "seconds after which it is stopped; 600 without it",
        "host-python": HOST_PYTHON,
        "wait": WAIT,
    },
)
def try_script(
    ctx: "ChainContext",
    script: str,
    env: str = "",
    engine: str = "",
    arguments: str = "",
    files: str = "",
    data: str = "",
    timeout: str = "",
    host_python: str = "",
    wait: bool = False,
) -> None:
    """Run a script once, propose patterns for the numbers that it prints, and write its suite.

    Every proposal is shown with a line that it found.
    """
    from tsuishi.commands import try_script

    try_script.try_script(ctx.chain, script)


@task(
    name="list",
    auto_shortflags=False,
    help={"sources": "show the published sources instead, with their claims"},
)
def list_(ctx: "ChainContext", sources: bool = False) -> None:
    """Show environments, suites and runs, and what this machine can run or why it cannot."""
    from tsuishi.commands import listing

    if sources:
        listing.show_sources(ctx.chain.session)
    else:
        listing.show(ctx.chain.session)


@task(
    auto_shortflags=False,
    help={"remove-strays": "remove what calls that were killed have left: processes, containers, folders"},
)
def doctor(ctx: "ChainContext", remove_strays: bool = False) -> None:
    """Check engine, GPU, driver, Pythons and disk; each thing that is missing comes with its remedy.

    Shows what killed calls have left on this machine. Nothing of a living process counts as left.
    """
    from tsuishi.environments import doctor

    session = ctx.chain.session
    if remove_strays:
        doctor.remove_strays(session.builder, session.screen)
    else:
        doctor.examine(session.builder, session.nvml, session.screen)


@task(
    auto_shortflags=False,
    help={
        "images": "remove images and virtual environments",
        "cache": "remove downloads and base images kept for later as well",
        "results": "remove runs and reports (asked for by name only)",
    },
)
def clean(ctx: "ChainContext", images: bool = False, cache: bool = False, results: bool = False) -> None:
    """Remove what tsuishi made, and only that; without options, what can be made again at no cost."""
    from tsuishi.commands import clean

    clean.clean(ctx.chain.session, images=images, cache=cache, results=results)


@task(
    auto_shortflags=False,
    help={"advisories": "fail, too, where no service could be asked for advisories on packages"},
)
def lint(ctx: "ChainContext", advisories: bool = False) -> None:
    """Check specs, code (ruff, mypy; vermin: Python 3.6 for suites/workloads) and rendered Dockerfiles (hadolint).

    Asks for advisories on tsuishi's own packages (uv audit, OSV); advisories.toml holds those that were read.
    """
    from tsuishi.commands import development

    development.lint(ctx.chain.variables, advisories)


@task(
    auto_shortflags=False,
    help={
        "select": "only tests whose name contains this",
        "all": "also the tests that need an engine, a browser, old Pythons or root",
    },
)
def test(ctx: "ChainContext", select: str = "", all: bool = False) -> None:
    """Run the tests; what they need beside is installed into .venv first, from requirements-test.lock."""
    from tsuishi.commands import development

    development.test(ctx.chain.variables, select=select, everything=all)


namespace = Collection(
    *(
        build,
        lock,
        fetch,
        images,
        export,
        import_,
        fetch_data,
        run_suite,
        find,
        report,
        verify,
        replay,
        archive,
        sign,
        publish,
        try_script,
        list_,
        doctor,
        clean,
        lint,
        test,
    )
)
namespace.configure({"run": {"pty": False}})
read_chains()
