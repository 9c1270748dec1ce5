"""Checks and findings as tests make them."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tsuishi.estimates.intervals import Term
from tsuishi.estimates.variances import Pool, pool
from tsuishi.specs.claims import Check
from tsuishi.verdicts.findings import Finding

CASE = {"suite": "multi_gpu_scaling", "protocol": "steady", "model": "cnn10", "batch_size": 128}


def check(kind: str, **fields: Any) -> Check:
    base: dict[str, Any] = {"kind": kind, "why": "made up"}
    if kind in ("ratio", "order", "equal", "trend", "shrinks"):
        base["quantity"] = "step_s"
    return Check.model_validate_json(json.dumps({**base, **fields}))


def known(values: Sequence[float], shared: Pool | None = None) -> tuple[Term, Term]:
    """The terms of a case's trials: of logarithms, and of the values; a pool of the case's own where none is given."""
    logs = [math.log(value) for value in values]
    own = pool([logs]), pool([values])
    return tuple(
        Term(sum(one) / len(one), len(one), shared or of, own=of) for one, of in zip((logs, values), own, strict=True)
    )  # type: ignore[return-value]


def finding(
    values: Mapping[str, Sequence[float]],
    framework: str = "torch",
    statuses: tuple[str, ...] = ("ok",) * 3,
    shared: Pool | None = None,
    **axes: Any,
) -> Finding:
    """A case with the trials of each quantity."""
    terms = {quantity: known(trials, shared) for quantity, trials in values.items()}
    logs, plain = ({quantity: term[place] for quantity, term in terms.items()} for place in (0, 1))
    return Finding(framework, {**CASE, **axes}, framework, logs, plain, statuses)


def steps(*seconds: float, **given: Any) -> Finding:
    """A case with these trials of step_s."""
    return finding({"step_s": seconds}, **given)
