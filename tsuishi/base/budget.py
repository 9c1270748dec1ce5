"""The time limit of a run. It counts from the command to the report; downloads do not count."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tsuishi.base.errors import UserError

# Seconds since the epoch at which the command was typed; `./invoke` sets it before it makes .venv.
BEGAN = "TSUISHI_BEGAN"
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}
# An older start is not the start of this command: the variable was inherited from another command.
_STALE_S = 900.0


def seconds(given: str) -> float | None:
    """A duration as people write it, in seconds; None for `none`. Raises UserError for any other text.

    >>> seconds("90s"), seconds("10m"), seconds("1h30m"), seconds("none")
    (90.0, 600.0, 5400.0, None)
    """
    text = given.strip().lower()
    if text == "none":
        return None
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h)", text, re.ASCII)
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if re.sub(r"\s", "", text) != "".join(number + unit for number, unit in parts) or not 0 < total < 1e7:
        raise UserError(f"--within takes a duration such as 90s, 10m or 2h, or none; given: {given}")
    return total


class Clock:
    """Counts the time of a run. `within_s` is the limit in seconds; None means that there is no limit."""

    def __init__(self, within_s: float | None = None, began: float | None = None) -> None:
        self.within_s = within_s
        self._began = time.monotonic() - _since_typed() if began is None else began
        self._apart_s = 0.0
        # When the clock was stopped until the first trial begins; None while it runs.
        self._stopped: float | None = None

    def stop(self) -> None:
        """Count nothing until `start`: on a cluster, time is that from the first start of a job."""
        self._stopped = time.monotonic()

    def start(self) -> float | None:
        """Count from now on. Returns the seconds that the clock stood; None where it ran already."""
        if self._stopped is None:
            return None
        self._began, self._apart_s = time.monotonic(), 0.0
        stood_s, self._stopped = self._began - self._stopped, None
        return stood_s

    @property
    def spent_s(self) -> float:
        """Seconds since the command was typed, or the clock was started, without the time inside `apart`."""
        if self._stopped is not None:
            return 0.0
        return time.monotonic() - self._began - self._apart_s

    @property
    def left_s(self) -> float:
        """Seconds that are left: infinite without a limit, negative after the limit."""
        return float("inf") if self.within_s is None else self.within_s - self.spent_s

    @contextmanager
    def apart(self) -> Iterator[None]:
        """The time inside this block does not count. Downloads use it."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._apart_s += time.monotonic() - begun


def _since_typed() -> float:
    """Seconds since the command was typed; 0 where `./invoke` did not record that time."""
    try:
        since = time.time() - float(os.environ.pop(BEGAN, ""))
    except ValueError:
        return 0.0
    return since if 0 <= since < _STALE_S else 0.0
