"""The facts in a file's name, in headings, and in the paragraphs beside a table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tsuishi.extras.tables.hardware_names import hardware_in
from tsuishi.extras.tables.printed_values import COUNTS, FRAMEWORKS, PrintedValues, count_in, framework_words
from tsuishi.specs.case import BATCH_SIZE, DEVICES, IMAGE_SIZE, MODEL, Value
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.device_counts import counted_hardware
from tsuishi.specs.grids import MOST_WORDS

_PER_DEVICE = re.compile(
    r"\W{0,2}(?:images? |samples? )?(?:/|per|on each|for each|a) ?(?:gpu|device|card)\b", re.IGNORECASE
)
# Counts of devices in words; a number of them that is not said; and a number before a name: 4 V100s.
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
_IN_WORDS = re.compile(
    rf"\b({'|'.join(_NUMBERS)})(?= (?:(?-i:[A-Z0-9])\S* ){{0,3}}(?:gpus?|cards?|devices?)\b)", re.IGNORECASE
)
_SEVERAL = re.compile(r"\b(?:multi(?:ple)?|several|many) ?(?:gpus?|cards|devices)\b", re.IGNORECASE)
_COUNT_BEFORE = re.compile(r"(\d{1,2}) ([A-Za-z].*?)s?$")
# A text that names hardware for another reason.
_NOT_OF_HERE = re.compile(r"\b(?:than|thanks?|donat\w+|unlike|compared)\b", re.IGNORECASE)
_IMAGE_SIZE = re.compile(r"\b(\d{2,4}) ?[x×] ?\1\b")
_SEVERAL_NODES = re.compile(r"\b(?:[2-9]|\d{2,}) (?:nodes|machines|servers)\b", re.IGNORECASE)
# A paragraph between two tables that is about the second.
_OF_WHAT_FOLLOWS = re.compile(r"\b(?:below|following|next)\b|:$", re.IGNORECASE)
# Releases in a name or a heading.
_RELEASES = {
    "pytorch": re.compile(r"(?:pytorch ?|torch ?|\bpt)(\d+\.\d+(?:\.\d+)?|[12]\d{2})\b", re.IGNORECASE),
    "tensorflow": re.compile(r"(?:tensorflow|keras) ?(\d+\.\d+(?:\.\d+)?)\b", re.IGNORECASE),
    "cuda": re.compile(r"(?:\bcu|cuda ?)(\d+\.\d+|\d{3})\b", re.IGNORECASE),
}
# Data sets of images of 32 pixels, or 28.
SMALL_IMAGES = re.compile(r"\b(?:cifar|(?:fashion-?)?mnist|svhn)(?:[- ]?100?)?\b", re.IGNORECASE)


@dataclass
class NamedFacts:
    """The facts in a name or a heading: axes, software by name, hardware; and values of axes that no case here has."""

    case: dict[str, Value] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)
    hardware: str = ""
    framework: str = ""
    refused: list[str] = field(default_factory=list)
    evidence: list[tuple[str, str]] = field(default_factory=list)
    # The nearest text with hardware names more than one. The data set of small images that a text names.
    names_several: bool = False
    small_images: str = ""
    # Whether the batch size is that of each device.
    batch_per_device: bool = False
    # The axes that a sentence says, which may be about something else.
    by_sentence: set[str] = field(default_factory=set)


def named_facts(
    name: str,
    headings: Sequence[str],
    values: PrintedValues,
    sheets: Sequence[DataSheet],
    notes: Sequence[Sequence[str]] = (),
    remarks: Sequence[str] = (),
    address: str = "",
    paragraphs: dict[str, NamedFacts] | None = None,
) -> NamedFacts:
    """The facts in the name of a file, without its ending, and in the headings above a table: the nearest counts.

    Of paragraphs (`notes`, the nearest group first) counts what all of a group say alike; of those below a table
    (`remarks`) what is not as usual, which refuses the table; of an address the framework. paragraphs: the facts of
    texts of earlier tables, to which those of this table are added, as many tables may have the same paragraphs.
    """
    found = NamedFacts()
    for text in (*reversed(headings), name):
        _take_facts(found, text, values, sheets, is_name=text is name)
    known = {} if paragraphs is None else paragraphs
    for text in {text for group in notes for text in group} - known.keys():
        known[text] = NamedFacts()
        _take_facts(known[text], text, values, sheets, is_name=False)
    for group in notes:
        _take_notes(found, {text: known[text] for text in group}, values)
    for text in remarks:
        if _OF_WHAT_FOLLOWS.search(text):
            continue
        found.small_images = found.small_images or _small_images(text)
        counts = {count_in(each) for each in COUNTS[DEVICES].finditer(text)} - {"1"}
        if counts and DEVICES not in found.case:
            found.refused.append(f"{DEVICES} {' or '.join(sorted(counts))}, below the table")
        for axis, printed in values.within(text)[0].items():
            is_said = axis in found.case or axis not in ("precision", "execution")
            if not is_said and values(axis, printed) != values.usual(axis):
                found.refused.append(f"{axis} {printed}, below the table")
    of_address = re.sub(r"\bpt\b", "", address)
    if len({FRAMEWORKS[word] for word in framework_words(of_address)}) == 1:
        _take_framework(found, of_address)
    return found


def _take_notes(found: NamedFacts, notes: Mapping[str, NamedFacts], values: PrintedValues) -> None:
    """Take what the paragraphs beside a table say, where no heading does, and all of them say the same."""
    said = notes.values()
    frameworks = [word for text in notes for word in framework_words(text)]
    if len({FRAMEWORKS[word] or word for word in frameworks}) == 1:
        _take_framework(found, frameworks[0])
    hardware = {each.hardware for each in said if each.hardware}
    if not found.hardware and len(hardware) == 1 and not any(each.names_several for each in said):
        found.hardware = hardware.pop()
        found.evidence.append((found.hardware, "hardware, in a paragraph"))
    for axis in (BATCH_SIZE, DEVICES, "mode", "precision", "execution"):
        texts = [f"{axis} {each.case[axis]}" for each in said if axis in each.case]
        if axis not in COUNTS:
            texts += [refused for each in said for refused in each.refused if refused.startswith(f"{axis} ")]
        of_several = dict.fromkeys(part for text in texts for part in text.removeprefix(f"{axis} ").split(" or "))
        if not texts or (len(of_several) > 1 and all(values(axis, part) is not None for part in of_several)):
            continue
        printed = " or ".join(of_several)
        value = int(printed) if axis in COUNTS else values(axis, printed)
        if _take_value(found, axis, printed, value):
            found.by_sentence.add(axis)
            if axis == BATCH_SIZE:
                found.batch_per_device = any(each.batch_per_device for each in said)
    found.small_images = found.small_images or next((each.small_images for each in said if each.small_images), "")


def _take_facts(
    found: NamedFacts, text: str, values: PrintedValues, sheets: Sequence[DataSheet], is_name: bool
) -> None:
    _take_hardware(found, text, sheets, is_name)
    # In a name 32-224 are two numbers; in a sentence they are a range.
    spaced = re.sub(r"[_-]+" if is_name else r"_+|-+(?!\d)|(?<!\d)-+", " ", text)
    spaced = _IN_WORDS.sub(lambda of: str(_NUMBERS.index(of[1].lower()) + 1), spaced)
    _take_counts(found, spaced, is_name)
    for name, version in _RELEASES.items():
        for release in version.finditer(spaced):
            found.software.setdefault(name, _dotted(name, release[1]))
    _take_framework(found, spaced)
    found.small_images = found.small_images or _small_images(text)
    said = values.within(text, is_name)[0]
    is_sentence = not is_name and len(text.split()) > MOST_WORDS
    network = "" if is_sentence or MODEL in said else values.network_in(text)
    if network:
        said[MODEL] = network
    elif network is None and MODEL not in found.case:
        found.refused.append(f"{MODEL} {text}")
    for axis, printed in said.items():
        if _take_value(found, axis, printed, values(axis, printed)) and is_sentence:
            found.by_sentence.add(axis)


def _take_counts(found: NamedFacts, spaced: str, is_name: bool) -> None:
    """Take devices, batch size and image size, where no nearer text says them and this text says one number."""
    if several := _SEVERAL.search(spaced) or _SEVERAL_NODES.search(spaced):
        found.refused.append(f"{DEVICES} {several[0]}")
    patterns = COUNTS if is_name else {**COUNTS, IMAGE_SIZE: _IMAGE_SIZE}
    for axis, pattern in patterns.items():
        counts = [*pattern.finditer(spaced)]
        numbers = {int(count_in(each)) for each in counts} - {0}
        if axis in found.case or len(numbers) != 1:
            continue
        (found.case[axis],) = numbers
        behind = spaced[counts[0].end() :]
        found.batch_per_device |= axis == BATCH_SIZE and _PER_DEVICE.match(behind) is not None
        found.evidence.append((counts[0][0], f"{axis} = {found.case[axis]}"))


def _small_images(text: str) -> str:
    small = SMALL_IMAGES.search(text)
    return small[0] if small else ""


def _take_hardware(found: NamedFacts, text: str, sheets: Sequence[DataSheet], is_name: bool) -> None:
    """Take the hardware of a text, where no nearer text names any."""
    if found.hardware or found.names_several or _NOT_OF_HERE.search(text):
        return
    hardware = hardware_in(text, sheets, is_name)
    count = 0
    if hardware and (counted := _COUNT_BEFORE.match(hardware)):
        count, hardware = int(counted[1]), counted[2]
    elif hardware and not is_name:
        count, _ = counted_hardware(text)
    if count and DEVICES not in found.case:
        found.case[DEVICES] = count
        found.evidence.append((text, f"{DEVICES} = {count}"))
    found.hardware, found.names_several = hardware or "", hardware is None
    if found.hardware:
        found.evidence.append((found.hardware if is_name else text, f"hardware: {found.hardware}"))
    elif found.names_several:
        found.evidence.append((text, "several cards or processors: --hardware says which"))


def _take_framework(found: NamedFacts, text: str) -> None:
    """Take the framework of a text, where no nearer text has one; a text with two refuses the table."""
    words = framework_words(text)
    word = next(iter(words), "")
    if found.framework or any(refused.startswith("framework ") for refused in found.refused):
        return
    if len({FRAMEWORKS[each] or each for each in words}) > 1:
        found.refused.append(f"framework {' or '.join(words)}")
    elif word:
        found.framework = FRAMEWORKS[word] or word
        found.evidence.append((word, f"framework = {found.framework}"))
        if not FRAMEWORKS[word]:
            found.refused.append(f"framework {word}")


def _take_value(found: NamedFacts, axis: str, printed: str, value: Value | None) -> bool:
    """Take a value of an axis, where no nearer text gives one; whether it was taken."""
    if axis in found.case or any(refused.startswith(f"{axis} ") for refused in found.refused):
        return False
    if value is None:
        found.refused.append(f"{axis} {printed}")
        found.evidence.append((printed, f"{axis}: no case here"))
    else:
        found.case[axis] = value
        found.evidence.append((printed, f"{axis} = {value}"))
    return value is not None


def _dotted(name: str, text: str) -> str:
    """A release with its dots: cu117 is CUDA 11.7, pt113 is 1.13, pt240 is 2.4.0."""
    if "." in text:
        return text
    if name == "cuda":
        return f"{text[:2]}.{text[2:]}"
    return f"1.{text[1:]}" if text[0] == "1" else f"{text[0]}.{text[1]}.{text[2]}"
