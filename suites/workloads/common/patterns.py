"""Patterns: regular expressions that find numbers in what a program prints, or the time between two of its lines.

`re` may need exponential time. A line has a bounded length (lines.py), and the search in a line has LIMIT_S seconds of
CPU time: `re` looks for signals while it searches, so a timer's signal ends the search. A search that takes longer is
an error, because the patterns share the machine with the program that is measured.
"""

import collections
import math
import re
import signal

from common import numerals

LIMIT_S = 0.5
MOST_VALUES = 5000  # of all patterns of a trial; a trial may have some more events of a kind
INDEX, UNIT = "index", "unit"
# A number in the unit of its metric, and by how much it may be rounded.
Value = collections.namedtuple("Value", "number rounding")


class TooSlow(Exception):
    """A pattern took too long for a line."""


class NotANumber(Exception):
    """A pattern found a text that is no number of its form, or a number in a unit that is not known."""


class TooMany(Exception):
    """The patterns found more numbers than a trial may have."""


class Search:
    """A regular expression with the name of its pattern. places: what its placeholders stand for, as {number}."""

    def __init__(self, name, expression, places=()):
        for place in places:
            expression = expression.replace(place, places[place])
        self.name, self.expression = name, expression
        self._compiled = re.compile(expression)
        self.calls, self.is_busy = 0, False

    def __call__(self, text):
        """The match in a text, or None. Raises TooSlow inside a Limit."""
        self.calls += 1
        self.is_busy = True
        try:
            return self._compiled.search(text)
        except TooSlow:
            raise TooSlow(
                "pattern '{}' took more than {:g} s for a line of {} characters: write it without repetitions inside "
                "repetitions; the line: {}".format(self.name, LIMIT_S, len(text), text[:200])
            ) from None
        finally:
            self.is_busy = False


class Limit:
    """Raises TooSlow in a search that takes more than LIMIT_S of CPU time, which is the same at two ticks of a timer.

    The timer goes on from line to line: to set it for every search would take longer than most searches.
    """

    def __init__(self, patterns):
        self._searches = [search for pattern in patterns for search in pattern.searches]
        self._seen = [0 for _ in self._searches]

    def __enter__(self):
        self._before = signal.signal(signal.SIGVTALRM, self._look)
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S, LIMIT_S)

    def __exit__(self, *error):
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, self._before)

    def _look(self, number, frame):
        if any(search.is_busy and search.calls == seen for search, seen in zip(self._searches, self._seen)):
            raise TooSlow
        self._seen = [search.calls for search in self._searches]


class Numbers:
    """The numbers in the lines that match: each named group is a metric.

    The group `unit` holds the unit of the number in the line: the host says by which factor the number becomes one of
    the metric's unit, and whether it is turned round before, as from s/it to it/s. Lines with the same group `index`,
    and the states of a line that is drawn over itself, are states of the same line: the last one counts. The wall time
    since the line before is a sample of the phase between_<name>.

    A metric that is not finite in any line has no value: its others would stand for all.
    """

    def __init__(self, fields, known, emitter):
        self.name, self.units = fields["name"], fields["units"]
        self._scale, self._decimal = fields["scale"], fields["decimal"]
        places = {"{number}": known["number"][self._decimal], "{duration}": known["duration"]}
        self._printed = {}
        if fields["printed"]:
            places["{unit}"], self._printed = known["units"][fields["printed"]]
        self.searches = [Search(self.name, fields["line"], places)]
        self.matches, self.values = 0, 0
        self._emitter = emitter
        self._held = None  # what tells the line apart that counts so far, its moment and values
        self._last, self._intervals = None, 0
        self.found = {}  # the values of each metric, in their order

    def hear(self, line):
        """The values that count in a line so far, {metric: Value}; empty where the pattern does not match."""
        match = self.searches[0](line.text)
        if match is None:
            return {}
        self.matches += 1
        groups = match.groupdict()
        index = groups.pop(INDEX, None)
        unit = groups.pop(UNIT, None)
        values = {name: self._value(name, text, unit, line) for name, text in groups.items() if text is not None}
        which = (line.stream, line.row) if index is None else index
        if self._held is not None and which != self._held[0]:
            self._count()
        self._held = (which, line.when, values)
        return values

    def close(self):
        if self._held is not None:
            self._count()
        for name, values in self.found.items():
            if all(math.isfinite(value.number) for value in values):
                for value in values:
                    self._emitter.metric(name, value.number, self.units[name])

    def _value(self, name, text, unit, line):
        value = numerals.number(text, self._decimal)
        where = "in the line: {}".format(line.text[:200])
        if value is None:
            raise NotANumber(
                "pattern '{}': group '{}' found '{}', which is no number with the decimal sign '{}', {}".format(
                    self.name, name, text[:40], self._decimal, where
                )
            )
        factor, turned = self._printed.get(unit, (1, False))
        if unit is not None and unit not in self._printed:
            raise NotANumber(
                "pattern '{}': it is not known how the unit '{}' becomes '{}', {}: write `units = {{ \"{}\" = ... }}` "
                "into the pattern".format(self.name, unit[:40], self.units[name], where, unit[:40])
            )
        factor *= self._scale.get(name, 1)
        number = value * factor if not turned else factor / value if value else math.inf
        # As it is printed it may be rounded by half of its last digit: by half of the unit, where it is whole.
        return Value(number, factor / 2 if not turned and value == value // 1 else 0)

    def _count(self):
        _, when, values = self._held
        self._held = None
        for name, value in values.items():
            self.found.setdefault(name, []).append(value)
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
        """Takes the moment of the line; it has no metrics."""
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
        return {}

    def close(self):
        if self._has_begun:
            self._emitter.phase_end(self.name)


def made(fields, known, emitter):
    """The pattern of a JSON object with `name`, and `begin` and `end`, or what Numbers has. known: see script.py."""
    return Numbers(fields, known, emitter) if "line" in fields else Interval(fields, emitter)


def hear(patterns, line):
    """Hands a line to all patterns. Raises TooSlow, NotANumber, TooMany. Returns the metrics of the line by unit."""
    of_units = {}
    for pattern in patterns:
        for name, value in pattern.hear(line).items():
            of_units.setdefault(pattern.units[name], {})[name] = value.number
    if sum(pattern.values for pattern in patterns) > MOST_VALUES:
        raise TooMany(
            "the patterns found more than {} numbers: let them match fewer lines, or name the group 'index' in lines "
            "that are printed again and again".format(MOST_VALUES)
        )
    return of_units
