"""The cells that a claim is judged on, before anything is measured: its checks are made on made-up numbers."""

import math
from collections.abc import Mapping
from typing import Any

from tsuishi.estimates.intervals import Term
from tsuishi.specs.case import BATCH_SIZE, PROTOCOL
from tsuishi.specs.claims import Claim
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.selections import FRAMEWORK, OF_ENVIRONMENTS
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.checks import taking_part
from tsuishi.verdicts.findings import Finding

# The values of a case by axis, and the framework and the name of its environment.
CellAxes = Mapping[str, Any]


def cells_of(claim: Claim, cells: Mapping[MatrixCell, CellAxes]) -> tuple[MatrixCell, ...]:
    """The cells that a claim's checks compare, of each protocol in which all of them can be judged; else none."""
    quantities = {name for check in claim.checks for name in check.compared if name} | {"step_s"}
    needed: dict[MatrixCell, None] = {}
    for protocol in sorted({axes[PROTOCOL] for axes in cells.values()}):
        findings = [_finding(cell, axes, quantities) for cell, axes in cells.items() if axes[PROTOCOL] == protocol]
        of_checks = [taking_part(check, findings) for check in claim.checks]
        if all(of_checks):
            parts = {id(finding) for part in of_checks for finding in part}
            here = (cell for cell, axes in cells.items() if axes[PROTOCOL] == protocol)
            needed |= dict.fromkeys(cell for cell, each in zip(here, findings, strict=True) if id(each) in parts)
    return tuple(needed)


def _finding(cell: MatrixCell, axes: CellAxes, quantities: set[str]) -> Finding:
    """A case with a number of each quantity. It grows with the batch size, so that a line can be fitted."""
    case = {axis: value for axis, value in axes.items() if axis not in OF_ENVIRONMENTS}
    terms = dict.fromkeys(quantities, Term(math.log((axes.get(BATCH_SIZE) or 1) + 1), 0, None))
    return Finding(cell.environment, case, axes[FRAMEWORK], terms, terms, (OK,), environment=cell.environment)
