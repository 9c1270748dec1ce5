"""The files of a trial: its tables, its log and its telemetry, written while it runs."""

import gzip
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsuishi.base.files import entries
from tsuishi.machine.gpus import Nvml
from tsuishi.results import manifest, schema
from tsuishi.results.facts import Metric, Sample
from tsuishi.results.records import FileRecord
from tsuishi.run.sampler import Sampler
from tsuishi.stream.events import Event, MetricEvent, PhaseBegin, PhaseEnd, SampleEvent

# The bytes that are kept from the start and from the end of a long log: the end says why the workload died.
LOG_BEGIN_BYTES, LOG_END_BYTES = 32 << 20, 1 << 20


class Log:
    """The output of a workload, compressed, of bounded size. If the runner is killed, at most the end is lost."""

    def __init__(self, path: Path) -> None:
        self._file = gzip.GzipFile(path, "wb", compresslevel=1, mtime=0)  # a clock may be before 1970, or after 2106
        self._room = LOG_BEGIN_BYTES
        self._end = bytearray()
        self._left_out = 0

    def __enter__(self) -> "Log":
        return self

    def write(self, piece: bytes) -> None:
        self._file.write(piece[: self._room])
        self._end += piece[self._room :]
        self._room -= min(self._room, len(piece))
        # Not for every piece, as every cut copies the end.
        if len(self._end) > 2 * LOG_END_BYTES:
            self._cut()

    def _cut(self) -> None:
        self._left_out += max(0, len(self._end) - LOG_END_BYTES)
        del self._end[:-LOG_END_BYTES]

    def __exit__(self, *error: object) -> None:
        with self._file:
            self._cut()
            if self._left_out:
                self._file.write(b"\n[tsuishi: %d bytes are left out here]\n" % self._left_out)
            self._file.write(self._end)


class TrialFiles:
    """The files of a running trial, in a folder that is not yet part of the run; open from enter to exit.

    The exit ends the telemetry and writes all files to their end. It raises OSError where the disk is full.
    """

    def __init__(self, folder: Path, interval_s: float, nvml: Nvml, gpus: Sequence[int]) -> None:
        self.pids: Sequence[int] = ()
        self.sampler = Sampler(folder / "telemetry.csv", interval_s, lambda: self.pids, nvml, gpus)
        self._folder = folder
        self._files = ExitStack()

    def __enter__(self) -> "TrialFiles":
        files, folder = self._files, self._folder
        self._log = files.enter_context(Log(folder / "log.txt.gz"))
        self._samples = files.enter_context((folder / "samples.csv").open("w", encoding="utf-8", newline=""))
        self._metrics = files.enter_context((folder / "metrics.csv").open("w", encoding="utf-8", newline=""))
        self._sample_rows = schema.csv_writer("samples", self._samples)
        self._metric_rows = schema.csv_writer("metrics", self._metrics)
        files.enter_context(self.sampler)
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def hear(self, event: Event) -> None:
        """Write the row of an event at once, so that nothing is lost if the runner is killed."""
        match event:
            case SampleEvent():
                self._sample_rows.writerow(_row("samples", event))
                self._samples.flush()
            case MetricEvent():
                self._metric_rows.writerow(_row("metrics", event))
                self._metrics.flush()
            case PhaseBegin(phase=phase):
                self.sampler.phase = phase
            case PhaseEnd():
                self.sampler.phase = ""

    def log(self, piece: bytes) -> None:
        self._log.write(piece)


def leave_empty(folder: Path) -> None:
    """Write empty tables and an empty log, for a trial in which nothing was started."""
    with Log(folder / "log.txt.gz"):
        pass
    for table in schema.OF_A_TRIAL:
        with (folder / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
            schema.csv_writer(table, file)


def started_at(folder: Path) -> str:
    """When a trial's folder was last changed, in UTC as ISO 8601. For an empty folder, the start of the trial."""
    return datetime.fromtimestamp(folder.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written(folder: Path) -> dict[str, FileRecord]:
    """The finished files in a trial's folder, by name. Raises UserError for an entry that is no file."""
    return {name: manifest.about(folder / name) for name, _ in entries(folder) if not name.startswith(".")}


def _row(table: str, values: Sample | Metric) -> dict[str, Any]:
    return {name: schema.csv_value(getattr(values, name)) for name in schema.column_names(table) if name != "trial_id"}
