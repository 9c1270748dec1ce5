"""Cases become trials here: the only module that writes a run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import psutil

from tsuishi.artifacts.datasets import DataFile
from tsuishi.base import toml
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import EngineLost, UserError
from tsuishi.base.processes import Ended, Process
from tsuishi.base.settings import Settings
from tsuishi.base.statuses import FAILED, INTERRUPTED, OK, OUT_OF_MEMORY, SKIPPED, TIMEOUT, UNSUPPORTED, is_finding
from tsuishi.environments import possible, provenance
from tsuishi.environments.entry import ENTRY, Ready, framework_of, start_workload
from tsuishi.machine.busy import await_idle
from tsuishi.machine.description import machine_record
from tsuishi.machine.gpus import Nvml
from tsuishi.plan.trials import PlannedTrial, gpus_for
from tsuishi.results.directory import RunDirectory
from tsuishi.run.trial_files import Recording
from tsuishi.specs.trial_id import TrialId
from tsuishi.specs.vocabulary import vocabulary
from tsuishi.stream.events import Event, PhaseBegin
from tsuishi.stream.listener import Timeout, Transcript, listen, why_it_ended

_DATA_INSIDE = "/data"
# What the engine and this process need beside the trial.
_MEMORY_FOR_TRIALS = 0.9
# More will not help, and each leaves a folder; so resuming in a loop comes to an end.
MOST_ATTEMPTS = 99


class Audience(Protocol):
    """Whoever watches a run: the progress display, or nobody."""

    def waits(self, why: str) -> None: ...
    def trial_begins(self, trial: PlannedTrial, attempt: int) -> None: ...
    def phase(self, name: str) -> None: ...
    def trial_ends(self, trial: PlannedTrial, status: str, reason: str, duration_s: float) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: one of statuses.RECORDED, and a reason a person can act on."""

    status: str
    reason: str = ""
    exit_code: int | None = None


class RunStopped(Exception):
    """The run cannot go on; what was measured is safe. Says in one line why, and how to go on."""

    def __init__(self, run: RunDirectory, why: str) -> None:
        super().__init__(f"{why}, then go on with `invoke run-suite --resume {run.id}`; what was measured is kept")
        self.run = run


class Runner:
    """Runs the trials of one run directory."""

    def __init__(
        self,
        run: RunDirectory,
        ready: Mapping[str, Ready],
        settings: Settings,
        rooms: Rooms,
        nvml: Nvml,
        audience: Audience,
        data: DataFile | None,
    ) -> None:
        # For the whole run.
        self._run = run
        self._ready = ready
        self._settings = settings
        self._rooms = rooms
        self._nvml = nvml
        self._audience = audience
        self._data = data
        self._machine = run.add_record("machine", machine_record(nvml))
        self._environments = {name: run.add_record("environment", one.record) for name, one in ready.items()}
        self._memory = int(
            settings.memory_gib * (1 << 30)
            if settings.memory_gib
            else psutil.virtual_memory().total * _MEMORY_FOR_TRIALS
        )

    def run(self, planned: Sequence[PlannedTrial], trials: Iterable[PlannedTrial] | None = None) -> Counter[str]:
        """Run these trials, or every trial of the plan that has no finding yet; statuses of the plan's last attempts.

        `trials` may be chosen as they come: each is asked for when the trial before it has been committed. The tables
        are gathered whatever happens. Raises KeyboardInterrupt after recording the trial at hand, RunStopped where
        engine or disk fail.
        """
        self._bury_left_behind(planned)
        done = last_attempts(self._run)
        try:
            for trial in unfinished(self._run, planned) if trials is None else trials:
                trial_id = replace(trial.id, attempt=done[trial.id]["attempt"] if trial.id in done else 0).next_attempt
                if trial_id.attempt > MOST_ATTEMPTS:
                    self._audience.waits(
                        f"{trial.id}: left alone: no finding in {MOST_ATTEMPTS} attempts; see their logs"
                    )
                    continue
                (self._answered if trial.unsupported else self._attempt)(trial, trial_id)
        except BaseException:
            with suppress(RunStopped):  # what stopped the run is the news, not that the tables could not be written
                self._gather()
            raise
        self._gather()
        return statuses(self._run, [trial.id for trial in planned])

    def _attempt(self, trial: PlannedTrial, trial_id: TrialId) -> None:
        ready = self._ready[trial.environment]
        self._await_gpus(trial)
        self._audience.trial_begins(trial, trial_id.attempt)
        try:
            with Recording(self._run, trial_id, trial, self._settings.telemetry_interval, self._nvml) as recording:
                outcome, stopped = self._measure(recording, trial, ready, trial_id)
                recording.close_files()
                self._run.commit(recording.folder, self._describe(recording, trial, trial_id, outcome))
        except OSError as error:
            raise RunStopped(self._run, f"{self._run.path}: {error.strerror or error}: free some room") from error
        self._audience.trial_ends(trial, outcome.status, outcome.reason, recording.sampler.elapsed_s())
        if stopped is not None:
            raise stopped

    def _answered(self, trial: PlannedTrial, trial_id: TrialId) -> None:
        """The row of a trial that its environment, asked (tsuishi.possible), cannot run: nothing is started."""
        ready = self._ready[trial.environment]
        outcome = Outcome(UNSUPPORTED, trial.unsupported)
        question = possible.argument(ready, trial.accelerator, [(trial.workload, trial.case, trial.settings)])
        self._audience.trial_begins(trial, trial_id.attempt)
        try:
            recording = Recording(self._run, trial_id, trial, 1.0, self._nvml, folder=self._run.partial(trial_id))
            recording.leave_empty()
            recording.transcript.reported = _reported(ready)
            described = self._describe(recording, trial, trial_id, outcome)
            question["experiment"] = possible.WORKLOAD
            asked = ["python", f"suites/workloads/{ENTRY}", toml.canonical_json(question)]
            self._run.commit(recording.folder, {**described, "duration_s": 0.0, "asked": asked})
        except OSError as error:
            raise RunStopped(self._run, f"{self._run.path}: {error.strerror or error}: free some room") from error
        self._audience.trial_ends(trial, outcome.status, outcome.reason, 0.0)

    def _await_gpus(self, trial: PlannedTrial) -> None:
        given = self._settings
        try:
            gpus = gpus_for(trial, self._nvml.gpus)
            await_idle(self._nvml, gpus, given.busy_gpu, given.gpu_wait_s, self._audience.waits)
        except UserError as busy:
            raise RunStopped(self._run, str(busy)) from busy

    def _measure(
        self, recording: Recording, trial: PlannedTrial, ready: Ready, trial_id: TrialId
    ) -> tuple[Outcome, BaseException | None]:
        """Start the workload and hear it out: the outcome, and what stops the run after this trial, if anything."""
        try:
            process = self._start(trial, ready, trial_id)
            recording.pids = process.pids()
            ended = listen(
                process,
                recording.transcript,
                recording.sampler.start,
                trial.timeout_s,
                lambda event: self._hear(recording, event),
                recording.log,
            )
        except Timeout:
            return Outcome(TIMEOUT, f"stopped after {trial.timeout_s:g} s; allow more with --timeout"), None
        except KeyboardInterrupt as interrupt:
            return Outcome(INTERRUPTED, "Ctrl-C; go on with `invoke run-suite --resume latest`"), interrupt
        except UserError as refused:
            return Outcome(FAILED, str(refused)), None
        except EngineLost as lost:
            reason = f"{ready.built.engine} stopped answering: {lost}"
            return Outcome(FAILED, reason), RunStopped(self._run, f"{reason}; start it again")
        return outcome_of(recording.transcript, ended, self._memory, ready.record), None

    def _start(self, trial: PlannedTrial, ready: Ready, trial_id: TrialId) -> Process:
        """The trial's workload, started. Raises UserError where that is refused, EngineLost where nobody answers."""
        mounts: dict[Path, str] = {}
        data = None
        if self._data:
            mounts[self._data.path] = place = f"{_DATA_INSIDE}/{self._data.name}"
            data = {**self._data.record, "file": ready.starter.inside(self._data.path, place)}
        try:
            return start_workload(
                ready.starter,
                ready.built,
                self._rooms.workloads,
                argument(trial, ready, data),
                name=f"tsuishi-{self._run.id}-{trial_id}",
                labels={"run": self._run.id},
                seconds=trial.timeout_s,
                gpus=gpus_for(trial, self._nvml.gpus),
                memory_bytes=self._memory,
                pids=self._settings.pids,
                mounts=mounts,
            )
        except OSError as error:
            raise UserError(f"it could not be started: {error.strerror or error}: {error.filename or ''}") from error

    def _hear(self, recording: Recording, event: Event) -> None:
        recording.hear(event)
        if isinstance(event, PhaseBegin):
            self._audience.phase(event.phase)

    def _describe(
        self, recording: Recording, trial: PlannedTrial, trial_id: TrialId, outcome: Outcome
    ) -> dict[str, Any]:
        """trial.json: everything about a trial that is not in its tables."""
        transcript = recording.transcript
        reported = {key: value for key, value in transcript.reported.items() if key != "packages"}
        ready = self._ready[trial.environment]
        phases = transcript.phases()
        joules, source = recording.energy(phases)
        workload = provenance.workload_record(self._rooms.workloads, trial.workload)
        data = self._data.record if self._data else None
        asked = toml.canonical_json(argument(trial, ready, data))
        return {
            "trial_id": str(trial_id),
            "case_id": trial.case.id,
            "case_record": self._run.add_record("case", trial.case.axes),
            "environment": trial.environment,
            "environment_record": self._environments[trial.environment],
            "machine_record": self._machine,
            "workload_record": self._run.add_record("workload", workload),
            "framework": _framework(reported),
            "device": _device(reported),
            "repetition": trial.repetition,
            "attempt": trial_id.attempt,
            "status": outcome.status,
            "reason": outcome.reason,
            "exit_code": outcome.exit_code,
            "simulated": reported.get("simulated"),
            "synthetic": reported.get("synthetic"),
            "forced": trial.forced,
            "started_at": recording.started_at,
            "duration_s": recording.duration_s,
            "startup_s": transcript.startup_s and round(transcript.startup_s, 3),
            "energy_j": joules,
            "energy_source": source,
            "peak_process_memory_mib": round(recording.sampler.peak_process_memory_mib, 1),
            "events_garbled": transcript.garbled,
            "events_missing": transcript.missing,
            "phases": phases,
            "reported": reported,
            "settings": trial.settings,
            "timeout_s": trial.timeout_s,
            "data": data,
            "tables": recording.digests(),
            "command": ["python", f"suites/workloads/{ENTRY}", asked],
        }

    def _bury_left_behind(self, planned: Sequence[PlannedTrial]) -> None:
        """Record what a killed runner was in the middle of as interrupted attempts, with all they had written."""
        by_name = {str(trial.id): trial for trial in planned}
        for trial_id, partial in list(self._run.left_behind()):
            trial = by_name.get(str(trial_id.planned))
            if trial is None:
                continue
            with Recording(self._run, trial_id, trial, 1.0, Nvml(), folder=partial) as recording:
                outcome = Outcome(INTERRUPTED, "the runner was killed during this trial")
                self._run.commit(partial, self._describe(recording, trial, trial_id, outcome))

    def _gather(self) -> None:
        try:
            self._run.gather(vocabulary(self._rooms.suites))
        except OSError as error:
            raise RunStopped(
                self._run, f"{self._run.path}: the tables: {error.strerror or error}: free some room"
            ) from error


def argument(trial: PlannedTrial, ready: Ready, data: Mapping[str, str] | None) -> dict[str, Any]:
    """The one JSON argument a workload is started with; `data` is the file of a data set and its sha256."""
    return {
        "experiment": trial.workload,
        "case": trial.case.values,
        "framework": framework_of(ready.environment),
        "accelerator": trial.accelerator,
        "settings": trial.settings,
        "budget_s": trial.timeout_s,
        "data": data,
    }


def outcome_of(transcript: Transcript, ended: Ended, memory_bytes: int, record: Mapping[str, Any]) -> Outcome:
    """What a workload's own words and the way it ended come to; `record` is its environment's."""
    code = ended.code
    if others := provenance.other_versions(record, transcript.reported):
        remedy = "look what was altered with `invoke images --verify`"
        return Outcome(FAILED, f"not what its environment's record says: {', '.join(others)}: {remedy}", code)
    if ended.out_of_memory:
        limit = f"{memory_bytes / (1 << 30):.1f} GiB"
        return Outcome(OUT_OF_MEMORY, f"the kernel ended it at its memory limit of {limit}", code)
    if transcript.failure is not None:
        failure = transcript.failure
        if failure.kind == SKIPPED:
            return Outcome(SKIPPED, failure.text, code)
        status = FAILED if failure.kind == "error" else failure.kind
        return Outcome(status, f"{failure.type}: {failure.text}", code)
    if not transcript.finished:
        return Outcome(FAILED, f"it ended without saying it had finished: {why_it_ended(ended)}; see its log", code)
    if code != 0:
        return Outcome(FAILED, f"it had finished, then {why_it_ended(ended)}; see its log", code)
    if transcript.missing:
        reason = f"{transcript.missing} of its events are missing or break the rules, so samples may be; see its log"
        return Outcome(FAILED, reason, code)
    return Outcome(OK, "", code)


def last_attempts(run: RunDirectory) -> dict[TrialId, dict[str, Any]]:
    """The latest attempt of every trial, by the planned trial's id."""
    latest: dict[TrialId, dict[str, Any]] = {}
    for _, trial in run.finished():
        planned = TrialId.parse(trial["trial_id"]).planned
        if planned not in latest or trial["attempt"] > latest[planned]["attempt"]:
            latest[planned] = trial
    return latest


def unfinished(run: RunDirectory, planned: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """The trials of the plan that have no finding yet."""
    latest = last_attempts(run)
    return [trial for trial in planned if trial.id not in latest or not is_finding(latest[trial.id]["status"])]


def statuses(run: RunDirectory, planned: Iterable[TrialId]) -> Counter[str]:
    """How many trials of the plan, by their ids, came to which status; those not yet run count as 'not run'."""
    latest = last_attempts(run)
    return Counter(latest[trial]["status"] if trial in latest else "not run" for trial in planned)


def _reported(ready: Ready) -> dict[str, Any]:
    """What an environment said of itself when it was built, as far as a trial would say it again."""
    record = ready.record
    known = {name: record.get(name) for name in ("python", "versions", "cuda", "cudnn")}
    framework = framework_of(ready.environment)
    return {"framework": framework, **known} if framework else known


def _framework(reported: Mapping[str, Any]) -> str:
    name = reported.get("framework")
    return f"{name} {reported.get('versions', {}).get(name, '')}".strip() if name else ""


def _device(reported: Mapping[str, Any]) -> str:
    devices = reported.get("devices") or []
    gpus = [device["name"] for device in devices if device.get("kind") == "gpu"]
    return ", ".join(sorted(set(gpus))) if gpus else ("cpu" if devices else "")
