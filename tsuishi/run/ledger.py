"""The books of a run: run.json with questions, plan and sessions; the history with durations and scatter of trials."""

import math
import secrets
import statistics
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Literal

from tsuishi import __version__
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import git_state
from tsuishi.base.option_table import options_of, task_with
from tsuishi.machine.history import History
from tsuishi.plan.planning import Plan
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial, scatter_name
from tsuishi.plan.worth import with_more_time
from tsuishi.results.directory import RunDirectory, new_run_id
from tsuishi.results.manifest import write_anew
from tsuishi.results.run_record import CheckoutState, LeftOut, More, OriginalRun, RunRecord, SessionRecord
from tsuishi.run.rounds import Rounds
from tsuishi.run.tally import Tally
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.questions import MatrixCell, PlannedQuestion
from tsuishi.specs.trial_spec import DataRecord, Value


def create(
    session: Session,
    name: str,
    plan: Plan,
    checked: Mapping[str, Mapping[str, float]],
    original: OriginalRun | None = None,
    search: Mapping[str, Value] | None = None,
) -> RunDirectory:
    """The directory of a new run, with its record. checked: the errors of self-checks, by environment.

    search: the options that only a search has.
    """
    now, choice = time.gmtime(), session.choice
    run_id = new_run_id(session.settings.results, now, name or choice.profile)
    everything = not session.is_limited
    return RunDirectory.create(
        session.settings.results / run_id,
        RunRecord(
            run_id=run_id,
            task=session.task if search is None else task_with("quantity"),
            tsuishi_version=__version__,
            git=CheckoutState.model_validate(git_state()),
            created_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
            profile=choice.profile,
            seed=choice.seed,
            drawn=secrets.token_hex(8),
            engine=session.settings.engine,
            arguments=options_given(session, search),
            data=DataRecord.model_validate(session.data_record) if session.data_record else None,
            # Named before anything is measured.
            questions=plan.outlined.asked,
            plan=plan.outlined.trials if everything else (),
            cases_left_out=plan.outlined.left_out,
            more=(),
            sessions=(),
            self_checks={name: dict(errors) for name, errors in checked.items()},
            left_out=tuple(LeftOut(environment=name, reason=reason) for name, reason in plan.left_out.items()),
            replays=original,
            request=dict(session.request),
        ),
    )


def options_given(session: Session, search: Mapping[str, Value] | None = None) -> dict[str, Value | tuple[Value, ...]]:
    """The options of run-suite, or of a search, that repeat this run."""
    choice, settings, within_s = session.choice, session.settings, session.clock.within_s
    no_limit = "none" if search is None else ""
    shown: dict[str, Value] = {
        "within": no_limit if within_s is None else f"{within_s:g}s",
        "mirrors": ",".join(f"{asked}={used}" for asked, used in sorted(settings.base_mirrors.items())),
        "host_python": Path(settings.host_python).name,
        "data": session.data.name if settings.data and session.data else "",
    }
    given = {
        row.parameter: shown[row.parameter]
        if row.parameter in shown
        else _text(getattr(choice, row.choice) if row.choice else getattr(settings, row.setting))
        for row in options_of(("run-suite" if search is None else task_with("quantity"),))
        if row.recorded and (row.choice or row.setting)
    }
    return {**(search or {}), **given}


def _text(value: Any) -> Value:
    return ",".join(value) if isinstance(value, tuple) else value


class Ledger:
    """Writes run.json of a running run: sessions, questions, trials, and what more time would bring."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._record = run.run()
        self._trials = {trial.trial_id for trial in self._record.plan}
        self._asked = {question.id for question in self._record.questions}
        # Whether the session resumes a run that had ended, and has measured nothing: then it is not written.
        self._is_idle = False

    def begin(self, clock: Clock, expected_s: float) -> None:
        """Record that a session, a call that measures, begins. expected_s: planned seconds of the whole call."""
        self._is_idle = any(session.ended_at for session in self._record.sessions[-1:])
        session = SessionRecord(began_at=_now(), within_s=clock.within_s, expected_s=round(expected_s, 1))
        self._write(sessions=(*self._record.sessions, session))

    def measures(self) -> None:
        """Record that the session measures a trial."""
        if self._is_idle:
            self._is_idle = False
            self._write()

    def ended(self) -> None:
        """Record that the session measured all that it wanted, and the digest of the record."""
        *before, last = self._record.sessions
        self._write(sessions=(*before, last.model_copy(update={"ended_at": _now()})))
        self._write_digest()

    def took(self, what: Literal["heated_s", "queued_s"], seconds: float) -> None:
        """Record how long the session that began last heated devices, or built and waited, before its first trial."""
        *before, last = self._record.sessions
        self._write(sessions=(*before, last.model_copy(update={what: round(seconds, 1)})))

    def add(self, questions: Sequence[PlannedQuestion], trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Add questions and trials to the plan, before they are measured. Returns the trials that are new in it."""
        new = [trial for trial in trials if trial.trial_id not in self._trials]
        asked = [question for question in questions if question.id not in self._asked]
        self._trials |= {trial.trial_id for trial in new}
        self._asked |= {question.id for question in asked}
        number = 1 + max((question.plan for question in self._record.questions), default=0)
        asked = [question.model_copy(update={"plan": number}) for question in asked]
        if new or asked:
            self._is_idle = False
            self._write(plan=(*self._record.plan, *new), questions=(*self._record.questions, *asked))
        return new

    def end(self, rounds: Rounds, beside_s: float) -> None:
        """Record what more time would bring, at the end of a session, and the digest of the record.

        beside_s: the seconds that a further call takes beside its trials.
        """
        tally = rounds.tally
        further = (question for question in rounds.others if not tally.is_dead(question))
        going_on = [*rounds.open_questions(), *further]
        steps = with_more_time(going_on, rounds.costs(), -beside_s, tally.counts())
        self._write(more=tuple(More(**dict(step.question), seconds=round(step.seconds, 1)) for step in steps))
        self._write_digest()

    def _write(self, **changes: Any) -> None:
        self._record = self._record.model_copy(update=changes)
        if not self._is_idle:
            self._run.write_run(self._record)

    def _write_digest(self) -> None:
        if not self._is_idle:
            write_anew(self._run.path, ["run.json"])


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def learn_scatter(history: History, run: RunDirectory, tally: Tally, quantities: AbstractSet[str]) -> None:
    """Keep in the history how the trials of a run scatter, for each of these quantities, pooled over the cases."""
    groups: dict[str, dict[MatrixCell, list[float]]] = {}
    for entry in run.run().plan:
        cell = entry.cell
        by_quantity = tally.of[cell].values
        for quantity in quantities & by_quantity.keys():
            values = [*by_quantity[quantity].values()]
            if len(values) > 1 and min(values) > 0:
                place = (entry.environment, str(entry.accelerator), str(entry.axes[SUITE]), str(entry.axes[PROTOCOL]))
                groups.setdefault(scatter_name(*place, quantity), {})[cell] = [math.log(value) for value in values]
    for name, of_cells in groups.items():
        squares = math.fsum((len(logs) - 1) * statistics.variance(logs) for logs in of_cells.values())
        freedom = sum(len(logs) - 1 for logs in of_cells.values())
        history.learn_scatter(name, run.id, squares / freedom, freedom)
