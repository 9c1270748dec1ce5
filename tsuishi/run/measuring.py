"""Runs: a new run, and an earlier run that is finished or deepened, in environments that are ready."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tsuishi import __version__
from tsuishi.base import exclusion, toml
from tsuishi.base.checkout import git_state
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.base.units import duration
from tsuishi.environments.builder import Builder, Ready
from tsuishi.environments.self_check import self_check
from tsuishi.machine.busy import await_idle
from tsuishi.machine.gpus import ALL
from tsuishi.plan import choice
from tsuishi.plan import trials as plan
from tsuishi.plan.choice import Choice
from tsuishi.plan.lines import print_questions
from tsuishi.plan.outline import Outline
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results import directory, run_files
from tsuishi.results.directory import RunDirectory
from tsuishi.results.run_files import RunFile
from tsuishi.run import replan, runner
from tsuishi.run.ledger import Learning, Ledger, recorded
from tsuishi.run.progress import RunProgress, running
from tsuishi.run.rounds import Findings, Rounds
from tsuishi.specs.environment import Environment, named_environments, read_environment
from tsuishi.specs.questions import Asked
from tsuishi.specs.source import read_sources
from tsuishi.specs.trial_id import TrialId, is_name

# What trials on GPUs were planned with.
_ON_GPUS = Choice(accelerator="cuda")


class Measuring:
    """New runs and resumed runs of one session."""

    def __init__(self, work: Session) -> None:
        self._work = work

    def run_suite(self, name: str) -> RunDirectory:
        """A new run of what was planned, with `name` in its id. Raises UserError for a name that is none."""
        work = self._work
        if name and not is_name(name):
            raise UserError(f"--name takes letters, digits, '.', '_' and '-'; given: {name}")
        ready = work.build(work.needed or work.plan(with_trials=True))
        outlined = work.outline([as_found(one) for one in ready.values()], ready)
        if [one.id for one in outlined.asked] != work.asked:
            work.screen.say("now that the environments are there and say what they can run:")
            print_questions(work.screen, outlined)
        with self._alone():
            self._await_gpus(outlined.trials)
            checked = self._self_check(ready, outlined.trials)
            run = self._create(name, outlined, checked)
            with run.alone():
                if work.clock.within_s is None:
                    self._finish(run, ready, outlined.trials, outlined.trials)
                else:
                    self._deepen(run, ready, outlined.matrix, outlined.asked, outlined.others)
        return run

    def resume(self, name: str) -> RunDirectory:
        """An earlier run (the latest, where no name is given), taken up where it stopped, in the same environments.

        Without a time, the trials that were planned are finished; within a time, the run is deepened: more trials for
        what is open, then more questions. Engine and GPUs are the run's own where none are given now. Raises UserError
        where the run is somebody else's or is being measured, its trials are none of the suites here, or an environment
        is not what it was.
        """
        run = directory.open_run(self._work.settings.results, name)
        with run.alone():  # from the first look at what is left to measure
            self._resume(run)
        return run

    def _resume(self, run: RunDirectory) -> None:
        work = self._work
        then = run.run()
        if not run.is_ours(then):
            raise UserError(
                f"run {run.id} is not yours to go on with: it was received, renamed or changed, or made by an earlier "
                f"tsuishi; report it with `invoke report --run {run.id}`, or start a new run"
            )
        recorded = run_files.check_run(run.path, then)
        self._as_in(run, recorded)
        if not recorded.plan:
            raise UserError(f"run {run.id} was stopped before it planned a trial: start a new run")
        self._refuse_other_data(run, then)
        names = sorted({entry.environment for entry in recorded.plan})
        files = named_environments(work.rooms.images, tuple(names))
        environments = {name: read_environment(path) for name, path in files.items()}
        data = work.data.record if work.data else None
        here = replan.Places(work.rooms, work.nvml, work.history, data)
        planned = replan.planned_again(run.path, recorded, environments, work.choice, here)
        run.settle()
        left = runner.unfinished(run, planned)  # or it is refused before anything is built
        ready = work.build(list(environments.values()))
        _refuse_other_environments(run, ready)
        self._refuse_other_gpus(ready, left or planned)
        with self._alone():
            self._await_gpus(left or planned)
            self._self_check(ready, left or planned)
            if work.clock.within_s is None:
                self._finish(run, ready, planned, left)
            else:
                matrix = work.matrix([as_found(one) for one in ready.values()], ready)
                known = {one.id for one in recorded.questions}
                others = [one for one in work.questions(matrix) if one.id not in known]
                self._deepen(run, ready, matrix, recorded.questions, others, planned, left)

    def _finish(
        self,
        run: RunDirectory,
        ready: Mapping[str, Ready],
        planned: Sequence[PlannedTrial],
        left: Sequence[PlannedTrial],
    ) -> None:
        """Every trial of the plan that has no finding yet: those `left`."""
        expected_s = sum(trial.expected_s for trial in left)
        say = self._work.screen.say
        say(f"run {run.id}: {len(left)} trials, about {duration(expected_s)}, in {run.path}")
        Ledger(run).begin(self._work)
        self._measure(run, ready, planned, left, lambda audience: left)

    def _deepen(
        self,
        run: RunDirectory,
        ready: Mapping[str, Ready],
        matrix: plan.Matrix,
        asked: Sequence[Asked],
        others: Sequence[Asked],
        planned: Sequence[PlannedTrial] = (),
        left: Sequence[PlannedTrial] = (),
    ) -> None:
        """Rounds, as long as there is time. `left`: those of the plan that have no finding yet."""
        work, ledger, findings = self._work, Ledger(run), Findings(run, lambda asked: self._is_judged(run, asked))
        ledger.begin(work)
        left_s = work.left_for_trials_s()
        work.screen.say(f"run {run.id}: {duration(max(0.0, left_s))} for trials, in {run.path}")
        seed, kept = run.run()["seed"], []

        def rounds(audience: RunProgress) -> Iterable[PlannedTrial]:
            def add(questions: Sequence[Asked], trials: Sequence[PlannedTrial]) -> None:
                new = ledger.add(questions, trials)
                audience.more(new)

            these = Rounds(findings, matrix.first, asked, others, seed, work.left_for_trials_s, add)
            kept.append(these)
            return these

        try:
            self._measure(run, ready, planned, left, rounds)
        finally:
            if kept:
                ledger.end(kept[0], max(0.0, work.left_for_trials_s()))

    def _is_judged(self, run: RunDirectory, asked: Asked) -> bool:
        """Whether the report, if it were made now, would have a verdict on a claim."""
        from tsuishi.verdicts.answers import answers
        from tsuishi.verdicts.evidence import Evidence
        from tsuishi.verdicts.judge import judge

        evidence = Evidence([run], read_sources(self._work.rooms.published))
        found = {answer.asked.id: answer.state for answer in answers(evidence, judge(evidence))}
        return found.get(asked.id) != "open"

    def _measure(
        self,
        run: RunDirectory,
        ready: Mapping[str, Ready],
        planned: Sequence[PlannedTrial],
        left: Sequence[PlannedTrial],
        trials: Callable[[RunProgress], Iterable[PlannedTrial]],
    ) -> None:
        work, begun = self._work, time.monotonic()
        data = work.data.record if work.data else None
        try:
            until_s = None if work.clock.within_s is None else lambda: work.clock.left_s
            with running(work.screen, left, len(planned), work.report_s, until_s) as progress:
                audience = Learning(progress, work.history, data)
                measured = runner.Runner(run, ready, work.settings, work.rooms, work.nvml, audience, work.data)
                measured.run(planned, trials(progress))
        finally:
            work.history.keep()
        counts = runner.statuses(run, [TrialId.parse(entry["trial"]) for entry in run.run()["plan"]])
        said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        work.screen.say(f"run {run.id}: {said}; took {duration(time.monotonic() - begun)}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Only one run at a time measures, whose ever it is, and nothing that others left running is beside it."""
        with exclusion.machine(self._work.settings.exclusive_on):
            self._work.builder.sweep()
            yield

    def _await_gpus(self, planned: Sequence[PlannedTrial]) -> None:
        """Before anything is recorded: wait for the GPUs the trials need. Raises UserError where they stay in use."""
        work, settings = self._work, self._work.settings
        needed = {gpu.index: gpu for trial in planned for gpu in plan.gpus_for(trial, work.nvml.gpus)}
        await_idle(work.nvml, needed.values(), settings.busy_gpu, settings.gpu_wait_s, work.screen.say)

    def _self_check(self, ready: Mapping[str, Ready], planned: Sequence[PlannedTrial]) -> dict[str, dict[str, float]]:
        """What --force asks for first: the errors found, by environment, on every GPU that its trials get.

        Raises UserError where one does not pass.
        """
        work, errors = self._work, {}
        for name, reason in {trial.environment: trial.forced for trial in planned if trial.forced}.items():
            work.screen.say(f"{name}: forced: {reason}")
            trials = [trial for trial in planned if trial.environment == name]
            gpus = dict.fromkeys(gpu for trial in trials for gpu in plan.gpus_for(trial, work.nvml.gpus))
            errors[name] = self_check(ready[name], work.rooms, "cuda", tuple(gpus), work.screen.say)
        return errors

    def _refuse_other_gpus(self, ready: Mapping[str, Ready], left: Sequence[PlannedTrial]) -> None:
        """Raise UserError where the GPUs here cannot run what is left to run on GPUs, unless it was forced then."""
        work = self._work
        for name in sorted({trial.environment for trial in left if trial.accelerator == "cuda" and not trial.forced}):
            environment = as_found(ready[name])
            if refusal := choice.why_not_run(work.builder, work.rooms, _ON_GPUS, work.nvml, environment):
                raise UserError(f"{name} cannot be used here any more: {refusal}")

    def _refuse_other_data(self, run: RunDirectory, recorded: Mapping[str, Any]) -> None:
        """Go on with the data a run began with: raise UserError where they are not at hand; none stay none."""
        work, then = self._work, recorded.get("data")
        if then is None:
            work.data = None
        elif work.data is None or work.data.record != then:
            raise UserError(
                f"run {run.id} began with {then['file']} (sha256 {then['sha256'][:12]}…), which is not at hand: "
                "get it with `invoke fetch-data`, give --data, or start a new run"
            )

    def _as_in(self, run: RunDirectory, recorded: RunFile) -> None:
        """Take over from a run's own arguments what decides which environments are found, and what can be asked.

        Where images and files come from is for this machine's settings alone to say.
        """
        work, then = self._work, replan.arguments(run.path, recorded)
        taken: dict[str, str] = {}
        if work.settings.engine == "auto":
            taken["engine"] = then.engine
        if work.settings.gpus == ALL:
            taken["gpus"] = then.gpus
        try:
            work.settings = Settings.model_validate({**work.settings.model_dump(), **taken})
        except ValidationError as error:
            raise UserError(f"{run.path / 'run.json'}: {toml.explain(error, Settings)}; start a new run") from error
        work.builder = Builder(work.settings, work.rooms)
        work.choice = replace(
            work.choice,
            suites=tuple(filter(None, then.suite.split(","))),
            profile=then.profile,
            accelerator=then.accelerator,
            timeout_s=work.choice.timeout_s or then.timeout,
            force=then.force,
        )

    def _create(self, name: str, outlined: Outline, checked: Mapping[str, Mapping[str, float]]) -> RunDirectory:
        work, now = self._work, time.gmtime()
        run_id = _run_id(now, work.choice.profile, name)
        everything = work.clock.within_s is None
        return RunDirectory.create(
            work.settings.results / run_id,
            {
                "run_id": run_id,
                "tsuishi_version": __version__,
                "git": git_state(),
                "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
                "profile": work.choice.profile,
                "seed": work.choice.seed,
                "engine": work.settings.engine,
                "arguments": self._arguments(),
                "data": work.data.record if work.data else None,
                # Named before anything is measured.
                "questions": [recorded(one) for one in outlined.asked],
                "plan": plan.describe_plan(outlined.trials) if everything else [],
                "cases_left_out": outlined.left_out,
                "more": [],
                "sessions": [],
                "self_checks": checked,
                "left_out": [{"environment": name, "reason": reason} for name, reason in work.left_out.items()],
            },
        )

    def _arguments(self) -> dict[str, Any]:
        """What was asked for, as the options of run-suite that ask for it again."""
        choice, settings, data = self._work.choice, self._work.settings, self._work.data
        return {
            "env": ",".join(choice.environments),
            "suite": ",".join(choice.suites),
            "within": "none" if choice.within_s is None else f"{choice.within_s:g}s",
            "profile": choice.profile,
            "repetitions": choice.repetitions,
            "timeout": choice.timeout_s,
            "seed": choice.seed,
            "accelerator": choice.accelerator,
            "force": choice.force,
            "engine": settings.engine,
            "gpus": settings.gpus,
            "busy_gpu": settings.busy_gpu,
            "mirrors": ",".join(f"{asked}={used}" for asked, used in sorted(settings.base_mirrors.items())),
            "host_python": Path(settings.host_python).name,
            "telemetry_interval": settings.telemetry_interval,
            "data": data.name if settings.data and data else "",
        }


def as_found(ready: Ready) -> Environment:
    """An environment as it turned out to be: a host interpreter may have no use for the GPU that is there."""
    if ready.record["cuda_usable"] or ready.environment.pinned:
        return ready.environment
    return ready.environment.model_copy(update={"accelerators": ("cpu",)})


def failed(run: RunDirectory) -> bool:
    """Whether some trial's last attempt failed, timed out, or never came to an end."""
    return any(trial["status"] in directory.UNFINISHED for trial in runner.last_attempts(run).values())


def _run_id(now: time.struct_time, profile: str, name: str) -> str:
    """An id that sorts by time and says what it was."""
    return f"{time.strftime('%Y%m%d-%H%M%S', now)}-{name or profile}"


def _refuse_other_environments(run: RunDirectory, ready: Mapping[str, Ready]) -> None:
    """Raise UserError where trials were run in something else than what is at hand now."""
    for _, trial in run.finished():
        if trial["environment"] not in ready:
            raise UserError(f"run {run.id} has trials in {trial['environment']} that it did not plan: start a new run")
        now = ready[trial["environment"]].built.realised_id
        then = run.record(trial["environment_record"])["realised_id"]
        if now != then:
            raise UserError(
                f"{trial['environment']} is not what run {run.id} began with ({now}, then {then}): "
                "give the same --engine and --host-python, or start a new run"
            )
