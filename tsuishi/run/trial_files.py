"""What one trial writes while it runs: its tables, its log, its telemetry."""

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsuishi.base.files import read_rows
from tsuishi.machine.gpus import Nvml
from tsuishi.plan.trials import PlannedTrial, gpus_for
from tsuishi.results import directory, schema
from tsuishi.results.directory import RunDirectory
from tsuishi.run.sampler import Sampler, energy_j
from tsuishi.specs.quantities import MEASURED
from tsuishi.specs.trial_id import TrialId
from tsuishi.stream.events import Event, Metric, PhaseBegin, PhaseEnd, Sample
from tsuishi.stream.listener import Transcript

# Of a log that is longer, its first and its last bytes are kept: what it began with, and what it died of.
LOG_BEGIN_BYTES, LOG_END_BYTES = 32 << 20, 1 << 20


class Log:
    """What a workload prints, packed, of bounded size. A runner that is killed loses at most the end that is kept."""

    def __init__(self, path: Path) -> None:
        self._file = gzip.GzipFile(path, "wb", compresslevel=1)
        self._room = LOG_BEGIN_BYTES
        self._end = bytearray()
        self._left_out = 0

    def __enter__(self) -> "Log":
        return self

    def write(self, piece: bytes) -> None:
        self._file.write(piece[: self._room])
        self._end += piece[self._room :]
        self._room -= min(self._room, len(piece))
        # Not at every piece: each time the end is copied.
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


class Recording:
    """What one trial writes while it runs, into a directory that is not yet part of the run."""

    def __init__(
        self,
        run: RunDirectory,
        trial_id: TrialId,
        trial: PlannedTrial,
        interval_s: float,
        nvml: Nvml,
        folder: Path | None = None,
    ) -> None:
        self.transcript = Transcript()
        self.pids: Sequence[int] = ()
        self.folder = folder or run.partial(trial_id)
        self.started_at = datetime.fromtimestamp(self.folder.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        gpus = [gpu.index for gpu in gpus_for(trial, nvml.gpus)]
        self.sampler = Sampler(self.folder / "telemetry.csv", interval_s, lambda: self.pids, nvml, gpus)
        self._files = ExitStack()
        self._new = folder is None

    @property
    def duration_s(self) -> float | None:
        """How long it took so far; unknown for what a killed runner left behind."""
        return round(self.sampler.elapsed_s(), 3) if self._new else None

    def __enter__(self) -> "Recording":
        if self._new:
            files = self._files
            self._log = files.enter_context(Log(self.folder / "log.txt.gz"))
            self._samples = files.enter_context((self.folder / "samples.csv").open("w", encoding="utf-8", newline=""))
            self._metrics = files.enter_context((self.folder / "metrics.csv").open("w", encoding="utf-8", newline=""))
            self._sample_rows = directory.csv_writer("samples", self._samples)
            self._metric_rows = directory.csv_writer("metrics", self._metrics)
            files.enter_context(self.sampler)
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def leave_empty(self) -> None:
        """Tables and log of a trial that nothing was started for."""
        gzip.open(self.folder / "log.txt.gz", "wb").close()
        for table in schema.OF_A_TRIAL:
            with (self.folder / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
                directory.csv_writer(table, file)

    def hear(self, event: Event) -> None:
        """Keep an event's part of the tables; flushed at once, so that a killed runner loses nothing."""
        match event:
            case Sample():
                self._sample_rows.writerow(_row("samples", event))
                self._samples.flush()
            case Metric():
                self._metric_rows.writerow(_row("metrics", event))
                self._metrics.flush()
            case PhaseBegin(phase=phase):
                self.sampler.phase = phase
            case PhaseEnd():
                self.sampler.phase = ""

    def log(self, piece: bytes) -> None:
        self._log.write(piece)

    def digests(self) -> dict[str, str]:
        """The SHA-256 of each table that is there, by its name."""
        files = {table: self.folder / f"{table}.csv" for table in schema.OF_A_TRIAL}
        return {table: hashlib.sha256(file.read_bytes()).hexdigest() for table, file in files.items() if file.exists()}

    def close_files(self) -> None:
        """Everything on its way to the disk; raises OSError where it does not fit."""
        self._files.close()

    def energy(self, phases: Sequence[Mapping[str, Any]]) -> tuple[float | None, str]:
        """Joules over the measured phases, from the telemetry just written."""
        spans = [(p["begin_s"], p["end_s"]) for p in phases if p["name"] in MEASURED and p["end_s"] is not None]
        path = self.folder / "telemetry.csv"
        if not spans or not path.exists():
            return None, ""
        return energy_j(read_rows(path), spans)


def _row(table: str, event: Sample | Metric) -> dict[str, Any]:
    return {name: directory.csv_value(getattr(event, name)) for name in schema.names(table) if name != "trial_id"}
