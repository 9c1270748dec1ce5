"""A copy of the workloads, into which a test drops files of its own, and its entry, run.py, started by hand."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench import REAL


def copied(folder: Path) -> Path:
    workloads = folder / "workloads"
    shutil.copytree(REAL.workloads, workloads, ignore=shutil.ignore_patterns("__pycache__"))
    return workloads


def run(workloads: Path, *arguments: str, **environ: str) -> tuple[int, list[dict[str, Any]], str]:
    """(exit code, events, standard error) of run.py with these arguments."""
    command = [sys.executable, str(workloads / "run.py"), *arguments]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, env={**buffered, **environ}, capture_output=True, timeout=60, check=False)
    texts = [json.loads(text.partition(b"\n")[0]) for text in done.stdout.split(b"\x1e")[1:]]
    return done.returncode, texts, done.stderr.decode()
