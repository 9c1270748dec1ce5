"""A trial: from an order to a trial's folder with its trial.json. Nothing of other trials is read or written.

The order is data, which could be sent to another machine. The Bench describes the machine.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tsuishi.base import toml
from tsuishi.base.errors import EngineLost, UserError
from tsuishi.base.files import read_rows
from tsuishi.base.processes import Process
from tsuishi.engines.interface import Launch, ResourceLimits
from tsuishi.environments.entry import ENTRY, Ready, start_workload
from tsuishi.machine.gpus import Gpu, Nvml
from tsuishi.results import trial_folders
from tsuishi.results.facts import Facts, Phase
from tsuishi.results.records import TrialRecord
from tsuishi.run.outcome import Outcome, outcome_of
from tsuishi.run.sampler import Hole, energy_j, others_percent
from tsuishi.run.trial_files import TrialFiles, leave_empty, started_at, written
from tsuishi.specs.case import NODES
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.experiment import WORKLOAD, ScriptOrder, lacking
from tsuishi.specs.quantities import MEASURED
from tsuishi.specs.statuses import FAILED, INTERRUPTED, OK, TIMEOUT, UNSUPPORTED
from tsuishi.specs.trial_spec import Axes, Trial
from tsuishi.stream.events import Event, PhaseBegin
from tsuishi.stream.listener import Timeout, Transcript, listen

_DATA_INSIDE = "/data"
KILLED = Outcome(INTERRUPTED, "the runner was killed during this trial")


class TrialOrder(Trial):
    """A trial with everything that decides how a machine runs it, as data.

    `given`: all axes of the suite, for the workload, without the settings of its `process`. `framework`: the name that
    the workload imports; None if the workload itself looks for a framework. `gpus`: the trial's GPUs.
    """

    run_id: str
    accelerator: Accelerator
    workload: str
    timeout_s: float
    given: Axes
    process: dict[str, Any] = {}
    framework: str | None
    gpus: tuple[Gpu, ...]
    script: ScriptOrder | None
    memory_bytes: int
    pids: int
    telemetry_interval_s: float

    @property
    def nodes(self) -> int:
        """The number of nodes that its processes are on."""
        nodes = self.given.get(NODES, 1)
        return nodes if isinstance(nodes, int) else 1

    def argument(self, data_file: str = "", place_of: Callable[[Path], str] | None = None) -> dict[str, Any]:
        """The JSON argument of the workload. data_file: the data set's path for the workload; empty: its name only.

        place_of: gives the path of a script's file for the workload; without it, paths are relative to the suite.
        """
        data = self.data.content() if self.data else None
        script = {WORKLOAD: self.script.content(place_of)} if self.script else {}
        return {
            **script,
            **({"process": self.process} if self.process else {}),
            "experiment": self.workload,
            "case": self.given,
            "framework": self.framework,
            "accelerator": self.accelerator,
            "settings": self.settings,
            "budget_s": self.timeout_s,
            "data": {**data, "file": data_file or data["file"]} if data else None,
        }


@dataclass(frozen=True)
class Bench:
    """What a machine offers to a trial: the environment, the folder of workloads, GPUs, and the data set's file.

    writer: as for `trial_folders.begin`. launcher, network: as for `start_workload`. part: tells the parts of a trial
    over several nodes apart, which may share an engine. beside: gives what else runs on the machine, in words, where a
    scheduler knows it; it is asked before a trial and after it.
    """

    ready: Ready
    workloads: Path
    nvml: Nvml
    data: Path | None
    writer: str = ""
    launcher: tuple[str, ...] = ()
    network: Mapping[str, str] | None = None
    part: str = ""
    beside: Callable[[], list[str]] | None = None


class TrialEnd(NamedTuple):
    """A committed trial. `stop`: the exception that ended the trial early and has to stop the run too."""

    record: TrialRecord
    took_s: float
    stop: KeyboardInterrupt | EngineLost | None

    @property
    def stood_still(self) -> bool:
        """Whether a stop or a suspension made its times worthless, and nothing else went wrong."""
        return self.record.status == INTERRUPTED and self.stop is None


def run_trial(order: TrialOrder, trials: Path, bench: Bench, begins: Callable[[str], None]) -> TrialEnd:
    """Run a trial and commit it to `trials`, the folder of a run's trials. begins: gets the name of each phase.

    Raises OSError where the trial's files cannot be written.
    """
    folder = trial_folders.begin(trials, order.id, bench.writer)
    if order.unsupported:
        return TrialEnd(_without_start(order, folder, bench.ready), 0.0, None)
    started = started_at(folder)
    beside = bench.beside() if bench.beside else []
    transcript = Transcript()
    with TrialFiles(folder, order.telemetry_interval_s, bench.nvml, [gpu.index for gpu in order.gpus]) as files:
        outcome, stop = _measure(order, bench, files, transcript, begins)
    outcome = _whole(outcome, transcript.phases(), files.sampler.holes)
    telemetry = read_rows(folder / "telemetry.csv")
    joules, source = _energy(telemetry, transcript.phases())
    peak_mib = files.sampler.peak_process_memory_mib
    facts = transcript.facts()
    if order.script and facts.framework:  # it reports packages only, which must be those of the environment
        versions = (bench.ready.record.versions or {}).items()
        known = {name: version for name, version in versions if name == facts.framework}
        facts = facts.model_copy(update={"versions": known})
    record = _described(order, folder, outcome, started, transcript, facts).model_copy(
        update={
            "duration_s": round(files.sampler.elapsed_s(), 3),
            "energy_j": joules,
            "energy_source": source,
            "others_cpu_percent": others_percent(telemetry, MEASURED),
            "peak_process_memory_mib": None if peak_mib is None else round(peak_mib, 1),
            **({"beside": list(dict.fromkeys([*beside, *bench.beside()]))} if bench.beside else {}),
        }
    )
    trial_folders.commit(folder, record)
    return TrialEnd(record, files.sampler.elapsed_s(), stop)


def _whole(outcome: Outcome, phases: Iterable[Phase], holes: Sequence[Hole]) -> Outcome:
    """The outcome of a trial that ran all the time; else that it was interrupted, as its times hold the holes."""
    spans = [(phase.begin_s, math.inf if phase.end_s is None else phase.end_s, phase.name) for phase in phases]
    hit = [(hole, name) for hole in holes for begin, end, name in spans if hole.begin_s < end and begin < hole.end_s]
    if not hit or outcome.status not in (OK, TIMEOUT):
        return outcome
    still_s, name = max((hole.still_s, name) for hole, name in hit)
    why = f"this process or its trial stood still for {still_s:.0f} s in {name} (stopped, frozen or suspended)"
    return Outcome(INTERRUPTED, f"{why}: its times do not count", outcome.exit_code)


def _energy(telemetry: Sequence[dict[str, Any]], phases: Iterable[Phase]) -> tuple[float | None, str]:
    """The joules of all GPUs over the measured phases, and the source of the figure; (None, "") if unknown."""
    spans = [(phase.begin_s, phase.end_s) for phase in phases if phase.name in MEASURED and phase.end_s is not None]
    joules, source = energy_j(telemetry, spans)
    # The energy is negative if the counter was reset.
    return (None, "") if joules is None or joules < 0 else (joules, source)


def bury(order: TrialOrder, folder: Path, outcome: Outcome = KILLED) -> TrialRecord:
    """Commit a trial that cannot say itself how it ended, with the files that it had written. Returns its record."""
    record = _described(order, folder, outcome, started_at(folder), Transcript(), Facts())
    trial_folders.commit(folder, record)
    return record


def _without_start(order: TrialOrder, folder: Path, ready: Ready) -> TrialRecord:
    """Commit a trial of a case that the environment cannot run, by its own answer."""
    started = started_at(folder)
    leave_empty(folder)
    known = ready.record.content()
    facts = {"framework": order.framework} if order.framework else {}
    facts |= {name: known[name] for name in ("python", "versions", "cuda", "cudnn")}
    described = _described(
        order, folder, Outcome(UNSUPPORTED, order.unsupported), started, Transcript(), Facts.reported(facts)
    )
    record = described.model_copy(update={"duration_s": 0.0})
    trial_folders.commit(folder, record)
    return record


def _measure(
    order: TrialOrder, bench: Bench, files: TrialFiles, transcript: Transcript, begins: Callable[[str], None]
) -> tuple[Outcome, KeyboardInterrupt | EngineLost | None]:
    """Start the workload and listen until its end. Returns the outcome, and the exception that has to stop the run."""

    def hear(event: Event) -> None:
        files.hear(event)
        if isinstance(event, PhaseBegin):
            begins(event.phase)

    try:
        process = start_trial(order, bench)
        files.pids = process.pids()
        ended = listen(process, transcript, files.sampler.start, order.timeout_s, hear, files.log)
    except Timeout:
        return Outcome(TIMEOUT, f"stopped after {order.timeout_s:g} s; allow more with --timeout"), None
    except KeyboardInterrupt as interrupt:
        return Outcome(INTERRUPTED, "Ctrl-C"), interrupt
    except UserError as refused:
        return Outcome(FAILED, str(refused)), None
    except EngineLost as lost:
        reason = f"{bench.ready.built.engine} stopped answering: {lost}"
        return Outcome(FAILED, reason), EngineLost(reason)
    outcome = outcome_of(transcript, ended, order.memory_bytes, bench.ready)
    if order.script:
        remedy = lacking(outcome.reason, order.script.home, bench.ready.environment)
        outcome = replace(outcome, reason=outcome.reason + remedy)
    return outcome, None


def start_trial(order: TrialOrder, bench: Bench) -> Process:
    """Start the workload of a trial, or this node's part.

    Raises UserError where the start fails, EngineLost where the engine is gone.
    """
    starter, data_file = bench.ready.starter, ""
    mounts = order.script.mounts() if order.script else {}
    if order.data and bench.data:
        mounts[bench.data] = place = f"{_DATA_INSIDE}/{order.data.file}"
        data_file = starter.inside(bench.data, place)
    try:
        return start_workload(
            starter,
            bench.ready.built,
            bench.workloads,
            order.argument(data_file, lambda path: starter.inside(path, mounts[path])),
            Launch(
                arguments=bench.launcher,
                mounts=mounts,
                name=f"tsuishi-{order.run_id}-{order.id}{bench.part}",
                labels={"run": order.run_id},
                limits=ResourceLimits(order.memory_bytes, order.pids, order.gpus, order.timeout_s),
                network=bench.network,
            ),
        )
    except OSError as error:
        raise UserError(f"it could not be started: {error.strerror or error}: {error.filename or ''}") from error


def _described(
    order: TrialOrder, folder: Path, outcome: Outcome, started: str, transcript: Transcript, facts: Facts
) -> TrialRecord:
    """The content of trial.json, without duration, energy and memory, which the caller adds if the trial ran."""
    reported = {name: value for name, value in facts.content().items() if name != "packages"}
    return TrialRecord(
        **order.specification,
        framework=facts.title,
        device=facts.computed_on,
        status=outcome.status,
        reason=outcome.reason,
        exit_code=outcome.exit_code,
        simulated=facts.simulated if "simulated" in reported else None,
        synthetic=facts.synthetic if "synthetic" in reported else None,
        started_at=started,
        duration_s=None,
        startup_s=transcript.startup_s and round(transcript.startup_s, 3),
        energy_j=None,
        energy_source="",
        peak_process_memory_mib=0.0,
        events_garbled=transcript.garbled,
        events_missing=transcript.missing,
        phases=transcript.phases(),
        reported=Facts.reported(reported),
        files=written(folder),
        command=["python", f"suites/workloads/{ENTRY}", toml.canonical_json(order.argument())],
    )
