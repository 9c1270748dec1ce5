"""Workload training: what a literal step is made of, and printed times that do not grow with their batch."""

from collections.abc import Iterator, Mapping
from typing import Any

from tsuishi.report.parts.explanation import Explanation, Paragraph
from tsuishi.report.parts.two_sides import Timed

from .printed_batches import STEP, batches_in_doubt
from .steps import RATE, division


class TimesOfSteps(Explanation):
    """The parts of a literal step, and the printed batches that were checked here, by environment."""

    def paragraphs(self) -> dict[str, list[Paragraph]]:
        every = {environment: [*self._about(environment)] for environment in self.evidence.environments}
        return {environment: several for environment, several in every.items() if several}

    def _about(self, environment: str) -> Iterator[Paragraph]:
        steps = [*self._measured(environment, STEP)]
        yield from batches_in_doubt(self.evidence, self.suite, steps)
        of_no_epochs = [axes for axes, _ in steps if axes["protocol"] == "literal"]
        yield from division(each for each in self._measured(environment, RATE) if each[0] not in of_no_epochs)

    def _measured(self, environment: str, quantity: str) -> Iterator[tuple[Mapping[str, Any], Timed]]:
        """The axes of every case with a quantity, and its estimate."""
        for case_id, _, timed in self.timed(environment, quantity):
            yield self.evidence.axes[case_id], timed
