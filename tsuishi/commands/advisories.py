"""Advisories on the packages that tsuishi itself is made of, asked of OSV by `uv audit`: `invoke advisories`.

The packages of environments are not asked about: an environment of 2019 holds what 2019 had, behind walls
(docs/security.md).
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tsuishi.base import toml
from tsuishi.specs.lock import logical_lines

FILE = "advisories.toml"
# Of requirements.lock, too.
_LOCK = "requirements-test.lock"


class Acknowledged(toml.Spec):
    """An acknowledged advisory: until a day it is no reason to stop."""

    id: str
    package: str
    reason: str
    until: date


class AcknowledgedFile(toml.Spec):
    """advisories.toml."""

    acknowledged: tuple[Acknowledged, ...] = ()


def check(root: Path, today: date, service: str = "") -> bool:
    """Print the advisories on the packages of a checkout's locks. True: uv has an answer, and all are acknowledged.

    service: the address of a service like OSV; OSV without it. Raises UserError where advisories.toml is wrong.
    """
    known = toml.load(root / FILE, AcknowledgedFile).acknowledged
    pins = [
        line.partition(" --hash=")[0].strip() for _, line in logical_lines(toml.read_text(root / _LOCK, "the lock "))
    ]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text(_project(pins), "utf-8")
        uv = str(Path(sys.executable).parent / "uv")
        command = [uv, "audit", "--project", folder, "--preview-features=audit-command"]
        command += [f"--service-url={service}"] if service else []
        command += [f"--ignore={entry.id}" for entry in known if entry.until > today]
        return subprocess.run(command, check=False, cwd=folder).returncode == 0


def _project(pins: Sequence[str]) -> str:
    """A project of exactly these packages: an override counts more than the packages' own requirements."""
    python = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    listed = json.dumps(list(pins))
    return (
        f'[project]\nname = "audited"\nversion = "0"\nrequires-python = "{python}"\ndependencies = {listed}\n'
        f"[tool.uv]\noverride-dependencies = {listed}\n"
    )
