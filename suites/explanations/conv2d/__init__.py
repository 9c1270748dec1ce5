"""Workload conv2d: why runs with few towers are slow, and runs with more towers are fast."""

from collections.abc import Iterator
from functools import cached_property

from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.explanation import Explanation, Headline, Paragraph
from tsuishi.report.parts.suite_cases import SuiteCases

from .diagnosis import diagnose
from .headline import headline
from .observations import Observations, observations
from .towers import RATIOS, RUN_TIMES, by_towers


class SlowAndFastTowers(Explanation):
    """The diagnosis, and a table of all runs by the number of towers."""

    tables = {"ratios": RATIOS}

    def paragraphs(self) -> dict[str, list[Paragraph]]:
        return self._diagnosis

    def headline(self, environment: str) -> Headline | None:
        measured = self._observations.get(environment)
        return headline(measured, self.level(environment)) if measured else None

    def opening_views(self, suite_cases: SuiteCases) -> Iterator[View]:
        yield by_towers(suite_cases)

    def covered(self, suite_cases: SuiteCases) -> frozenset[str]:
        """With several towers, the table by their number already shows first and later runs."""
        return frozenset(RUN_TIMES if "devices" in suite_cases.varying else ())

    @cached_property
    def _diagnosis(self) -> dict[str, list[Paragraph]]:
        return diagnose(self._observations, self.level)

    @cached_property
    def _observations(self) -> dict[str, Observations]:
        return observations(self.evidence, self.suite)
