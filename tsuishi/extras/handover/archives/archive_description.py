"""The description of archived runs: a title, a text, a name for the file, and when each run began and ended."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from tsuishi.base.toml import Record
from tsuishi.extras.handover.archives.citation import Author
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import EnvironmentRecord, MachineRecord

R = TypeVar("R", bound=Record)

# More environments than these are counted in a file's name.
_MOST_NAMED = 3
# The format of runs, and that of Process Run Crate.
_TIME, _CRATE_TIME = "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+00:00"
_NO_DATE = "1970-01-01"


@dataclass(frozen=True)
class About:
    """The fields that a repository needs for a data set. `licence`: an SPDX id, or empty; `date`: as 2026-11-21."""

    title: str
    description: str
    authors: tuple[Author, ...]
    licence: str
    date: str


def times_of(run: RunDirectory) -> tuple[str, str]:
    """When a run began and ended, in ISO 8601 with its zone; empty where unknown."""
    times = [_time(trial.started_at, trial.duration_s or 0) for _, trial in run.finished()]
    return _time(run.run().created_at), max(times, default="")


def about(runs: Sequence[RunDirectory], authors: tuple[Author, ...], licence: str) -> About:
    """The fields that a repository needs for an archive of runs."""
    suites = sorted({str(entry.axes["suite"]) for run in runs for entry in run.run().plan})
    environments = sorted({record.name for record in environments_of(runs)})
    machines = _machines(runs)
    dates = [created[:10] for run in runs if (created := run.run().created_at)]
    title = f"Measurements of {', '.join(suites) or 'nothing'} in {', '.join(environments) or 'no environment'}"
    count = "A run" if len(runs) == 1 else f"{len(runs)} runs"
    description = (
        f"{count} of tsuishi on {', '.join(machines) or 'a machine that is not recorded'}: every trial with its "
        "timings, telemetry and log, the environments, the machine and the inputs."
    )
    return About(title, description, authors, licence, max(dates, default=_NO_DATE))


def file_name(runs: Sequence[RunDirectory], root: str) -> str:
    """The name of an archive: environments, machine, date and the first digits of the root, without an ending."""
    environments = sorted({record.name for record in environments_of(runs)})
    names = environments if len(environments) <= _MOST_NAMED else [f"{len(environments)}-environments"]
    machines = _machines(runs)
    machine = machines[0] if len(machines) == 1 else f"{len(machines)} machines"
    date = about(runs, (), "").date
    return "-".join([_slug("+".join(names) or "no environment"), _slug(machine), date.replace("-", ""), root[:12]])


def environments_of(runs: Iterable[RunDirectory]) -> tuple[EnvironmentRecord, ...]:
    """The records of the environments of runs, each once, by their names."""
    return tuple(sorted(_records(runs, EnvironmentRecord), key=lambda record: (record.name, record.realised_id or "")))


def _machines(runs: Iterable[RunDirectory]) -> list[str]:
    """The machines of runs: their GPUs, else their CPU."""
    found = set()
    for record in _records(runs, MachineRecord):
        gpus = [gpu.name for gpu in record.gpus or ()]
        count = f"{len(gpus)}x " if len(gpus) > 1 else ""
        cpu = record.cpu.model if record.cpu and record.cpu.model else "unknown machine"
        found.add(f"{count}{gpus[0]}" if gpus else cpu)
    return sorted(found)


def _records(runs: Iterable[RunDirectory], model: type[R]) -> list[R]:
    records = {path.stem: run.record(path.stem) for run in runs for path in run.record_files()}
    return [record for _, record in sorted(records.items()) if isinstance(record, model)]


def _time(text: str | None, later_s: float = 0) -> str:
    """A time in UTC, so many seconds later, as the metadata have it; empty where the text is no time."""
    try:
        began = datetime.strptime(text or "", _TIME).replace(tzinfo=UTC)
        return (began + timedelta(seconds=later_s)).strftime(_CRATE_TIME)
    except (ValueError, OverflowError):
        return ""


def _slug(text: str) -> str:
    """A text as a part of a file's name.

    >>> _slug("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"), _slug("NVIDIA H100 80GB HBM3")
    ('Intel-Xeon-Platinum-8481C-CPU-2.70GHz', 'NVIDIA-H100-80GB-HBM3')
    """
    plain = re.sub(r"\((R|TM|C)\)", " ", text)
    return re.sub(r"[^A-Za-z0-9.+]+", "-", plain).strip("-.")[:60].rstrip("-.") or "unknown"
