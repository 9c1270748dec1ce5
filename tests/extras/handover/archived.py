"""Runs as others hand them over: with a manifest, in an archive, and in archives that somebody altered."""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO

from tsuishi.extras.handover.archives import archive_manifest, archive_record, zip_container
from tsuishi.extras.handover.archives.archive_record import ArchivedRun, ArchiveRecord
from tsuishi.extras.handover.archives.bundle import Bundle
from tsuishi.extras.handover.archives.derived import derived, is_derived
from tsuishi.extras.handover.archives.member_names import INPUTS, MANIFEST, RECORD, RUNS
from tsuishi.extras.handover.archives.run_inputs import lacking_text, place_of
from tsuishi.results import manifest
from tsuishi.results.assurance import OF_ITS_USER
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import WorkloadRecord


def packed(path: Path, runs: list[RunDirectory], more: Mapping[str, bytes] = {}) -> str:
    """Write an archive of runs with the least beside them, and with further files; returns its root."""
    bundle = Bundle()
    for run in runs:
        bundle.add_folder(f"{RUNS}/{run.id}", run.path, OF_ITS_USER)
    named = [
        ArchivedRun(run_id=run.id, root=manifest.read(run.path).root, trials=len(run.finished_folders()))
        for run in runs
    ]
    left_out = [line for run in runs for line in _absent_workloads(run, more)]
    record = ArchiveRecord(tsuishi_version="0.1.0", scrubbed=False, runs=tuple(named), left_out=tuple(left_out))
    bundle.files[RECORD] = json.dumps(record.model_dump(mode="json")).encode()
    bundle.files |= derived(runs, record, [*bundle.files, *more])
    bundle.files |= more
    return bundle.write(lambda _: path)[1]


def _absent_workloads(run: RunDirectory, more: Mapping[str, bytes]) -> Iterator[str]:
    """What an archive says of the workloads of a run that it does not hold."""
    for workload in (run.record(path.stem) for path in run.record_files()):
        if isinstance(workload, WorkloadRecord):
            places = {f"{INPUTS}/{run.id}/{place_of(file)}" for file in workload.files or {}}
            if absent := len(places - more.keys()):
                yield f"inputs of run {run.id}: {lacking_text(workload, absent)}"


def files_of(path: Path) -> dict[str, bytes]:
    """The files in an archive, by their names."""
    with path.open("rb") as file:
        archive = zip_container.Container(file)
        return {entry.name: b"".join(entry.content) for entry in archive.entries()} | {MANIFEST: archive.manifest}


def rewritten(path: Path, files: Mapping[str, bytes | None], manifest: bytes | None = None) -> Path:
    """An archive again, with some files altered, added or (None) left out, in the one form.

    manifest: in place of the manifest of these files, as somebody who alters an archive on purpose makes it anew.
    """
    kept = {name: text for name, text in {**files_of(path), **files}.items() if text is not None and name != MANIFEST}
    digests = {name: hashlib.sha256(text).hexdigest() for name, text in kept.items()}
    kept[MANIFEST] = archive_manifest.text_of(digests) if manifest is None else manifest
    altered = path.with_name("altered.zip")
    with altered.open("wb") as file:
        write_files(file, kept)
    return altered


def write_files(file: IO[bytes], files: Mapping[str, bytes]) -> None:
    """Write a container of these files, with the manifest that is among them."""
    entries = sorted(files.items())
    zip_container.write(file, [(n, len(t), hashlib.sha256(t).hexdigest(), partial(_alone, t)) for n, t in entries])


def _alone(text: bytes) -> list[bytes]:
    return [text]


def remade(path: Path, files: Mapping[str, bytes | None]) -> Path:
    """As `rewritten`, by somebody who also makes anew what follows from the runs and the names of the files."""
    kept = {name: text for name, text in {**files_of(path), **files}.items() if text is not None and name != MANIFEST}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in kept.items():
            if name.startswith(f"{RUNS}/"):
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_bytes(text)
        record = archive_record.read(kept[RECORD])
        runs = [RunDirectory(Path(folder) / RUNS / run.run_id) for run in record.runs]
        made = derived(runs, record, [name for name in kept if not is_derived(name)])
    return rewritten(path, {**files, **made})
