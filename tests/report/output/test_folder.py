"""The report: complete, the same twice, safe with hostile text, and never lost."""

import csv
import gzip
import json
import re
import resource
import shutil
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from suites.explanations.conv2d.towers import Lines, Towers
from tests.hostile_run import hostile_run
from tests.reports import make_report, markdown_of
from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    conv2d_case,
    steady_samples,
    training_case,
    write_example,
)
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.report.output import folder
from tsuishi.report.output.typesetting import html, markdown, with_code
from tsuishi.report.output.vega import Drawings
from tsuishi.report.parts.shown_units import Unit, readable
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import digits
from tsuishi.report.sections.descriptions import command_line
from tsuishi.specs.source import Source, read_sources
from tsuishi.specs.trial_spec import Value
from tsuishi.verdicts.evidence import Evidence

ROOT = Path(__file__).parents[3]
PUBLISHED, TEMPLATES = ROOT / "reports" / "published", ROOT / "templates"

# First runs in s on 1 to 8 GPUs, as the source of conv2d printed them.
V100_S = (14.897803307, 4.328074455, 5.645370483, 0.684230804, 0.744736195, 0.731468678, 0.726519346, 0.721646070)
K80_S = (3.248390198, 3.380734682, 3.837318182, 0.690669060, 0.691730976, 0.588120937, 0.581115961, 0.647247314)


class Text(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def report(run: SyntheticRun, out: Path) -> str:
    return make_report([run.finish()], PUBLISHED, TEMPLATES, out).read_text(encoding="utf-8")


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("example")
    make_report([write_example(base / "run")], PUBLISHED, TEMPLATES, base / "out")
    return base / "out"


def test_made_twice_it_is_the_same_to_the_byte(example: Path, tmp_path: Path) -> None:
    make_report([write_example(tmp_path / "elsewhere" / "run")], PUBLISHED, TEMPLATES, tmp_path / "again")
    assert files(tmp_path / "again") == files(example)


def test_it_holds_no_path_of_this_machine(example: Path) -> None:
    assert not [name for name, content in files(example).items() if str(example.parent).encode() in content]


def test_the_page_needs_nothing_from_outside_itself(example: Path) -> None:
    page = Text((example / "index.html").read_text(encoding="utf-8"))
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert all(value.startswith("#") for name, value in page.attributes if name in ("src", "href", "xlink:href"))
    assert page.tags.count("svg") == len(list((example / "charts").iterdir()))


def test_the_policy_of_the_page_names_its_style_and_its_two_scripts_and_nothing_else(example: Path) -> None:
    html = (example / "index.html").read_text(encoding="utf-8")
    inline = re.findall(r"<(script|style)>(.*?)</\1>", html, re.DOTALL)
    assert [kind for kind, _ in inline] == ["style", "script", "script"]
    style, *scripts = ["sha256-" + b64encode(sha256(text.encode()).digest()).decode() for _, text in inline]
    (policy,) = re.findall(r'"Content-Security-Policy" content="([^"]+)"', html)
    assert policy == (
        f"default-src 'none'; style-src '{style}'; script-src '{scripts[0]}' '{scripts[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.mark.long
def test_charts_of_folded_sections_are_data_of_the_page_and_files_only_where_all_are_asked_for(
    example: Path, tmp_path: Path
) -> None:
    html = (example / "index.html").read_text(encoding="utf-8")
    (text,) = re.findall(r'<script type="application/gzip" id="charts">([A-Za-z0-9+/=]+)</script>', html)
    charts = json.loads(gzip.decompress(b64decode(text)))
    assert len(charts) > 5
    run = write_example(tmp_path / "run")
    with Drawings(None, every=True) as drawings:
        folder.make_report([run], PUBLISHED, WORDS, TEMPLATES, tmp_path / "all", drawings)
    first, every = ({path.stem for path in (out / "charts").iterdir()} for out in (example, tmp_path / "all"))
    assert every == {*charts, *first}
    assert {name for name in first if not name.startswith("highlight-")} == set()
    assert (tmp_path / "all" / "index.html").read_bytes() == (example / "index.html").read_bytes()


@pytest.mark.long
def test_what_is_kept_in_the_cache_makes_the_same_report_and_is_not_needed(example: Path, tmp_path: Path) -> None:
    run = write_example(tmp_path / "run")
    for out in ("first", "second"):
        with Drawings(tmp_path / "cache") as drawings:
            folder.make_report([run], PUBLISHED, WORDS, TEMPLATES, tmp_path / out, drawings)
        assert files(tmp_path / out) == files(example)
    assert any((tmp_path / "cache").iterdir())
    no_folder = tmp_path / "file"
    no_folder.touch()
    with Drawings(no_folder) as drawings:
        folder.make_report([run], PUBLISHED, WORDS, TEMPLATES, tmp_path / "third", drawings)
    assert files(tmp_path / "third") == files(example)


def test_where_nothing_can_be_drawn_all_but_the_pictures_is_written_and_the_limit_is_named(
    example: Path, tmp_path: Path
) -> None:
    run, (soft, hard) = write_example(tmp_path / "run"), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (64 << 30, hard))
    try:
        with Drawings(None) as drawings:
            folder.make_report([run], PUBLISHED, WORDS, TEMPLATES, tmp_path / "out", drawings)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert re.fullmatch(
        r"the process that draws has ended \(exit code -\d+\): .*out of memory.*; "
        r"`ulimit -v` leaves it 64 GiB of addresses, and it needs hundreds, of which few are used",
        drawings.why_undrawn,
    )
    here, there = files(tmp_path / "out"), files(example)
    pictures = {name for name in there if name.startswith("charts/")}
    assert pictures
    assert here.keys() == there.keys() - pictures
    pages = {"report.md", "index.html"}
    assert {name for name in here if here[name] != there[name]} == pages
    assert here["report.md"].decode() == re.sub(r"^!\[.*\n\n", "", there["report.md"].decode(), flags=re.MULTILINE)


def test_charts_beside_the_page_are_svg_files_with_a_colour_of_their_own(example: Path) -> None:
    for path in (example / "charts").iterdir():
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314  our own file
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme:dark" in (root[0].text or "")


def test_ids_are_unique_and_links_lead_somewhere(example: Path) -> None:
    html = (example / "index.html").read_text(encoding="utf-8")
    page = Text(html)
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value.removeprefix("#") for name, value in page.attributes if name == "href"} <= set(ids)
    without_scripts = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert set(re.findall(r"url\(#([^)]+)\)", without_scripts)) <= set(ids)


def test_every_number_on_the_page_is_in_the_csv_files(example: Path) -> None:
    html = (example / "index.html").read_text(encoding="utf-8")
    shown = set(re.findall(r'<data value="([^"]+)">', html))
    exact = {
        value
        for table in (example / "tables").glob("*.csv")
        for row in csv.DictReader(table.open(encoding="utf-8"))
        for value in row.values()
    }
    assert len(shown) > 50
    assert shown <= exact


def test_the_step_between_three_and_four_towers_is_a_ratio(example: Path) -> None:
    rows = list(csv.DictReader((example / "tables" / "ratios.csv").open(encoding="utf-8")))
    found = {(row["series"], row["quantity"]): float(row["ratio"]) for row in rows}
    assert {(row["devices"], row["more_devices"]) for row in rows} == {("3", "4")}
    assert found[TF, "first_run_s"] == pytest.approx(0.9 / 0.45)
    assert found[f"{TF}, graph optimisers none", "first_run_s"] == pytest.approx(1)
    assert found["V100 (published)", "first_run_s"] == pytest.approx(5.645370483 / 0.684230804)


def test_scipy_has_a_row_of_its_own_beside_the_towers(example: Path) -> None:
    text = markdown_of(example)
    rows = [row.split(" | ")[:3] for row in text.splitlines() if "first run," in row]
    assert ["| torch2-cpu", "first run, ms", "350"] in rows
    assert ["| torch2-cpu, SciPy", "first run, ms", "250"] in rows


def test_published_numbers_stand_beside_the_cases_they_belong_to(example: Path) -> None:
    rows = list(csv.DictReader((example / "tables" / "cases.csv").open(encoding="utf-8")))
    three = [row for row in rows if row["devices"] == "3" and row["quantity"] == "first_run_s"]
    assert {(row["graph_optimizers"], row["published_conv2d_gce_k80"]) for row in three} == {
        ("default", "3.837318182"),
        ("none", ""),
    }


def test_accuracy_on_made_up_data_is_not_put_beside_published_accuracy(example: Path) -> None:
    rows = list(csv.DictReader((example / "tables" / "cases.csv").open(encoding="utf-8")))
    (accuracy,) = [row for row in rows if row["quantity"] == "accuracy"]
    assert accuracy["published_torch_2080ti_rtx_2080ti"] == ""
    (epoch,) = [row for row in rows if row["quantity"] == "first_epoch_s" and row["protocol"] == "literal"]
    assert epoch["published_torch_2080ti_rtx_2080ti"] == "15.86"


def test_what_is_missing_or_failed_has_its_word_in_every_table(example: Path) -> None:
    html = (example / "index.html").read_text(encoding="utf-8")
    for word in ("missing", "unsupported", "not planned", "not published"):
        assert f">{word}</td>" in html
    for body in re.findall(r"<tbody>.*?</tbody>", html, re.DOTALL):
        assert not re.search(r"<td[^>]*></td>\s*<td[^>]*></td>", body)
    text = Text(html).text
    assert "channels_first needs a GPU in TensorFlow 1.13; use tf2-cpu" in text
    assert "exit code 1: RuntimeError" in text
    assert "left out: needs an NVIDIA GPU; this machine has none" in text


def test_warnings_say_simulated_synthetic_unpinned_substituted_and_garbled(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    why = "RTX 4090 is compute capability 8.9 (Ada); tf holds code for 3.5 to 7.0"
    run.add(conv2d_case(), TF, [], simulated=True, synthetic=True, events_garbled=2, forced=why)
    text = Text(report(run, tmp_path / "out")).text
    for warning in (
        "1 of 1 trials: simulated devices",
        "1 of 1 trials: synthetic data",
        f"in an environment without native code for this GPU: {why}.",
        "built on localhost/bionic:local, which is unpinned",
        "localhost/bionic:local stands in for docker.io/library/ubuntu:18.04",
        "2 events were garbled",
    ):
        assert warning in text


def test_hostile_text_is_text(tmp_path: Path) -> None:
    html = report(hostile_run(tmp_path / "run"), tmp_path / "out")
    page = Text(html)
    assert "img" not in page.tags
    assert len(re.findall("<script>", html)) == 2
    assert "<script>alert(1)</script>" in page.text
    assert "\x00" not in html
    assert "\u202e" not in html
    text = markdown_of(tmp_path / "out")
    # The command stands in a code block, where text is only text.
    assert [line[:4] for line in text.splitlines() if "<script" in line] == ["    "]
    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    for rows in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    for chart in (tmp_path / "out" / "charts").iterdir():
        drawn = Text(chart.read_text(encoding="utf-8"))
        assert set(drawn.tags) <= {"svg", "style", "defs", "clippath", "g", "path", "rect", "line", "text", "tspan"}
        assert [name for name, _ in drawn.attributes if name.startswith("on") or name.endswith("href")] == []


def test_the_first_page_of_markdown_is_short_and_links_its_charts_and_the_details(example: Path) -> None:
    text = (example / "report.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200
    linked = re.findall(r"\]\(([^)]+)\)", text)
    assert linked[-1] == "details.md"
    assert len(linked) > 1
    assert all((example / name).is_file() for name in linked)
    assert "](report.md)" in (example / "details.md").read_text(encoding="utf-8")


def test_a_run_in_which_nothing_ran_still_has_a_report(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add_plan(conv2d_case(), TF)
    assert "1 missing" in Text(report(run, tmp_path / "out")).text
    empty = SyntheticRun(tmp_path / "empty")
    assert "Nothing ran" in Text(report(empty, tmp_path / "out")).text


def test_a_report_that_fails_leaves_the_old_one_alone(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run")
    out = tmp_path / "out"
    make_report([run], PUBLISHED, TEMPLATES, out)
    before = files(out)
    broken = tmp_path / "templates"
    shutil.copytree(TEMPLATES, broken)
    (broken / "report.html.j2").write_text("{{ page.nothing_like_that }}")
    with pytest.raises(Exception, match="nothing_like_that"):
        make_report([run], PUBLISHED, broken, out)
    assert files(out) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_directory_that_is_no_report_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("three years of work")
    with pytest.raises(UserError, match="holds something that is no report, which would be lost"):
        make_report([write_example(tmp_path / "run")], PUBLISHED, TEMPLATES, out)
    assert (out / "thesis.tex").exists()


def test_several_runs_make_one_report(tmp_path: Path) -> None:
    runs = []
    for name, step_s in (("a", 0.1), ("b", 0.3)):
        run = SyntheticRun(tmp_path / name)
        run.add(training_case(16), TF, steady_samples(16, [step_s] * 4))
        runs.append(run.finish())
    make_report(runs, PUBLISHED, TEMPLATES, tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "tables" / "cases.csv").open(encoding="utf-8")))
    (step,) = [row for row in rows if row["quantity"] == "step_s"]
    assert (float(step["estimate"]), step["n"], step["spread_kind"]) == (pytest.approx(0.03**0.5), "2", "trials")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(14.897803307, "s", "14.9"), (0.0004, "s", "0.000400"), (11037.0, "s", "11,037"), (125.0, "s", "125"),
     (840.0, "1", "840"), (0.0, "1", "0"), (0.25, "1", "0.250")],
)  # fmt: skip
def test_numbers_have_three_digits(value: float, unit: str, text: str) -> None:
    assert digits(value, Unit(unit)) == text


@pytest.mark.parametrize(
    ("values", "unit", "readable_unit", "texts"),
    [
        ([0.0123, 0.0871, 1.7], "s", "ms", ["12.3", "87.1", "1,700"]),
        ([0.5, 2.0, 14.0], "s", "s", ["0.500", "2.00", "14.0"]),
        ([3.1e-5], "s", "µs", ["31.0"]),
        ([2.105e11, 1.3e9], "FLOP/s", "GFLOP/s", ["210", "1.30"]),
        ([0.0, 0.02], "images/s", "images/s", ["0.00", "0.0200"]),
        ([], "s", "s", []),
    ],
)
def test_a_table_has_the_unit_in_which_most_of_its_values_are_short(
    values: list[float], unit: str, readable_unit: str, texts: list[str]
) -> None:
    shown = readable(unit, values)
    assert shown.name == readable_unit
    assert [digits(value, shown) for value in values] == texts


def test_the_command_says_what_was_given_and_quotes_it() -> None:
    given: dict[str, Value | tuple[Value, ...]] = {
        "env": ("tf1.13-cpu", "torch2-cpu"),
        "profile": "quick",
        "data_dir": "a b",
        "seed": 0,
        "resume": "",
        "plan": False,
    }
    assert (
        command_line(given)
        == "invoke build run-suite --env=tf1.13-cpu,torch2-cpu --profile=quick '--data-dir=a b' --seed=0 report"
    )


def test_running_again_uses_the_same_mirrors_and_host_python(tmp_path: Path) -> None:
    given = {"engine": "host", "mirrors": "docker.io/library/ubuntu=mirror.lan/ubuntu,a=b", "host_python": "python3.12"}
    run = SyntheticRun(tmp_path / "run", arguments=given)
    run.add(conv2d_case(), TF, [])
    command = (
        "invoke build run-suite --engine=host --mirrors=docker.io/library/ubuntu=mirror.lan/ubuntu,a=b "
        "--host-python=python3.12 report"
    )
    assert command in Text(report(run, tmp_path / "out")).text
    assert command in markdown_of(tmp_path / "out")


def test_a_command_in_a_text_is_code_in_both_formats_and_nothing_else_is() -> None:
    text = "<b> & `x`: go on with `invoke run-suite --resume a_b*` or `invoke <b>`"
    assert with_code(text) == (
        "&lt;b&gt; &amp; `x`: go on with <code>invoke run-suite --resume a_b*</code> or `invoke &lt;b&gt;`"
    )
    assert html(text) == html(text).replace("<code>", "")
    assert markdown(text) == (
        r"&lt;b&gt; &amp; \`x\`: go on with `invoke run-suite --resume a_b*` or \`invoke &lt;b&gt;\`"
    )


def test_markdown_escapes_what_markdown_means() -> None:
    assert markdown("a|b *c* [d](e) <f> `g`\nh") == r"a\|b \*c\* \[d\](e) &lt;f&gt; \`g\` h"


def towers_of(run: SyntheticRun, sources: tuple[Source, ...] = ()) -> Towers:
    return Towers(
        SuiteCases(
            Evidence([run.finish()], sources or read_sources(PUBLISHED, WORDS, tables=False), WORDS),
            "conv2d",
            "literal",
        )
    )


def first_runs(lines: Lines) -> dict[str, dict[int, float | None]]:
    """By series, the first run on so many towers."""
    return {
        series: {count: cell.value for count, cell in line.items()}
        for (series, quantity), line in lines.items()
        if quantity == "first_run_s"
    }


def test_the_towers_table_holds_what_the_source_ran_and_interventions_have_their_own(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for devices in (3, 4):
        for changes in ({}, {"data": "random"}, {"feed": "fed"}, {"graph_optimizers": "none", "filter_size": 10}):
            run.add(conv2d_case(devices=devices, **changes), TF, [("first_run", 0, 1, 840, float(devices))])
    scipy = {"strategy": None, "feed": None, "graph_optimizers": None}
    run.add(conv2d_case(implementation="scipy", **scipy), TF, [("first_run", 0, 1, 840, 5.0)])
    run.add(conv2d_case(implementation="scipy_all_cores", **scipy), TF, [("first_run", 0, 1, 840, 6.0)])
    run.add(conv2d_case(implementation="scipy", filter_size=10, **scipy), TF, [("first_run", 0, 1, 840, 7.0)])
    towers = towers_of(run)
    assert first_runs(towers.own) == {
        TF: {3: 3.0, 4: 4.0},
        f"{TF}, SciPy": {1: 5.0},
        f"{TF}, SciPy on all cores": {1: 6.0},
        "V100 (published)": pytest.approx(dict(enumerate(V100_S, start=1))),
        "K80 (published)": pytest.approx(dict(enumerate(K80_S, start=1))),
    }
    assert first_runs(towers.others) == {
        f"{TF}, random data": {3: 3.0, 4: 4.0},
        f"{TF}, fed input": {3: 3.0, 4: 4.0},
        f"{TF}, filter 10×10, graph optimisers none": {3: 3.0, 4: 4.0},
        f"{TF}, SciPy, filter 10×10": {1: 7.0},
    }
    own, others = towers.tables()
    assert (own.folded, others.folded) == (False, True)
    assert others.columns == ["", "", "1 tower", "3 towers", "4 towers", "3 ÷ 4 towers"]


def test_a_search_is_no_line_of_the_towers_table(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for devices in (3, 4):
        run.add(conv2d_case(devices=devices), TF, [("first_run", 0, 1, 840, 1.0)])
    run.add(conv2d_case(search="folding_edge"), TF, [("largest_folded_run", 0, 1, 262, 1.0)])
    towers = towers_of(run)
    assert first_runs(towers.own)[TF] == {3: 1.0, 4: 1.0}
    assert towers.others == {}


def test_where_nothing_was_published_every_line_is_in_the_one_table(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for devices in (3, 4):
        for data in ("ones", "random"):
            run.add(conv2d_case(devices=devices, data=data), TF, [("first_run", 0, 1, 840, 1.0)])
    towers = towers_of(
        run, tuple(source for source in read_sources(PUBLISHED, WORDS, tables=False) if source.name != "conv2d-gce")
    )
    assert set(first_runs(towers.own)) == {f"{TF}, ones data", f"{TF}, random data"}
    assert towers.others == {}


def test_the_diagnosis_is_on_the_page_and_in_a_table(example: Path) -> None:
    rows = list(csv.DictReader((example / "tables" / "diagnosis.csv").open(encoding="utf-8")))
    assert {row["environment"] for row in rows} == {TF, TORCH}
    assert {row["suite"] for row in rows} == {"conv2d"}
    page = Text((example / "index.html").read_text(encoding="utf-8")).text
    text = markdown_of(example)
    for row in rows:
        assert f"{row['topic']}. {row['text']}" in page
        assert f"**{markdown(row['topic'])}.** {markdown(row['text'])}" in text


def test_charts_of_first_and_later_runs_are_those_with_published_numbers(example: Path) -> None:
    html = (example / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'data-chart="([^"]*literal-first_run_s[^"]*)"', html) == ["conv2d-literal-first_run_s"]


def test_an_axis_that_few_cases_have_is_told_with_them_and_not_of_all(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for devices in (3, 4):
        run.add(conv2d_case(devices=devices), TF, [("first_run", 0, 1, 840, 1.0)])
    search = conv2d_case(devices=3, search="folding_edge")
    run.add(search, TF, [("largest_folded_run", 0, 1, 262, 1.0)])
    suite_cases = SuiteCases(Evidence([run.finish()], (), WORDS), "conv2d", "literal")
    assert "search" not in suite_cases.common
    assert suite_cases.varying == ["devices", "search"]
