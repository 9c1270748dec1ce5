"""Patterns: regular expressions that find numbers in what a program prints, or the time between two of its lines.

`re` may need exponential time. A line has a bounded length (lines.py), and the search in a line has LIMIT_S seconds of
CPU time: `re` looks for signals while it searches, so the timer's signal ends the search. A search that takes longer is
an error, because the patterns share the machine with the program that is measured.
"""

import contextlib
import math
import re
import signal

LIMIT_S = 0.5
MOST_VALUES = 5000  # of all patterns of a trial; a trial may have some more events of a kind
INDEX = "index"
CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$")  # 1:02:03, 02:03 or 02:03.5


class TooSlow(Exception):
    """A pattern took too long for a line."""


class NotANumber(Exception):
    """A pattern found a text that is no finite number."""


class TooMany(Exception):
    """The patterns found more numbers than a trial may have."""


class Search:
    """A regular expression with the name of its pattern."""

    def __init__(self, name, expression):
        self.name, self.expression = name, expression
        self._compiled = re.compile(expression)

    def __call__(self, text):
        """The match in a text, or None. Raises TooSlow."""
        try:
            with limited(LIMIT_S):
                return self._compiled.search(text)
        except TooSlow:
            raise TooSlow(
                "pattern '{}' took more than {:g} s for a line of {} characters: write it without repetitions inside "
                "repetitions; the line: {}".format(self.name, LIMIT_S, len(text), text[:200])
            ) from None


@contextlib.contextmanager
def limited(seconds):
    """Raises TooSlow inside a block that takes more CPU time than this."""

    def stop(number, frame):
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Numbers:
    """The numbers in the lines that match: each named group is a metric, in its unit, times its scale.

    Lines with the same group `index` are states of the same line, as those of a progress bar: the last one counts. The
    wall time since the line before is a sample of the phase between_<name>.
    """

    def __init__(self, fields, emitter):
        self.name = fields["name"]
        self.searches = [Search(self.name, fields["line"])]
        self.matches, self.values = 0, 0
        self._units, self._scale, self._emitter = fields["units"], fields["scale"], emitter
        self._held = None  # index, moment and values of the line that counts so far
        self._last, self._intervals = None, 0

    def hear(self, line):
        match = self.searches[0](line.text)
        if match is None:
            return
        self.matches += 1
        groups = match.groupdict()
        index = groups.pop(INDEX, None)
        values = {name: self._value(name, text, line) for name, text in groups.items() if text is not None}
        if self._held is not None and (index is None or index != self._held[0]):
            self._emit()
        self._held = (index, line.when, values)
        if index is None:
            self._emit()

    def close(self):
        if self._held is not None:
            self._emit()

    def _value(self, name, text, line):
        value = number(text)
        if value is None:
            raise NotANumber(
                "pattern '{}': group '{}' found '{}', which is no finite number, in the line: {}".format(
                    self.name, name, text[:40], line.text[:200]
                )
            )
        return value * self._scale.get(name, 1)

    def _emit(self):
        _, when, values = self._held
        self._held = None
        for name, value in values.items():
            self._emitter.metric(name, value, self._units[name])
        self.values += max(1, len(values))
        phase = "between_" + self.name
        if self._last is None:
            self._emitter.phase_begin(phase)
            self._emitter.phase_end(phase)
        elif when > self._last:
            self._emitter.sample(phase, self._intervals, 1, 0, when - self._last)
            self._intervals += 1
        self._last = when


class Interval:
    """The wall time from a line that matches `begin` to the next that matches `end`: samples of the phase <name>.

    A line that matches both ends an interval and begins the next.
    """

    def __init__(self, fields, emitter):
        self.name = fields["name"]
        self.searches = [Search(self.name, fields[key]) for key in ("begin", "end")]
        self.matches, self.values = 0, 0
        self._begin, self._has_begun, self._emitter = None, False, emitter

    def hear(self, line):
        begins, ends = self.searches
        if self._begin is not None and ends(line.text):
            seconds = line.when - self._begin
            self._begin = None
            if seconds > 0:
                self._emitter.sample(self.name, self.values, 1, 0, seconds)
                self.matches, self.values = self.matches + 1, self.values + 1
        if begins(line.text):
            self._begin = line.when
            if not self._has_begun:
                self._emitter.phase_begin(self.name)
                self._has_begun = True

    def close(self):
        if self._has_begun:
            self._emitter.phase_end(self.name)


def made(fields, emitter):
    """The pattern of a JSON object with `name`, and `line`, `units`, `scale`, or `begin` and `end`."""
    return (Numbers if "line" in fields else Interval)(fields, emitter)


def hear(patterns, line):
    """Hands a line to all patterns. Raises TooSlow, NotANumber, TooMany."""
    for pattern in patterns:
        pattern.hear(line)
    if sum(pattern.values for pattern in patterns) > MOST_VALUES:
        raise TooMany(
            "the patterns found more than {} numbers: let them match fewer lines, or name the group 'index' in lines "
            "that are printed again and again".format(MOST_VALUES)
        )


def number(text):
    """The finite number in a text, or None: 1,234.5 is 1234.5, and the times 1:02:03 and 02:03 are seconds.

    >>> number("02:03.5")
    123.5
    """
    text = text.strip()
    clock = CLOCK.match(text)
    if clock:
        hours, minutes, seconds = clock.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
