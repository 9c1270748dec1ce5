"""What several test files need."""

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip a test for want of something; where everything must be there (CI sets CI), fail instead."""
    if os.environ.get("CI"):
        pytest.fail(f"this run must have it all, and there is {what}")
    pytest.skip(what)
