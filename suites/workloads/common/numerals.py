"""Reads the numbers that patterns find. In which forms and units they stand is said by the host, with each pattern.

Nothing is guessed here: a text that is no number of the pattern's form is an error, never another number.
"""

import re

# What may part groups of three digits, by the decimal sign; a space does so only beside a decimal comma.
GROUPS = {".": ",'\u2019_\u00a0\u202f", ",": ".'\u2019\u00a0\u202f "}
CLOCK = re.compile(r"(?:(?:(\d+) days?, )?(\d+):)?(\d+):(\d+(?:\.\d+)?)$")  # 1 day, 1:02:03, 1:02:03, 02:03 or 02:03.5
PART = re.compile(r"(\d+(?:[.,]\d+)?)\s?([dhms])[a-z]*(?:,?\s?(?:and\s)?)")
PARTS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def number(text, decimal="."):
    """The number in a text, or None; a time as 1:02:03, 02:03 or 1h 2m 3s is its seconds. It may be NaN or infinite.

    >>> number("1,234.5"), number("1.234,5", ","), number("0,5"), number("02:03.5"), number("1h02m")
    (1234.5, 1234.5, None, 123.5, 3720.0)
    """
    text = text.strip()
    clock = CLOCK.match(text)
    if clock:
        days, hours, minutes, seconds = clock.groups()
        return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
    in_words = seconds_of(text)
    if in_words is not None:
        return in_words
    whole, sign, fraction = text.replace("\u2212", "-").partition(decimal)
    groups = re.split("[{}]".format(GROUPS[decimal]), whole)
    if len(groups) > 1 and not (re.match(r"[-+]?[1-9]\d{0,2}$", groups[0]) and all(map(is_group, groups[1:]))):
        return None
    if not re.match(r"(\d*([eE][-+]?\d+)?)?$", fraction):
        return None
    try:
        return float("".join(groups) + sign.replace(",", ".") + fraction)
    except ValueError:
        return None


def is_group(digits):
    """Whether these are three digits, with which an exponent may end: as 234 of 1,234."""
    return re.match(r"\d{3}([eE][-+]?\d+)?$", digits) is not None


def seconds_of(text):
    """The seconds of a time in words of at least two parts, from the longest to the shortest; else None."""
    parts = PART.findall(text)
    units = [unit for _, unit in parts]
    if len(parts) < 2 or PART.sub("", text) or units != sorted(set(units), key="dhms".index):
        return None
    return sum(float(count.replace(",", ".")) * PARTS[unit] for count, unit in parts)
