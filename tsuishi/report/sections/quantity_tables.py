"""Measurements: every quantity of every case by environment, and below them the numbers published for the case."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tsuishi.base.language import mark, t
from tsuishi.estimates.roofline import Device, DeviceLimits, Limit
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.explanation import Explanation
from tsuishi.report.parts.shown_units import Unit
from tsuishi.report.parts.suite_cases import SuiteCases, published_name
from tsuishi.report.parts.wording import (
    NOT_PUBLISHED,
    Cell,
    Table,
    amount,
    header,
    label,
    notes_once,
    number_cell,
    status_cell,
    text_cell,
    vocabulary_in_use,
)
from tsuishi.specs.source import Epochs, Number

_EPOCHS = mark("Epochs")
# Groups of quantities, each for a table; explanations name more groups. All other quantities come last.
_TOGETHER = {
    mark("First and later runs"): ("first_run_s", "later_run_s"),
    mark("Transfer and compute"): ("host_to_device_s", "compute_s", "device_to_host_s"),
    mark("Steps"): (
        *("step_s", "throughput_images_per_s", "throughput_tokens_per_s", "distinct_images_per_s"),
        *("first_step_s", "second_step_s"),
    ),
    mark("Parts of a step"): ("forward_s", "forward_backward_s"),
    _EPOCHS: ("first_epoch_s", "median_epoch_s", "total_s", "accuracy"),
    # With the clocks: a share of a limit is for the clocks at which the limit was measured.
    mark("Work"): ("fraction_of_limit", "flops_per_s", "bytes_per_s", "gpu_sm_clock_mhz"),
    mark("Energy"): ("energy_per_image_j",),
    mark("GPUs while it was measured"): (
        "gpu_utilisation_percent",
        "gpu_imbalance",
        "least_gpu_memory_share",
        "peak_gpu_memory_mib",
    ),
}
_OTHER = mark("Other measurements")
# Tables of no more rows need no choice of an environment.
_FEW_ROWS = 12


def measured_view(suite_cases: SuiteCases, explanation: Explanation) -> View:
    """A table for each group of quantities; where nothing was measured, a table of the cases' statuses."""
    covered = explanation.covered(suite_cases)
    # The quantities of single GPUs are in the section on telemetry.
    every = suite_cases.quantities - suite_cases.evidence.words.of_one_gpu
    groups = {**explanation.read_together, **_TOGETHER}
    together = {title: [name for name in names if name in every] for title, names in groups.items()}
    together[_OTHER] = sorted(every - {name for names in together.values() for name in names})
    shown = {title: quantities for title, quantities in together.items() if quantities} or {mark("Outcome"): []}
    tables = [
        _table(
            suite_cases,
            title,
            quantities,
            every_case=number == 0,
            folded=(title == _OTHER and len(shown) > 1) or (bool(quantities) and covered >= {*quantities}),
        )
        for number, (title, quantities) in enumerate(shown.items())
    ]
    return View(tuple(notes_once(tables)), {"cases": list(suite_cases.rows())})


def _table(suite_cases: SuiteCases, title: str, quantities: list[str], every_case: bool, folded: bool) -> Table:
    """A row for each case and environment, then a row for each published machine that has numbers of the case.

    every_case: also rows without a number beside or below them. Without quantities, the cells are statuses.
    """
    numbers_of = {case_id: suite_cases.evidence.published(case_id) for case_id in suite_cases.case_ids}
    hardware = suite_cases.evidence.hardware
    published = {
        case_id: {key: {name: numbers[key, name] for name in quantities if (key, name) in numbers} for key in hardware}
        for case_id, numbers in numbers_of.items()
    }
    estimates = [row for name in quantities for row in suite_cases.estimates_of.get(name, ())]
    rows, left_out = [], False
    for case_id in suite_cases.case_ids:
        case = text_cell(suite_cases.name(case_id))
        for name in suite_cases.environments:
            cells = [suite_cases.cell(case_id, name, quantity) for quantity in quantities or [""]]
            if every_case or any(published[case_id].values()) or any(cell.kind == "number" for cell in cells):
                rows.append([case, text_cell(name, "label"), *cells])
            else:
                left_out = True
        for key, numbers in published[case_id].items():
            if numbers:
                theirs = [
                    _published_cell(numbers[name], suite_cases.unit(name))
                    if name in numbers
                    else status_cell(NOT_PUBLISHED)
                    for name in quantities
                ]
                rows.append([case, text_cell(published_name(hardware[key].title)), *theirs])
    headers = [header(name, suite_cases.unit(name)) for name in quantities] or [t("status")]
    notes = _notes(suite_cases, quantities, estimates)
    if left_out:
        notes.append(t("Rows without a number are left out; the first table has the status of their cases."))
    columns, filters = [t("case"), t("environment"), *headers], (1,) if len(rows) > _FEW_ROWS else ()
    return Table(columns, rows, title=_title(suite_cases, title), folded=folded, notes=notes, filters=filters)


def _published_cell(number: Number, unit: Unit) -> Cell:
    cell = number_cell(number.value, unit)
    return replace(cell, notes=(t("impossible: {reason}", reason=number.impossible),)) if number.impossible else cell


def _notes(suite_cases: SuiteCases, quantities: list[str], estimates: list[Any]) -> list[str]:
    """The meanings of the marks that stand below the numbers of this table."""
    notes = []
    if "fraction_of_limit" in quantities:
        notes += limit_notes(suite_cases.fractions, suite_cases.evidence.limits)
    if any(row.n > 1 for row in estimates):
        notes.append(
            t("n: number of trials. Each value is their geometric mean; the smallest and the largest stand below it.")
        )
    if any(row.spread_kind == "blocks" for row in estimates):
        notes.append(
            t(
                "n = 1, within the trial: below the value stand the quartiles of the trial's own blocks. They do "
                "not show how much trials differ."
            )
        )
    if any(row.derived and row.unit == "s" for row in estimates):
        notes.append(_derived(suite_cases.epochs))
    return [*notes, *_predicted({row.quantity for row in estimates if row.derived})]


def _predicted(derived: Iterable[str]) -> Iterator[str]:
    """How far predictions of these quantities were off, where that was measured."""
    for quantity in sorted(derived):
        known = vocabulary_in_use().quantity(quantity)
        if known.predictions:
            yield t(
                "{quantity}: predictions from trials that end early missed full trials by {percent} % (root mean "
                "square of {count} pairs); the intervals of ratios include this error.",
                quantity=label(quantity),
                percent=f"{100 * known.prediction_error:.2g}",
                count=known.predictions,
            )


def _title(suite_cases: SuiteCases, title: str) -> str:
    if title == _EPOCHS and suite_cases.epochs:
        return t("Epochs of {images} images", images=f"{suite_cases.epochs.images:,}")
    return t(title)


def _derived(epochs: Epochs | None) -> str:
    if epochs is None:
        return t("† derived from shorter measurements: not every epoch was run in full.")
    images = f"{epochs.images:,}"
    if epochs.count is None:
        return t("† derived from steps: no full epoch of {images} images was run.", images=images)
    return t(
        "† derived from steps or fewer epochs: not all {epochs} epochs of {images} images were run.",
        images=images,
        epochs=epochs.count,
    )


def limit_notes(values: Sequence[float | None], limits: Mapping[Device, DeviceLimits]) -> list[str]:
    """The notes below a table of fractions. values: the fractions, None where the limit was not measured."""
    known = [value for value in values if value is not None]
    texts = {
        t(
            "Fraction of the limit (roofline model): the shortest possible time of a step over its measured time."
            " The shortest possible time is that of its arithmetic or of its memory traffic, whichever is longer,"
            " at the best rates that a matrix product and a copy reached on the same machine. Arithmetic and "
            "data traffic: the least work of a step over its time."
        ): True,
        t("The best rates: {rates}.", rates="; ".join(sorted({_rates_text(*item) for item in limits.items()}))): bool(
            limits
        ),
        t(
            "Above 1: the step needed fewer operations than counted (Winograd's algorithm, skipped work, folded "
            "constants), or read from caches, or the limit was measured too low."
        ): max(known, default=0) > 1,
        t(
            "Not measured: these runs did not measure the limit of this device and precision. A suite with the "
            "operations matmul and memory_copy does."
        ): len(known) < len(values),
    }
    return [text for text, holds in texts.items() if holds]


def _rates_text(device: Device, limits: DeviceLimits) -> str:
    def text(limit: Limit, unit: str) -> str:
        ends = [amount(end, unit) for end in (limit.low, limit.high) if end is not None]
        return amount(limit.value, unit) + (f" ({' – '.join(ends)})" if ends else "")

    rates = [
        t("{rate} in {precision}", rate=text(limit, "FLOP/s"), precision=precision)
        for (quantity, precision), limit in sorted(limits.items())
        if quantity == "flops_per_s"
    ]
    memory = limits.get(("bytes_per_s", ""))
    rates += [text(memory, "B/s") if memory else t("memory not measured")]
    return f"{device.name}: {', '.join(rates)}"
