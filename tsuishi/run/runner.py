"""The runner: runs the trials of a run, counts their attempts, and gathers their tables."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import psutil

from tsuishi.base import toml
from tsuishi.base.errors import EngineLost, UserError
from tsuishi.base.files import advice
from tsuishi.environments import possible, provenance
from tsuishi.environments.entry import ENTRY, Ready, framework_of
from tsuishi.machine.description import machine_record
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial, gpus_for, with_its_data
from tsuishi.results import trial_folders
from tsuishi.results.attempts import last_attempts
from tsuishi.results.directory import WRITTEN_ANEW, RunDirectory
from tsuishi.results.manifest import Manifest, write_anew
from tsuishi.results.records import CaseRecord, MachineRecord
from tsuishi.run.executor import LOCAL, Audience, Executor, RunStopped, Work
from tsuishi.run.trial import TrialEnd, TrialOrder, bury
from tsuishi.specs.quantities import MOST_OF_OTHERS
from tsuishi.specs.statuses import is_finding
from tsuishi.specs.trial_id import TrialId
from tsuishi.specs.trial_spec import DataRecord

# The share of the machine's memory; the rest is for the engine and this process.
MEMORY_FOR_TRIALS = 0.9
# Further attempts would not help, and each leaves a folder. The limit ends a loop of resumptions.
MOST_ATTEMPTS = 99
# A killed runner leaves a trial that is committed and not listed, and a trial that the next runner buries.
MOST_LEFT = 2


class Runner:
    """Runs the trials of a run directory."""

    def __init__(
        self,
        session: Session,
        run: RunDirectory,
        ready: Mapping[str, Ready],
        audience: Audience,
        executor: Executor = LOCAL,
    ) -> None:
        self._session = session
        self._run = run
        self._drawn = run.run().seeds_from
        self._ready = ready
        self._audience = audience
        self._executor = executor
        # The orders that earlier sessions gave away, by their ids: each may still run, or have run since.
        self._given = executor.given(run)
        # The trials that were ordered, by their planned ids.
        self._trials: dict[TrialId, PlannedTrial] = {}
        # Whether other programs were seen to take cores from a trial; it is said once.
        self._crowded = False
        # The records of environments, by name, once a trial is in them.
        self._environments: dict[str, str] = {}
        self._manifest = Manifest(run.path)
        memory_gib = session.settings.memory_gib
        self._memory = int(memory_gib * (1 << 30) if memory_gib else psutil.virtual_memory().total * MEMORY_FOR_TRIALS)

    def run(self, planned: Iterable[PlannedTrial], batches: Iterable[Iterable[PlannedTrial]]) -> None:
        """Run trials, then gather the tables, also after an error. planned: those that the run's plan has already.

        A batch is asked for when all trials of the batch before have ended, and a trial of it when the executor asks:
        on this machine, when the trial before is committed. Raises KeyboardInterrupt after the interrupted trial is
        recorded, RunStopped where the engine or the disk fails.
        """
        self._trials = {trial.id: trial for trial in planned}
        self._bury_left_behind()
        self._list_what_is_there()
        work = Work(self._session, self._run, self._ready, self._audience, self._trials)
        try:
            for batch in batches:
                for end in self._executor.ends(work, self._orders(batch)):
                    self._hear(end)
        except OSError as error:
            self._gather_after_error()
            raise self._stopped("", error) from error
        except BaseException:
            self._gather_after_error()
            raise
        self._gather()

    @cached_property
    def _machine(self) -> str:
        """The record of this machine; empty where it only orders trials, as it is then no machine of the run."""
        if not self._executor.is_local:
            return ""
        return self._run.add(MachineRecord.model_validate(machine_record(self._session.nvml)))

    def _orders(self, trials: Iterable[PlannedTrial]) -> Iterator[TrialOrder]:
        """The orders of the next attempts at these trials.

        A trial gets no other attempt while an order that was given away has not ended, or if it ended with a finding
        since the trials were chosen.
        """
        last = last_attempts(self._run)
        attempts = {planned_id: trial.attempt for planned_id, trial in last.items()}
        others = {trial_id.planned: trial_id.attempt for trial_id in self._given}
        for trial in trials:
            attempt = attempts.get(trial.id, 0)
            if trial.id in others and (others[trial.id] > attempt or is_finding(last[trial.id].status)):
                continue
            trial_id = replace(trial.id, attempt=attempt).next_attempt
            if trial_id.attempt > MOST_ATTEMPTS:
                self._audience.waits(f"{trial.id}: left alone: no finding in {MOST_ATTEMPTS} attempts; see their logs")
                continue
            self._trials[trial.id] = trial
            yield self._order(trial, trial_id)

    def _hear(self, end: TrialEnd) -> None:
        """List a trial that has ended, and tell the audience. Raises what has to stop the run."""
        self._manifest.add(end.record)
        trial = self._trials[end.record.id.planned]
        others = end.record.others_cpu_percent or 0.0
        if others > MOST_OF_OTHERS and not self._crowded:
            self._crowded = True
            self._audience.waits(
                f"other programs took {others:.0f} % of the cores beside {end.record.trial_id}: times may be longer: "
                f"end them; the report marks every case that had more than {MOST_OF_OTHERS:g} %"
            )
        self._audience.trial_ends(trial, end.record.status, end.record.reason or "", end.took_s)
        if isinstance(end.stop, EngineLost):
            raise RunStopped(self._run, f"{end.stop}; start it again")
        if end.stop is not None:
            raise end.stop

    def _order(self, trial: PlannedTrial, trial_id: TrialId) -> TrialOrder:
        """The order for an attempt at a trial. Writes the records that it names."""
        session, ready = self._session, self._ready[trial.environment]
        if trial.environment not in self._environments:
            self._environments[trial.environment] = self._run.add(ready.record)
        code = provenance.workload_record(session.checkout.workloads, trial.workload, trial.script)
        data = None if trial.case.without_data else session.data_record
        specification = {
            **trial.renamed(trial_id).specification,
            "settings": {**trial.settings, "seed": seed_of(trial, self._drawn)},
            "asked": _question(trial, ready) if trial.unsupported else None,
            "case_record": self._run.add(CaseRecord(trial.case.axes)),
            "environment_record": self._environments[trial.environment],
            "machine_record": self._machine,
            "workload_record": self._run.add(code),
            "data": DataRecord.model_validate(data) if data else None,
        }
        return TrialOrder(
            **specification,
            run_id=self._run.id,
            given=trial.case.for_workload,
            process=trial.case.process,
            framework=framework_of(ready.environment),
            gpus=gpus_for(trial, session.nvml.gpus),
            script=trial.script and with_its_data(trial.script, session.settings.cache),
            memory_bytes=self._memory,
            pids=session.settings.pids,
            telemetry_interval_s=session.settings.telemetry_interval,
        )

    def _bury_left_behind(self) -> None:
        """Record trials whose runner was killed as interrupted attempts, with the files that they had written."""
        for trial_id, folder in trial_folders.left_behind(self._run.trials):
            trial = self._trials.get(trial_id.planned)
            if trial and trial_id not in self._given:
                bury(self._order(trial, replace(trial.id, attempt=trial_id.attempt)), folder)

    def _list_what_is_there(self) -> None:
        """List trials that a killed runner had committed and not yet listed, or all of a run that has no manifest yet.

        Forget trials that were removed, as a user may remove a damaged trial. Raises UserError where more trials are
        there than a killed runner can leave.
        """
        self._manifest.forget_removed()
        folders = self._run.finished_folders()
        new = [folder for folder in folders if f"trials/{folder.name}/trial.json" not in self._manifest]
        unexpected = [folder for folder in new if TrialId.parse(folder.name) not in self._given]
        if self._manifest and len(unexpected) > MOST_LEFT:
            raise UserError(
                f"{self._run.path}: {len(unexpected)} trials are not in its manifest, so they came from elsewhere: see "
                f"`invoke verify --run {self._run.id}`; start a new run"
            )
        for _, trial in trial_folders.read(new):
            self._manifest.add(trial)

    def _gather_after_error(self) -> None:
        with suppress(RunStopped, UserError):  # the first error is reported
            self._gather()

    def _gather(self) -> None:
        try:
            self._manifest.add_records(self._run.record_files())
            self._run.gather(self._session.words)
            write_anew(self._run.path, WRITTEN_ANEW)
        except OSError as error:
            raise self._stopped("the tables: ", error) from error

    def _stopped(self, what: str, error: OSError) -> RunStopped:
        path = error.filename or self._run.path
        return RunStopped(self._run, f"{path}: {what}{error.strerror or error}: {advice(error)}")


def seed_of(trial: PlannedTrial, drawn: str) -> int:
    """The seed of a trial in a run that has drawn this text: the same for all environments and cases of a repetition.

    It is a hash, cut to 31 bits as NumPy takes 32 without a sign. With equal seeds, in one run or in several, several
    trainings would be one. The plan's settings have none of this, so that a case stays the same case.
    """
    text = toml.canonical_json([drawn, trial.settings.get("seed", 0), trial.repetition])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def _question(trial: PlannedTrial, ready: Ready) -> tuple[str, ...]:
    """The command with which an environment answers whether it can run a trial."""
    question = possible.argument(ready, trial.accelerator, [(trial.workload, trial.case, trial.settings)])
    question["experiment"] = possible.WORKLOAD
    return "python", f"suites/workloads/{ENTRY}", toml.canonical_json(question)
