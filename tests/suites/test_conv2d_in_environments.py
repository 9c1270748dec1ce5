"""The frameworks' own convolutions against SciPy, in every pinned environment that is built here."""

import pytest

from tests.suites.environments import PINNED, inside, run_inside
from tsuishi.specs.environment import Environment


@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
@inside
def test_odd_and_even_filters_channels_and_towers_give_what_scipy_gives(environment: Environment) -> None:
    errors = run_inside(environment, "check_conv2d.py", environment.framework)
    assert len(errors) == 18 + (5 if environment.framework == "tensorflow" else 3)
    assert max(errors.values()) < 1e-6, errors
