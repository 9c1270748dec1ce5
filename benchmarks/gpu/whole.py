"""Step 9: a whole run within what time is left, and its report, by the commands that a user would type."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu.findings import Finding, is_without_framework, judged, not_here
from benchmarks.gpu.kit import HOST, Kit
from tsuishi.base.budget import BEGAN
from tsuishi.base.checkout import Checkout
from tsuishi.results.attempts import last_attempts
from tsuishi.results.directory import RunDirectory, known_runs, open_run
from tsuishi.specs.claims import DECIDED
from tsuishi.specs.source import read_sources
from tsuishi.specs.statuses import is_finding
from tsuishi.verdicts.conclusions import conclude

# Seconds that the kit itself needs after the report.
MARGIN_S = 5.0
LEAST_S = 45.0
SMOKE = ("--profile", "smoke", "--suite", "device_limits", "--repetitions", "1")
# Seconds after the end of the kit's time that the report may take.
GRACE_S = 60.0
# Short, as the parts before it have warmed the device.
HEAT_S = 5.0


def ran(kit: Kit) -> Iterator[Finding]:
    """The main job on the device; its report and its run are kept.

    Where the time is too short for any question of a plan, and with --dry, one suite runs in its smoke profile.
    """
    results, reports = kit.journal.work / "results", kit.journal.work / "reports"
    command = [sys.executable, "-m", "invoke", "run-suite", "--env", HOST, "--accelerator", kit.accelerator]
    command += ["--name", "whole"]
    code, runs = 0, list[str]()
    for chosen in (SMOKE,) if kit.dry else (("--within", f"{seconds(kit):.0f}s"), SMOKE):
        code = _invoked(kit, [*command, *chosen, "report"])
        runs = [name for name in known_runs(results) if name.endswith("-whole")]
        if runs:
            kit.journal.say(f"    {' '.join(chosen)}")
            break
    if not runs:
        yield judged("whole run", False, f"exit code {code} and no run; expected 0 and a run")
        return
    kit.pack()
    run = open_run(results, runs[-1])
    last = last_attempts(run).values()
    yield of_run(code, [trial.status for trial in last], [trial.reason or "" for trial in last])
    if any(question.claim for question in run.run().questions):
        yield of_claims(kit, run)
    yield from _kept(kit, reports / runs[-1])


def seconds(kit: Kit) -> float:
    return max(LEAST_S, kit.left_s - MARGIN_S)


def _invoked(kit: Kit, command: Sequence[str]) -> int:
    """Run a command of tsuishi with its output in the log; returns its exit code."""
    settings: Mapping[str, Any] = {
        "ENGINE": HOST,
        "HOST_PYTHON": kit.python,
        "RESULTS": kit.journal.work / "results",
        "REPORTS": kit.journal.work / "reports",
        "CACHE": kit.journal.work / "cache",
        "HEAT_S": HEAT_S,
        "OFFLINE": "true",
        "GPUS": "all" if kit.dry else "1",
    }
    given = {f"INVOKE_TSUISHI_{name}": str(value) for name, value in settings.items()}
    environ = {name: value for name, value in os.environ.items() if name != BEGAN}
    with subprocess.Popen(
        command,
        cwd=Checkout().root,
        env={**environ, **given},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            with kit.until_the_end(GRACE_S):
                for text in process.stdout:
                    kit.journal.keep(text)
        except BaseException:
            process.terminate()
            raise
    return process.returncode


def of_run(code: int, statuses: Sequence[str], reasons: Sequence[str] = ()) -> Finding:
    """Whether the run ended well: exit code 0, and every trial has a finding, some of them times; by a framework."""
    counted = {status: statuses.count(status) for status in dict.fromkeys(statuses)}
    words = ", ".join(f"{count} {status}" for status, count in counted.items()) or "no trial"
    holds = code == 0 and counted.get("ok", 0) > 0 and all(map(is_finding, statuses))
    holds = holds and not any(map(is_without_framework, reasons))
    return judged("whole run", holds, f"exit code {code}, {words}; expected 0, some ok, none failed")


def of_claims(kit: Kit, run: RunDirectory) -> Finding:
    """How many claims of the published sources the run judged, each with its verdict."""
    sources = read_sources(Checkout().published, kit.words, tables=False)
    judgements = conclude(kit.evidence(run, sources)).judgements
    said = {f"{each.source} {each.claim.id}: {each.verdict}": None for each in judgements if each.verdict in DECIDED}
    what = "claims of published sources"
    return (
        judged(what, True, f"{len(said)} with a verdict: {'; '.join(said)}") if said else not_here(what, "no verdict")
    )


def _kept(kit: Kit, report: Any) -> Iterator[Finding]:
    """Copy the report's page and its Markdown out of the folder of work."""
    for name, kept in (("index.html", "report.html"), ("report.md", "report.md")):
        there = (report / name).is_file()
        if there:
            shutil.copyfile(report / name, kit.journal.folder / kept)
        size = (report / name).stat().st_size if there else 0
        yield judged(f"report of the whole run, {name}", size > 0, f"{size} bytes; expected a file")
