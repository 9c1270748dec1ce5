"""What decided a run: suites, axes, specs, locks, the template, sources and workloads, as its run.json and records say.

A run holds digests of its workloads, spec ids of its environments, and the commit of its checkout. A file enters an
archive where one of these shows that it is the file that the run was made with.
"""

import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import EnvironmentRecord, WorkloadRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.debian import apt_lock
from tsuishi.specs.environment import known_environments, read_environment

# The parts of a checkout that hold inputs, beside the specs of environments.
_INPUTS = ("suites", "reports/published", "templates/Dockerfile.j2")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class RunInputs:
    """The inputs of a run. `files`: their content, by their place in a checkout; `missing`: a line for what is not."""

    def __init__(self, run: RunDirectory, checkout: Checkout) -> None:
        recorded = run.run()
        records = [run.record(path.stem) for path in run.record_files()]
        environments = [record for record in records if isinstance(record, EnvironmentRecord)]
        workloads = [record for record in records if isinstance(record, WorkloadRecord)]
        self.files: dict[str, bytes] = dict(_of_commit(recorded, checkout, {record.name for record in environments}))
        self.missing: list[str] = []
        if not self.files:
            self.missing.append("suites, axes and sources: run.json names no commit without changes that is here")
        for record in environments:
            self._add(f"the specification of {record.name}", _of_environment(record, checkout))
        self._add("workloads", _of_workloads(workloads, checkout))

    def _add(self, what: str, found: dict[str, bytes] | None) -> None:
        """Add files that digests are known of. A file of the commit must be the same."""
        if found is None:
            self.missing.append(f"{what}: this checkout has another than the run")
            return
        self.files |= found


def _of_commit(recorded: RunRecord, checkout: Checkout, environments: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The files of the commit of a run; none where it had uncommitted changes, or where the commit is not here."""
    git = recorded.git
    commit = (git and git.commit) or ""
    if git is None or git.dirty is not False or not _COMMIT.fullmatch(commit):
        return
    images = [f"images/{name}{ending}" for name in environments for ending in (".toml", ".lock", ".apt.lock")]
    listing = _git(checkout.root, "ls-tree", "-r", "-z", "--name-only", commit, "--", *_INPUTS, *images)
    for name in filter(None, (listing or b"").decode().split("\0")):
        content = _git(checkout.root, "cat-file", "blob", f"{commit}:{name}")
        if content is not None:
            yield name, content


def _of_environment(record: EnvironmentRecord, checkout: Checkout) -> dict[str, bytes] | None:
    """Spec, locks and template of an environment, where they give its spec id; None where they do not."""
    spec = known_environments(checkout.images).get(record.name)
    try:
        if spec is None or read_environment(spec).spec_id(_text(checkout.dockerfile)) != record.spec_id:
            return None
    except UserError:
        return None
    return _read((spec, spec.with_suffix(".lock"), apt_lock(spec), checkout.dockerfile), checkout)


def _of_workloads(records: Iterable[WorkloadRecord], checkout: Checkout) -> dict[str, bytes] | None:
    """The files of all workloads, where each has the digest in the records; None where one has another."""
    there = {path.relative_to(checkout.workloads).as_posix(): path for path in checkout.workloads.rglob("*.py")}
    found = {}
    for record in records:
        for name, digest in (record.files or {}).items():
            content = there[name].read_bytes() if name in there else b""
            if hashlib.sha256(content).hexdigest() != digest:
                return None
            found[f"suites/workloads/{name}"] = content
    return found


def _read(paths: Iterable[Path], checkout: Checkout) -> dict[str, bytes]:
    return {path.relative_to(checkout.root).as_posix(): path.read_bytes() for path in paths if path.exists()}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git says; None where it fails or is not there."""
    try:
        result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)  # noqa: S607
    except OSError:
        return None
    return result.stdout if result.returncode == 0 else None
