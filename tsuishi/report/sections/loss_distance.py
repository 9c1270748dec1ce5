"""Parity in a report: how far apart the losses of environments are that started from the same weights and batch."""

from collections import defaultdict

from tsuishi.base.language import t
from tsuishi.estimates import parity
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.comparison import Comparison
from tsuishi.report.parts.wording import Table, number_cell, text_cell


def parities(comparison: Comparison) -> View:
    """Every case with a loss in two environments or more."""
    losses: dict[str, dict[str, float]] = defaultdict(dict)
    for one in comparison.ours():
        if one.case_id and "loss" in one.values:
            losses[one.case_id][one.series] = one.values["loss"]
    cells, rows = [], []
    for case_id in comparison.case_ids:
        difference = parity.largest_difference(losses[case_id])
        if difference is not None:
            count = len(losses[case_id])
            cells.append([text_cell(comparison.name(case_id)), text_cell(count), number_cell(difference)])
            rows.append({**comparison.axes[case_id], "environments": count, "largest_loss_difference": difference})
    columns = [t("case"), t("environments"), t("largest relative difference")]
    return View((Table(columns, cells, t("The loss, between environments")),) if cells else (), {"parity": rows})
