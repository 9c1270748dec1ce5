"""Counts of devices in what people print: "8x A100", "A100 (4 GPUs)"."""

import re

# Names in which such a count is of cores of a CPU, or of lanes.
_CORES_OR_LANES = re.compile(r"\b(?:xeon|epyc|ryzen|i[3579]|core|cpu|pcie x\d+)\b", re.IGNORECASE)
# A number before "GPUs", but for the end of a name: GTX 980 GPUs, CUDA 10 GPU, ResNet 50 GPU.
_BEFORE_NUMBERS = "gtx rtx geforce radeon rx titan quadro tesla arc batch size bs cuda python net vgg inception"
COUNT_OF_DEVICES = "".join(f"(?<!{word} )" for word in _BEFORE_NUMBERS.split(" ")) + r"(\d{1,3}|1024|2048|4096)"
# A count of cards in the name of hardware: 8x A100, 4 x V100, 2080 Ti x2, A100 (4 GPUs); or a text of nothing else: 4x.
_COUNT_OF_CARDS = re.compile(
    r"(?<![\w.])(\d{1,3}) ?[x×*](?: ?(?=[a-z])|$)|^(\d{1,2}) (?=[a-z])(?!(?:gpus?|cards)\b)"
    r"|(?<=[\w)])(?:(?: +\(?|\()[x*] ?| ?\(?× ?)(\d{1,3})\)?(?![\w.])(?! ?\.?\d)"
    rf"|[(,]? ?\b{COUNT_OF_DEVICES} ?(?:gpus?|cards)\b\)?|^[x×] ?(\d{{1,3}})$",
    re.IGNORECASE,
)


def counted_hardware(text: str) -> tuple[int, str]:
    """The count of cards in a name of hardware, 0 without, and the name of a card: 8x A100 is (8, "A100")."""
    spaced = text.replace("_", " ")
    found = _COUNT_OF_CARDS.search(spaced)
    if found is None or _CORES_OR_LANES.search(spaced):
        return 0, text
    left = f"{text[: found.start()]} {text[found.end() :]}"
    return int(next(filter(None, found.groups()))), " ".join(left.split()).strip(" ,-_")
