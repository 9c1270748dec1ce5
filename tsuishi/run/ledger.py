"""What is written down while a run goes on: in run.json what comes to its plan, in the history what trials took."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tsuishi.base.budget import Clock
from tsuishi.base.statuses import is_finding
from tsuishi.machine.history import History
from tsuishi.plan import trials as plan
from tsuishi.plan.trials import PlannedTrial
from tsuishi.plan.worth import with_more_time
from tsuishi.results.directory import RunDirectory
from tsuishi.run.rounds import Rounds
from tsuishi.run.runner import Audience
from tsuishi.specs.questions import Asked


class Ledger:
    """What run.json gains while a run goes on: sessions, questions, trials, and what more time would bring."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._value = run.run()
        self._trials = {entry["trial"] for entry in self._value["plan"]}
        self._asked = {question["id"] for question in self._value.get("questions", [])}

    def begin(self, clock: Clock, expected_s: float) -> None:
        """A session begins: one call that measures. `expected_s`: seconds of the whole call, as it was planned."""
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        session = {"began_at": began, "within_s": clock.within_s, "expected_s": round(expected_s, 1)}
        self._write(sessions=[*self._value.get("sessions", []), session])

    def add(self, questions: Sequence[Asked], trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Questions and trials that come to the plan, before they are measured; the trials that are new in it."""
        new = [trial for trial in trials if str(trial.id) not in self._trials]
        asked = [question for question in questions if question.id not in self._asked]
        self._trials |= {str(trial.id) for trial in new}
        self._asked |= {question.id for question in asked}
        if new or asked:
            self._write(
                plan=[*self._value["plan"], *plan.describe_plan(new)],
                questions=[*self._value.get("questions", []), *map(recorded, asked)],
            )
        return new

    def end(self, rounds: Rounds, spare_s: float) -> None:
        """What more time would bring, as it stands at the end of a session."""
        findings = rounds.findings
        going_on = [
            *rounds.open_questions(),
            *(question for question in rounds.others if not findings.is_dead(question)),
        ]
        more = with_more_time(going_on, rounds.costs(), spare_s, findings.counts())
        by_id = {question.id: question for question in going_on}
        self._write(
            more=[
                {"seconds": round(each.seconds, 1), **recorded(by_id[name])} for each in more for name in each.questions
            ]
        )

    def _write(self, **changes: Any) -> None:
        self._value = {**self._value, **changes}
        self._run.write_run({key: value for key, value in self._value.items() if key != "schema_version"})


class Learning:
    """Tells the history what trials take, and passes everything on to whoever watches."""

    def __init__(self, audience: Audience, history: History, data: Mapping[str, str] | None) -> None:
        self._audience = audience
        self._history = history
        self._data = data
        self.waits = audience.waits
        self.trial_begins = audience.trial_begins
        self.phase = audience.phase

    def trial_ends(self, trial: PlannedTrial, status: str, reason: str, duration_s: float) -> None:
        if is_finding(status) and not trial.unsupported:
            name, kinds = plan.history_name(trial, self._data), plan.history_kinds(trial)
            self._history.learn(name, duration_s, trial.guess_s, kinds)
        self._audience.trial_ends(trial, status, reason, duration_s)


def recorded(asked: Asked) -> dict[str, Any]:
    """A question as run.json keeps it."""
    return asked.model_dump(mode="json", exclude_defaults=True)
