"""Scripts of tests/suites/inside, run inside a pinned environment as it is built here: image or virtual environment."""

import json
import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.job import ENTERED
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import read_settings
from tsuishi.engines.interface import Built, Launch, Starter
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import Environment

REAL = Checkout()
PINNED = ENTERED
INSIDE = Path(__file__).parent / "inside"


def inside(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that enters the pinned environments: they are built before it."""
    return pytest.mark.engine(pytest.mark.usefixtures("environments")(test))


def built(environment: Environment) -> tuple[Starter, Built]:
    """As an image or a virtual environment, whichever there is."""
    engines = Builder(read_settings({}, os.environ, {}), REAL).engines
    usable = [engine for name in ("docker", "venv") if (engine := engines[name]).availability().usable]
    found = [(engine.starter, there) for engine in usable if (there := engine.find(environment)) is not None]
    return found[0] if found else missing(f"{environment.name} is built neither as an image nor as a venv")


def run_inside(environment: Environment, script: str, *arguments: str, file: Path | None = None) -> dict[str, Any]:
    """What a script found: the JSON object it prints after `found: `. Its first argument is the workloads' folder.

    Its last is where it sees `file`, if one is given.
    """
    starter, there = built(environment)
    mounts = {REAL.workloads: "/workloads", INSIDE: "/inside"}
    workloads, inside = (starter.inside(path, place) for path, place in mounts.items())
    if file is not None:
        mounts[file] = f"/file/{file.name}"
        arguments += (starter.inside(file, mounts[file]),)
    command = ("-B", f"{inside}/{script}", workloads, *arguments)
    process = starter.start(there, Launch(command, mounts, f"tsuishi-test-{uuid.uuid4().hex}", {"run": "test"}))
    printed = b"".join(piece for _, piece in process.output()).decode(errors="replace")
    assert process.wait().code == 0, printed[-4000:]
    match = re.search(r"^found: (\{.*\})$", printed, re.MULTILINE)
    assert match, printed[-4000:]
    found: dict[str, Any] = json.loads(match[1])
    return found
