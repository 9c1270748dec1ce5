"""The vocabulary of this checkout, and cases in its words."""

import shutil
from pathlib import Path
from typing import Any

from tsuishi.base.checkout import Checkout
from tsuishi.results import schema
from tsuishi.specs.case import Case
from tsuishi.specs.vocabulary import AXES_FILE, QUANTITIES_FILE, vocabulary

WORDS = vocabulary(Checkout().suites)
# Of runs whose cases have the axes of suites/axes.toml only.
TRIAL_COLUMNS = [column.name for column in schema.of_trials(WORDS.of([]).axes)]


def describe(suites: Path) -> None:
    """Put what this checkout describes into the suites of another, which is there or not."""
    suites.mkdir(parents=True, exist_ok=True)
    for name in (AXES_FILE, QUANTITIES_FILE):
        shutil.copy(Checkout().suites / name, suites)


def case(**axes: Any) -> Case:
    """The case of these axes; None for an axis that it has not."""
    return WORDS.case(axes)
