"""run.json, typed: the request, the plan, and the facts of each call that measured."""

from typing import Annotated, Any

from pydantic import Field, SerializeAsAny, field_serializer, model_validator

from tsuishi.base.toml import MOST, Record, Sha256
from tsuishi.results.records import Number
from tsuishi.specs.case import case_id as case_id_of
from tsuishi.specs.questions import MatrixCell, PlannedQuestion
from tsuishi.specs.trial_id import Name, TrialId
from tsuishi.specs.trial_spec import DataRecord, Trial, Value

SCHEMA_VERSION = 3

# The task whose runs are resumed by itself.
RUN_SUITE = "run-suite"


class LeftOut(Record):
    """An environment that was not used, and why."""

    environment: str
    reason: str


class More(PlannedQuestion):
    """A question that more time would bring nearer to an answer."""

    seconds: Number


class CheckoutState(Record):
    """The commit of a checkout, and whether it had uncommitted changes; or why these are not known.

    `package`: the version of an installed package, and the digest of its files.
    """

    commit: str | None = None
    dirty: bool | None = None
    why_unknown: str | None = None
    package: str | None = None


class SessionRecord(Record):
    """A call that measured: when it began, the seconds that it was given, and those that it expected to take.

    `heated_s`: the seconds that devices were kept at work before its first trial. `queued_s`: on a cluster, the seconds
    until its first job began, which do not count. `ended_at`: None where it was interrupted, or stopped by an error.
    """

    began_at: str | None = None
    ended_at: str | None = None
    within_s: Value = None
    expected_s: Value = None
    heated_s: Value = None
    queued_s: Value = None


class OriginalRun(Record):
    """The run whose plan another run measures again. `root`: the digest that stands for it, see manifest.py."""

    run_id: Name
    root: Sha256


class RunRecord(Record):
    """run.json: the request and the plan. `mac` is the seal of the user who wrote it.

    `seed` decides the order of trials; `drawn` are 64 random bits as hexadecimal digits, drawn when the run was made.
    `task`: the task of Invoke that made it, as run-suite, find or check. `request`: what that task asked of the run; it
    alone reads that.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: Name
    task: Name = RUN_SUITE
    tsuishi_version: str | None = None
    git: CheckoutState | None = None
    created_at: str | None = None
    profile: str
    seed: Annotated[int, Field(ge=-MOST, le=MOST)]
    drawn: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    engine: str
    arguments: dict[str, Value | tuple[Value, ...]]
    data: DataRecord | None = None
    questions: tuple[PlannedQuestion, ...] = ()
    plan: tuple[SerializeAsAny[Trial], ...]
    cases_left_out: Value = None
    more: tuple[More, ...] = ()
    sessions: tuple[SessionRecord, ...] = ()
    self_checks: dict[str, dict[str, Value]] = {}
    left_out: tuple[LeftOut, ...] = ()
    replays: OriginalRun | None = None
    request: dict[str, Any] = {}
    mac: str | None = None

    @property
    def is_of_run_suite(self) -> bool:
        """Whether `run-suite --resume` goes on with it, and not only the task that made it, as a search or a check."""
        return self.task == RUN_SUITE

    def asks_together(self, one: MatrixCell, other: MatrixCell) -> bool:
        """Whether both cells have rounds in common: a question has both, or no session measured questions in turn.

        Single cases are measured together, and so is everything without a time.
        """
        if all(session.within_s is None for session in self.sessions):
            return True
        single = {cell for question in self.questions if question.kind == "measurement" for cell in question.cells}
        together = [single, *(question.cells for question in self.questions)]
        return any(one in cells and other in cells for cells in together)

    @property
    def seeds_from(self) -> str:
        """What the seeds of its trials are made from: no two runs share it. An earlier tsuishi drew nothing."""
        return self.drawn or self.run_id

    @field_serializer("questions", "more")
    def _without_defaults(self, questions: tuple[PlannedQuestion, ...]) -> list[dict[str, Any]]:
        """Questions are short: only what is not usual is written."""
        texts = [question.model_dump(mode="json", exclude_defaults=True) for question in questions]
        return [{"seconds": text.pop("seconds"), **text} if "seconds" in text else text for text in texts]

    @model_validator(mode="after")
    def _plans_a_trial_once(self) -> "RunRecord":
        cases: dict[str, dict[str, Any]] = {}
        for trial in self.plan:
            if cases.setdefault(trial.case_id, trial.axes) != trial.axes:
                raise ValueError(f"two cases are planned as {trial.case_id}")
            if not trial.trial_id.endswith(str(TrialId(trial.case_id[:6], trial.environment, trial.repetition))):
                raise ValueError(f"trial '{trial.trial_id}' has not the name of its case, environment and repetition")
        if len({(trial.cell, trial.repetition) for trial in self.plan}) < len(self.plan):
            raise ValueError("a trial is planned twice")
        for case_id, axes in cases.items():
            if case_id_of(axes) != case_id:
                raise ValueError(f"the case {case_id} has another content")
        return self
