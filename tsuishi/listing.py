"""What there is, what this machine can do, and what is missing: `invoke list` and `invoke doctor`."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tsuishi import console, plan, store
from tsuishi.claims import Claim
from tsuishi.engines.pythons import find_python, full_version
from tsuishi.environment import Environment, known_environments, read_environment
from tsuishi.errors import UserError
from tsuishi.published import Source, read_sources
from tsuishi.session import Session, free_bytes
from tsuishi.suite import PROFILES, known_suites, read_suite

# Below this, building all default environments is likely to fail.
_COMFORTABLE_DISK_BYTES = 15e9


def show(work: Session) -> None:
    """Environments, suites and runs in three tables."""
    rows = [_environment_row(work, read_environment(path)) for path in known_environments(work.rooms.images).values()]
    work.screen.table("Environments", ("name", "what", "default", "engine", "state", "computes on"), rows)
    suites = [read_suite(path) for path in known_suites(work.rooms.suites).values()]
    work.screen.table(
        "Suites",
        ("name", "what", "source", *(f"cases, {profile}" for profile in PROFILES)),
        [
            (suite.name, suite.title, suite.source or "", *(len(list(suite.cases(p, "cpu"))) for p in PROFILES))
            for suite in suites
        ],
    )
    runs = [_run_row(path) for path in store.known_runs(work.settings.results).values()]
    work.screen.table("Runs", ("id", "profile", "environments", "trials", "done"), runs)
    if not runs:
        work.screen.say("none yet: invoke build run-suite report")


def show_sources(work: Session) -> None:
    """Published sources in one table, and the claims of each in one of its own. A wrong file is a UserError."""
    sources = read_sources(work.rooms.published)
    headers = ("name", "date", "hardware", "numbers", "claims", "what")
    work.screen.table("Sources", headers, [_source_row(source) for source in sources])
    for source in sources:
        claims = [(claim.id, claim.text["en"], _how_checked(claim)) for claim in source.claims]
        work.screen.table(f"Claims of {source.name}", ("id", "claim", "checked by"), claims)


def _source_row(source: Source) -> tuple[object, ...]:
    hardware = "; ".join(one.title for one in source.hardware)
    return source.name, source.date or "unknown", hardware, len(list(source.flat())), len(source.claims), source.title


def _how_checked(claim: Claim) -> str:
    kinds = Counter(check.kind for check in claim.checks)
    checks = ", ".join(f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items())
    return (checks or "not testable here") + ("" if claim.stated else "; not stated, but follows")


def examine(work: Session) -> None:
    """One line for each thing a run may need: what was found, or what to do."""
    for subject, found, remedy in _examinations(work):
        work.screen.say(f"{'ok     ' if not remedy else 'missing'} {subject}: {found}{remedy and f'; {remedy}'}")


def _examinations(work: Session) -> Iterator[tuple[str, str, str]]:
    """(subject, what was found, remedy or empty) of every check."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield "Python for tsuishi", version, ""
    docker = work.builder.engines["docker"]
    try:
        answer = docker.availability()
        yield "Docker", answer.version or answer.reason, answer.remedy
    except UserError as error:
        yield "Docker", str(error), "see above"
    for wanted in sorted({e.python for e in _environments(work) if e.python}):
        python = find_python(wanted, work.settings.pythons)
        found = f"{full_version(python)} at {python}" if python else "not found, which only the venv engine needs"
        yield f"CPython {wanted}", found, "" if python else f"pyenv install {wanted}, or uv python install {wanted}"
    gpus = work.nvml.describe()
    if gpus:
        yield "NVIDIA driver", str(work.nvml.driver()), ""
        for gpu in gpus:
            yield f"GPU {gpu['index']}", f"{gpu['name']}, compute capability {gpu['compute_capability']}", ""
    else:
        yield (
            "GPU",
            f"none ({work.nvml.why_not or 'no device'})",
            "everything runs on the CPU; install NVIDIA's driver if there is one",
        )
    free = free_bytes(work.settings.cache)
    remedy = "" if free > _COMFORTABLE_DISK_BYTES else "free some, or move the cache (tsuishi.cache)"
    yield "disk for the cache", f"{console.megabytes(free)} free at {work.settings.cache}", remedy


def _environments(work: Session) -> list[Environment]:
    return [read_environment(path) for path in known_environments(work.rooms.images).values()]


def _environment_row(work: Session, environment: Environment) -> tuple[str, ...]:
    engine = work.builder.engine_for(environment)
    refusal = engine.refusal(environment)
    if refusal:
        state = f"not here: {refusal}"
    elif not environment.pinned:
        state = "whatever is installed"
    else:
        state = "built" if work.builder.find(environment) else "to build"
    on_gpu = plan.gpu_refusal(environment, work.nvml)
    computes_on = "GPU" if not on_gpu else f"CPU: {on_gpu}"
    return environment.name, environment.title, "yes" if environment.default else "", engine.name, state, computes_on


def _run_row(path: Path) -> tuple[str, ...]:
    run = store.RunDirectory(path)
    recorded = run.run()
    done = len({trial["trial_id"].rpartition(".a")[0] for _, trial in run.finished()})
    names = ", ".join(sorted({entry["environment"] for entry in recorded["plan"]}))
    return path.name, recorded["profile"], names, str(len(recorded["plan"])), str(done)
