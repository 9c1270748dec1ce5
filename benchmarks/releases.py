"""All releases that have an environment, built and run: `python -m benchmarks.releases`, with .venv active.

Each environment of a family that can be made here is built, and runs some cases of `parity` and `conv2d` in the profile
smoke. What was done is kept by the spec id, so that a call that was interrupted goes on, and a spec that changed is
done again. `--remove` removes each environment after its trials (they take 1 to 5 GB each). The table goes to
tsuishi/extras/releases/README.md, between two marks.
"""

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.files import read_rows, write_json
from tsuishi.base.screen import Screen
from tsuishi.base.settings import read_settings
from tsuishi.environments.build_plan import build_name, build_s
from tsuishi.plan.choice import Choice
from tsuishi.plan.planning import Plan, outline_run
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.run.new_run import run_of_plan
from tsuishi.specs.case import Case
from tsuishi.specs.environment import Environment, read_environments
from tsuishi.specs.statuses import OK

SUITES = ("parity", "conv2d")
PAGE = "tsuishi/extras/releases/README.md"
BEGIN, END = "<!-- releases: python -m benchmarks.releases -->", "<!-- end of releases -->"
HEAD = ("environment", "release", "date", "Python", "NumPy", "installed", "built in", "parity", "ran", "did not run")
# In the reason why a framework cannot run a strategy that it does not have.
NO_STRATEGY = " is none of "
# By spec id: what an environment was found to be.
Journal = dict[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="", help="environments, separated by commas; without it all of a family")
    parser.add_argument("--remove", action="store_true", help="remove each environment after its trials")
    given = parser.parse_args()
    checkout, screen = Checkout(), Screen()
    settings = replaced(read_settings({}, os.environ, {}, checkout))
    kept = settings.cache / "benchmarks" / "releases.json"
    journal: Journal = json.loads(kept.read_text()) if kept.exists() else {}
    every = sorted((each for each in read_environments(checkout.images) if each.family), key=order)
    for environment in every:
        if given.env and environment.name not in given.env.split(","):
            continue
        session = Session(settings, Choice((environment.name,), SUITES, "smoke", 1), screen, checkout)
        engine = session.builder.engines.chosen_for(environment)
        if why := session.builder.engines.refusal(environment):
            screen.say(f"{environment.name}: {why}")
        elif key(environment) not in journal:
            journal[key(environment)] = examined(session, environment)
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_json(kept, journal)
        if given.remove and engine.maker and (built := engine.find(environment)):
            engine.maker.discard(built)
    rows = [row(environment, journal[key(environment)]) for environment in every if key(environment) in journal]
    screen.table("Releases", HEAD, rows)
    write_table(checkout.root / PAGE, rows)


def replaced(settings: Any) -> Any:
    """The settings with virtual environments: benchmarks measure on this machine's CPU."""
    return settings.model_copy(update={"engine": "venv"})


def order(environment: Environment) -> tuple[str, str, Version]:
    return environment.family, str(environment.released), Version(environment.release)


def key(environment: Environment) -> str:
    """Changes with everything that decides the result of a build."""
    return f"{environment.name} {environment.spec_id('')}"


def is_wanted(case: Case) -> bool:
    """Parity of a small and a larger network and of two devices; conv2d as its source ran it, and on resident data."""
    axes: Mapping[str, Any] = case.values
    if case.suite == "parity":
        small = axes["devices"] == 1 and axes["model"] in ("cnn10", "mlp") and axes["layout"] == "native"
        return small or axes.get("strategy") in ("towers", "mirrored", "distributed_data_parallel")
    return axes["implementation"] == "framework" and "search" not in axes and axes["graph_optimizers"] == "default"


def examined(session: Session, environment: Environment) -> dict[str, Any]:
    """Build and run an environment: size, seconds, largest relative error of parity, statuses with reasons."""
    try:
        ready = session.build([environment])
    except UserError as error:
        return {"failed": str(error)}
    outlined = outline_run(session, [each.as_built for each in ready.values()], ready)
    trials = tuple(trial for trial in outlined.trials if is_wanted(trial.case))
    plan = Plan((environment,), 0.0, replace(outlined, trials=trials))
    run = run_of_plan(session, f"release-{environment.name}", plan, ready)
    store = session.builder.engines.chosen_for(environment).store
    sizes = [kept.size_bytes for kept in (store.kept() if store else ()) if kept.environment == environment.name]
    versions = ready[environment.name].record.versions or {}
    # What this machine learnt at its builds: the environment may have been there before.
    was_timed = session.history.measured(build_name(environment.name, "venv"))
    built_s = build_s(session.history, environment, "venv") if was_timed else None
    return {"built_s": built_s, "size_bytes": max(sizes, default=0), "numpy": versions.get("numpy"), **found_in(run)}


def found_in(run: RunDirectory) -> dict[str, Any]:
    """What the trials of a run say."""
    errors, statuses = [0.0], {}
    for folder, trial in run.finished():
        case = run.case(trial.case_record)
        if NO_STRATEGY in (trial.reason or ""):  # of another framework
            continue
        words = (case.get(axis, "") for axis in ("suite", "protocol", "model", "mode", "strategy", "devices"))
        statuses[" ".join(map(str, filter(None, words)))] = [trial.status, trial.reason or ""]
        file = folder / "metrics.csv"
        metrics = read_rows(file) if trial.status == OK and case["suite"] == "parity" and file.exists() else []
        errors += [float(each["value"]) for each in metrics if each["name"].endswith("relative_error")]
    return {"error": max(errors), "statuses": statuses}


def row(environment: Environment, found: Mapping[str, Any]) -> tuple[str, ...]:
    named = (environment.name, environment.release, str(environment.released), str(environment.python))
    if "failed" in found:
        return (*named, "", "", "", "", "", found["failed"])
    statuses: Mapping[str, list[str]] = found["statuses"]
    ran = sum(status == OK for status, _ in statuses.values())
    failed = [f"{what}: {reason}" for what, (status, reason) in statuses.items() if status not in (OK, "unsupported")]
    unable = sorted({shortened(reason) for status, reason in statuses.values() if status == "unsupported"})
    error = f"{found['error']:.1e}" if found["error"] else "-"
    return (
        *named,
        found["numpy"] or "",
        f"{found['size_bytes'] / 1e9:.1f} GB",
        f"{found['built_s']:.0f} s" if found["built_s"] else "",
        error,
        f"{ran} of {len(statuses)}",
        "; ".join([*(f"failed: {each}" for each in failed), *unable]),
    )


def shortened(reason: str) -> str:
    """What a reason is about: `strategy 'mirrored'`, or its first words."""
    return reason.split(": ", 1)[-1].split(":")[0][:80].strip()


def write_table(page: Path, rows: list[tuple[str, ...]]) -> None:
    """Put the table between the marks of a page. Raises UserError where the page has no marks."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UserError(f"{page}: put {BEGIN} and {END} where the table goes")
    lines = [f"| {' | '.join(cells)} |" for cells in (HEAD, ["---"] * len(HEAD), *rows)]
    page.write_text(f"{before}{begin}\n{chr(10).join(lines)}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
