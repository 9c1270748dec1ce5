"""What several test files need."""

import os
import signal
from typing import NoReturn

import pytest
from hypothesis import settings

# How long an example takes says what else this machine does.
settings.register_profile("tsuishi", deadline=None)
settings.load_profile("tsuishi")

# What a shell starts in the background ignores Ctrl-C, and so would all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def missing(what: str) -> NoReturn:
    """Skip a test for want of something; where everything must be there (CI sets CI), fail instead."""
    if os.environ.get("CI"):
        pytest.fail(f"this run must have it all, and there is {what}")
    pytest.skip(what)
