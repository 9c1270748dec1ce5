"""The report: runs and published numbers as one page, one Markdown file, charts and tables.

A pure function of run directories, reports/published, templates, and the axes and quantities that suites/ describes:
the same inputs give the same bytes, on any day and in any directory.
"""

import gc
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.report.output import csv_files, json_data
from tsuishi.report.output.junit import junit_xml
from tsuishi.report.output.typesetting import BASELINE, as_html, as_markdown
from tsuishi.report.output.vega import Drawings
from tsuishi.report.parts.blocks import Page
from tsuishi.report.parts.declarations import report_package
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.wording import worded
from tsuishi.report.sections.highlighted_answers import decided_answers
from tsuishi.report.sections.main_questions import Questions
from tsuishi.report.sections.page import declared_columns, every_table, make_page
from tsuishi.report.sections.past_sessions import Past
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.baseline import Baseline, shared_trials
from tsuishi.verdicts.conclusions import conclude
from tsuishi.verdicts.evidence import Evidence, sources_beside

# With BASELINE, of a report with a baseline: for CI.
_JUNIT = "junit.xml"
_MEMBERS = {
    *("index.html", "report.md", "details.md", "report.json", json_data.SCHEMA_FILE, "charts", "tables"),
    *(_JUNIT, BASELINE),
}


class Report(NamedTuple):
    """A report that was written: the file of its page, and the page."""

    file: Path
    page: Page


class Against(NamedTuple):
    """The runs of a baseline, and the ratio of times from which on a case counts as slower."""

    runs: Sequence[RunDirectory]
    threshold: float = 1.0


@contextmanager
def _uncollected() -> Iterator[None]:
    """Switch the collector of cycles off meanwhile: it finds almost no cycles, and takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_uncollected()
def make_report(
    runs: Sequence[RunDirectory],
    published: Path,
    words: Vocabulary,
    templates: Path,
    out: Path,
    drawings: Drawings | None = None,
    against: Against | None = None,
    history: Sequence[RunDirectory] = (),
    left_out: Mapping[tuple[str, ...], int] = MappingProxyType({}),
    sheets: Sequence[DataSheet] | None = None,
) -> Report:
    """Write the page, the Markdown files, charts/ and tables/ of these runs into `out`, in the words of a checkout.

    Whatever was in `out` is replaced once the new report is complete, and stays if the report cannot be made.
    drawings: draws the charts; it may have been started before, and may keep charts for later reports. Raises
    UserError where there are no runs, a file is unreadable, or `out` holds something that is no report; and where
    the runs of the baseline `against` have the same trials. history: of the user's runs; these are among them.
    left_out: the numbers of the user's runs on other machines, by the facts that differ. sheets: see Evidence.
    """
    if not runs:
        raise UserError("no run to report on: make one with `invoke run-suite`")
    if out.exists() and not (out.is_dir() and {name for name, _ in files.entries(out.resolve())} <= _MEMBERS):
        raise UserError(f"{out} holds something that is no report, which would be lost; give another directory")
    given = nullcontext(drawings) if drawings else Drawings(None)
    with given as drawn, _replacing(out) as fresh:
        sources = sources_beside(runs, published, words)
        evidence = Evidence(runs, sources, words, sheets)
        baseline = (
            _baseline(evidence, Evidence(against.runs, sources, words, sheets), against.threshold) if against else None
        )
        with worded(evidence.words):
            past = Past(Evidence(history, sources, words, sheets), left_out) if history else None
            page = _written(fresh, evidence, templates, drawn, (baseline, past))
    return Report(out / "index.html", page)


def decided_so_far(run: RunDirectory, published: Path, words: Vocabulary) -> dict[str, str]:
    """The sentences of a report that was made now on its questions that are decided, by the question's id."""
    evidence = Evidence([run], sources_beside([run], published, words), words)
    with worded(words):
        answers = conclude(evidence).answers
        explanations = Explanations(evidence, every_table(), answers)
        return decided_answers(evidence, Questions(evidence, answers, explanations), explanations)


def _baseline(evidence: Evidence, earlier: Evidence, threshold: float) -> Baseline:
    """The runs with their baseline. Raises UserError where both sides have a trial."""
    if shared := shared_trials(evidence, earlier):
        raise UserError(
            f"the baseline has {len(shared)} of the trials that are held against it: name other runs as the baseline"
        )
    return Baseline(evidence, earlier, threshold)


def _written(
    out: Path,
    evidence: Evidence,
    templates: Path,
    drawings: Drawings,
    other: tuple[Baseline | None, Past | None],
) -> Page:
    """The page, with all files of its report in an empty folder. other: the baseline and the history of the runs."""
    for name in ("charts", "tables"):
        (out / name).mkdir()
    page = make_page(evidence, drawings.begin, *other)
    for name, values in page.tables.items():
        with (out / "tables" / f"{name}.csv").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(csv_files.parts(values))
    _write(out / "tables" / "datapackage.json", report_package(declared_columns(evidence)))
    _write(out / "report.json", json_data.report_json(page, evidence))
    _write(out / json_data.SCHEMA_FILE, json_data.report_schema())
    svg = drawings.finished()
    for name, text in as_markdown(page, templates, svg).items():
        _write(out / name, text)
    if page.baseline:
        _write(out / _JUNIT, junit_xml(page.baseline.cases, page.baseline.summary))
    for name, drawing in svg.items():
        _write(out / "charts" / f"{name}.svg", _standalone(drawing))
    _write(out / "index.html", as_html(page, svg, templates, drawings.runtime))
    return page


def _standalone(svg: str) -> str:
    """An SVG with a colour of its own, for where no page gives it a colour."""
    style = "<style>svg{color:#333}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"
    return svg.replace(">", ">" + style, 1)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """A fresh directory beside `out` that takes its place when the block ends well, and vanishes when it does not.

    It is on the disk before, and there is a report at every moment.
    """
    old = out.with_name(f".{out.name}.old")
    if old.exists():  # a killed process was between the two names
        shutil.rmtree(old) if out.exists() else old.rename(out)
    with files.temporary_folder(out.parent, f".{out.name}.partial-") as partial:
        yield partial
        files.sync_all(partial)
        try:
            files.exchange(partial, out)
        except OSError:  # there is none yet, or the file system cannot
            if out.exists():
                out.rename(old)
            partial.rename(out)
            shutil.rmtree(old, ignore_errors=True)
        files.sync(out.parent)
