"""The vocabulary of this checkout, and cases in its words."""

import shutil
from pathlib import Path
from typing import Any

from tsuishi.base.checkout import Checkout
from tsuishi.results import schema
from tsuishi.specs.case import Case
from tsuishi.specs.source import FILE, Source, read_source
from tsuishi.specs.suite import known_suites
from tsuishi.specs.vocabulary import AXES_FILE, QUANTITIES_FILE, vocabulary

WORDS = vocabulary(Checkout().suites)
# The sources of this project. A user may put others beside them: what holds of ours need not hold of theirs.
SHIPPED = ("batch-throughput", "conv2d-gce", "keras-channels-first", "torch-2080ti", "towers-titanx")
# Those whose numbers stay in tables.
ADOPTED = ("openbenchmarking-pytorch", "pytorch-gpu-benchmark", "timm-results")
# The suites without those of adopted tables, which have thousands of networks of libraries.
SUITES_OF_OURS = sorted(known_suites(Checkout().suites).keys() - {name.replace("-", "_") for name in ADOPTED})
# Of runs whose cases have the axes of suites/axes.toml only.
TRIAL_COLUMNS = [*(column.name for column in schema.TRIALS), *WORDS.of([]).axes]


def describe(suites: Path) -> None:
    """Put what this checkout describes into the suites of another, which is there or not."""
    suites.mkdir(parents=True, exist_ok=True)
    for name in (AXES_FILE, QUANTITIES_FILE):
        shutil.copy(Checkout().suites / name, suites)


def shipped_sources() -> tuple[Source, ...]:
    """The published sources of this project."""
    published = Checkout().published
    paths = [*(published / f"{name}.toml" for name in SHIPPED), *(published / name / FILE for name in ADOPTED)]
    return tuple(read_source(path, WORDS, tables=False) for path in paths)


def case(**axes: Any) -> Case:
    """The case of these axes; None for an axis that it has not."""
    return WORDS.case(axes)
