"""What differs between runs and their baseline beside the times: machines, environments, code, profiles, versions."""

from collections.abc import Iterator, Mapping
from typing import Any

from tsuishi.base.language import t
from tsuishi.report.parts.wording import NOTHING, Table, text_cell
from tsuishi.report.sections import descriptions
from tsuishi.results.frames import dict_rows, is_nothing
from tsuishi.results.records import EnvironmentRecord
from tsuishi.results.run_record import CheckoutState
from tsuishi.verdicts.baseline import Baseline
from tsuishi.verdicts.evidence import Evidence

# Digits of a digest that are shown.
_DIGITS = 19


def differing_conditions(baseline: Baseline) -> Table:
    """A row for each recorded fact that differs: the baseline's, and the runs'."""
    rows = [[text_cell(name, "label"), text_cell(then), text_cell(now)] for name, then, now in _differences(baseline)]
    return Table([t("what differs"), t("baseline"), t("these runs")], rows, title=t("What else differs"))


def _differences(baseline: Baseline) -> Iterator[tuple[str, str, str]]:
    then, now = baseline.earlier, baseline.evidence
    yield from _of_facts(_machine(then), _machine(now), only_shared=True)
    for column, its in baseline.columns.items():
        for name, before, after in _of_environment((then, its), (now, column)):
            yield t("{environment}: {fact}", environment=column, fact=name), before, after
    for facts in (_workloads, timing_settings):
        yield from _of_facts(facts(then), facts(now), only_shared=True)
    yield from _of_facts(_runs(then), _runs(now))


def _of_facts(
    then: Mapping[str, Any], now: Mapping[str, Any], only_shared: bool = False
) -> Iterator[tuple[str, str, str]]:
    """The facts that differ. only_shared: those that both sides have."""
    for name in dict.fromkeys((*then, *now)):
        before, after = (str(facts.get(name, NOTHING)) for facts in (then, now))
        if before != after and not (only_shared and (name not in then or name not in now)):
            yield name, before, after


def _machine(evidence: Evidence) -> dict[str, str]:
    return descriptions.shared_values(
        descriptions.machine_facts(*records.values()) for records in evidence.records_of_machines.values()
    )


def _of_environment(then: tuple[Evidence, str], now: tuple[Evidence, str]) -> Iterator[tuple[str, str, str]]:
    """What differs between an environment in the baseline and in the runs; each side with the environment's label."""
    theirs, ours, facts = _records(*then), _records(*now), descriptions.environment_facts
    yield from _of_facts(descriptions.shared_values(map(facts, theirs)), descriptions.shared_values(map(facts, ours)))
    yield from _of_facts(reported_facts(*then), reported_facts(*now), only_shared=True)
    packages = [descriptions.shared_values(record.packages or {} for record in side) for side in (theirs, ours)]
    if all(packages):
        yield from _of_facts(packages[0], packages[1])


def _records(evidence: Evidence, column: str) -> list[EnvironmentRecord]:
    trials, records = evidence.results.trials, evidence.environment_records
    return [
        records[name] for name in sorted({*trials.loc[trials["column"] == column, "environment_record"]} & {*records})
    ]


def reported_facts(evidence: Evidence, column: str) -> dict[str, str]:
    """What trials report of themselves: flags of the framework and of their process, devices, made-up data, force.

    A flag that an earlier tsuishi did not ask for is unknown.
    """
    trials = evidence.results.trials
    here = trials["column"] == column
    flags = [evidence.results.details[place].flags for place in trials.index[here]]
    names = {
        "device": t("device"),
        "simulated": t("simulated devices"),
        "synthetic": t("synthetic data"),
        "forced": "--force",
    }
    reported = [
        {
            "--force": t("no"),
            **{names[name]: value for name, value in row.items() if not is_nothing(value) and value != ""},
        }
        for row in dict_rows(trials.loc[here, [*names]].drop_duplicates().sort_values([*names]))
    ]
    return descriptions.shared_values((*flags, *reported))


def timing_settings(evidence: Evidence) -> dict[str, str]:
    """How trials of each suite were timed."""
    results = evidence.results
    timed = {
        (t("{suite}: {setting}", suite=suite, setting=name), str(value))
        for suite, details in zip(results.trials["suite"], results.details, strict=True)
        for name, value in details.settings.items()
        if name != "seed"  # each run draws its own
    }
    return descriptions.shared_values({name: value} for name, value in sorted(timed))


def _workloads(evidence: Evidence) -> dict[str, str]:
    """The code that each suite ran, by its digest."""
    trials = evidence.results.trials[["suite", "workload_record"]].drop_duplicates()
    pairs = sorted(zip(trials["suite"].tolist(), trials["workload_record"].tolist(), strict=True))
    return descriptions.shared_values(
        {t("code of the workload of {suite}", suite=suite): record.removeprefix("workload-")[:_DIGITS]}
        for suite, record in pairs
        if record
    )


def _runs(evidence: Evidence) -> dict[str, str]:
    return descriptions.shared_values(
        {
            t("profile"): run.profile,
            t("engine"): run.engine,
            t("version of tsuishi"): run.tsuishi_version,
            t("commit of tsuishi"): _commit(run.git),
            t("data"): f"{run.data.file} {run.data.sha256[:_DIGITS]}" if run.data else NOTHING,
            t("command"): descriptions.command_line(run.arguments, run.task),
        }
        for run in evidence.results.runs.values()
    )


def _commit(state: CheckoutState | None) -> str:
    if state is None or not state.commit:
        return NOTHING
    return t("{version} with uncommitted changes", version=state.commit) if state.dirty else state.commit
