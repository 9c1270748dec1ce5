"""What differs between runs and their baseline beside the times: machines, environments, code, profiles, versions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.report.parts.wording import NOTHING, Table, text_cell
from tsuishi.report.sections import descriptions
from tsuishi.verdicts.baseline import Baseline
from tsuishi.verdicts.evidence import Evidence

# Digits of a digest that are shown.
_DIGITS = 19


def differing_conditions(baseline: Baseline) -> Table:
    """A row for each recorded fact that differs: the baseline's, and the runs'."""
    rows = [[text_cell(name, "label"), text_cell(then), text_cell(now)] for name, then, now in _differences(baseline)]
    return Table([t("what differs"), t("baseline"), t("these runs")], rows, t("What else differs"))


def _differences(baseline: Baseline) -> Iterator[tuple[str, str, str]]:
    then, now = baseline.earlier, baseline.evidence
    yield from _of_facts(_machine(then), _machine(now))
    for column, its in baseline.columns.items():
        for name, before, after in _of_facts(_environment(then, its), _environment(now, column)):
            yield t("{environment}: {fact}", environment=column, fact=name), before, after
    yield from _of_facts(_workloads(then), _workloads(now), only_shared=True)
    yield from _of_facts(_runs(then), _runs(now))


def _of_facts(
    then: Mapping[str, Any], now: Mapping[str, Any], only_shared: bool = False
) -> Iterator[tuple[str, str, str]]:
    """The facts that differ. only_shared: those that both sides have."""
    for name in dict.fromkeys((*then, *now)):
        before, after = (str(facts.get(name, NOTHING)) for facts in (then, now))
        if before != after and not (only_shared and (name not in then or name not in now)):
            yield name, before, after


def _together(several: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The facts of several records as those of a single record: every value of a fact, in words."""
    found: dict[str, dict[str, None]] = {}
    for facts in several:
        for name, value in facts.items():
            found.setdefault(name, {})[str(value)] = None
    return {name: in_words(values) for name, values in found.items()}


def _machine(evidence: Evidence) -> dict[str, str]:
    return _together(descriptions.machine_facts(record) for record in evidence.machine_records.values())


def _environment(evidence: Evidence, column: str) -> dict[str, str]:
    trials, records = evidence.results.trials, evidence.environment_records
    used = sorted({*trials.loc[trials["column"] == column, "environment_record"]} & records.keys())
    return _together(descriptions.environment_facts(records[record]) for record in used)


def _workloads(evidence: Evidence) -> dict[str, str]:
    """The code that each suite ran, by its digest."""
    trials = evidence.results.trials[["suite", "workload_record"]].drop_duplicates()
    pairs = sorted(zip(trials["suite"].tolist(), trials["workload_record"].tolist(), strict=True))
    return _together(
        {t("code of the workload of {suite}", suite=suite): record.removeprefix("workload-")[:_DIGITS]}
        for suite, record in pairs
        if record
    )


def _runs(evidence: Evidence) -> dict[str, str]:
    runs = evidence.results.runs.values()
    return _together({t("profile"): run.profile, t("version of tsuishi"): run.tsuishi_version} for run in runs)
