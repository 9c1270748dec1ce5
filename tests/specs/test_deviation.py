"""Declared deviations stand for lines of code, which are there, and select cases that suites have."""

import pytest

from tests.words import shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.specs.claims import Deviation
from tsuishi.specs.selections import FRAMEWORK, Selector
from tsuishi.specs.suite import PROFILES, every_suite

SOURCES = shipped_sources()
EVERY = [
    pytest.param(deviation, id=f"{source.name}-{place}")
    for source in SOURCES
    for place, deviation in enumerate(source.deviations)
]


def test_every_source_declares_what_is_done_differently() -> None:
    assert [source.name for source in SOURCES if not source.deviations] == []


@pytest.mark.parametrize("deviation", EVERY)
def test_the_code_that_a_deviation_names_is_there(deviation: Deviation) -> None:
    for line in deviation.code:
        assert line.text in (Checkout().root / line.file).read_text(encoding="utf-8"), line.file
    assert {*deviation.text} == {"en", "ja"}


@pytest.mark.parametrize("deviation", EVERY)
def test_a_suite_has_cases_that_a_deviation_touches(deviation: Deviation) -> None:
    frameworks = deviation.case.get(FRAMEWORK, ("torch",))
    assert any(
        Selector(deviation.case)({**case.values, FRAMEWORK: framework})
        for suite in every_suite(Checkout().suites)
        for profile in PROFILES
        for accelerator in ("cpu", "cuda")
        for case, _ in suite.cases(profile, accelerator)
        for framework in frameworks
    )
