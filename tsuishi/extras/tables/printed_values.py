"""Our values of axes for the texts that people print, and the facts in a file's name, a heading or a header."""

import re
from collections.abc import Iterable, Sequence

from tsuishi.extras.tables.hardware_names import is_word_of_hardware, names_of_hardware
from tsuishi.extras.tables.printed_quantities import header_words, is_unit, plain
from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, Value
from tsuishi.specs.device_counts import COUNT_OF_DEVICES
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.specs.zoo_names import LIBRARIES, framework_of_library, name_in, names_of

# Stands for a value that is known, and that no case here has.
NOT_HERE = "{} (no case here)"
# So many networks of a library make a column that of the library.
_FEWEST_OF_LIBRARY = 5
# Counts in a name or a heading, by axis; spaces stand for '_' and '-'.
COUNTS = {
    DEVICES: re.compile(
        rf"(?<![\w.]){COUNT_OF_DEVICES}"
        r" ?(?:x (?=(?-i:[A-Z]))|(?:x )?(?: ?\b(?!gi?b\b|ti\b|super\b|series\b)(?-i:[A-Z])\w* ){0,3}gpus?(?![a-z]))"
        r"|\b(?:gpus|devices|gpu count|n gpus?) ?[:=] ?(\d{1,3})\b",
        re.IGNORECASE,
    ),
    BATCH_SIZE: re.compile(
        r"\b(?:(?:mini ?)?batch(?:es)?(?: ?sizes?)?|bs)(?: of| is| was| set to)?\W{0,3}(\d{1,15})\b"
        r"(?!\.\d| ?(?:to|and|,|or|/|-|–) ?\d)(?<!max \d)(?<!max \d\d)",
        re.IGNORECASE,
    ),
}
# Counts in the header of a column. In a heading, cores are those that a machine has.
_COUNTS_IN_HEADER = {**COUNTS, "cpus": re.compile(r"\b(\d+) ?(?:cpu )?cores?\b", re.IGNORECASE)}
# Words before a value, and behind it, that say that it is not so.
_NOT = {"without", "no", "not", "non", "sans", "never", "unlike", "than", "don't", "didn't"}
_OFF = {"off", "disabled", "false", "unused"}
_VERB = re.compile(r"is|are|was|were|do|does|did|uses?|used", re.IGNORECASE)
# A sentence about what is not so, or not yet: its words are no settings.
_SUPPOSED = re.compile(
    r"\b(?:would|could|should|might|may|can|try|todo|plan|soon|future|instead)\b|\[ \]", re.IGNORECASE
)
# What "single" and "double" count.
_COUNTABLE = re.compile(r"(?:gpu|node|card|machine|device|host|server|thread|core|batch|socket)s?", re.IGNORECASE)
_YES, _YES_OR_NO = re.compile(r"true|yes|y|on|1|✓|✔"), re.compile(r"true|yes|y|on|1|✓|✔|false|no|n|off|0|✗|-")
# What may stand in brackets behind the name of a network: a reference, and the usual size of images.
_ASIDE = re.compile(r"\d{1,3}\]|224(?: ?[x×] ?224)?(?: ?px)?\)|\)")
# What makes a network another behind its name; words that begin the names of networks.
_VARIANT = re.compile(r"v(?!1$|15$)\d+\w*|[cdst]|vd|d2|\d+x\d+d?|se|fpn|ssd|unet|\d+w?d?")
_ZOOS = ("torchvision", "keras")
_BUILT_ON = re.compile(
    r"\b(?:r-?cnn|retinanet|ssd(?:lite)?\d*|u-?net|deeplab\w*|fcn|fpn|yolo\w*|detr|encoder|backbone|moco|simclr|byol|pruned|sparse"
    r"|wide|se|distilled|quantized)\b",
    re.IGNORECASE,
)
_LIKE_NETWORK = re.compile(
    r"(?:res|vgg|dense|mobile|efficient|google|squeeze|shuffle|reg|alex)net|vgg|inception|vit|bert|gpt", re.IGNORECASE
)
COUNTED = frozenset(_COUNTS_IN_HEADER)
# Words for frameworks, with ours; those without one are not here.
FRAMEWORKS = {
    **dict.fromkeys(("pytorch", "torch", "torchvision", "pt"), "torch"),
    **dict.fromkeys(("tensorflow", "keras", "tf", "tf1", "tf2"), "tensorflow"),
    **{name: name for name in ("mxnet", "chainer", "jax")},
    "gluon": "mxnet",
    "flax": "jax",
    **dict.fromkeys(("torch7", "lua", "cunn", "fbfft", "cutorch"), ""),
    **dict.fromkeys(
        ("caffe", "caffe2", "cntk", "theano", "paddle", "paddlepaddle", "mindspore", "darknet", "matconvnet"), ""
    ),
    **dict.fromkeys(
        ("oneflow", "neon", "nervana", "lasagne", "tflearn", "tensorpack", "megengine", "tinygrad", "mlx"), ""
    ),
}
# A value of an axis has no more words: "torch compile default".
_MOST_TOKENS = 3
# Words of a header that are part of no network's name: quantities, units, statistics.
_OF_QUANTITIES = re.compile(
    r"(?:throughput|speed|latency|time|wall|clock|qps|fps|step|iteration|performance|avg|average|mean|median|total|ms|msec|us|s|sec|secs|seconds?"
    r"|img|imgs|images?|samples?|it|its|fps|batch|per|in|of|for|the|on|with)",
    re.IGNORECASE,
)


class PrintedValues:
    """Our values for printed texts."""

    def __init__(self, words: Vocabulary, libraries: Sequence[str] = LIBRARIES, framework: str = "") -> None:
        self._libraries = libraries
        # Where the framework is known, its own library needs no five names.
        self._own_library = {"torch": "torchvision", "tensorflow": "keras"}.get(framework, "")
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
            behind = bracket and not (is_unit(rest.strip(" )]")) or _ASIDE.fullmatch(rest))  # VGG16 (pruned) is another
            usual = re.sub(r"[ _-]*\(?v1\.5\)?$", "", text)  # everybody builds v1.5
            known = self._models.get(plain(text)) or self._models.get(plain(usual))
            return known or (None if behind else self._models.get(plain(name)))
        if axis in self._values:
            return self._values[axis].get(plain(text)) or None
        number = re.fullmatch(
            r"(?:batch(?: ?size)?|bs|gpus?|n|x)?\W*(\d{1,15})(?:\.0)?\s*(?:x\s*)?(?:gpus?|images|cores|threads|nodes)?",
            text.strip().lower(),
        )
        return int(number[1]) if axis in self._axes and self._axes[axis].is_number and number else None

    def library_of(self, texts: Sequence[str]) -> tuple[str, int]:
        """(the library that has most of these names of networks that suites have not, how many); else ("", 0).

        Names such as "vgg16" are those of several libraries: five have to be there, of the framework's own library one.
        """
        counted = {name: sum(name_in(name, text) != "" for text in {*texts}) for name in self._libraries}
        # Of libraries that have as many names, the spelling decides.
        exact = {name: sum(text in names_of(name)[1] for text in texts) for name in self._libraries}
        best = max(counted, key=lambda name: (counted[name], exact[name]), default="")
        most = counted.get(best), exact.get(best)
        frameworks = {framework_of_library(name) for name in counted if (counted[name], exact[name]) == most}
        if not self._own_library and len(frameworks) > 1:  # of Keras or of PyTorch: nothing says which
            return "", 0
        if best and counted[best] < _FEWEST_OF_LIBRARY and counted.get(self._own_library):
            best = self._own_library
        few = 1 if best == self._own_library else _FEWEST_OF_LIBRARY
        return (best, sum(name_in(best, text) != "" for text in texts)) if best and counted[best] >= few else ("", 0)

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
            if axis in self._axes and (count := pattern.search(text.replace("_", " "))):
                counts[axis] = count_in(count)
                text = f"{text[: count.start()]} {text[count.end() :]}"
        case, left = self.within(text)
        return counts | case, left if case or not counts else " ".join(left.split())

    def within(self, text: str, is_name: bool = False) -> tuple[dict[str, str], str]:
        """The texts of axes in a header, by axis, and the words that are left.

        "vgg16 eval" has a model and a mode; "Throughput - mixed precision" has a precision; "without AMP" the usual
        one. An everyday word ("single") counts beside "precision", in brackets, where nothing else is left, and in a
        file's name.
        """
        tokens = _tokens(text)
        found: list[tuple[str, int, int]] = []
        left: list[str] = []
        index = 0
        while index < len(tokens):
            size, axis = self._next(tokens[index : index + _MOST_TOKENS])
            if axis:
                found.append((axis, index, size))
            else:
                left += tokens[index : index + size]
            index += size
        names = [token for token in left if not _OF_QUANTITIES.fullmatch(token)]
        is_model = plain("".join(names)) in self._models
        is_label = (is_model or all(map(is_word_of_hardware, names))) and not _joined(tokens)
        if len(tokens) > 2 * _MOST_TOKENS and _SUPPOSED.search(text):
            return {}, text
        said: dict[str, list[str]] = {}
        for axis, at, size in found:
            printed = " ".join(tokens[at : at + size])
            everyday = plain(printed) in self._axes[axis].printed_everyday
            bracket = rf"[(\[]\s*{re.escape(printed)}\s*[)\]]"
            counted = tokens[at + size : at + size + 1]
            is_part = is_name and len(tokens) > 1 and not any(map(_COUNTABLE.fullmatch, counted))
            is_meant = is_part if is_name else is_label
            if everyday and not is_meant and not re.search(bracket, text):
                names += tokens[at : at + size]
            elif not _is_negated(tokens, at, size):
                said.setdefault(axis, []).append(printed)
            elif self._axes[axis].usual and axis != "mode":
                said.setdefault(axis, []).append(str(self._axes[axis].usual))
                names = [name for name in names if name.lower() not in _NOT | _OFF]
        # Of several values of an axis none is taken: their text is that of no value.
        case = {
            axis: texts[0] if len({self(axis, each) or each for each in texts}) == 1 else " or ".join(texts)
            for axis, texts in said.items()
        }
        if is_model:
            return {MODEL: " ".join(names), **case}, ""
        return case, (" ".join(names) if case else text)

    def switch(self, header: str, texts: Sequence[str]) -> dict[str, dict[str, Value]]:
        """The axes for yes and no under a header that is a value of an axis: "AMP", True and False; else empty.

        What is not as usual may be several things, so "FP32" without a yes has no axes.
        """
        case, left = self.within(header)
        values = {axis: value for axis, printed in case.items() if (value := self(axis, printed)) is not None}
        if left or len(values) != 1 or not texts or not all(_YES_OR_NO.fullmatch(text.lower()) for text in texts):
            return {}
        (axis,) = values
        usual = self._axes[axis].usual
        has_no = usual is not None and values[axis] != usual and axis != "mode"
        said = {text: _YES.fullmatch(text.lower()) is not None for text in texts}
        of_no = {axis: usual} if has_no and usual is not None else None
        of = {text: dict(values) if yes else of_no for text, yes in said.items()}
        return {text: axes for text, axes in of.items() if axes is not None}

    def usual(self, axis: str) -> Value | None:
        """The value of an axis that goes without saying."""
        return self._axes[axis].usual

    def unexplained(self, header: str) -> list[str]:
        """The words of a header that are no quantity, unit, axis, framework or hardware: "fused (ms/step)"."""
        if header_words(header).startswith("real time"):
            return []
        case, rest = self.in_header(header)
        left = rest if case else header
        names = " ".join(names_of_hardware(left)).split()
        return [
            token
            for token in _tokens(left)
            if not _OF_QUANTITIES.fullmatch(token) and not framework_words(token) and token not in names
        ]

    def network_in(self, text: str) -> str | None:
        """The only network of suites that a heading or a name has among its words.

        Empty without any; None of several, of a network that is not here, and of a detector around a network.
        """
        if _BUILT_ON.search(text):
            return None
        tokens, found = _tokens(text), dict[str, str]()
        index = 0
        while index < len(tokens):
            sizes = [size for size in (3, 2, 1) if index + size <= len(tokens)]
            names = {size: self._models.get(plain("".join(tokens[index : index + size]))) for size in sizes}
            size = next((size for size in sizes if names[size]), 1)
            behind = plain("".join(tokens[index + size : index + size + 1]))
            name = names[size]
            if name and not _VARIANT.fullmatch(behind):
                found.setdefault(name, " ".join(tokens[index : index + size]))
            elif name or _LIKE_NETWORK.match(tokens[index]) or any(name_in(each, tokens[index]) for each in _ZOOS):
                found.setdefault(tokens[index], "")
            index += size
        return "".join(found.values()) or (None if found else "") if len(found) < 2 else None

    def facts_of_cell(self, text: str) -> dict[str, Value] | None:
        """The axes of which a cell of words says values, as "AMP, NHWC"; None where it says what no case here has.

        Beside other words, these are precision, layout and execution alone.
        """
        printed, left = self.within(text)
        if left:
            printed = {axis: value for axis, value in printed.items() if axis in ("precision", "layout", "execution")}
        values = {axis: self(axis, value) for axis, value in printed.items()}
        if None in values.values() or any(not FRAMEWORKS[word] for word in framework_words(text)):
            return None
        return {axis: value for axis, value in values.items() if value is not None}

    def _next(self, tokens: Sequence[str]) -> tuple[int, str]:
        """The axis that the first tokens give a value of, and how many these are; else one token, and none."""
        for size in range(len(tokens), 0, -1):
            text = plain("".join(tokens[:size]))
            if not all(map(plain, tokens[:size])):
                continue
            if axis := next((axis for axis, known in self._values.items() if text in known), ""):
                return size, axis
        return 1, ""


def count_in(match: re.Match[str]) -> str:
    """The digits of a match of `COUNTS`."""
    return next(str(digits) for digits in match.groups() if digits is not None)


def _tokens(text: str) -> list[str]:
    return [
        token.rstrip(".")
        for token in re.split(
            r"[\s/,;:+&()\[\]_-]+", re.sub(r"\bw/(o\b)?", lambda of: f"with{'out' * bool(of[1])} ", text.strip())
        )
        if token
    ]


def _joined(tokens: Sequence[str]) -> bool:
    """Whether a text has words of a sentence: "double the batch"."""
    return any(token.lower() in ("the", "of", "a", "an", "our", "your", "is", "to") for token in tokens)


def _is_negated(tokens: Sequence[str], at: int, size: int) -> bool:
    before, behind = tokens[at - 1 : at], tokens[at + size : at + size + 1]
    is_sentence = len(tokens) > _MOST_TOKENS * 2 or any(map(_VERB.fullmatch, tokens))
    if is_sentence:  # "we do not use mixed precision", "AMP was not used"
        before, behind = tokens[max(0, at - 3) : at], tokens[at + size : at + size + 3]
    words = {*map(str.lower, before)}, {*map(str.lower, behind)}
    return bool(words[0] & _NOT or words[1] & (_OFF | (_NOT if is_sentence else set())))


def framework_words(text: str) -> list[str]:
    """The words of a text that name frameworks, each once."""
    if "pytorch" not in text.lower():  # Torch of Lua has no release of such a number
        text = re.sub(r"\bTorch\b(?![ =v-]*[012]\.)|(?<=\.)torch\b", "torch7", text)
    words = re.findall(r"torch-?7|\b(?:tf[12]?|pt|jax|mlx|lua)\b|[a-z]{4,}2?", text.lower())
    return list(dict.fromkeys(word.replace("-", "") for word in words if word.replace("-", "") in FRAMEWORKS))


def named_framework(text: str) -> str:
    """Our framework that a text names; empty without, for a framework that is not here, and for several."""
    found = {FRAMEWORKS[word] for word in framework_words(text)}
    return found.pop() if len(found) == 1 else ""
