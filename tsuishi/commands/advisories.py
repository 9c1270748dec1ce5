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
from typing import NamedTuple

from tsuishi.base import toml
from tsuishi.specs.lock import logical_lines

FILE = "advisories.toml"
# Of requirements.lock, too.
_LOCK = "requirements-test.lock"
_EXPERIMENTAL = "--preview-features=audit-command,json-output"
# The exit codes of `uv audit` where it was answered: without and with vulnerabilities.
_ANSWERED = (0, 1)


class Acknowledged(toml.Spec):
    """An acknowledged advisory: until a day it is no reason to stop."""

    id: str
    package: str
    reason: str
    until: date


class AcknowledgedFile(toml.Spec):
    """advisories.toml."""

    acknowledged: tuple[Acknowledged, ...] = ()


class Advisory(NamedTuple):
    """An advisory on a package. `names`: its id, and the ids that it has elsewhere."""

    package: str
    version: str
    names: tuple[str, ...]
    summary: str

    @property
    def line(self) -> str:
        return f"{self.package} {self.version}: {' = '.join(self.names)}: {self.summary}"


class AdvisoryAudit(NamedTuple):
    """The advisories on all packages. `why_not`: why the service gave no answer; empty where it answered."""

    advisories: tuple[Advisory, ...]
    packages: int
    why_not: str = ""


def check(root: Path, today: date, service: str = "") -> tuple[list[str], bool, bool]:
    """Lines on the advisories, whether one is not acknowledged, and whether the service gave no answer.

    service: the address of a service like OSV; OSV without it. Raises UserError where advisories.toml is wrong.
    """
    known = toml.load(root / FILE, AcknowledgedFile).acknowledged
    found = audit(root, service)
    if found.why_not:
        return [f"advisories: NOT asked: {found.why_not}"], False, True
    lines, new = [], 0
    for advisory in found.advisories:
        entry = next((entry for entry in known if _is_on(entry, advisory)), None)
        if entry and entry.until > today:
            lines.append(f"acknowledged until {entry.until}: {advisory.line} ({entry.reason})")
        else:
            new += 1
            over = f" (acknowledged until {entry.until}, which is over)" if entry else ""
            lines.append(f"advisory: {advisory.line}{over}")
    stale = [entry for entry in known if not any(_is_on(entry, advisory) for advisory in found.advisories)]
    lines += [f"{FILE}: {entry.id} on {entry.package} is not said any more: remove it" for entry in stale]
    acknowledged = len(found.advisories) - new
    counts = f"{len(found.advisories)} on {found.packages} packages, {acknowledged} acknowledged"
    return [*lines, f"advisories: {counts}"], new > 0, False


def audit(root: Path, service: str = "") -> AdvisoryAudit:
    """Ask about every package of the locks of a checkout, by name and version."""
    pins = [
        line.partition(" --hash=")[0].strip() for _, line in logical_lines(toml.read_text(root / _LOCK, "the lock "))
    ]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text(_project(pins), "utf-8")
        uv = str(Path(sys.executable).parent / "uv")
        command = [uv, "audit", "--project", folder, _EXPERIMENTAL, "--output-format=json"]
        command += [f"--service-url={service}"] if service else []
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode not in _ANSWERED:
        return AdvisoryAudit((), 0, _why(done.stderr))
    said = json.loads(done.stdout)
    advisories = tuple(
        Advisory(
            entry["dependency"]["name"],
            entry["dependency"]["version"],
            tuple(dict.fromkeys([entry["id"], *entry["aliases"]])),
            entry["summary"] or "",
        )
        for entry in said["vulnerabilities"]
    )
    return AdvisoryAudit(advisories, said["summary"]["audited_packages"])


def _project(pins: Sequence[str]) -> str:
    """A project of exactly these packages: an override counts more than the packages' own requirements."""
    python = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    listed = json.dumps(list(pins))
    return (
        f'[project]\nname = "audited"\nversion = "0"\nrequires-python = "{python}"\ndependencies = {listed}\n'
        f"[tool.uv]\noverride-dependencies = {listed}\n"
    )


def _why(said: str) -> str:
    """The error of uv in a line: what failed, and its last cause."""
    errors = [line.strip() for line in said.splitlines() if line.strip().startswith(("error:", "cause:"))]
    words = [line.partition(":")[2].strip() for line in errors]
    return ": ".join(dict.fromkeys([*words[:1], *words[-1:]])) or "uv audit gave no answer"


def _is_on(entry: Acknowledged, advisory: Advisory) -> bool:
    return entry.package == advisory.package and entry.id in advisory.names
