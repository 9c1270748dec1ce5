"""The options of all tasks: each is a row of one table.

The parameters of tasks, help texts, the settings that flags change, the arguments that a run records, and refusals
derive from the rows. A setting has its type, bounds and default in settings.py alone: the row of its option names it,
and the help takes them from there. This module imports nothing heavy, as `invoke --list` reads it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from tsuishi.base.errors import UserError

MAIN_JOB = ("build", "run-suite", "report")
# From a flag and its text to a value. Raises UserError for a wrong text.
Reader = Callable[[str, str], Any]


def names(flag: str, text: str) -> tuple[str, ...]:
    """The names in a list with commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def whole_number(least: int) -> Reader:
    """The reader of a whole number from `least`."""

    def read(flag: str, text: str) -> int:
        number = int(text) if text.strip().lstrip("+-").isdecimal() else least - 1
        if number < least:
            raise UserError(f"{flag} takes a whole number from {least}; given: {text}")
        return number

    return read


def positive(flag: str, text: str) -> float:
    """A number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise UserError(f"{flag} takes a number above 0; given: {text}")
    return number


def word(*known: str) -> Reader:
    """The reader of a known word."""

    def read(flag: str, text: str) -> str:
        if text not in known:
            raise UserError(f"{flag} takes {', '.join(known)}; given: {text}")
        return text

    return read


def text(flag: str, text: str) -> str:
    """The text as it is given."""
    return text


@dataclass(frozen=True)
class Option:
    """An option of one task or more.

    help: may name the {values}, {bounds} and {default} of the setting.
    """

    name: str  # as it is typed: host-python
    tasks: tuple[str, ...]
    help: str
    # True or False for a switch with this default; None for an option with a value.
    switch: bool | None = None
    read: Reader = text
    # Whether the value may stand without the flag, and has to be given.
    positional: bool = False
    # The setting that it changes, or the field of plan.choice.Choice that it fills.
    setting: str = ""
    choice: str = ""
    # Whether a run records it among its arguments.
    recorded: bool = False
    # Whether it decides the plan of a run, which --resume cannot change; whether only a cluster has a use for it.
    plans: bool = False
    of_cluster: bool = False

    @property
    def parameter(self) -> str:
        """Its name in Python, and among the arguments of a run: host_python."""
        return self.name.replace("-", "_")

    @property
    def flag(self) -> str:
        """--host-python."""
        return f"--{self.name}"

    def told(self) -> str:
        """The help text, with what the setting says."""
        return self.help.format(**_facts(self.setting)) if self.setting and "{" in self.help else self.help


def options_of(tasks: Iterable[str], rows: Sequence[Option] | None = None) -> list[Option]:
    """The rows of these tasks, in the table's order, each once."""
    asked = {*tasks}
    return [row for row in (OPTIONS if rows is None else rows) if asked & {*row.tasks}]


def _facts(setting: str) -> dict[str, str]:
    """What the help of an option takes from its setting."""
    from tsuishi.base.settings import Settings

    field = Settings.model_fields[setting]
    bounds = {name: getattr(limit, name) for limit in field.metadata for name in ("ge", "le") if hasattr(limit, name)}
    values = [value for value in get_args(field.annotation) if value != "auto"]
    default = field.default
    return {
        "values": " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
        if get_origin(field.annotation) is Literal
        else "",
        "bounds": " to ".join(f"{bound:g}" for bound in bounds.values()),
        "default": f"{default:g}" if isinstance(default, float) else str(default),
    }


_MEASURE = ("build", "run-suite")
_NAMES = "environments, separated by commas"
_RUNS = "ids or paths of runs, separated by commas; without it"

# A run records arguments in this order.
OPTIONS: tuple[Option, ...] = (
    Option(
        "env",
        _MEASURE,
        f"{_NAMES}; without it every default one this machine can make (see `invoke list`)",
        read=names,
        choice="environments",
        recorded=True,
        plans=True,
    ),
    Option("env", ("fetch", "lock", "export"), _NAMES, read=names, choice="environments"),
    Option("env", ("try-script",), "one environment", read=names, choice="environments"),
    Option(
        "family",
        _MEASURE,
        "every release of a framework's family that this machine can make, in place of --env: tensorflow or torch",
        plans=True,
    ),
    Option(
        "suite",
        ("run-suite", "find"),
        "suites, separated by commas; without it all; `find` takes one",
        read=names,
        choice="suites",
        recorded=True,
        plans=True,
    ),
    Option(
        "within",
        ("run-suite",),
        "how long it may take, from the command to the report: 90s, 10m, 2h, or none (run everything); "
        "{default} without it",
        setting="within",
        recorded=True,
    ),
    Option(
        "within",
        ("replay",),
        "as many trials as there is time for, as 10m; without it each trial of the run once",
        setting="within",
    ),
    Option(
        "profile",
        ("run-suite", "find"),
        "smoke (seconds a trial), quick (minutes in all) or full (the source's length)",
        choice="profile",
        recorded=True,
        plans=True,
    ),
    Option(
        "repetitions",
        ("run-suite",),
        "independent trials of each case; without it what the suite says",
        read=whole_number(1),
        choice="repetitions",
        recorded=True,
        plans=True,
    ),
    Option(
        "timeout",
        ("run-suite", "try-script"),
        "seconds after which a trial is stopped; without it what the suite says, and 600 for a script",
        read=whole_number(1),
        choice="timeout_s",
        recorded=True,
    ),
    Option(
        "seed",
        ("run-suite", "find"),
        "decides the order of the trials",
        read=whole_number(0),
        choice="seed",
        recorded=True,
        plans=True,
    ),
    Option(
        "accelerator",
        ("run-suite", "find"),
        "cpu or cuda; without it the GPU wherever an environment can use it",
        read=word("auto", "cpu", "cuda"),
        choice="accelerator",
        recorded=True,
        plans=True,
    ),
    Option(
        "force",
        ("run-suite",),
        "use environments on a GPU newer than their code, if they pass a numerical self-check; rows say so",
        switch=False,
        choice="force",
        recorded=True,
        plans=True,
    ),
    Option(
        "engine",
        (*_MEASURE, "fetch", "find", "try-script"),
        "{values}; without it Docker where it answers, else venv",
        setting="engine",
        recorded=True,
    ),
    Option("engine", ("replay",), "docker, venv or host; without it the engine of the run", setting="engine"),
    Option(
        "engine",
        ("import",),
        "docker, or apptainer or pyxis, which make a file of each; docker without it",
        setting="engine",
    ),
    Option(
        "executor",
        ("run-suite",),
        "{values}: trials run here, or as arrays of a cluster; a resumed run goes on where it was",
        setting="executor",
        recorded=True,
    ),
    Option(
        "nodes",
        ("run-suite",),
        "cases over as many nodes of a cluster too, started by torchrun; 1 without it",
        read=whole_number(1),
        choice="nodes",
        recorded=True,
        plans=True,
        of_cluster=True,
    ),
    Option(
        "gpu-hours",
        ("run-suite",),
        "the most GPU-hours that jobs of a cluster may take, as --within; no limit without it",
        read=positive,
        choice="gpu_hours",
        recorded=True,
        of_cluster=True,
    ),
    Option(
        "gpus",
        ("run-suite", "replay"),
        "GPUs to use: all, how many (2), or which (device=0,1 or device=GPU-...); {default} without it",
        setting="gpus",
        recorded=True,
    ),
    Option(
        "busy-gpu",
        ("run-suite",),
        "where another program uses the GPUs: {values} (wait: up to tsuishi.gpu_wait_s); {default} without it",
        setting="busy_gpu",
        recorded=True,
    ),
    Option(
        "mirrors",
        (*_MEASURE, "lock", "fetch", "find", "replay"),
        "base images used in place of others: asked=used,asked=used (for machines that cannot reach the registry)",
        setting="mirrors",
        recorded=True,
    ),
    Option(
        "host-python",
        (*_MEASURE, "replay", "try-script"),
        "the interpreter of the environment `host`; {default} without it",
        setting="host_python",
        recorded=True,
    ),
    Option(
        "telemetry-interval",
        ("run-suite",),
        "seconds between telemetry rows, {bounds}; {default} without it; 0.1 as a phase begins",
        setting="telemetry_interval",
        recorded=True,
    ),
    Option(
        "data",
        ("run-suite",),
        "CIFAR-10 as cifar-10-python.tar.gz, or a folder with it; without it the one `invoke fetch-data` got",
        setting="data",
        recorded=True,
    ),
    Option(
        "within",
        ("find",),
        "how long it may take: 90s, 10m, 2h; no limit without it",
        setting="within",
        recorded=True,
    ),
    Option(
        "partition",
        ("run-suite",),
        "the partition of Slurm for the trials' jobs",
        setting="slurm_partition",
        of_cluster=True,
    ),
    Option(
        "account", ("run-suite",), "the account of Slurm for the trials' jobs", setting="slurm_account", of_cluster=True
    ),
    Option(
        "gres",
        ("run-suite",),
        "what Slurm gives each trial, as gpu:2; without it each trial has its node alone",
        setting="slurm_gres",
        of_cluster=True,
    ),
    Option(
        "constraint",
        ("run-suite",),
        "features that nodes must have, as for sbatch",
        setting="slurm_constraint",
        of_cluster=True,
    ),
    Option(
        "time",
        ("run-suite",),
        "the limit of a job of Slurm, as 2:00:00; without it the time of the longest trial and five minutes",
        setting="slurm_time",
        of_cluster=True,
    ),
    Option(
        "name",
        ("run-suite", "find", "replay"),
        "goes into the run's id in place of the profile, `find` or `replay`",
        plans=True,
    ),
    Option(
        "resume", ("run-suite", "find"), "go on with the run of that id, as it was planned; `latest` for the latest one"
    ),
    Option(
        "wait",
        (*_MEASURE, "find", "replay", "try-script"),
        "wait for another tsuishi that builds or measures here; without it, what it is in the way of is refused",
        switch=False,
        setting="wait",
    ),
    Option(
        "offline",
        ("build", "replay"),
        "use what is in the cache (see `invoke fetch`), and no network",
        switch=False,
        setting="offline",
    ),
    Option(
        "jobs",
        ("build", "fetch"),
        "how many environments are built or fetched at the same time; without it as many as there are cores, and at "
        "most four",
        setting="jobs",
    ),
    Option(
        "locked-only",
        ("build",),
        "build what is locked; --no-locked-only makes the locks anew first, as `invoke lock` does",
        switch=True,
    ),
    Option("plan", (*MAIN_JOB, "find", "replay"), "say what would be done, and stop", switch=False, plans=True),
    Option("plan", ("lock",), "show the difference, and write nothing", switch=False),
    Option("like", ("lock",), "make an environment like this one, of another release of its framework"),
    Option(
        "release",
        ("lock",),
        "the release of the environment that is made, as 2.16.2; its packages are of the day it appeared",
    ),
    Option(
        "url",
        ("fetch-data",),
        "fetch it from there; without it from tsuishi.data_urls, else from where it was published",
    ),
    Option(
        "verify",
        ("images",),
        "read every file of virtual environments and compare it with what was built; exit code 1: altered",
        switch=False,
    ),
    Option("case", ("find",), "the case, as protocol=literal,devices=3; an axis that is not named has its usual value"),
    Option("quantity", ("find",), "what is compared, as later_run_s"),
    Option("from", ("find",), "the environment of the oldest release"),
    Option("to", ("find",), "the environment of the newest release"),
    Option(
        "all", ("find",), "visit every release, and find all changes; without it a bisection finds one", switch=False
    ),
    Option("original", ("replay",), "an archive, or the id or path of a run", positional=True),
    Option("run", ("report", "archive"), f"{_RUNS} the one just made, else the latest"),
    Option("run", ("verify",), f"{_RUNS} the latest"),
    Option(
        "archive", ("report",), "archives, or folders of archives, separated by commas; their runs are reported too"
    ),
    Option("archive", ("verify", "sign"), "files that `invoke archive` wrote, separated by commas"),
    Option("archive", ("import",), "files that `invoke export` wrote, separated by commas"),
    Option("archive", ("publish",), "a file that `invoke archive` wrote", positional=True),
    Option("name", ("publish",), "of the source: reports/published/<name>.toml"),
    Option("title", ("publish",), "what it is, in a line"),
    Option(
        "signer", ("verify",), "who must have signed the archives: a public key of SSH, or a file of allowed signers"
    ),
    Option(
        "signer",
        ("replay",),
        "public key, or file of allowed signers: run the suites and workloads of the archive, in containers",
    ),
    Option("key", ("sign",), "a key of SSH: the private key, or the public key where an agent holds the private key"),
    Option("out", ("report", "replay"), "name of its folder under reports/out/"),
    Option("lang", ("report", "replay"), "language: en or ja; {default} without it", setting="lang"),
    Option(
        "baseline",
        ("report",),
        "earlier runs, or files that `invoke archive` wrote, separated by commas: what is slower now",
    ),
    Option(
        "history",
        ("report",),
        "draw the sessions of all your runs on this machine, in the same environments, over time",
        switch=False,
    ),
    Option(
        "fail-on",
        ("report",),
        "exit with code 4 where a claim has one of these verdicts, as contradicted; or where a case is "
        "certainly slower than its --baseline: slower, or slower:1.05 for more than 1.05 times as long; with code 5 "
        "where no claim was tested, or no case compared",
    ),
    Option(
        "all-charts",
        ("report",),
        "write every chart as SVG, also those that the page draws when a section is opened",
        switch=False,
    ),
    Option(
        "to",
        ("export",),
        "folder to write to; exports/ without it; `registry`: the place that tsuishi.registry names",
    ),
    Option("to", ("archive",), "folder to write to, or a name that ends with .zip; archives/ without it"),
    Option(
        "with-images",
        ("archive",),
        "also the images of the environments, as `invoke export` writes them",
        switch=False,
    ),
    Option(
        "with-artifacts",
        ("archive",),
        "also the packages that the environments are built from, out of the cache",
        switch=False,
    ),
    Option(
        "anonymous",
        ("archive",),
        "put words in the place of users, homes, hosts and secrets; the archive says so",
        switch=False,
    ),
    Option(
        "script",
        ("try-script",),
        "the script, which is copied to suites/; of a notebook, its code cells are",
        positional=True,
    ),
    Option("arguments", ("try-script",), "arguments for the script, in quotes"),
    Option(
        "files",
        ("try-script",),
        "files and folders below its own that it needs, separated by commas: they are copied to suites/",
    ),
    Option(
        "data",
        ("try-script",),
        "files and folders that it only reads, relative to its folder: they stay where they are",
    ),
    Option("sources", ("list",), "show the published sources instead, with their claims", switch=False),
    Option(
        "remove-strays",
        ("doctor",),
        "remove what calls that were killed have left: processes, containers, folders",
        switch=False,
    ),
    Option("images", ("clean",), "remove images and virtual environments", switch=False),
    Option("cache", ("clean",), "remove downloads and base images kept for later as well", switch=False),
    Option("results", ("clean",), "remove runs and reports (asked for by name only)", switch=False),
    Option(
        "advisories", ("lint",), "fail, too, where no service could be asked for advisories on packages", switch=False
    ),
    Option("select", ("test",), "only tests whose name contains this"),
    Option("all", ("test",), "also the tests that need an engine, a browser, old Pythons or root", switch=False),
)
