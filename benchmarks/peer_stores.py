"""Stores the results of a run as ReFrame, asv and benchopt store their own, for benchmarks/peers.py.

Each tool first makes a result of its own where its format is more than a file of JSON; ours take its place.
"""

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_REFRAME_TEST = """
import reframe
import reframe.utility.sanity as sanity

@reframe.simple_test
class Step(reframe.RunOnlyRegressionTest):
    valid_systems = valid_prog_environs = ["*"]
    executable, executable_opts = "echo", ["1.5"]

    @sanity_function
    def said(self):
        return sanity.assert_found("1.5", self.stdout)

    @performance_function("s")
    def step(self):
        return sanity.extractsingle(r"(.+)", self.stdout, 1, float)
"""
# 2026-11-01 12:00 UTC, in seconds since 1970: when the first result was made.
_DAY_S = 1793534400
# ReFrame compares these two: each was measured on its day.
_REFRAME_DAYS = {
    "tensorflow": ("20261101:20261102", float(_DAY_S)),
    "torch": ("20261103:20261104", _DAY_S + 2 * 86400.0),
}
_BENCHOPT = {
    "objective.py": """
from benchopt import BaseObjective
class Objective(BaseObjective):
    name, sampling_strategy = "step", "run_once"
    def set_data(self, x): self.x = x
    def evaluate_result(self, y): return {"value": y}
    def get_one_result(self): return {"y": 0.0}
    def get_objective(self): return {"x": self.x}
""",
    "datasets/case.py": """
from benchopt import BaseDataset
class Dataset(BaseDataset):
    name, parameters = "case", {"id": ["none"]}
    def get_data(self): return {"x": 0.0}
""",
    "solvers/environment.py": """
from benchopt import BaseSolver
class Solver(BaseSolver):
    name, sampling_strategy = "environment", "run_once"
    def set_objective(self, x): self.x = x
    def run(self, _): self.y = self.x
    def get_result(self): return {"y": self.y}
""",
}
# Puts rows of results in place of the row of a real run.
_BENCHOPT_STORE = """
import json, sys
from pathlib import Path
import pandas
(path,) = Path("outputs").glob("*.parquet")
frame, rows = pandas.read_parquet(path), pandas.DataFrame(json.loads(Path("rows.json").read_text()))
frame = pandas.concat([frame] * len(rows), ignore_index=True)
frame[list(rows)] = rows
from benchopt.results import save_results
save_results(frame, path, uniquify=False)
"""


class Result(NamedTuple):
    """A trial: what each tool stores. `steps_s`: seconds of a step, a block each; empty where it failed."""

    suite: str
    case: str
    environment: str
    framework: str
    accelerator: str
    repetition: int
    steps_s: list[float]

    @property
    def step_s(self) -> float | None:
        return statistics.fmean(self.steps_s) if self.steps_s else None


def store_asv(results: Sequence[Result], folder: Path, programs: Path) -> list[str]:
    """A suite is a benchmark, a case a value of its parameter, a repetition a commit, an environment a machine's."""
    hashes = _asv_commits(folder, sorted({result.repetition for result in results}))
    cases: dict[str, list[str]] = {}
    files: dict[tuple[int, str], dict[str, dict[str, Result]]] = {}
    for result in results:
        known = cases.setdefault(result.suite, [])
        if result.case not in known:
            known.append(result.case)
        file = files.setdefault((result.repetition, result.environment), {})
        file.setdefault(result.suite, {})[result.case] = result
    machine = {"arch": "x86_64", "cpu": "made up", "machine": "made-up", "num_cpu": "2", "os": "Linux", "ram": "1"}
    _write(folder / "results" / "made-up" / "machine.json", {**machine, "version": 1})
    about = {"code": "", "min_run_count": 2, "number": 0, "param_names": ["case"], "repeat": 0, "rounds": 2}
    about |= {"sample_time": 0.01, "type": "time", "unit": "seconds", "version": "1", "warmup_time": -1}
    listed = {suite: {**about, "name": suite, "params": [ids]} for suite, ids in cases.items()}
    _write(folder / "results" / "benchmarks.json", {**listed, "version": 2})
    for (repetition, environment), suites in files.items():
        commit = hashes[repetition]
        stored = {
            "commit_hash": commit, "env_name": environment, "date": 1000 * (_DAY_S + 60 * repetition),
            "params": {**machine, "python": "3.11", "environment": environment}, "python": "3.11",
            "requirements": {}, "env_vars": {}, "durations": {}, "version": 2,
            "result_columns": [
                "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
                "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples",
            ],
            "results": {suite: _asv_row(cases[suite], by_case) for suite, by_case in suites.items()},
        }  # fmt: skip
        _write(folder / "results" / "made-up" / f"{commit[:8]}-{environment}.json", stored)
    settings = {"version": 1, "project": "p", "environment_type": "virtualenv", "repo": "repo", "branches": ["main"]}
    _write(folder / "asv.conf.json", {**settings, "results_dir": "results", "html_dir": "html"})
    return [str(programs / "asv"), "publish", "--no-pull"]


def _asv_commits(folder: Path, repetitions: list[int]) -> dict[int, str]:
    """Make a repository with a commit for each repetition. Returns their hashes."""
    _git(folder, "init", "--quiet", "--initial-branch=main", "repo")
    hashes = {}
    for one in repetitions:
        _git(folder / "repo", "commit", "--quiet", "--allow-empty", f"--message={one}", at=_DAY_S + 60 * one)
        hashes[one] = _git(folder / "repo", "rev-parse", "HEAD")
    return hashes


def _asv_row(cases: list[str], results: dict[str, Result]) -> list[Any]:
    """What asv stores of a benchmark: a list over cases for each of its columns."""
    samples = [results[case].steps_s if case in results else [] for case in cases]
    quartiles = [statistics.quantiles(each) if len(each) > 1 else [None] * 3 for each in samples]
    least, most = ([find(each) if each else None for each in samples] for find in (min, max))
    count = [len(each) or None for each in samples]
    middle = [statistics.median(each) if each else None for each in samples]
    low, high = ([each[place] for each in quartiles] for place in (0, 2))
    ends = [1000 * _DAY_S, 1.0, least, most, low, high, count, count, [each or None for each in samples]]
    return [middle, [cases], "1", *ends]


def store_reframe(results: Sequence[Result], folder: Path, programs: Path) -> list[str]:
    """A case is a test, an accelerator a partition; a session is a repetition of a framework, on its framework's day.

    The record of a real test is stored again and again, with names, times and values of the results.
    """
    (folder / "step.py").write_text(_REFRAME_TEST)
    _run(folder, programs, "reframe", "-c", "step.py", "-r")
    sessions: dict[tuple[str, int], list[Result]] = {}
    for result in results:
        sessions.setdefault((result.framework, result.repetition), []).append(result)
    with sqlite3.connect(folder / ".reframe" / "reports" / "results.db") as store:
        (text,) = store.execute("SELECT json_blob FROM sessions").fetchone()
        store.execute("DELETE FROM sessions")
        store.execute("DELETE FROM testcases")
        for (framework, repetition), held in sessions.items():
            report, name = json.loads(text), f"{framework}-{repetition}"
            begin_s = _REFRAME_DAYS[framework][1] + 60 * repetition
            (case,) = report["runs"][0]["testcases"]
            made = [
                {
                    **case, "name": f"Step %case={one.case}", "display_name": f"Step %case={one.case}",
                    "system": "made-up", "partition": one.accelerator, "session_uuid": name, "uuid": f"{name}:0:{at}",
                    "job_completion_time_unix": begin_s + 0.001 * at, "result": "pass" if one.steps_s else "fail",
                    "perfvalues": {f"made-up:{one.accelerator}:step": [one.step_s, 0, None, None, "s", "pass"]}
                    if one.steps_s else {},
                }
                for at, one in enumerate(held)
            ]  # fmt: skip
            report["session_info"] |= {"uuid": name, "time_start_unix": begin_s, "time_end_unix": begin_s + 50}
            report["runs"][0]["testcases"] = made
            session = (name, begin_s, begin_s + 50, json.dumps(report), "")
            store.execute("INSERT INTO sessions VALUES(?,?,?,?,?)", session)
            columns = ("name", "system", "partition", "environ", "job_completion_time_unix", "session_uuid", "uuid")
            rows = [[each[column] for column in columns] for each in made]
            store.executemany("INSERT INTO testcases VALUES(?,?,?,?,?,?,?)", rows)
    days = "/".join(day for day, _ in _REFRAME_DAYS.values())
    return [str(programs / "reframe"), "--performance-compare", f"{days}/mean:/"]


def store_benchopt(results: Sequence[Result], folder: Path, programs: Path) -> list[str]:
    """A case is a data set, an environment a solver, a trial a repetition."""
    for name, code in _BENCHOPT.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(code)
    _run(folder, programs, "benchopt", "run", ".", "--n-repetitions", "1", "--no-plot")
    rows = [
        {
            "dataset_name": f"case[id={one.case}]", "p_dataset_id": one.case, "idx_rep": one.repetition,
            "solver_name": one.environment, "time": one.step_s, "objective_value": one.step_s,
        }
        for one in results
    ]  # fmt: skip
    _write(folder / "rows.json", rows)
    _run(folder, programs, "python", "-c", _BENCHOPT_STORE)
    return [str(programs / "benchopt"), "plot", ".", "--html", "--no-display"]


def variables(folder: Path, programs: Path) -> dict[str, str]:
    """Variables of a tool's process: all of its files go into the folder."""
    homes = {name: str(folder) for name in ("HOME", "TMPDIR")}
    path = f"{programs}:{os.environ['PATH']}"
    return {**homes, "PATH": path, "TZ": "UTC", "LANG": "C.UTF-8", "RFM_ENABLE_RESULTS_STORAGE": "1"}


def _run(folder: Path, programs: Path, name: str, *arguments: str) -> None:
    """Run a tool's program. Raises SystemExit with its output where it fails."""
    command = [str(programs / name), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=variables(folder, programs), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _git(folder: Path, *arguments: str, at: int = 0) -> str:
    names = {f"GIT_{who}_{what}": "peers" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {f"GIT_{who}_DATE": f"{at} +0000" for who in ("AUTHOR", "COMMITTER")}
    command = [str(shutil.which("git")), *arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | names | dates, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
