"""The folder that the kit leaves: written as the kit goes, so that a cut-off at any moment keeps what was done.

log.txt         everything that was printed
results.jsonl   a line of JSON for each finding, with the seconds since the start
summary.md      the same as a table
nvidia-smi.csv  the log of nvidia-smi beside telemetry (cpu.csv with --dry)
telemetry.csv   the telemetry beside it
runs.tar.gz     the run folders, packed anew after every part that measures
report.html     the report of the whole run, and report.md
work/           what is being made; removed at the end
"""

import io
import json
import os
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from benchmarks.gpu.findings import OUTCOMES, Finding
from tsuishi.base.printable import line
from tsuishi.results.assurance import OF_ITS_USER

_HEAD = "| step | what | figures | outcome |\n|---|---|---|---|\n"


class Journal:
    """Writes log.txt, results.jsonl and summary.md; every line is on the disk before the next work begins."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.findings: list[tuple[int, Finding]] = []
        self._began = time.monotonic()
        self._log = (folder / "log.txt").open("a", encoding="utf-8")
        self._results = (folder / "results.jsonl").open("a", encoding="utf-8")
        self._summary = (folder / "summary.md").open("a", encoding="utf-8")
        _write(self._summary, _HEAD)

    def say(self, text: str) -> None:
        """Print a line, and keep it."""
        print(line(text), flush=True)
        _write(self._log, f"{time.monotonic() - self._began:7.1f}  {line(text)}\n")

    def keep(self, text: str) -> None:
        """Keep lines in the log that are not for the screen."""
        for each in text.splitlines():
            _write(self._log, f"{time.monotonic() - self._began:7.1f}  | {line(each)}\n")

    def add(self, step: int, finding: Finding) -> None:
        """Print and keep a finding of a step."""
        self.findings.append((step, finding))
        self.say(f"[{step}] {finding.text}")
        fields: dict[str, Any] = {"step": step, "t": round(time.monotonic() - self._began, 1)}
        fields |= {"what": finding.what, "outcome": finding.outcome, "words": finding.words}
        _write(self._results, json.dumps(fields, ensure_ascii=False) + "\n")
        cells = (str(step), finding.what, finding.words, finding.outcome)
        _write(self._summary, "| " + " | ".join(line(cell).replace("|", "/") for cell in cells) + " |\n")

    def counts(self) -> str:
        """How many lines have which outcome, in words."""
        counted = Counter(finding.outcome for _, finding in self.findings)
        return ", ".join(f"{counted[outcome]} {outcome}" for outcome in OUTCOMES)  # type: ignore[index]

    def pack(self, runs: Iterable[Path]) -> None:
        """Write runs.tar.gz anew; the old archive stays until the new one is complete."""
        part = self.work / "runs.tar.gz"
        with tarfile.open(part, "w:gz", compresslevel=6) as archive:
            for run in runs:
                archive.add(run, run.name, filter=_packed)
        part.replace(self.folder / "runs.tar.gz")

    def close(self) -> None:
        """End the files, and remove what was only needed while the kit worked."""
        for file in (self._log, self._results, self._summary):
            file.close()
        shutil.rmtree(self.work, ignore_errors=True)


def _packed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The member without its owner; None for what is not packed."""
    if member.name.rpartition("/")[2] in OF_ITS_USER:
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _write(file: IO[str], text: str) -> None:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())


class Spoken(io.TextIOBase):
    """A stream of text that becomes lines of a journal's log; for consoles."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._journal.keep(text)
        return len(text)
