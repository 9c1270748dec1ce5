"""Caveats: what readers have to know before they believe a number, where it concerns them.

Those of a suite's trials stand at the top of its section, all others at the top of the page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tsuishi.base.language import in_words, mark, t
from tsuishi.report.parts.blocks import Bullets, View
from tsuishi.report.sections import descriptions, load
from tsuishi.results.frames import named_rows
from tsuishi.results.records import EnvironmentRecord
from tsuishi.results.same_machine import differing, facts
from tsuishi.specs.case import SUITE
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.evidence import Evidence

_EXCLUDED = mark(
    "{trial} of run {run} is in no estimate, as {file} cannot be right: row {row}: {problem}. Restore the file, or "
    "measure the trial again with `invoke run-suite --resume {run}`."
)
_EXCLUDED_BY_A_TASK = mark(
    "{trial} of run {run} is in no estimate, as {file} cannot be right: row {row}: {problem}. Restore the file, or "
    "give the command of this run again."
)
# As many values of a condition are shown.
_MOST_VALUES = 3


def of_runs(evidence: Evidence) -> Iterator[View]:
    """The caveats of whole runs: a line that opens."""
    if lines := (*_of_runs(evidence),):
        yield View((Bullets(lines, title=t("Before you read a number ({count})", count=len(lines)), warning=True),))


def of_suite(evidence: Evidence, suite: str) -> tuple[str, ...]:
    """The caveats of a suite's trials."""
    return (*_of_trials(evidence, suite), *_excluded(evidence, suite))


def _of_runs(evidence: Evidence) -> Iterator[str]:
    for copy in evidence.results.copies:
        yield t(
            "{run}: {count} of its {all} trials are those of {other} too, by their content: each of them counts once.",
            run=copy.run_id, count=copy.shared, all=copy.trials, other=copy.other,
        )  # fmt: skip
    yield from _environment_warnings(descriptions.environment_records(evidence).values())
    yield from _changed_conditions(evidence)
    yield from load.telemetry_warnings(evidence)


def _changed_conditions(evidence: Evidence) -> Iterator[str]:
    """A warning for each fact of a machine that was not the same for all of its trials: they stand together."""
    counts = Counter(evidence.results.trials["machine_record"].tolist())
    for number, records in enumerate(evidence.records_of_machines.values(), start=1):
        for name in differing(*records.values()):
            values: Counter[str] = Counter()
            for id_, record in records.items():
                if name in facts(record):
                    values[descriptions.fact_text(name, facts(record)[name])] += counts[id_]
            several = [t("{value} ({count} trials)", value=value, count=count) for value, count in values.items()]
            yield t(
                "Machine {number}: {fact} was not the same for all trials: {values}.",
                number=number, fact=descriptions.fact_label(name),
                values=in_words([*several[:_MOST_VALUES], *(["…"] if len(several) > _MOST_VALUES else [])]),
            )  # fmt: skip


def _of_trials(evidence: Evidence, suite: str) -> Iterator[str]:
    trials = evidence.results.trials
    trials = trials[trials[SUITE] == suite]
    simulated, synthetic = (int(trials[flag].fillna(False).sum()) for flag in ("simulated", "synthetic"))
    if simulated:
        yield t(
            "{count} of {all} trials: simulated devices (several devices were asked for, and they were not all "
            "distinct real GPUs).",
            count=simulated, all=len(trials),
        )  # fmt: skip
    if synthetic:
        yield t(
            "{count} of {all} trials: synthetic data; their accuracy is not comparable with published accuracies.",
            count=synthetic, all=len(trials),
        )  # fmt: skip
    versions = Counter(filter(None, trials["workload_record"].fillna("")))
    if len(versions) > 1:
        yield t(
            "Trials ran {count} versions of the workload's code ({trials} trials): what differs between them may be "
            "the code's.",
            count=len(versions), trials=", ".join(map(str, versions.values())),
        )  # fmt: skip
    for reason, count in Counter(filter(None, trials["forced"].fillna(""))).items():
        yield t(
            "{count} of {all} trials: run after a numerical self-check, in an environment without native code for this "
            "GPU: {reason}.",
            count=count, all=len(trials), reason=reason,
        )  # fmt: skip
    for remark, count in Counter(filter(None, trials.loc[trials["status"] == OK, "reason"].fillna(""))).items():
        yield t("{count} of {all} trials: {remark}.", count=count, all=len(trials), remark=remark)
    for trial in named_rows(trials[trials["events_garbled"].fillna(0) > 0]):
        yield t("{trial}: {count} events were garbled; its numbers may lack samples.", **_events(trial, "garbled"))
    for trial in named_rows(trials[trials["events_missing"].fillna(0) > 0]):
        yield t("{trial}: {count} events were missing; its numbers may lack samples.", **_events(trial, "missing"))


def _excluded(evidence: Evidence, suite: str) -> Iterator[str]:
    """The trials that are in no estimate."""
    trials = evidence.results.trials
    of_suite = set(trials.loc[trials[SUITE] == suite, "trial_id"])
    for trial in (trial for trial in evidence.results.excluded if trial.trial_id in of_suite):
        resumes = evidence.results.runs[trial.run_id].is_of_run_suite
        yield t(
            _EXCLUDED if resumes else _EXCLUDED_BY_A_TASK,
            trial=trial.trial_id, run=trial.run_id, file=trial.file, row=trial.row,
            problem=t(trial.problem, **trial.named),
        )  # fmt: skip


def _events(trial: Any, kind: str) -> dict[str, Any]:
    return {"trial": trial.trial_id, "count": getattr(trial, f"events_{kind}")}


def _environment_warnings(environments: Iterable[EnvironmentRecord]) -> Iterator[str]:
    """Warnings about bases, each with the names of the environments on that base."""
    unpinned: dict[str, set[str]] = {}
    changed: dict[tuple[str, str], set[str]] = {}
    for record in environments:
        if record.base and record.base.digest in ("", descriptions.UNPINNED):
            unpinned.setdefault(str(record.base.used), set()).add(record.name)
        for change in record.substitutions or []:
            changed.setdefault((change.used, change.asked), set()).add(record.name)
    for used, names in unpinned.items():
        yield t(
            "{environments}: built on {used}, which is unpinned (no digest is known).",
            environments=", ".join(sorted(names)), used=used,
        )  # fmt: skip
    for (used, asked), names in changed.items():
        concerned = ", ".join(sorted(names))
        yield t("{environments}: {used} stands in for {asked}.", environments=concerned, used=used, asked=asked)
