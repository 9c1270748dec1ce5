"""Workload parity: the differences between the losses of environments, from the same weights and batch."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tsuishi.base.language import mark, t
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.declarations import EVERY_AXIS
from tsuishi.report.parts.explanation import Explanation
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import Table, number_cell, text_cell
from tsuishi.results.schema import Column


class LossDistances(Explanation):
    """The largest difference between the environments' losses, for every case."""

    tables = {
        "parity": (
            EVERY_AXIS,
            Column("environments", "integer", "that have a loss"),
            Column("largest_loss_difference", "number", "between two of them, over the largest"),
        )
    }
    # Errors against a float64 computation in NumPy; the number of replicas that ran; the loss.
    read_together = {
        mark("Parity"): (
            "logits_relative_error",
            "loss_relative_error",
            "step_relative_error",
            "replicas",
            "loss",
        )
    }

    def closing_views(self, suite_cases: SuiteCases) -> Iterator[View]:
        yield loss_distances(suite_cases)


def loss_distances(suite_cases: SuiteCases) -> View:
    """A row for every case with a loss in two environments or more."""
    losses: dict[str, dict[str, float]] = defaultdict(dict)
    for known in suite_cases.ours():
        if known.case_id and "loss" in known.values:
            losses[known.case_id][known.series] = known.values["loss"]
    cells, rows = [], []
    for case_id in suite_cases.case_ids:
        difference = largest_difference(losses[case_id])
        if difference is not None:
            count = len(losses[case_id])
            cells.append([text_cell(suite_cases.name(case_id)), text_cell(count), number_cell(difference)])
            rows.append({**suite_cases.axes[case_id], "environments": count, "largest_loss_difference": difference})
    columns = [t("case"), t("environments"), t("largest relative difference")]
    return View((Table(columns, cells, title=t("The loss, between environments")),) if cells else (), {"parity": rows})


def largest_difference(losses: Mapping[str, float]) -> float | None:
    """The largest relative difference between two losses: (max - min) / largest magnitude; None for fewer than two.

    losses: by environment.
    """
    values = list(losses.values())
    if len(values) < 2:
        return None
    largest = max(map(abs, values))
    return (max(values) - min(values)) / largest if largest else 0.0
