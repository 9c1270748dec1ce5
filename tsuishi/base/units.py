"""Durations and sizes as people write them."""


def duration(seconds: float) -> str:
    """A duration in seconds, as people write it.

    >>> duration(0.4), duration(75), duration(7300)
    ('0 s', '1 min 15 s', '2 h 2 min')
    """
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    minutes = round(total / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def age(seconds: float) -> str:
    """A time in seconds since something happened, rounded down to its largest unit.

    >>> age(75), age(7300), age(1e6)
    ('1 minute', '2 hours', '11 days')
    """
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' * (count > 1)}"
    return "now"


def megabytes(size: float) -> str:
    """A size in bytes, in MB or GB (powers of ten); in kB where it is less than half a MB.

    >>> megabytes(17_386_281), megabytes(2_500_000_000), megabytes(31_000), megabytes(0)
    ('17 MB', '2.5 GB', '31 kB', '0 kB')
    """
    if size < 5e5:
        return f"{size / 1e3:.0f} kB"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "case"), counted(41, "case")
    ('1 case', '41 cases')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
