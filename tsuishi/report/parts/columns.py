"""The columns of a report's tables as data: names with units, types, meanings (schema.py has those of a run)."""

import json
from collections.abc import Mapping

from tsuishi.report.parts.declarations import EVERY_AXIS, WHERE, AxisColumns, Columns, Declared, columns_of
from tsuishi.results import schema
from tsuishi.results.schema import Column
from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, PROTOCOL, SUITE
from tsuishi.verdicts.evidence import Evidence

_DESCRIPTION = (
    "An apostrophe stands before text that a spreadsheet would take for a formula, as it begins with =, +, - or @; "
    "also where blanks or quotes come first, or in text a semicolon, a tab or a line's end. Numbers are exact."
)


def _interval(name: str, description: str) -> Columns:
    ends = (("low", "lower"), ("high", "upper"))
    of_ends = (Column(f"{name}_{end}", "number", f"{word} end of its 95 % interval") for end, word in ends)
    return (Column(name, "number", description), *of_ends)


_CASE_ID = Column("case_id", "string", "hash of the case's canonical JSON: the same case everywhere")
_ENVIRONMENT = Column("environment", "string", "environment, with its id and machine where several share its name")
_SERIES = Column("series", "string", "environment, or published hardware")
_QUANTITY = Column("quantity", "string", "what the number measures")
_UNIT = Column("unit", "string", "of the quantity; 1 is a pure number")
_SIMULATED = Column("simulated", "boolean", "some devices were not distinct real GPUs")
_SYNTHETIC = Column("synthetic", "boolean", "the data were made up")
_DERIVED = Column("derived", "boolean", "no full epoch was run, or it is calculated from the work of a step")
_SPREAD: Columns = (
    Column("low", "number", "smallest trial; of a single trial, lower quartile of its blocks"),
    Column("high", "number", "largest trial; of a single trial, upper quartile of its blocks"),
)
_BLOCKS = Column("blocks", "integer", "timed blocks it rests on")
_RATIO: Columns = _interval("ratio", "over the reference's, of geometric means over trials")
_REFERENCE = Column("reference", "string", "environment that ratios compare with")
_LINE: Declared = (WHERE, _SERIES, Column("published", "boolean", "not ours"), AxisColumns(of_lines=True))

_SOURCE = Column("source", "string", "reports/published/<source>.toml")
_HARDWARE = Column("hardware", "string", "published hardware")
_CLAIM = Column("claim", "string", "its id in the source's file")
_CHECK = Column("check", "integer", "1, 2, …: of the claim's checks, all of which have to hold")
_REGIONS: Columns = tuple(
    Column(f"{region}_{end}", "number", f"{text}: {end} this; empty: no end")
    for region, text in (("hold", "where the claim holds"), ("direction", "where its direction does"))
    for end in ("above", "below")
)
_RESULT: Columns = (
    Column("estimate", "number", "of the check: its mean, or the comparison that decides"),
    Column("low", "number", "lower end of its 95 % interval per comparison, which decides nothing"),
    Column("high", "number", "upper end of that interval"),
    Column("trials", "integer", "of the case with the fewest"),
)
_FAMILY: Columns = (
    Column("level", "number", "the verdict follows from the interval of confidence 1 - level; empty: no look yet"),
    Column("family_low", "number", "lower end of that interval"),
    Column("family_high", "number", "upper end of that interval"),
)
_JUDGED: Columns = (
    *_RESULT,
    Column("cases", "integer", "that are compared"),
    Column("statuses", "string", "of the cases, where statuses are judged"),
    Column("p_hold", "number", "the smallest a with which the 1 - a interval lies where the claim holds"),
    Column("p_direction", "number", "the smallest a with which it lies where the claim's direction does"),
    Column("p_against", "number", "the smallest a with which it lies outside of that"),
)
_JUDGEMENT: Declared = (
    _SOURCE,
    _CLAIM,
    Column("environments", "string", "that it was judged on, joined by ' / '"),
    AxisColumns((PROTOCOL,)),
    _CHECK,
)

TABLES: dict[str, Declared] = {
    "verdicts": (
        *_JUDGEMENT,
        Column("kind", "string", "of check: ratio, order, equal, trend, presence, imbalance or fit"),
        Column("verdict", "string", "of the whole claim"),
        Column("hindrance", "string", "why it is not tested"),
        Column("stated", "boolean", "the source states it; else it follows from the source"),
        Column("what", "string", "the value that the check computes, in words"),
        *_REGIONS,
        *_JUDGED,
        *_FAMILY,
        Column("text", "string", "the claim"),
        Column("sentence", "string", "the verdict in words"),
    ),
    "verdict_cases": (*_JUDGEMENT, AxisColumns(but=(PROTOCOL,)), *_RESULT),
    "self_consistency": (
        _SOURCE,
        _CLAIM,
        Column("printed_by", "string", "the source of the numbers: the claim's own, or another that it names"),
        _HARDWARE,
        Column("verdict", "string", "of these numbers on the claim"),
        _CHECK,
        *_REGIONS,
        *_JUDGED,
    ),
    "commands": (
        AxisColumns((SUITE,)),
        _CASE_ID,
        _ENVIRONMENT,
        Column("command", "string", "what ran inside the environment, quoted for a shell"),
    ),
    "side_by_side": (
        _CASE_ID,
        EVERY_AXIS,
        _QUANTITY,
        _UNIT,
        _ENVIRONMENT,
        Column("status", "string", "statuses of its repetitions, each once"),
        Column("geometric_mean", "number", "over trials, in the unit"),
        Column("trials", "integer", "how many"),
        _REFERENCE,
        *_RATIO,
        Column("best", "boolean", "its ratio to each other environment has an interval that excludes 1 (Holm)"),
        _SIMULATED,
    ),
    "side_by_side_means": (
        WHERE,
        _QUANTITY,
        _ENVIRONMENT,
        _REFERENCE,
        Column("cases", "integer", "that both have"),
        *_interval("ratio", "geometric mean over these cases of its value over the reference's"),
    ),
    "machines": (
        Column("machine_record", "string", "id of the machine's record"),
        Column("reference", "string", "that of the machine of the first run"),
        Column("numbers", "integer", "that both machines have, in environments of the same name"),
        *_interval("ratio", "geometric mean over these of its speed over the reference's"),
    ),
    "releases": (
        Column("family", "string", "of releases of a framework"),
        Column("released", "string", "day on which the release appeared"),
        _ENVIRONMENT,
        Column("reference", "string", "the oldest or the newest environment of the family on this machine"),
        Column("numbers", "integer", "that both have"),
        *_interval("ratio", "geometric mean over these of its speed over the reference's"),
    ),
    "replayed": (
        WHERE,
        _QUANTITY,
        _ENVIRONMENT,
        Column("reference", "string", "the same environment in the original run"),
        Column("cases", "integer", "that both have"),
        *_interval("ratio", "geometric mean over these cases of the speed in the replay over that in the original run"),
    ),
    "baseline": (
        _CASE_ID,
        EVERY_AXIS,
        _ENVIRONMENT,
        _QUANTITY,
        _UNIT,
        Column("verdict", "string", "slower, not slower, open, or not matched"),
        Column("reason", "string", "why it is not matched"),
        Column("then", "number", "in the baseline: geometric mean over trials, by the sessions of the last look"),
        Column("now", "number", "in these runs, likewise"),
        Column("sessions_then", "integer", "of the baseline"),
        Column("sessions_now", "integer", "of these runs"),
        Column("times_as_long", "number", "time now over time then, or rate then over rate now"),
        *_FAMILY,
        Column("threshold", "number", "above which the whole interval lies where a case is slower"),
    ),
    "history": (
        _CASE_ID,
        EVERY_AXIS,
        _ENVIRONMENT,
        _QUANTITY,
        _UNIT,
        Column("session", "string", "the run, and the number of the call that measured"),
        Column("began_at", "string", "when the session's first trial began: ISO 8601, UTC"),
        Column("value", "number", "geometric mean over the session's trials, in the unit"),
        Column("low", "number", "end of its 95 % interval, from the scatter of trials; empty for single trials"),
        Column("high", "number", "its other end"),
        Column("trials", "integer", "of the session"),
        Column("changed", "string", "conditions of the machine that differ from these runs"),
    ),
    "cards": (
        Column("device", "string", "what computed: the CPU or the GPU"),
        _ENVIRONMENT,
        _SOURCE,
        _HARDWARE,
        AxisColumns((SUITE, MODEL, DEVICES)),
        _QUANTITY,
        Column("cases", "integer", "that both have"),
        *_interval("times_as_fast", "geometric mean over these cases of the published time over ours"),
        _SIMULATED,
        _SYNTHETIC,
        _DERIVED,
    ),
    "cases": (
        _CASE_ID,
        EVERY_AXIS,
        _ENVIRONMENT,
        Column("status", "string", "statuses of its repetitions, each once"),
        _QUANTITY,
        _UNIT,
        Column("estimate", "number", "geometric mean over trials; arithmetic where a trial is 0 or less"),
        Column("n", "integer", "trials"),
        *_SPREAD,
        Column("spread_kind", "string", "what low and high are: of trials, of blocks, or nothing"),
        _BLOCKS,
        _SIMULATED,
        _SYNTHETIC,
        _DERIVED,
        Column("bound", "string", "of a fraction_of_limit: arithmetic or memory"),
    ),
    "memory": (
        AxisColumns(but=(BATCH_SIZE,)),
        _SERIES,
        Column("largest_fitted", "integer", "batch size, in images"),
        Column("smallest_out_of_memory", "integer", "batch size, in images"),
        Column("not_in_table", "string", "batch sizes the source has for other cases, but not for this"),
    ),
    "throughput_model": (
        *_LINE,
        _SIMULATED,
        Column("points", "integer", "batch sizes it is fitted to; 0: parameters as printed"),
        Column("trials", "integer", "of all batch sizes; empty where their scatter is unknown"),
        Column("pure_error_percent", "number", "standard deviation between trials of a batch size"),
        Column(
            "lack_of_fit_p", "number", "of the F test: small where batch sizes are off the line by more than scatter"
        ),
        Column("decided_by", "integer", "batch size without which the line differs"),
        Column("largest_residual_percent", "number", "of the point farthest off the line"),
        *_interval("v0_images_per_s", "ideal speed, of images or other items of the suite's batches"),
        *_interval("t_cost_s", "cost time of a step"),
        *_interval("b_half_images", "batch size at which half of v0 is reached"),
    ),
    "residuals": (
        *_LINE,
        AxisColumns((BATCH_SIZE,)),
        Column("step_s", "number", "mean step, or an epoch over its steps"),
        Column("fitted_s", "number", "what the line says"),
        Column("residual_percent", "number", "how much longer the step took"),
        Column("kink", "boolean", "too far off the line to be scatter"),
    ),
    "scaling": (
        EVERY_AXIS,
        _SERIES,
        Column("kind", "string", "strong: the same global batch; weak: the same batch per device"),
        Column("baseline_devices", "integer", "devices that it is compared with: one, or those of one node"),
        Column("baseline_batch_size", "integer", "batch that it is compared with, in images"),
        Column("speedup", "number", "images/s over those that it is compared with"),
        Column("low", "number", "end of the speed-up's 95 % interval, per comparison; empty for too few trials"),
        Column("high", "number", "its other end"),
        Column("efficiency", "number", "speed-up over how many times as many devices"),
        Column("summing_share", "number", "sum of gradients at the measured all-reduce over the step; or empty"),
        _SIMULATED,
    ),
    "load": (
        EVERY_AXIS,
        _ENVIRONMENT,
        _QUANTITY,
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
    "diagnosis": (
        AxisColumns((SUITE,)),
        _ENVIRONMENT,
        Column("topic", "string", "the subject of the text"),
        Column("text", "string", "what the cases say"),
    ),
    "questions": (
        Column("run_id", "string", "the run that asked it"),
        Column("question", "string", "its id: suite or source, question or claim, environments"),
        Column("title", "string", "the question in words"),
        Column("main", "boolean", "named as a main question before anything was measured"),
        Column("state", "string", "answered, open, or cannot be answered"),
        Column("answer", "string", "the answer in words"),
        Column("ratio", "number", "of a comparison: first side over second, of geometric means over trials"),
        Column("low", "number", "lower end of its 95 % interval per comparison, which decides nothing"),
        Column("high", "number", "upper end of that interval"),
        *_FAMILY,
        Column("trials", "integer", "of the case with the fewest"),
    ),
    "scatter": (
        WHERE,
        _ENVIRONMENT,
        _QUANTITY,
        Column("scatter_percent", "number", "standard deviation between the trials of a case, over all cases"),
        Column("largest_percent", "number", "that of the case with the most"),
        Column("cases", "integer", "with two trials or more"),
        Column("trials", "integer", "of these cases"),
        Column("p", "number", "of Bartlett's test that all cases scatter alike; nothing depends on it"),
    ),
    "steadiness": (
        Column("session", "string", "the run, and the number of the call that measured"),
        _ENVIRONMENT,
        Column("trials", "integer", "of cases with two trials or more in the session"),
        Column("change_percent", "number", "of step times, from the session's first trial to its last"),
        Column("low_percent", "number", "lower end of its 95 % interval"),
        Column("high_percent", "number", "upper end of it"),
        Column("p", "number", "how often so large a change is seen where nothing changes"),
    ),
    "limits": (
        Column("machine_record", "string", "records/machine-<id>.json of the run"),
        Column("device", "string", "what computed: cpu, or the GPU's name"),
        _QUANTITY,
        AxisColumns(("precision",)),
        Column("value", "number", "that of the best matrix product or copy, in the quantity's unit"),
        Column("low", "number", "end of its 95 % interval; empty for single trials"),
        Column("high", "number", "its other end"),
    ),
    "environments": (
        Column("field", "string", "a fact of the environment"),
        _ENVIRONMENT,
        Column("value", "string", "as recorded"),
    ),
    "packages": (
        Column("package", "string", "name"),
        _ENVIRONMENT,
        Column("version", "string", "as installed"),
    ),
    "trials": (
        Column("run_id", "string", "the run it belongs to"),
        *schema.TRIALS,
        EVERY_AXIS,
        Column("machine", "string", "id of the record that stands for all of its machine"),
        Column("column", "string", "its column in the report: see environment elsewhere"),
    ),
    "estimates": (
        Column("run_id", "string", "the run of the trial"),
        Column("trial_id", "string", "the trial"),
        WHERE,
        _CASE_ID,
        Column("environment", "string", "name of the environment (images/<name>.toml)"),
        Column("column", "string", "its column in the report: see environment elsewhere"),
        _SIMULATED,
        _SYNTHETIC,
        _QUANTITY,
        Column("value", "number", "total time of the trial's blocks over their steps, or as its quantity says"),
        _UNIT,
        Column("low", "number", "lower quartile of the blocks"),
        Column("high", "number", "upper quartile of the blocks"),
        _BLOCKS,
        _DERIVED,
    ),
    "published": (
        EVERY_AXIS,
        _SOURCE,
        _HARDWARE,
        _QUANTITY,
        Column("value", "number", "as printed, in the unit"),
        _UNIT,
        Column("note", "string", "what the source says of it"),
    ),
    "readings": (
        EVERY_AXIS,
        _SOURCE,
        _HARDWARE,
        _QUANTITY,
        Column("reading", "integer", "1, 2, …: in the source's order, of a number that it read several times"),
        Column("value", "number", "as printed, in the unit"),
        _UNIT,
    ),
}


def tables(evidence: Evidence, explained: Mapping[str, Declared]) -> dict[str, Columns]:
    """The columns of every table of a report. `cases` has a further column per published hardware, named by Number.key.

    `explained`: the tables of explanations.
    """
    titles = {key: hardware.title for key, hardware in evidence.hardware.items()}
    published = (Column(key, "number", f"published for {title}, in the unit") for key, title in titles.items())
    every = {name: columns_of(evidence, declared) for name, declared in {**TABLES, **explained}.items()}
    return {**every, "cases": (*every["cases"], *published)}


def report_package(declared: Mapping[str, Columns]) -> str:
    """The text of tables/datapackage.json, from the columns of every table."""
    package = {"description": _DESCRIPTION, **schema.data_package("tsuishi-report", declared)}
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"
