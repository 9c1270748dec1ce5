"""Numbers that cannot be what they seem: not finite, longer than the whole program, or at odds with each other."""

import math

MOST, CHARACTERS = 8, 300  # of the remarks of a trial, which are an event
FACTOR = 1.1  # a program's clock and ours may differ
ODDS = 3.0  # a rate may be of other moments than the time beside it


class Doubts:
    """Collects the remarks about a trial; each says what was printed and why it is doubtful."""

    def __init__(self):
        self._texts = {}

    @property
    def texts(self):
        return [text[:CHARACTERS] for text in list(self._texts.values())[:MOST]]

    def hear(self, line, of_units):
        """Looks at the metrics of a line, by unit: a rate times its time is its count, where there is one of each."""
        for unit, rates in of_units.items():
            counted = unit[:-2] if unit.endswith("/s") else ""
            counts, times = of_units.get(counted, {}), of_units.get("s", {})
            if counted and len(rates) == len(counts) == len(times) == 1:
                ((rate, per_s),), ((count, many),), ((time, seconds),) = (
                    found.items() for found in (rates, counts, times)
                )
                product = per_s * seconds
                if not max(product, many) <= ODDS * min(product, many):
                    said = "{} times {} is {:g}, and {} is {:g}, in the line: {}"
                    self._texts.setdefault(rate, said.format(rate, time, product, count, many, line.text.strip()[:120]))

    def judge(self, patterns, wall_s):
        """Looks at all values of patterns of lines. wall_s: of the whole program."""
        for pattern in patterns:
            for name, values in getattr(pattern, "found", {}).items():
                numbers = [value.number for value in values]
                wrong = [place for place, number in enumerate(numbers) if not math.isfinite(number)]
                if wrong:
                    self._texts[name] = "{} is {} in {} of {} lines, first in its line {}: it has no value here".format(
                        name, numbers[wrong[0]], len(wrong), len(numbers), wrong[0] + 1
                    )
                elif pattern.units[name] == "s":
                    longest = max(values, key=lambda value: value.number - value.rounding)
                    if longest.number - longest.rounding > FACTOR * wall_s:
                        self._texts[name] = "{} is {:.4g} s as printed, but the whole script took {:.3g} s".format(
                            name, longest.number, wall_s
                        )
