"""The answer of `invoke check`: a printed number and ours, in lines that can be pasted into an issue."""

import re
import shlex
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from tsuishi import __version__
from tsuishi.base.checkout import Checkout, git_state
from tsuishi.base.typed import program
from tsuishi.extras.tables.adoption import UNNAMED
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.report.parts.shown_units import readable
from tsuishi.report.parts.wording import amount, case_text, digits, ratio_text, worded
from tsuishi.report.sections.beside_published import MeasuredNumber, measured_numbers
from tsuishi.results.assurance import assurance
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.environment import Environment
from tsuishi.specs.numerals import number_in
from tsuishi.specs.questions import ALIKE
from tsuishi.specs.vocabulary import vocabulary
from tsuishi.verdicts.evidence import evidence_of

# Axes whose value changes a number, and which tables often leave unsaid.
_TOLD = ("mode", "precision", "layout", "execution")
# Words of a device's name that tables leave out, and words behind a name that make it the name of another device.
_MAKERS = frozenset({"nvidia", "geforce", "tesla", "quadro", "amd", "intel", "r", "tm", "core", "cpu"})
_VARIANTS = "ti|super|laptop|mobile|max|d|xt|xtx"


def lines_of_check(
    run: RunDirectory, checkout: Checkout, number: CheckableNumber, environment: Environment, doubt: str
) -> dict[str, str]:
    """The five lines by their names: printed, mine, compared, pins, run. checkout: of the check."""
    evidence, words = evidence_of(run, checkout.suites, checkout.published), vocabulary(checkout.suites)
    unit = words.quantity(number.quantity).unit
    found = measured_numbers(evidence, number.quantity, number.axes, number.value)
    with worded(words):
        case = case_text(dict(number.axes))
    shown = amount(number.value, unit)
    converted = "" if number_in(number.text) == number.value else f", which is {shown}"
    assumed = [axis for axis in _TOLD if axis in number.assumed]
    unsaid = f" ({', '.join(assumed)} not said by the table, and assumed)" if assumed else ""
    beside = f"; not read, beside it: {number.beside}" if number.beside else ""
    printed = (
        f"{number.text} ({number.column}){converted}: {case}{unsaid}, on {number.hardware}{beside}; {number.place}"
    )
    said = {"printed": f"{printed}. In doubt: {doubt}" if doubt else printed}
    if found:
        first, *others = found
        where = f"in {environment.name} on {first.device or 'this machine'}"
        also = "".join(f"; by the protocol {each.protocol}: {_ours(each, unit)}" for each in others)
        most = max(evidence.of_others.values(), default=0.0)
        busy = f"; other programs took up to {most:.0f} % of the cores beside them" if most else ""
        said["mine"] = f"{_ours(first, unit)}, {first.trials} trials {where}{also}{busy}"
        said["compared"] = _compared(first, number) + _among(number, first, unit)
    else:
        reason = next(filter(None, evidence.outcomes["reason"].tolist()), "see the logs of the trials")
        said["mine"] = f"no number: {reason}"
        said["compared"] = "nothing to compare"
    record = next(iter(evidence.environment_records.values()), None)
    python = f"Python {record.python}, " if record and record.python else ""
    engine = f"{record.engine}, " if record and record.engine else ""
    said["pins"] = f"{nearness(number, environment)}; {python}{engine}{_tsuishi(checkout)}"
    said["run"] = f"{run.id}, digest {assurance(run).root or 'none'}"
    return said


def _ours(found: MeasuredNumber, unit: str) -> str:
    """The geometric mean over trials with its interval, in its unit."""
    value, low, high = found.ours
    if low is None or high is None:
        return amount(value, unit)
    shown = readable(unit, [value])
    return f"{amount(value, unit)} [{digits(low, shown)}, {digits(high, shown)}]"


def _compared(found: MeasuredNumber, number: CheckableNumber) -> str:
    """How ours stands to the printed number, and within which region they count as alike."""
    _, low, high = found.times
    region = f"{1 / ALIKE:.2f} to {ALIKE:.2f}"
    if low is None or high is None:
        verdict = "a single trial says nothing about scatter"
    elif low > 1 / ALIKE and high < ALIKE:
        verdict = f"alike: within {region}"
    elif high < 1 / ALIKE or low > ALIKE:
        verdict = f"they differ: outside of {region}"
    else:
        verdict = f"undecided: the interval holds an end of {region}"
    hardware = "the same device"
    if number.hardware in ("", UNNAMED):
        hardware = "the table names no hardware: no verdict on the printed number"
    elif not is_device(found.device, number.hardware):
        hardware = f"not on {number.hardware}: no verdict on the printed number"
    return f"mine is {ratio_text(found.times)} times the printed; {verdict} ({hardware}; interval of my trials alone)"


def is_device(device: str, printed: str) -> bool:
    """Whether a printed text names this device: all words of its name but its makers', and no other variant of it."""
    words = [word for word in re.findall(r"[a-z]+|\d+", device.casefold().partition("@")[0]) if word not in _MAKERS]
    name = r"[\W_]*".join(words)
    found = re.search(rf"(?<![a-z0-9]){name}(?![\s_-]*(?:{_VARIANTS})\b|[a-z0-9])", printed.casefold())
    return any(word.isdecimal() for word in words) and found is not None  # "AMD EPYC" is the name of many


def _among(number: CheckableNumber, found: MeasuredNumber, unit: str) -> str:
    """My place among the results of which the printed number is the median; empty where it is no median of uploads."""
    if not number.uploads:
        return ""
    ours = found.ours
    ends = (ours.low or ours.value, ours.high or ours.value)
    # A rate is slower where it is less, a time where it is more.
    shares = [sum((upload > end) == (unit == "s") for upload in number.uploads) for end in ends]
    low, high = sorted(100 * share // len(number.uploads) for share in shares)
    share = f"{low} %" if low == high else f"{low} to {high} %"
    return f"; {share} of the uploaded results are slower than mine (uploads are not machines, nor a sample of them)"


def nearness(number: CheckableNumber, environment: Environment) -> str:
    """How near the environment is to what the table says."""
    if not environment.pinned:
        return "an interpreter of this machine"
    ours = f"{environment.framework} {environment.release}"
    ours += f" without {environment.lacks}" if environment.lacks else ""
    if not number.release:
        return f"{ours} (printed: no release)"
    if number.framework and number.framework != environment.framework:
        return f"{ours} (printed: {number.framework} {number.release})"
    printed = Version(number.release).release
    is_same = Version(environment.release).release[: len(printed)] == printed
    return f"{ours} (as printed)" if is_same else f"{ours} (printed: {number.release})"


def _tsuishi(checkout: Checkout) -> str:
    """The version of tsuishi, and whether its own packages are those of its lock."""
    state = git_state()
    version = state.get("package") or f"{__version__} at {str(state['commit'] or 'no commit')[:12]}"
    differing = sorted(_differing(checkout.root / "requirements.lock"))
    pinned = (
        "its packages as requirements.lock" if not differing else f"{len(differing)} packages not as requirements.lock"
    )
    return f"tsuishi {version}, {pinned}"


def _differing(lock: Path) -> Iterator[str]:
    """The packages of a lock that are installed in another version, or are not installed."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        pin = line.partition(" --hash")[0].rstrip(" \\")
        if "==" not in pin or pin.startswith(("#", " ")):
            continue
        wanted = Requirement(pin)
        if wanted.marker and not wanted.marker.evaluate():
            continue
        try:
            if not wanted.specifier.contains(metadata.version(wanted.name), prereleases=True):
                yield wanted.name
        except metadata.PackageNotFoundError:
            yield wanted.name


def further(given: Mapping[str, object], index: Path) -> list[str]:
    """Where the page is, and the command that measures more. given: the options of the check."""
    options = {**given, "repetitions": 24, "within": "1h"}
    flags = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in options.items()
        if value and name != "table"
    ]
    return [f"the page: {index}", f"more trials: {shlex.join([program(), 'check', str(given['table']), *flags])}"]


def aligned_text(said: Mapping[str, str]) -> list[str]:
    """The lines as text."""
    width = max(map(len, said)) + 2
    return [f"{name:{width}}{text}" for name, text in said.items()]


def markdown_table(said: Mapping[str, str]) -> list[str]:
    """The lines as a Markdown table."""
    cells = {name: text.replace("|", "\\|") for name, text in said.items()}
    return ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in cells.items())]
