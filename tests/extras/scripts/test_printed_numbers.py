"""Numbers as programs print them: what is proposed from their lines, and what a trial then reads from the same lines.

tests/scripts/formats.txt has lines of public logs, each with its address. In every block: the lines (>), maybe how long
the whole program took, then the name, the unit and the numbers of every proposal (=), and what is in doubt (?).
"""

import math
import time
from typing import NamedTuple

import pytest

from common import lines as printed
from common import patterns, plausibility
from tests.bench import HERE
from tsuishi.extras.scripts.proposals import Proposal, lines_of, proposals
from tsuishi.specs.experiment import Pattern, numerals_of
from tsuishi.specs.numerals import Decimal

FORMATS = HERE / "scripts" / "formats.txt"


class Format(NamedTuple):
    """A block: what a program printed, and what is expected of it."""

    text: str
    wall_s: float
    proposed: list[str]
    doubts: list[str]


def formats() -> list[Format]:
    found = []
    for block in FORMATS.read_text(encoding="utf-8").split("\n\n"):
        of = {mark: [line[2:] for line in block.splitlines() if line[:2] == f"{mark} "] for mark in ">=?"}
        wall = [line for line in block.splitlines() if line.startswith("wall ")]
        text = "\n".join(of[">"]).replace("\\t", "\t").replace("\\r", "\r").replace("\\b", "\b")
        if text:
            found.append(Format(text + "\n", float(wall[0].split()[1]) if wall else math.inf, of["="], of["?"]))
    return found


class Recorder:
    """Takes the metrics of a trial; the phases and samples of lines are of no interest here."""

    def __init__(self) -> None:
        self.metrics: list[tuple[str, float, str]] = []

    def metric(self, name: str, value: float, unit: str) -> None:
        self.metrics.append((name, value, unit))

    def phase_begin(self, phase: str) -> None: ...
    def phase_end(self, phase: str) -> None: ...
    def sample(self, phase: str, index: int, steps: int, images: int, seconds: float) -> None: ...


def read(text: str, suite: dict[str, Pattern], units: dict[str, str], wall_s: float) -> tuple[Recorder, list[str]]:
    """What a trial reads with these patterns: its metrics and its remarks."""
    recorder, doubts = Recorder(), plausibility.Doubts()
    known = numerals_of(suite, units.__getitem__)
    found = [patterns.made(one.described(name, units.__getitem__), known, recorder) for name, one in suite.items()]
    for line, row in printed.Splitter().feed(text.encode()):
        each = printed.Line("stdout", 0.0, line, row)
        doubts.hear(each, patterns.hear(found, each))
    for pattern in found:
        pattern.close()
    doubts.judge(found, wall_s)
    return recorder, doubts.texts


def trial(made: list[Proposal], text: str, wall_s: float = math.inf) -> tuple[Recorder, list[str]]:
    suite = {
        one.metric: Pattern(line=one.line, decimal=one.decimal, scale={one.metric: one.scale} if one.scale != 1 else {})
        for one in made
    }
    return read(text, suite, {one.metric: one.unit for one in made}, wall_s)


@pytest.mark.parametrize("printed_by", formats(), ids=lambda one: " ".join(one.text.split())[:40])
def test_what_is_proposed_is_what_a_trial_reads(printed_by: Format) -> None:
    made, doubts = proposals(lines_of(printed_by.text.encode()), (), "theirs", printed_by.wall_s)
    recorder, remarks = trial(made, printed_by.text)
    values = {one.metric: [value for name, value, _ in recorder.metrics if name == one.metric] for one in made}
    assert [
        f"{one.label} | {one.unit} | {' '.join(f'{value:.9g}' for value in values[one.metric])}" for one in made
    ] == printed_by.proposed
    assert [doubt.why for doubt in doubts] == printed_by.doubts
    assert remarks == []


def test_names_of_any_script_are_labels_and_their_keys_are_new_names() -> None:
    lines = [
        "Durée par époque: 1.5 s",
        "学習速度: 120 samples/sec",
        "検証速度: 60 samples/sec",
        "Größe: 3.5 MiB",
        "loss: 1.5",
    ]
    made, _ = proposals(lines, {"loss"}, "theirs")
    assert [(one.metric, one.label) for one in made] == [
        ("duree_par_epoque_s", "Durée par époque"),
        ("rate_samples_s", "学習速度"),
        ("theirs_rate_samples_s", "検証速度"),
        ("grosse_mib", "Größe"),
        ("theirs_loss", "loss"),
    ]


def test_an_expression_that_tells_kinds_apart_takes_no_time_that_grows_faster_than_its_line() -> None:
    columns = " ".join(f"{number / 7:.5f}" for number in range(30))
    made, _ = proposals([f"1/3  2.1G {columns} {name}: 5.5 ms" for name in ("train", "val")], (), "theirs")
    assert [one.label for one in made] == ["train", "val"]
    for text in (f"1/3 2.1G {'0.1234567890 ' * 150}tram: 5.5 ms", "1 " * 1000, "0.1" * 660, "-1.5," * 400):
        begin = time.process_time()
        for one in made:
            assert read(f"{text}\n", {one.metric: Pattern(line=one.line)}, {one.metric: "s"}, math.inf)[0].metrics == []
        assert time.process_time() - begin < 0.25  # half of what a trial allows


def test_a_kind_is_found_again_where_its_values_and_its_widths_are_others() -> None:
    text = "step {} [{}] loss {} on GPU {}: {} ms\n".format
    first = "".join(text(step, 9, 0.5, gpu, 4.1) for step in (9, 10) for gpu in (0, 1))
    made, _ = proposals(lines_of(first.encode()), (), "theirs")
    later = "".join(text(step, 10, "nan", gpu, 400 + gpu) for step in (100, 2000) for gpu in (0, 1, 2))
    found = trial([one for one in made if one.unit == "s"], later)[0].metrics
    assert [value for _, value, _ in found] == pytest.approx([0.4, 0.4, 0.401, 0.401])


@pytest.mark.parametrize(
    ("unit", "text", "value"),
    [
        ("it/s", "1.25s/it", 0.8),
        ("it/s", "800ms/it", 1.25),
        ("it/s", "1.7it/s", 1.7),
        ("it/s", "1.2k it/s", 1200.0),
        ("it/s", "90it/min", 1.5),
        ("s/step", "804us/step", 804e-6),
        ("s/step", "2step/s", 0.5),
        ("s", "1.5 min", 90.0),
        ("s", "12µs", 12e-6),
    ],
)
def test_a_number_is_read_in_the_unit_of_its_line(unit: str, text: str, value: float) -> None:
    suite = {"rate": Pattern(line=r"(?P<rate>{number})\s?(?P<unit>{unit})")}
    recorder, _ = read(f"{text}\n", suite, {"rate": unit}, math.inf)
    assert recorder.metrics == [("rate", pytest.approx(value), unit)]


@pytest.mark.parametrize(
    ("decimal", "text", "value"),
    [
        (".", "1,234.5", 1234.5),
        (".", "1'234", 1234.0),
        (".", "−1e-3", -0.001),
        (",", "1.234,5", 1234.5),
        (",", "1 234,5", 1234.5),
        (",", "0,5e2", 50.0),
        (".", "0,5", None),
        (".", "1,5", None),
        (".", "12,34", None),
        (",", "1.5", None),
        (".", "1 234", None),
        (".", "3 s, 5 s", None),
    ],
)
def test_a_number_of_another_form_is_an_error_and_never_another_number(
    decimal: Decimal, text: str, value: float | None
) -> None:
    suite = {"x": Pattern(line=r"x=(?P<x>.*)$", decimal=decimal)}
    if value is not None:
        assert read(f"x={text}\n", suite, {"x": "1"}, math.inf)[0].metrics == [("x", value, "1")]
        return
    said = (
        f"pattern 'x': group 'x' found '{text}', which is no number with the decimal sign '{decimal}', in the line: x="
    )
    with pytest.raises(patterns.NotANumber, match=f"^{said}{text}$"):
        read(f"x={text}\n", suite, {"x": "1"}, math.inf)


def test_a_unit_that_nobody_knows_is_an_error_that_says_what_to_write() -> None:
    suite = {"x": Pattern(line=r"(?P<x>{number}) (?P<unit>\w+)")}
    with pytest.raises(
        patterns.NotANumber, match=r"how the unit 'parsec' becomes 's', .*write `units = \{ \"parsec\" = "
    ):
        read("2 parsec\n", suite, {"x": "s"}, math.inf)
    suite = {"x": Pattern(line=r"(?P<x>{number}) (?P<unit>\w+)", units={"parsec": 3.0})}
    assert read("2 parsec\n", suite, {"x": "s"}, math.inf)[0].metrics == [("x", 6.0, "s")]


def test_states_of_a_line_that_is_drawn_over_itself_count_once() -> None:
    suite = {"x": Pattern(line="x=(?P<x>{number})")}
    text = "0%\rx=1\rx=2\rx=3\n0%\rx=4\r     \r\nx=5\r\nx=6\n"
    assert [value for _, value, _ in read(text, suite, {"x": "1"}, math.inf)[0].metrics] == [3, 4, 5, 6]


def test_a_metric_that_is_not_finite_has_no_value_and_is_said() -> None:
    text = "".join(f"epoch {epoch}  loss: {'nan' if epoch else '2.31'}  time: 0.5 s\n" for epoch in range(4))
    made, _ = proposals(lines_of(text.encode()), (), "theirs")
    recorder, remarks = trial(made, text)
    assert {name for name, _, _ in recorder.metrics} == {"time_s"}
    assert remarks == ["loss is nan in 3 of 4 lines, first in its line 2: it has no value here"]


def test_what_cannot_be_is_said_of_the_trial() -> None:
    suite = {
        "time_s": Pattern(line="in (?P<time_s>{number}) s"),
        "rate": Pattern(line="(?P<rate>{number}) images/s"),
        "images": Pattern(line="(?P<images>{number}) images in"),
    }
    units = {"time_s": "s", "rate": "images/s", "images": "images"}
    text = "100 images in 2 s: 51 images/s\n100 images in 3 s: 5 images/s\n"
    assert read(text, suite, units, 4.0)[1] == [
        "rate times time_s is 15, and images is 100, in the line: 100 images in 3 s: 5 images/s"
    ]
    assert read(text, suite, units, 2.0)[1][1:] == ["time_s is 3 s as printed, but the whole script took 2 s"]
