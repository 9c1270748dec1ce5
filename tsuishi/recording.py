"""What one trial writes while it runs: its tables, its log, its telemetry."""

import csv
import gzip
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tsuishi import store
from tsuishi.events import Event
from tsuishi.gpus.nvml import Nvml
from tsuishi.listen import Transcript
from tsuishi.plan import PlannedTrial, gpus_for
from tsuishi.quantities import MEASURED
from tsuishi.store import RunDirectory
from tsuishi.telemetry import Sampler, energy_j


class Recording:
    """What one trial writes while it runs, into a directory that is not yet part of the run."""

    def __init__(
        self,
        run: RunDirectory,
        trial_id: str,
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
            self._log = files.enter_context(gzip.open(self.folder / "log.txt.gz", "wb", compresslevel=1))
            self._samples = files.enter_context((self.folder / "samples.csv").open("w", encoding="utf-8", newline=""))
            self._metrics = files.enter_context((self.folder / "metrics.csv").open("w", encoding="utf-8", newline=""))
            self._sample_rows = store.csv_writer("samples", self._samples)
            self._metric_rows = store.csv_writer("metrics", self._metrics)
            files.enter_context(self.sampler)
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def leave_empty(self) -> None:
        """Tables and log of a trial that nothing was started for."""
        gzip.open(self.folder / "log.txt.gz", "wb").close()
        for table in ("samples", "metrics", "telemetry"):
            with (self.folder / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
                store.csv_writer(table, file)

    def hear(self, event: Event) -> None:
        """Keep an event's part of the tables; flushed at once, so that a killed runner loses nothing."""
        values = event.values
        if event.kind == "sample":
            row = {key: store.csv_value(values[key]) for key in ("phase", "index", "steps", "images", "seconds")}
            self._sample_rows.writerow(row)
            self._samples.flush()
        elif event.kind == "metric":
            self._metric_rows.writerow({key: store.csv_value(values[key]) for key in ("name", "value", "unit")})
            self._metrics.flush()
        elif event.kind == "phase_begin":
            self.sampler.phase = values["phase"]
        elif event.kind == "phase_end":
            self.sampler.phase = ""

    def log(self, piece: bytes) -> None:
        self._log.write(piece)

    def close_files(self) -> None:
        """Everything on its way to the disk; raises OSError where it does not fit."""
        self._files.close()

    def energy(self, phases: Sequence[Mapping[str, Any]]) -> tuple[float | None, str]:
        """Joules over the measured phases, from the telemetry just written."""
        spans = [(p["begin_s"], p["end_s"]) for p in phases if p["name"] in MEASURED and p["end_s"] is not None]
        path = self.folder / "telemetry.csv"
        if not spans or not path.exists():
            return None, ""
        with path.open(encoding="utf-8", newline="") as file:
            return energy_j(list(csv.DictReader(file)), spans)
