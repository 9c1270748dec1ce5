"""The cells that a claim is judged on, before anything is measured: its checks are made on made-up numbers."""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from tsuishi.estimates.intervals import Term
from tsuishi.specs.case import BATCH_SIZE, PROTOCOL
from tsuishi.specs.claims import Claim
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.selections import FRAMEWORK, OF_ENVIRONMENTS
from tsuishi.specs.source import Source
from tsuishi.specs.statuses import OK
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.checks import taking_part
from tsuishi.verdicts.findings import Finding

# The values of a case by axis, and the framework and the name of its environment.
CellAxes = Mapping[str, Any]


def planned_findings(
    words: Vocabulary, sources: Iterable[Source], cells: Mapping[MatrixCell, CellAxes]
) -> dict[MatrixCell, Finding]:
    """Cells as findings, with a number of each quantity that claims compare.

    The number grows with the batch size, so that a line can be fitted.
    """
    checks = [check for source in sources for claim in source.claims for check in claim.checks]
    names = {name for check in checks for name in check.compared if name} | {"step_s"}

    @cache
    def terms(batch_size: int) -> dict[str, Term]:
        return dict.fromkeys(names, Term(math.log(batch_size + 1), 0, None))

    def finding(cell: MatrixCell, axes: CellAxes) -> Finding:
        of_case = terms(axes.get(BATCH_SIZE) or 1)
        framework, environment = cells[cell][FRAMEWORK], cell.environment
        return Finding(environment, axes, framework, of_case, of_case, (OK,), environment=environment)

    cases = {cell: {axis: axes[axis] for axis in axes if axis not in OF_ENVIRONMENTS} for cell, axes in cells.items()}
    return {cell: finding(cell, axes) for cell, axes in words.completed(cases).items()}


def cells_of(claim: Claim, findings: Mapping[MatrixCell, Finding]) -> tuple[MatrixCell, ...]:
    """The cells that a claim's checks compare, of each protocol in which all of them can be judged; else none."""
    needed: list[MatrixCell] = []
    for protocol in sorted({finding.axes[PROTOCOL] for finding in findings.values()}):
        here = {cell: finding for cell, finding in findings.items() if finding.axes[PROTOCOL] == protocol}
        of_checks = [taking_part(check, [*here.values()]) for check in claim.checks]
        if all(of_checks):
            parts = {id(finding) for part in of_checks for finding in part}
            needed += (cell for cell, finding in here.items() if id(finding) in parts)
    return tuple(needed)
