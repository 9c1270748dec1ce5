"""The quantity and its unit in what people print: a header, a cell, a heading."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tsuishi.specs import numerals
from tsuishi.specs.numerals import unit_of_cell

STEP, IMAGES, _TOKENS = "step_s", "throughput_images_per_s", "throughput_tokens_per_s"

_RATE = re.compile(
    r"\b(?P<what>images?|imgs?|im|inf|inferences?|samples?|examples?|frames|pictures|tokens?|its?|iter|iterations?|steps?|batch(?:es)?)"
    r" ?(?:/|per) ?(?P<per>s|secs?|seconds?|min|minutes?)\b"
)
_FPS = re.compile(r"\bfps\b")
_TIME_EACH = re.compile(
    r"\b(?P<unit>ms|msec|milliseconds?|us|µs|s|secs?|seconds?|min)\)? ?(?:/|per) ?(?:inference |training |mini ?)?"
    r"(?P<what>steps?|its?|iter|iterations?|batch|epoch)\b"
)
_OF_IMAGE = r"(?:/|per) ?(?:images?|imgs?|samples?|frames?|pictures?|examples?)\b"
_TIME_OF_IMAGE = re.compile(rf"\b(?P<unit>ms|msec|milliseconds?|us|µs|s|secs?|seconds?) ?{_OF_IMAGE}")
_OF_IMAGE_TIME = re.compile(rf"\A(?>.*?{_OF_IMAGE}).*[(\[ ,](?P<unit>ms|msecs?|us|µs|s|secs?|seconds?)[)\]]?$")
_UNITS_OF_TIME = r"(?P<unit>ms|msecs?|milliseconds?|us|µs|s|secs?|seconds?|min|minutes?)"
_UNIT = re.compile(rf"(?:^|[(\[ ,]|/(?=ms$)){_UNITS_OF_TIME}[)\]]?$")
_UNIT_IN_BRACKETS = re.compile(rf"[(\[] ?{_UNITS_OF_TIME} ?[)\]]")  # before a count: latency (ms) bs=1
# What takes so many images or steps together.
OF_MANY = (
    r"(?:\b(?:for|of|per|over)\b|/) ?\d[\d,.]*k? ?"
    r"(?:images?|imgs?|iter\w*|steps?|batch(?:es)?|runs?|samples?|inferences)\b"
)
# Times and rates that are no mean of a whole step.
_OTHER = re.compile(
    r"(?:/|\bper) ?(?:gpu|device|card|w|watt|chip|core|worker|node|process|socket|tpu)s?\b|(?:/|\bper) ?\$"
    r"|(?:/|\bper) ?s(?:ec(?:ond)?s?)? ?(?:/|\bper\b)|(?:/|\bper) ?ms\b(?<!latency/ms)(?<!time/ms)(?<!core/ms)"
    r"|\b(?:\d[\d,]*k?|k|thousands?|millions?) (?:of )?(?:images?|imgs?|samples?|frames?)\b"
    r"|\b(?:forward|backward|std|stdev|variance|err|error|diff|p\d\d|max|load|loading|warm\w*|first|speed-?up|improvement)\b"
    r"|\b(?:tail|percentile|fastest|slowest|worst|best|peak|ideal|theoretical|target|estimated|expected|overhead)\b"
    r"|\b(?:optimi[sz]er|all-?reduce|comm(?:unication)?|kernel|h2d|d2h|copy|transfer|pre-?process\w*|post-?process\w*|nms)\b"
    r"|\bcpu time\b"
    r"|(?<!torch[. ])(?<!with )(?<!without )(?<!w/ )(?<!w/o )\bcompile\b"
    r"|(?<!/)(?<!/ )(?<!per )\bmin\b|\d\d ?%"
    rf"|{OF_MANY}"
)
# The time of a whole training or run; "training time (ms)" is of a step.
_WHOLE = re.compile(
    r"\b(?:total|wall|elapsed|train(?:ing)?) ?(?:clock )?(?:run ?)?time\b|\btime to\b|\b(?:elapsed|duration)\b"
)
_OF_STEP = re.compile(r"\b(?:steps?|its?|iter(?:ation)?s?|batch(?:es)?|latency)\b")
_EPOCH = re.compile(r"\bepochs?\b")
# A part of a heading that is a unit and nothing else; and words of headings of other quantities.
_UNIT_ALONE = (
    r"(?:[a-z ]+ in |(?:#|number) ?(?:of )?|(?:(?:training|inference|throughput|speed|performance|results?|latency) )*)"
    rf"(?:{_RATE.pattern}|fps|ms|msecs?|milliseconds?|s|secs?|seconds)"
)
_OTHER_QUANTITY = re.compile(
    r"\b(?:accuracy|top ?-?[15]|memory|param\w*|flops|gflops|power|watts?|price|cost|speed-?ups?|relative|normali[sz]ed"
    r"|size|energy|loss|error|efficiency)\b|[%$€]|\bg[i]?b\b"
)
_UNIT_IN_PROSE = re.compile(
    r"(?<![\d.,] )(?:(?P<rate>\b(?:images?|samples?|imgs?)(?: [a-z]+){0,4} ?(?:per|/) ?s(?:ec(?:onds?)?)?\b)"
    r"|(?P<of>\b(?:ms|milliseconds?|seconds?) ?(?:/|per) ?(?:mini ?)?(?:batch|step|iteration|image)\b)"
    r"|\b(?:times?|latency|latencies)\b[^.]{0,40}\bin (?P<time>ms|milliseconds|seconds)\b(?! ?(?:/|per)))"
)
_MEMORY_OF_CARD = re.compile(r"\d+ ?g(?:i?b)?(?: gpu)? ?(?:memory|ram|vram|hbm\w*)?\b", re.IGNORECASE)
# A quantity, the factor to its unit, and whether the number is turned round.
PrintedQuantity = tuple[str, float, bool]


def header_words(header: str) -> str:
    """A header in lower case, with spaces for underscores and between words of CamelCase."""
    parted = re.sub(r"([a-z])([A-Z])", r"\1 \2", header).lower()
    return " ".join(re.sub(r"[_*:]+", " ", parted).split())


def plain(text: str) -> str:
    """A text in lower case, its letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _without_scatter(header: str) -> str:
    """A plain header without the scatter that its cells have behind the number: "images/s (mean±std)"."""
    return re.sub(r"\(?(?:mean ?)?(?:±|\+/?-) ?(?:std|sd|se|ci|\d\d ?%)?\)?", "", header_words(header)).strip()


def is_no_mean(header: str) -> bool:
    """Whether a header is of times or rates that are no mean of a step."""
    plain = _without_scatter(header)
    return _OTHER.search(plain) is not None or (_WHOLE.search(plain) is not None and _time_of(plain) is None)


def is_of_whole(header: str) -> bool:
    """Whether a header is of a time in seconds or more, and names neither a step nor an epoch."""
    plain = _without_scatter(header)
    found = None if _RATE.search(plain) or _OF_STEP.search(plain) else quantity_of(header)
    return found is not None and found[0] == STEP and found[1] >= 1


def quantity_of(header: str) -> PrintedQuantity | None:
    """The quantity in a header or a heading with its unit; None without."""
    plain = _without_scatter(header)
    if _OTHER.search(plain):
        return None
    if rate := _RATE.search(plain):
        per = numerals.SECONDS[rate["per"] if rate["per"] in numerals.SECONDS else rate["per"].rstrip("s")]
        if rate["what"].startswith("token"):
            return _TOKENS, 1 / per, False
        counted = rate["what"].startswith(("im", "inf", "sample", "example", "frame", "picture"))
        return (IMAGES, 1 / per, False) if counted else (STEP, per, True)
    if _FPS.search(plain):
        return IMAGES, 1.0, False
    if each := _TIME_EACH.search(plain):
        seconds = numerals.SECONDS[each["unit"]]
        return ("median_epoch_s" if each["what"] == "epoch" else STEP), seconds, False
    if of_image := _TIME_OF_IMAGE.search(plain) or _OF_IMAGE_TIME.search(plain):
        unit = of_image["unit"]
        return IMAGES, 1 / (numerals.SECONDS.get(unit) or numerals.SECONDS[unit.rstrip("s")]), True
    return _time_of(plain)


def _time_of(plain: str) -> PrintedQuantity | None:
    """The time in a plain header that ends with its unit: of an epoch, or of a step; None of a whole training."""
    unit = _UNIT.search(plain) or _UNIT_IN_BRACKETS.search(plain)
    if unit is None:
        return None
    seconds = numerals.SECONDS.get(unit["unit"]) or numerals.SECONDS[unit["unit"].rstrip("s")]
    if _EPOCH.search(plain):
        return "median_epoch_s", seconds, False
    return None if seconds > 1 or (seconds == 1 and _WHOLE.search(plain)) else (STEP, seconds, False)


def quantity_of_unit(unit: str) -> PrintedQuantity | None:
    """The quantity of numbers of which a unit alone is said: "ms", "img/s"."""
    return quantity_of(f"time ({unit})") or quantity_of(unit)


def is_unit(text: str) -> bool:
    """Whether a text is a unit of times or rates, and nothing else."""
    return re.fullmatch(_UNIT_ALONE, header_words(text)) is not None


def is_unit_of_column(text: str) -> bool:
    """Whether a person may say it of a column: also microseconds, and times of a step (s/it)."""
    plain = header_words(text)
    of_time = plain in numerals.SECONDS or _TIME_EACH.fullmatch(plain) or _TIME_OF_IMAGE.fullmatch(plain)
    return is_unit(text) or bool(of_time)


def units_in(cells: Iterable[str]) -> list[str]:
    """The units that stand behind the numbers of cells, the most frequent first."""
    return [unit for unit, _ in Counter(filter(None, map(unit_of_cell, cells))).most_common()]


def is_of_other_quantity(headings: Sequence[str]) -> bool:
    """Whether the nearest heading with a quantity or a unit is of none that is read: "Memory usage (MiB)"."""
    for text in reversed(headings):
        plain = header_words(_MEMORY_OF_CARD.sub("", text))
        if _OTHER_QUANTITY.search(plain):
            return True
        if quantity_of(plain) or re.search(r"\b(?:speed|throughput|latency|time)\b", plain):
            return False
    return False


def quantity_in_paragraphs(texts: Iterable[str]) -> tuple[PrintedQuantity | None, str]:
    """The only quantity that paragraphs say with its unit, but for those of a number, and the words that say it.

    >>> quantity_in_paragraphs(["Times in milliseconds per minibatch."])[0]
    ('step_s', 0.001, False)
    """
    found: dict[PrintedQuantity, str] = {}
    for text in texts:
        plain = header_words(text.replace("-", " "))
        for match in _UNIT_IN_PROSE.finditer(plain):
            words = "images per second" if match["rate"] else match["of"] or f"time ({match['time']})"
            if quantity := quantity_of(words):
                found.setdefault(quantity, match[0])
    return next(iter(found.items())) if len(found) == 1 else (None, "")


def quantity_of_headings(headings: Sequence[str]) -> tuple[PrintedQuantity | None, str]:
    """The quantity of the nearest heading with a unit, which is the last, and that heading.

    A heading of another quantity, or of two, ends the search.
    """
    for text in reversed(headings):
        plain = header_words(_MEMORY_OF_CARD.sub("", text))
        parts = [words for part in re.split(r"[,;:()\[\]]| [-–—] ", text) if (words := header_words(part))]
        units = [part for part in parts if is_unit(part)]
        if _OTHER_QUANTITY.search(plain) or len(units) > 1:
            break
        if units and not any(quantity_of(part) for part in parts if part not in units):
            return quantity_of_unit(units[0]), text
    return None, ""
