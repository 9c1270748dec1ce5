"""The section on telemetry: a chart of any trial, a chart of each suite's longest trial, and the load of GPUs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from tsuishi.base.language import mark, prose, t
from tsuishi.estimates import drift
from tsuishi.estimates.gpu_use import device_order
from tsuishi.estimates.thinning import Series, overview
from tsuishi.report.charts import course, figures
from tsuishi.report.parts.blocks import Explorer, Heading, Section, TableValues, Text, View
from tsuishi.report.parts.declarations import ENVIRONMENT, EVERY_AXIS, QUANTITY, Column, Tables, names_without_axes
from tsuishi.report.parts.wording import (
    NOTHING,
    Table,
    case_text,
    digits,
    number_cell,
    protocol_words,
    status_cell,
    text_cell,
)
from tsuishi.results.frames import Results, named_rows, ok_rows
from tsuishi.specs.case import DEVICES
from tsuishi.specs.quantities import GPUS, MOST_OF_OTHERS, imbalance
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "load": (
        *(EVERY_AXIS, ENVIRONMENT, QUANTITY),
        Column("device", "string", "gpu0, gpu1, … in the order of the trial's devices"),
        Column("mean", "number", "over trials: mean utilisation, or largest memory, of the measured phases"),
        Column("imbalance", "number", "(largest - smallest) / mean over the GPUs"),
    ),
    "telemetry": (
        Column("run_id", "string", "the run of the trial"),
        Column("trial_id", "string", "the trial"),
        Column("device", "string", "host, or gpu<index>"),
        Column("begin_s", "number", "since the trial started: from here on the samples are averaged"),
        Column("utilisation_percent", "number", "host: all CPUs together; GPU: share of time with a kernel running"),
        Column("memory_mib", "number", "host: of the trial's processes; GPU: in use, by all programs"),
        Column("power_w", "number", "GPU: power draw"),
        Column("sm_clock_mhz", "number", "GPU: clock of the multiprocessors"),
        Column("temperature_c", "number", "GPU: core temperature"),
    ),
}
# Titles with units, in the order of charts and lists.
_QUANTITIES = {
    "utilisation_percent": mark("utilisation, %"),
    "memory_mib": mark("memory, MiB"),
    "power_w": mark("power, W"),
    "sm_clock_mhz": mark("GPU clock, MHz"),
    "temperature_c": mark("GPU temperature, °C"),
}
_LOADS = {"utilisation_percent": mark("utilisation, %"), "memory_mib": mark("memory used, MiB")}
_LOAD_NOTE = mark(
    "Over the measured phases: mean utilisation, largest memory in use; means over all trials. Imbalance: "
    "(largest − smallest) ÷ mean; 0 is even."
)
_NO_LOAD = mark("Load of each device: not known, as no trial used two GPUs or more.")


def telemetry_section(evidence: Evidence) -> Section:
    """The telemetry of machine and GPUs while trials ran; a suite without samples has no view."""
    shown = overview(evidence.results)
    views = [_explorer(evidence, shown)]
    for suite in evidence.suites:
        drawn, load = longest_trial(evidence, suite, shown), gpu_loads(evidence, suite)
        if drawn.blocks or load.blocks:
            views += [View((Heading(suite),)), drawn, load]
    return Section("telemetry", t("Telemetry"), tuple(views), t("machine and devices while trials ran"))


def disturbances(evidence: Evidence) -> Iterator[str]:
    """What disturbed trials, or holds their GPUs back: it stands with the answers. Other programs come first."""
    ok = ok_rows(evidence.results.counting)
    beside = ok.loc[ok["others_cpu_percent"] > MOST_OF_OTHERS, "others_cpu_percent"]
    if len(beside):
        yield t(
            "In {count} of {all} trials other programs took more than {limit} % of the cores, {most} % at most: their "
            "times may be longer than those of an idle machine.",
            count=len(beside),
            limit=f"{MOST_OF_OTHERS:g}",
            most=f"{beside.max():.0f}",
            all=len(ok),
        )
    ticks = drift.gpu_ticks(evidence.results)
    throttled = drift.throttled(ticks)
    if len(throttled):
        yield t(
            "In {count} of {all} trials a GPU's clock was held back in measured phases, for up to {share} % of the "
            "time: {reasons}.",
            count=len(throttled),
            share=_percent(throttled.max()),
            reasons=", ".join(drift.throttle_reasons_in(ticks)),
            all=len(ok),
        )
    yield from dict.fromkeys(_of_gpus(evidence))  # several nodes are alike
    for reason in dict.fromkeys(record.gpus_unused for record in evidence.results.machines.values()):
        if reason:
            yield t("A GPU of NVIDIA was not used: {reason}.", reason=reason)


def _of_gpus(evidence: Evidence) -> Iterator[str]:
    """A desktop on a GPU that computed, and a power limit of it below its usual limit."""
    trials = ok_rows(evidence.results.trials)
    computed = {*zip(trials["machine"].tolist(), trials["device"].tolist(), strict=True)}
    for machine, record in evidence.results.machines.items():
        for gpu in (gpu for gpu in record.gpus or () if (machine, gpu.name) in computed):
            named = {"gpu": gpu.index, "name": gpu.name}
            if gpu.display_active:
                yield t(
                    "GPU {gpu} ({name}) has a display attached, whose desktop takes memory and time of it.", **named
                )
            limit_w, usual_w = round(gpu.power_limit_w or 0), round(gpu.power_limit_default_w or 0)
            if 0 < limit_w < usual_w:
                limits = {"limit": limit_w, "usual": usual_w}
                yield t("GPU {gpu} ({name}) may take {limit} W, and usually {usual} W.", **named, **limits)


def telemetry_warnings(evidence: Evidence) -> Iterator[str]:
    """Warnings from telemetry and from the order of blocks, each with its number of trials; see also `disturbances`."""
    results = evidence.results
    ok = ok_rows(results.counting)
    of_all = {"all": len(ok)}
    ticks = drift.gpu_ticks(results)
    clocks, steps = drift.clock_drifts(ticks), drift.step_drifts(results)
    if len(clocks):
        yield t(
            "In {count} of {all} trials a GPU's clock changed by more than {limit} % from the first third of the "
            "measurement to the last, by {most} % at most.",
            count=len(clocks),
            limit=_percent(drift.DRIFT),
            most=_percent(clocks.abs().max()),
            **of_all,
        )
    if len(steps):
        yield t(
            "In {count} of {all} trials the time of a step still changed during the measurement: {slower} became "
            "slower, {faster} faster, by {most} % at most.",
            count=len(steps),
            slower=int((steps > 0).sum()),
            faster=int((steps < 0).sum()),
            most=_percent(steps.abs().max()),
            **of_all,
        )
    yield from _session_warnings(evidence)


def _session_warnings(evidence: Evidence) -> Iterator[str]:
    """A warning for each session and environment in which step times changed."""
    for change in (change for change in evidence.session_changes if change.matters):
        values = {
            "environment": change.column,
            "session": change.session,
            "percent": f"{100 * abs(change.change):.2g}",
            "low": f"{100 * change.low:+.1f}",
            "high": f"{100 * change.high:+.1f}",
            "trials": change.trials,
        }
        rest = t("Absolute times are of a machine that was not steady; ratios compare trials of the same rounds.")
        if change.change > 0:
            text = t(
                "{environment}, session {session}: steps became {percent} % slower ({low} to {high} %) from the first "
                "to the last of {trials} trials.",
                **values,
            )
        else:
            text = t(
                "{environment}, session {session}: steps became {percent} % faster ({low} to {high} %) from the first "
                "to the last of {trials} trials.",
                **values,
            )
        yield prose([text, rest])


def _percent(share: float) -> str:
    """A share in percent, rounded upwards: a share above 0 is never printed as 0."""
    return f"{math.ceil(round(100 * share, 6))}"


def _explorer(evidence: Evidence, shown: Sequence[Series]) -> View:
    """A chart of any sampled trial, which readers choose.

    Its data: `quantities`, their labels with units by name; `trials`, by suite and id, each with `id`, `label`,
    `phases` (name, begin_s, end_s), `step_s`, and `devices`: by device and quantity the means over bins of `step_s`
    seconds from the start, null for a bin without samples.
    """
    results = evidence.results
    if not shown:
        return View((Text(t("No telemetry was recorded."), kind="note"),))
    several_runs = len(results.runs) > 1
    columns = ["suite", "trial_id", "run_id", "protocol", "case_id", "column", "repetition", "attempt"]
    trials = results.trials.loc[[series.trial for series in shown], columns]
    cases = {case_id: case_text(evidence.axes[case_id]) or t("the only case") for case_id in set(trials["case_id"])}
    entries = [
        (trial.suite, f"{trial.run_id}/{trial.trial_id}" if several_runs else trial.trial_id, trial, series)
        for trial, series in zip(named_rows(trials), shown, strict=True)
    ]
    entries.sort(key=lambda entry: entry[:2])
    data = {
        "trials": [
            {
                "id": trial_id,
                "label": _label(trial, cases[trial.case_id], several_runs),
                **_over_time(results, series),
            }
            for _, trial_id, trial, series in entries
        ],
        "quantities": _titles(),
    }
    widest_s = max(series.step_s for series in shown)
    all_trials = results.telemetry["trial"].nunique()
    captions = [t("Means over {seconds} s or less; bands are the workload's phases.", seconds=digits(widest_s))]
    if len(shown) < all_trials:
        captions.append(
            t("{shown} of {all} trials are here, first repetitions first.", shown=len(shown), all=all_trials)
        )
    captions.append(t("Every sample of every trial is in telemetry.csv of its run."))
    table = _table((trial, series) for _, _, trial, series in entries)
    return View((Explorer(t("Any trial over time"), prose(captions), data),), tables={"telemetry": table})


def _titles() -> dict[str, str]:
    return {quantity: t(label) for quantity, label in _QUANTITIES.items()}


def _over_time(results: Results, series: Series) -> dict[str, Any]:
    """The data of a trial, see _explorer."""
    spans = results.details[series.trial].phases
    phases = [[span.name, span.begin_s, span.end_s or series.end_s] for span in spans]
    return {"phases": phases, "step_s": series.step_s, "devices": series.devices}


def _label(trial: Any, case: str, several_runs: bool) -> str:
    """The text of a trial in the list that readers choose from."""
    parts = [
        f"{trial.suite}, {protocol_words(trial.protocol)}",
        case,
        trial.column,
        t("trial {number}", number=trial.repetition),
    ]
    parts += [t("attempt {number}", number=trial.attempt)] if trial.attempt > 1 else []
    return " · ".join([*parts, trial.run_id] if several_runs else parts)


def _table(shown: Iterable[tuple[Any, Series]]) -> TableValues:
    """The columns of telemetry.csv: a row per device and bin, with the quantities that were sampled."""
    table: dict[str, list[Any]] = {name: [] for name in names_without_axes(TABLES["telemetry"])}
    for trial, series in shown:
        for device, lists in series.devices.items():
            bins = max(map(len, lists.values()), default=0)
            for name, value in (("run_id", trial.run_id), ("trial_id", trial.trial_id), ("device", device)):
                table[name] += [value] * bins
            table["begin_s"] += [round(place * series.step_s, 3) for place in range(bins)]
            for quantity in _QUANTITIES:
                table[quantity] += lists.get(quantity) or [None] * bins
    return table


def longest_trial(evidence: Evidence, suite: str, shown: Sequence[Series]) -> View:
    """A chart of the longest ok trial of a suite, of those shown, over time."""
    by_trial = {series.trial: series for series in shown}
    trials = evidence.results.counting[["suite", "status", "duration_s", "run_id", "trial_id"]]
    trials = ok_rows(trials[(trials["suite"] == suite) & trials.index.isin(list(by_trial))])
    longest = trials.sort_values(["duration_s", "run_id", "trial_id"], ascending=[False, True, True]).head(1)
    for index, trial in zip(longest.index, named_rows(longest), strict=True):
        drawn = course.of_trial(_titles(), _over_time(evidence.results, by_trial[index]))
        if drawn["vconcat"]:
            caption = t(
                "The longest trial of those above, {trial} of run {run}; bands are the workload's phases.",
                trial=trial.trial_id,
                run=trial.run_id,
            )
            return View((figures.block(drawn, t("One trial over time"), f"{suite}-telemetry", caption),))
    return View()


def gpu_loads(evidence: Evidence, suite: str) -> View:
    """The load of every GPU in trials with two GPUs or more: means over trials, by case."""
    loads = _loads(evidence.of_one_gpu[suite]) if suite in evidence.of_one_gpu else {}
    if not loads:
        trials = evidence.results.trials
        of_suite = ok_rows(trials[trials["suite"] == suite])
        return View((Text(t(_NO_LOAD), kind="note"),) if (of_suite[DEVICES].fillna(1) > 1).any() else ())
    devices = sorted({device for means in loads.values() for device in means}, key=device_order)
    whats = [what for what in _LOADS if any(what == measured for *_, measured in loads)]
    table = []
    for case_id, environment in dict.fromkeys(key[:2] for key in loads):
        axes = evidence.axes[case_id]
        row = [text_cell(f"{protocol_words(axes['protocol'])}: {case_text(axes)}"), text_cell(environment)]
        for what in whats:
            means = loads.get((case_id, environment, what), {})
            row += [number_cell(means[device]) if device in means else status_cell(NOTHING) for device in devices]
            row.append(number_cell(imbalance(list(means.values()))) if means else status_cell(NOTHING))
        table.append(row)
    columns = [t("case"), t("environment"), *[*devices, t("imbalance")] * len(whats)]
    groups = [("", 2), *((t(_LOADS[what]), len(devices) + 1) for what in whats)]
    rows = [row for key, means in loads.items() for row in _load_rows(evidence, *key, means)]
    return View(
        (Table(columns, table, title=t("Load over the GPUs"), groups=groups, notes=[t(_LOAD_NOTE)]),), {"load": rows}
    )


def _load_rows(
    evidence: Evidence, case_id: str, environment: str, what: str, means: dict[str, float]
) -> Iterator[dict[str, Any]]:
    """The rows of load.csv for a case: a row per GPU."""
    for device, mean in means.items():
        where = {**evidence.axes[case_id], "environment": environment, "quantity": what, "device": device}
        yield {**where, "mean": mean, "imbalance": imbalance(list(means.values()))}


def _loads(estimates: pd.DataFrame) -> dict[tuple[str, str, str], dict[str, float]]:
    """The mean over trials for every GPU, by (case id, environment, key of _LOADS); without entries of a single GPU."""
    of_gpus = {f"gpu{gpu}_{what}": (what, f"gpu{gpu}") for what in _LOADS for gpu in GPUS}
    values: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    names = ["case_id", "column", "quantity", "value"]
    for row in named_rows(estimates.loc[estimates["quantity"].isin(list(of_gpus)), names]):
        what, device = of_gpus[row.quantity]
        values.setdefault((row.case_id, row.column, what), {}).setdefault(device, []).append(row.value)
    return {
        key: {device: fmean(of_gpu) for device, of_gpu in sorted(by_gpu.items())}
        for key, by_gpu in values.items()
        if len(by_gpu) > 1
    }
