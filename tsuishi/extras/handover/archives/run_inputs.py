"""The inputs of a run: suites, axes, specs, locks, the template, sources, workloads, as its run.json and records say.

A source with tables in files is left out where none of its suites ran.

A run holds digests of its workloads, spec ids of its environments, and the commit of its checkout. A file enters an
archive where one of these shows that it is the file that the run was made with.
"""

import hashlib
import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress

from tsuishi.base.checkout import Checkout, NoRepository, git
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives.specifications import asked_files, is_asked
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import CaseRecord, EnvironmentRecord, WorkloadRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.case import SUITE
from tsuishi.specs.environment import find_environment, without_engine
from tsuishi.specs.source import FILE

# The parts of a checkout that hold inputs, beside the specs of environments.
_INPUTS = ("suites", "reports/published", "templates/Dockerfile.j2")
_WORKLOADS = "suites/workloads/"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class RunInputs:
    """The inputs of a run. `files`: their content, by place in a checkout; `missing`: a line for each missing input."""

    def __init__(self, run: RunDirectory, checkout: Checkout) -> None:
        records = [run.record(path.stem) for path in run.record_files()]
        environments = [record for record in records if isinstance(record, EnvironmentRecord)]
        ran = {str(record.root.get(SUITE)) for record in records if isinstance(record, CaseRecord)}
        found = dict(_of_commit(run.run(), checkout, {record.name for record in environments}))
        others = tuple(f"{posixpath.dirname(name)}/" for name, text in found.items() if _is_of_others(name, text, ran))
        self.files = {name: text for name, text in found.items() if not name.startswith(others)}
        suites = (f"suites/{suite}.toml" for suite in sorted(ran))
        self.missing = [f"{suite}: not in the commit of the run" for suite in suites if suite not in found]
        if not self.files:
            self.missing = ["suites, axes and sources: run.json names no commit without changes that is here"]
            for environment in environments:
                self._add_environment(environment, checkout)
        known = {name: text for name, text in self.files.items() if is_of_workloads(name)}
        self.files = {name: text for name, text in self.files.items() if name not in known}
        for record in records:
            if isinstance(record, WorkloadRecord):
                self._add_workload(record, checkout, known)

    def _add_environment(self, record: EnvironmentRecord, checkout: Checkout) -> None:
        """Add spec, locks and template of an environment, where they give its spec id."""
        try:
            here = find_environment(checkout.images, record.name)
            if here and is_asked(record, here, checkout):
                paths = asked_files(checkout, here.made_as)
                self.files |= {name: path.read_bytes() for name, path in paths.items() if path.exists()}
                return
        except UserError:
            pass
        self.missing.append(f"the specification of {record.name}: this checkout and the run differ")

    def _add_workload(self, record: WorkloadRecord, checkout: Checkout, of_commit: Mapping[str, bytes]) -> None:
        """Add the files of a workload that have the digests in its record; those of the commit come first."""
        lacking = 0
        for file, digest in (record.files or {}).items():
            # The files of a script lie beside the workloads; a run that was received may name any path.
            name = place_of(file)
            path = checkout.root / name
            here = path.read_bytes() if name.startswith("suites/") and path.is_file() else b""
            known = [of_commit.get(name, b""), here]
            content = next((text for text in known if hashlib.sha256(text).hexdigest() == digest), None)
            if content is None:
                lacking += 1
            else:
                self.files[name] = content
        if lacking:
            self.missing.append(lacking_text(record, lacking))


def _is_of_others(name: str, content: bytes, ran: Set[str]) -> bool:
    """Whether a file describes a source with tables, of which none is of a suite that ran."""
    if not name.endswith(f"/{FILE}"):
        return False
    try:
        tables = tomllib.loads(content.decode()).get("tables", ())
    except ValueError:
        return False
    return bool(tables) and ran.isdisjoint(table.get("suite") for table in tables)


def lacking_text(record: WorkloadRecord, count: int) -> str:
    """What an archive says of files of a workload that it does not hold."""
    return f"workload {record.workload or ''}: {count} files differ from those of the run"


def is_of_workloads(name: str) -> bool:
    """Whether an input is code of workloads or a network: the records of workloads name each."""
    return name.startswith(_WORKLOADS) and (name.endswith(".py") or posixpath.dirname(name) == f"{_WORKLOADS}networks")


def place_of(file: str) -> str:
    """The place in a checkout of a file that the record of a workload names."""
    return posixpath.normpath(f"{_WORKLOADS}{file}")


def _of_commit(recorded: RunRecord, checkout: Checkout, environments: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The files of the commit of a run; none where it had uncommitted changes, or where the commit is not here."""
    state = recorded.git
    commit = (state and state.commit) or ""
    if state is None or state.dirty is not False or not _COMMIT.fullmatch(commit):
        return
    specs = {without_engine(name) for name in environments}
    images = [f"images/{spec}{ending}" for spec in specs for ending in (".toml", ".lock", ".apt.lock")]
    try:
        listing = git(checkout.root, "ls-tree", "-r", "-z", "--name-only", commit, "--", *_INPUTS, *images)
    except NoRepository:
        return
    for name in filter(None, listing.decode().split("\0")):
        with suppress(NoRepository):
            yield name, git(checkout.root, "cat-file", "blob", f"{commit}:{name}")
