"""Our values of axes for the texts that people print, and the facts in a file's name, a heading or a header."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, Value
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.specs.zoo_names import LIBRARIES, names_of

# Stands for a value that is known, and that no case here has.
NOT_HERE = "{} (no case here)"
# So many networks of a library make a column that of the library.
_FEWEST_OF_LIBRARY = 5
# Counts in a name or a heading, by axis; spaces stand for '_' and '-'.
_COUNTS = {
    DEVICES: re.compile(r"(?<![\w.])(\d{1,2}) ?(?:x (?=(?-i:[A-Z]))|(?:x )?gpus?(?![a-z]))", re.IGNORECASE),
    BATCH_SIZE: re.compile(r"\b(?:batch(?: ?size)?|bs)\W{0,3}(\d{1,15})\b", re.IGNORECASE),
}
# Counts in the header of a column. In a heading, cores are those that a machine has.
_COUNTS_IN_HEADER = {**_COUNTS, "cpus": re.compile(r"\b(\d+) ?(?:cpu )?cores?\b", re.IGNORECASE)}
COUNTED = frozenset(_COUNTS_IN_HEADER)
# Releases in a name or a heading.
_RELEASES = {
    "pytorch": re.compile(r"(?:pytorch ?|torch ?|\bpt)(\d+\.\d+(?:\.\d+)?|[12]\d{2})\b", re.IGNORECASE),
    "tensorflow": re.compile(r"(?:tensorflow|keras) ?(\d+\.\d+(?:\.\d+)?)\b", re.IGNORECASE),
    "cuda": re.compile(r"(?:\bcu|cuda ?)(\d+\.\d+|\d{3})\b", re.IGNORECASE),
}
# Words for frameworks, with ours; those without one are not here.
_FRAMEWORKS = {
    **dict.fromkeys(("pytorch", "torch", "torchvision"), "torch"),
    **dict.fromkeys(("tensorflow", "keras"), "tensorflow"),
    **{name: name for name in ("mxnet", "chainer", "jax")},
    **dict.fromkeys(("caffe", "caffe2", "cntk", "theano", "paddle", "mindspore", "darknet"), ""),
}
# Words of the names of processors and machines.
_HARDWARE = re.compile(
    r"\b(?:titan|gtx|rtx|tesla|quadro|geforce|dgx|nvidia|amd|intel|(?:\d+x)?[vahpb]\d00\w?|t4|k[48]0|l40?s?|a10g?|a40|a6000|p4"
    r"|[1-5]0[5-9]0(?: ?ti)?|mi\d{2,3}[ax]?|radeon|rx ?\d{3,4}|xeon|i[3579]|ryzen|epyc|threadripper|jetson|tpu|cortex"
    r"|xavier|orin|raspberry|graviton|apple|m[1-4]|cpu)\b",
    re.IGNORECASE,
)
# Words of such a name, all that it may have: a number, and these.
_OF_HARDWARE = re.compile(
    r"nvidia|amd|intel|apple|geforce|tesla|quadro|titan|rtx|gtx|radeon|rx|arc|xeon|gold|silver|ryzen|epyc|core|ti|super|xp"
    r"|xt|xtx|pcie|sxm|max|pro|jetson|nano|xavier|orin|agx|[vxz]|\w*\d\w*",
    re.IGNORECASE,
)
# A heading with more words is a sentence, and no name of hardware.
_MOST_WORDS = 8
# A value of an axis has no more words: "torch compile default".
_MOST_TOKENS = 3
# Words of a header that are part of no network's name: quantities, units, statistics.
_OF_QUANTITIES = re.compile(
    r"(?:throughput|speed|latency|time|step|iteration|performance|avg|average|mean|median|total|ms|msec|us|s|sec|secs|seconds?"
    r"|img|imgs|images?|samples?|it|its|fps|batch|per|in|of|for|the|on|with)",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """A text in lower case, its letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def is_hardware(text: str) -> bool:
    """Whether a text has a word of the names of processors and machines."""
    return plain(text) != "cpu" and _HARDWARE.search(text.replace("_", " ")) is not None


def is_hardware_alone(text: str) -> bool:
    """Whether a text is the name of a card or processor and nothing else: "V100 price ($)" is not."""
    return is_hardware(text) and all(map(_OF_HARDWARE.fullmatch, re.findall(r"\w+|[^\w\s()/.,-]", text)))


class PrintedValues:
    """Our values for printed texts."""

    def __init__(self, words: Vocabulary, libraries: Sequence[str] = LIBRARIES) -> None:
        self._libraries = libraries
        self._models = {plain(value): value for value in words.axes[MODEL].values}
        self._axes = words.axes
        # Our value by text and axis; empty where no case has the value, or it may be several.
        self._values: dict[str, dict[str, str]] = {}
        for name, axis in words.axes.items():
            known = {text: value for value, texts in axis.printed.items() for text in (plain(value), *texts)}
            if known:
                self._values[name] = {**known, **dict.fromkeys(axis.printed_elsewhere, "")}

    def __call__(self, axis: str, text: str) -> Value | None:
        """Our value for a printed text; None where there is none."""
        if axis == MODEL:
            # "resnet50 (ms)": a unit stands behind the name. "ResNet-50 (FP16)" is of another axis, too.
            name, bracket, rest = re.match(r"([^(\[]*)([(\[]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
            behind = self.within(rest)[0] if bracket else {}
            return self._models.get(plain(text)) or (None if behind else self._models.get(plain(name)))
        if axis in self._values:
            return self._values[axis].get(plain(text)) or None
        number = re.fullmatch(r"\D*?(\d{1,15})(?:\.0)?\s*(?:x\s*)?(?:gpus?|images)?", text.strip().lower())
        return int(number[1]) if axis in self._axes and self._axes[axis].is_number and number else None

    def library_of(self, texts: Sequence[str]) -> tuple[str, int]:
        """(the library that has most of these names of networks that suites have not, how many); else ("", 0).

        Names such as "vgg16" are those of several libraries: five have to be there.
        """
        counted = {name: sum(text in names_of(name)[1] for text in texts) for name in self._libraries}
        best = max(counted, key=lambda name: counted[name], default="")
        return (best, counted[best]) if best and counted[best] >= _FEWEST_OF_LIBRARY else ("", 0)

    def renamed(self, axis: str, texts: Iterable[str]) -> dict[str, Value]:
        """The texts that differ from our values, with these."""
        found: dict[str, Value] = {}
        for text in texts:
            value = self(axis, text)
            if value is None and plain(text) in self._values.get(axis, {}):
                value = NOT_HERE.format(text)
            if value is not None and str(value) != text:
                found[text] = value
        return found

    def axis_of(self, texts: Sequence[str]) -> str:
        """The axis of which all of these texts are values; empty without."""
        known = {*map(plain, texts)}
        return next((axis for axis, values in self._values.items() if known and known <= values.keys()), "")

    def in_header(self, text: str) -> tuple[dict[str, str], str]:
        """As `within`, and with counts: "bs=4", "2 GPUs", "4 cores (ms)"."""
        counts: dict[str, str] = {}
        for axis, pattern in _COUNTS_IN_HEADER.items():
            if axis in self._axes and (count := pattern.search(text)):
                counts[axis] = count[1]
                text = f"{text[: count.start()]} {text[count.end() :]}"
        case, left = self.within(text)
        return counts | case, left if case or not counts else " ".join(left.split())

    def within(self, text: str) -> tuple[dict[str, str], str]:
        """The texts of axes in a header, by axis, and the words that are left.

        "vgg16 eval" has a model and a mode; "Throughput - mixed precision" has a precision.
        """
        tokens = [token for token in re.split(r"[\s/,;:+&()\[\]_-]+", text.strip()) if token]
        case: dict[str, str] = {}
        left: list[str] = []
        index = 0
        while index < len(tokens):
            size, axis = self._next(tokens[index : index + _MOST_TOKENS])
            if axis and axis not in case:
                case[axis] = " ".join(tokens[index : index + size])
            else:
                left += tokens[index : index + size]
            index += size
        names = [token for token in left if not _OF_QUANTITIES.fullmatch(token)]
        if plain("".join(names)) in self._models:
            return {MODEL: " ".join(names), **case}, ""
        return case, (" ".join(names) if case else text)

    def case_of(self, text: str) -> dict[str, Value]:
        """The axes that a text of nothing but their values stands for: "AMP, NHWC"; else empty."""
        case, left = self.within(text)
        values = {axis: self(axis, printed) for axis, printed in case.items()}
        return (
            {axis: value for axis, value in values.items() if value is not None}
            if not left and all(values.values())
            else {}
        )

    def _next(self, tokens: Sequence[str]) -> tuple[int, str]:
        """The axis that the first tokens give a value of, and how many these are; else one token, and none."""
        for size in range(len(tokens), 0, -1):
            text = plain("".join(tokens[:size]))
            if axis := next((axis for axis, known in self._values.items() if text in known), ""):
                return size, axis
        return 1, ""


@dataclass
class NamedFacts:
    """The facts in a name or a heading: axes, software by name, hardware; and values of axes that no case here has."""

    case: dict[str, Value] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)
    hardware: str = ""
    framework: str = ""
    refused: list[str] = field(default_factory=list)
    evidence: list[tuple[str, str]] = field(default_factory=list)


def named_facts(name: str, headings: Sequence[str], values: PrintedValues, sheets: Sequence[DataSheet]) -> NamedFacts:
    """The facts in the name of a file, without its ending, and in the headings above a table: the nearest counts."""
    found = NamedFacts()
    for text in (*reversed(headings), name):
        _take_facts(found, text, values, sheets, is_name=text is name)
    return found


def _take_facts(
    found: NamedFacts, text: str, values: PrintedValues, sheets: Sequence[DataSheet], is_name: bool
) -> None:
    if not found.hardware:
        found.hardware = _hardware_of(text, sheets, is_name)
        if found.hardware:
            found.evidence.append((found.hardware if is_name else text, f"hardware: {found.hardware}"))
    spaced = re.sub(r"[_-]+", " ", text)
    for axis, pattern in _COUNTS.items():
        count = pattern.search(spaced)
        if count and axis not in found.case:
            found.case[axis] = int(count[1])
            found.evidence.append((count[0], f"{axis} = {count[1]}"))
    for name, version in _RELEASES.items():
        for release in version.finditer(spaced):
            found.software.setdefault(name, _dotted(name, release[1]))
    _take_framework(found, spaced)
    for axis, printed in values.within(text)[0].items():
        _take_value(found, axis, printed, values(axis, printed))


def _take_framework(found: NamedFacts, text: str) -> None:
    """Take the first framework of a text, where no nearer text has one."""
    word = next((word for word in re.findall(r"[a-z]+2?", text.lower()) if word in _FRAMEWORKS), "")
    if word and not found.framework:
        found.framework = _FRAMEWORKS[word] or word
        found.evidence.append((word, f"framework = {found.framework}"))
        if not _FRAMEWORKS[word]:
            found.refused.append(f"framework {word}")


def _take_value(found: NamedFacts, axis: str, printed: str, value: Value | None) -> None:
    """Take a value of an axis, where no nearer text gives one."""
    if axis in found.case or any(refused.startswith(f"{axis} ") for refused in found.refused):
        return
    if value is None:
        found.refused.append(f"{axis} {printed}")
        found.evidence.append((printed, f"{axis}: no case here"))
    else:
        found.case[axis] = value
        found.evidence.append((printed, f"{axis} = {value}"))


def _hardware_of(text: str, sheets: Sequence[DataSheet], is_name: bool) -> str:
    """The hardware that a text names: a card of a data sheet, a CPU in a file's name, or a part of a heading."""
    if card := _card(text, sheets):
        return card
    if is_name:
        cpu = re.search(r"(?:^|[-_])cpu(?:[-_](\w+))?", text)
        return " ".join(filter(None, ["CPU", cpu[1]])) if cpu else ""
    parts = (part.strip() for part in reversed(re.split(r":| - ", text)))
    return next((part for part in parts if is_hardware(part) and len(part.split()) <= _MOST_WORDS), "")


def _dotted(name: str, text: str) -> str:
    """A release with its dots: cu117 is CUDA 11.7, pt113 is 1.13, pt240 is 2.4.0."""
    if "." in text:
        return text
    if name == "cuda":
        return f"{text[:2]}.{text[2:]}"
    return f"1.{text[1:]}" if text[0] == "1" else f"{text[0]}.{text[1]}.{text[2]}"


def _card(text: str, sheets: Sequence[DataSheet]) -> str:
    """The card of a data sheet whose name stands in a text, with or without its family; the longest counts."""
    there = plain(text)
    names = {name for sheet in sheets for name in sheet.names}
    short = {plain(re.sub(r"^(?:GeForce|Tesla|NVIDIA|Quadro) ", "", name)): name for name in names}
    found = [key for key in short if len(key) > 3 and key in there]
    if found:
        return short[max(found, key=len)]
    # "…-cu130-5090": the number alone, where one card has it.
    numbers = re.findall(r"(?<![\w.])\d{4}(?![\w.])", text)
    alone = [name for name in names if name.rpartition(" ")[2] in numbers]
    return alone[0] if len(alone) == 1 else ""
