"""Numbers with units as people write them: in which forms they are read, and how a pattern of a suite finds them.

This is the only place that knows forms and units. The workload gets what follows from it with each pattern: the regular
expression, the decimal sign, and the factor of each unit that a line may have.

No expression has a repetition inside a repetition that can match the same text in two ways, so that each needs a time
that grows with the length of a line alone.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Literal

Decimal = Literal[".", ","]
# The group of a pattern that takes the unit from the line.
UNIT = "unit"
NUMBER_IN, UNIT_IN, DURATION_IN = "{number}", "{unit}", "{duration}"

# The units of time, in seconds. Not `m`: minutes, metres, or the prefix milli.
SECONDS = {
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds", "マイクロ秒"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds", "Millisekunden", "ミリ秒"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "Sekunde", "Sekunden", "seconde", "secondes", "秒"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "Minuten", "分"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "Stunden", "heures", "時間"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
# Other units, which stay as they are printed.
KEPT = (
    *("%", "°C", "W", "kW", "J", "kJ", "dB", "Hz", "kHz", "MHz", "GHz", "fps", "FPS"),
    *("B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "bytes", "KBytes", "MBytes", "GBytes"),
    *("FLOPS", "MFLOPS", "GFLOPS", "TFLOPS", "PFLOPS"),
)
# Decimal prefixes of counts: 1.2k images/s.
PREFIXES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
# The times of rates, and those that something takes, as in s/it.
_EACH = {name: SECONDS[name] for name in ("s", "sec", "second", "min", "minute", "h", "hour")} | {"S": 1.0}
_TAKEN = ("ns", "us", "µs", "μs", "ms", "msec", "s", "sec", "second", "seconds", "min", "minutes")

# 55.9 ± 0.4, 55.9 (0.4), 66,7 +1,6 -1,5, 55.9 ms: the first is the number, and no other number stands beside it.
_FIRST = re.compile(
    r"(?:[~≈]\s*)?([-−]?[\d.,'’_]*\d(?:[eE][-+]?\d+)?)(?:\s*(?:±|\+/-|\+-|\+\d).*|\s*[^\d\s.,/+(][^\d(]*)?"
    r"(?:\s*\(\s*[±+−-]?\s*[\d.,]+\s*(?:%|[x×]|ms|s|std|sd|σ)?\s*\)(?!\S).*)?"
)
_CELL_UNIT = re.compile(r"(?:[~≈]\s*)?[\d.,]+(?:[kKM](?!\w))? ?((?![kKM](?!\w))[^\d\s.,\-–−±(*].*)")
_THOUSANDS = re.compile(r"(?:[~≈]\s*)?[\d.,]+([kKM])(?!\w).*")  # 342K, 2.1k images/s
_UNIT_ALONE = re.compile(
    rf"(?:{'|'.join(map(re.escape, (*SECONDS, *KEPT)))}|(?i:[a-z]+ ?(?:/|per) ?(?:s|secs?|seconds?|min|minutes?)"
    r"|(?:ms|s|us|µs|sec|seconds) ?(?:/|per) ?[a-z]+))"
)
_PLAIN = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")

# What may part groups of three digits. A space does so only where the comma is the decimal sign: elsewhere it parts
# numbers.
_GROUPS: Mapping[Decimal, str] = {".": r",'’_\u00a0\u202f", ",": r".'’\u00a0\u202f "}
_NO_NUMBER = r"[nN][aA][nN]|[iI][nN][fF](?:inity)?"


# A number of either form, or what is none in any.
ANY_NUMBER = (
    r"(?:[-+−]?(?:\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,6}(?!\d)(?:,\d{1,20})?|\d[\d.,'’_]{0,40}|\.\d{1,20})"
    rf"(?:[eE][-+]?\d{{1,3}})?|[-+]?(?:{_NO_NUMBER})(?![\w.]))"
)


@cache
def number(decimal: Decimal) -> str:
    """The expression of a number of that form: digits, maybe in groups of three, a fraction, an exponent; nan, inf."""
    sign = re.escape(decimal)
    whole = rf"(?:[1-9]\d{{0,2}}(?:[{_GROUPS[decimal]}]\d{{3}}){{1,6}}(?!\d)|\d{{1,20}})"
    fewest = 0 if decimal == "." else 1
    digits = rf"(?:{whole}(?:{sign}\d{{{fewest},20}})?|{sign}\d{{1,20}})(?:[eE][-+]?\d{{1,3}})?"
    return rf"[-+−]?(?:{digits}(?![\d]|[.,'’]\d)|(?:{_NO_NUMBER})(?!\w))"


def _part(unit: str, fraction: str = "") -> str:
    return rf"\d{{1,6}}{fraction}\s?(?:{unit})(?![^\W\d])"


def _duration() -> str:
    days, hours, minutes = _part("d|days?"), _part("h|hrs?|hours?"), _part("m|mins?|minutes?")
    seconds = _part("s|secs?|seconds?", r"(?:[.,]\d{1,9})?")
    part = r"(?:,?\s?(?:and\s)?)"
    words = (
        rf"(?:{days}{part})?{hours}{part}{minutes}(?:{part}{seconds})?|{days}{part}{hours}|{hours}{part}{seconds}"
        rf"|{minutes}{part}{seconds}"
    )
    return rf"(?:(?:\d{{1,4}} days?, )?\d{{1,5}}:\d\d:\d\d(?:\.\d{{1,9}})?(?![:\d])|{words})"


# A time in words or as a clock of three parts: 1h02m, 2 min 30 s, 0m12.3s, 0:01:23.
DURATION = _duration()


def forms(text: str) -> tuple[Decimal, ...]:
    """The decimal signs with which a text is a number: both for 1,234, and for 1234, where it makes no difference."""
    signs: tuple[Decimal, ...] = (".", ",")
    return tuple(sign for sign in signs if re.fullmatch(number(sign), text))


def two_readings(text: str) -> tuple[float, float] | None:
    """The numbers of a cell with a point and with a comma as decimal sign; None where they are equal or missing."""
    with_point, with_comma = number_in(text, "."), number_in(text, ",")
    if with_point is None or with_comma is None or with_point == with_comma:
        return None
    return with_point, with_comma


def value(text: str, decimal: Decimal) -> float:
    """The number in a text of that form, or the seconds of a time; the workload reads it in the same way."""
    if re.fullmatch(DURATION, text.strip()):
        return _seconds(text)
    plain = re.sub(f"[{_GROUPS[decimal]}]", "", text.replace("−", "-"))
    return float(plain.replace(decimal, "."))


def _seconds(text: str) -> float:
    days, _, clock = text.strip().rpartition(", ")
    if ":" in clock:
        hours, minutes, seconds = map(float, clock.split(":"))
        return float(days.split()[0] if days else 0) * 86400 + hours * 3600 + minutes * 60 + seconds
    parts = re.findall(r"(\d+(?:[.,]\d+)?)\s?([^\W\d])", text)
    return sum(float(count.replace(",", ".")) * {"m": 60.0, **SECONDS}[unit] for count, unit in parts)


def printed_units(unit: str) -> dict[str, tuple[float, bool]]:
    """The units in which a quantity of that unit may be printed: the factor, and whether the number is turned round.

    >>> printed_units("it/s")["ms/it"], printed_units("s")["ms"]
    ((1000.0, True), (0.001, False))
    """
    if unit in SECONDS:
        return {text: (seconds / SECONDS[unit], False) for text, seconds in SECONDS.items()}
    first, per, second = unit.partition("/")
    if per and second in SECONDS:
        return _rates(first, SECONDS[second], turned=False)
    if per and first in SECONDS:
        return _rates(second, SECONDS[first], turned=True)
    return {unit: (1.0, False)}


def _rates(counted: str, seconds: float, turned: bool) -> dict[str, tuple[float, bool]]:
    """The units of a rate, or with `turned` of the time for each that is counted."""
    spaces = ("", " ") if counted else ("",)
    prefixes = {"": 1.0} | {prefix + space: many for prefix, many in PREFIXES.items() for space in spaces}
    rates = {
        f"{prefix}{counted}/{time}": many / each for prefix, many in prefixes.items() for time, each in _EACH.items()
    }
    rates |= {f"{counted} per {time}": 1 / each for time, each in _EACH.items() if counted}
    times = {f"{time}/{counted}": SECONDS[time] for time in _TAKEN if counted}
    found = {text: (1 / seconds / rate if turned else rate * seconds, turned) for text, rate in rates.items()}
    return found | {text: (time / seconds if turned else seconds / time, not turned) for text, time in times.items()}


def unit_expression(units: Iterable[str]) -> str:
    """The expression of any of these units."""
    return f"(?:{'|'.join(re.escape(text) for text in sorted(units, key=lambda text: (-len(text), text)))})"


def line_expression(line: str, decimal: Decimal | None, units: Iterable[str]) -> str:
    """The regular expression of a pattern's line, with its placeholders replaced; the workload does the same.

    decimal: None for numbers of any form.
    """
    places = {
        NUMBER_IN: number(decimal) if decimal else ANY_NUMBER,
        DURATION_IN: DURATION,
        UNIT_IN: unit_expression(units),
    }
    for place, expression in places.items():
        line = line.replace(place, expression)
    return line


@lru_cache(maxsize=1 << 14)  # a table repeats the facts of its networks
def number_in(text: str, decimal: Decimal = ".") -> float | None:
    """The number in a cell, in front of its scatter and its unit; None where there is none, or where there are two."""
    if decimal == "." and _PLAIN.fullmatch(text):  # nearly every number: many times faster
        return float(text)
    first = _FIRST.fullmatch(text.strip())
    return value(first[1], decimal) if first and decimal in forms(first[1]) else None


def printed_number(text: str, decimal: Decimal = ".") -> float | None:
    """The number in a cell, in thousands and millions where it is printed so: 342K; None as `number_in`."""
    printed, thousands = number_in(text, decimal), _THOUSANDS.fullmatch(text)
    return printed * PREFIXES[thousands[1]] if printed and thousands else printed


def is_unit_alone(text: str) -> bool:
    """Whether a text is a unit and nothing else, maybe in brackets: ms, [s], (images/s), GB."""
    return _UNIT_ALONE.fullmatch(text.strip(" ()[]")) is not None


def unit_of_cell(text: str) -> str:
    """The unit behind the number of a cell: "ms" of 31.3ms, "img/s" of 356 img/s; empty without."""
    unit = _CELL_UNIT.fullmatch(text)
    return unit[1].strip().rstrip("*†‡§^ ") if unit else ""
