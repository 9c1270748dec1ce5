"""Names of processors, cards and machines in what people print."""

import re
from collections.abc import Sequence

from tsuishi.extras.tables.printed_quantities import plain
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.grids import MOST_WORDS

# Words of the names of processors and machines.
_HARDWARE = re.compile(
    r"\b(?:titan|gtx|rtx|tesla|quadro|geforce|dgx|nvidia|amd|intel|(?:\d+x)?[vahpb]\d00\w?|t4|k[48]0|k520|l40?s?|a10g?|a[234]0|a2|a[2456][05]00|p40?|p6000|m[46]0|t1000"
    r"|[1-5]0[5-9]0(?: ?ti)?|mi\d{2,3}[ax]?|radeon|rx ?\d{3,4}|xeon|i[3579]|ryzen|epyc|threadripper|jetson|tpu|cortex"
    r"|xavier|orin|raspberry|graviton|apple|m[1-4]|cpu|[a-z]\d[a-z]*\.\w*(?:large|metal))\b",
    re.IGNORECASE,
)
# Words of such a name, all that it may have: a number, and these; and those of makers, which alone name no product.
_MAKERS = re.compile(r"nvidia|amd|intel|apple|google|arm", re.IGNORECASE)
_OF_HARDWARE = re.compile(
    rf"{_MAKERS.pattern}|geforce|tesla|quadro|titan|rtx|gtx|radeon|rx|arc|xeon|gold|silver|platinum|ryzen|epyc|core|ti|super"
    r"|threadripper|aws|ec2|x?large|metal|maxwell|pascal|volta|turing|ampere|hopper|kepler|lovelace|blackwell|xp|xt|xtx|pcie|sxm|nvl|max|pro|jetson|nano|xavier|orin|agx|dgx|station|tpu|cortex|raspberry|pi|graviton"
    r"|cpu|nx|ada|hgx|laptop|mobile|ultra|mini|generation|[vxz]|(?!fp\d|bf16|tf32|int[48]|bs\d)\w*\d\w*",
    re.IGNORECASE,
)
# Signs of trade, which are no part of a name; and those that end a name in a heading.
_TRADE, _ENDS_NAME = re.compile(r"\((?:r|tm)\)|[®™]", re.IGNORECASE), re.compile(r"[,;:()\[\]|/]| - | [-–—] ")
# Words of GPUs and of CPUs.
KINDS = {
    "gpu": r"(?:\d+x)?(?:(?:gtx|rtx|titan|tesla|quadro|geforce|radeon|dgx)\w*|[vahpb]\d00\w?|[tk]\d0?|l40s?|a10g?"
    r"|mi\d+)",
    "cpu": r"cpu|xeon|core(?= i[3579]| ?\(|$)|i[3579]|ryzen|epyc|threadripper|graviton|cortex",
}


def is_hardware(text: str) -> bool:
    """Whether a text has a word of the names of processors and machines."""
    return plain(text) != "cpu" and _HARDWARE.search(text.replace("_", " ")) is not None


def names_of_hardware(text: str) -> list[str]:
    """The names of cards and processors in a text, each once: runs of words that such names have.

    >>> names_of_hardware("GTX 1080 > Maxwell Titan X"), names_of_hardware("Training, PyTorch, V100, fp32")
    (['GTX 1080', 'Maxwell Titan X'], ['V100'])
    """
    found = dict[str, str]()
    for part in _ENDS_NAME.split(_TRADE.sub("", text)):
        run = list[str]()
        for word in [*part.split(), ""]:
            if word and all(map(_OF_HARDWARE.fullmatch, re.findall(r"[\w.]+|[^\w\s.@-]", word))):
                run.append(word)
                continue
            name = " ".join(run).strip(" .-@")
            own = [each for each in run if not _MAKERS.fullmatch(each)]
            if name and _HARDWARE.search(name) and own and any(map(_HARDWARE.search, own)):
                found.setdefault(plain(name), name)
            run = []
    return list(found.values())


def is_word_of_hardware(word: str) -> bool:
    """Whether a word may stand in the name of a processor or a card, as a number may."""
    return _OF_HARDWARE.fullmatch(word) is not None


def is_hardware_alone(text: str) -> bool:
    """Whether a text is the name of a card or processor and nothing else: "V100 price ($)" is not."""
    return is_hardware(text) and all(map(_OF_HARDWARE.fullmatch, re.findall(r"\w+|[^\w\s()/.,-]", text)))


def hardware_in(text: str, sheets: Sequence[DataSheet], is_name: bool) -> str | None:
    """The hardware that a text names: a card of a data sheet, a CPU in a file's name, or a name in a heading.

    None where it names several: the numbers may be of any of them.
    """
    cards = _cards(text, sheets)
    if cards:
        return cards[0] if len(cards) == 1 else None
    if is_name:
        cpu = re.search(r"(?:^|[-_])cpu(?:[-_](\w+))?", text)
        return " ".join(filter(None, ["CPU", cpu[1]])) if cpu else ""
    parts = [part.strip() for part in re.split(r":| - ", text)]
    if whole := next((part for part in reversed(parts) if is_hardware_alone(part)), ""):
        return whole if len(whole.split()) <= MOST_WORDS else ""
    names = names_of_hardware(text)
    return None if len(names) > 1 else (names or [""])[0]


def _cards(text: str, sheets: Sequence[DataSheet]) -> list[str]:
    """The cards of data sheets that a text names, with or without their family; a longer name hides its parts."""
    there = plain(text)
    names = {name for sheet in sheets for name in sheet.names}
    short = {plain(re.sub(r"^(?:GeForce|Tesla|NVIDIA|Quadro) ", "", name)): name for name in names}
    found = [key for key in short if len(key) > 3 and key in there]
    if found:
        whole = [key for key in found if not any(key != other and key in other for other in found)]
        return [short[key] for key in sorted(whole, key=there.index)]
    # "…-cu130-5090": the number alone, where one card has it.
    numbers = re.findall(r"(?<![\w.])\d{4}(?![\w.])", text)
    return [name for name in sorted(names) if name.rpartition(" ")[2] in numbers]


def kind_of_hardware(title: str) -> str:
    """Whether hardware is a "gpu" or a "cpu", by words of its title; empty where it has words of both, or of none."""
    kinds = [kind for kind, known in KINDS.items() if re.search(rf"(?i)(?:\b|_)(?:{known})(?:\b|_)", title)]
    return kinds[0] if len(kinds) == 1 else ""
