"""Helpers of the tests of views: evidence and comparisons of made-up runs."""

import math
from pathlib import Path
from typing import Any

from tests.synthetic_run import SyntheticRun, steady_samples
from tests.words import WORDS
from tsuishi.report.parts.blocks import Page, View
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import Table, worded
from tsuishi.report.sections.page import make_page
from tsuishi.specs.case import Case
from tsuishi.specs.source import read_sources
from tsuishi.verdicts.evidence import Evidence

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


def evidence_of(*runs: SyntheticRun, published: bool = False) -> Evidence:
    return Evidence(
        [run.finish() for run in runs], read_sources(PUBLISHED, WORDS, tables=False) if published else (), WORDS
    )


def compared(
    run: SyntheticRun, suite: str = "multi_gpu_scaling", protocol: str = "steady", published: bool = False
) -> SuiteCases:
    return SuiteCases(evidence_of(run, published=published), suite, protocol)


def factors(apart: float = 0.1) -> tuple[float, ...]:
    """Of three trials about their geometric mean; the variance of their logarithms is apart²."""
    return (math.exp(-apart), 1.0, math.exp(apart))


def add_trials(
    run: SyntheticRun, case: Case, environment: str, step_s: float, trials: int = 3, apart: float = 0.1, **fields: Any
) -> None:
    """Trials, one or a multiple of three, whose geometric mean is `step_s`."""
    for repetition, factor in enumerate(factors(apart) * (trials // 3) or (1.0,), start=1):
        samples = steady_samples(case.batch_size or 1, [step_s * factor] * 4)
        run.add(case, environment, samples, repetition, **fields)


def page_of(evidence: Evidence) -> Page:
    """The page, of which nothing is drawn."""
    with worded(evidence.words):
        return make_page(evidence, lambda section: None)


def tables(view: View) -> dict[str, Table]:
    """The tables of a view by title."""
    return {block.title: block for block in view.blocks if isinstance(block, Table)}


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]
